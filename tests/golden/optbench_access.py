"""The only place where the golden files import from inside optbench: move these imports with the code."""

from __future__ import annotations

from optbench.api import load_target
from optbench.cli.main import main

__all__ = ["load_target", "main"]
