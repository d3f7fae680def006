"""Modules that a test has imported from a workspace of its own are forgotten after it."""

from __future__ import annotations

import sys
from pathlib import Path


def forget_modules_of(folder: Path) -> None:
    """Forget what was imported from a folder. Modules of the framework stay, also those that were
    imported meanwhile: a second copy would have classes that are not those of the first.
    """
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is not None and Path(file).is_relative_to(folder):
            del sys.modules[name]
