"""All that the golden files import from inside optbench: these lines move with the code."""

from __future__ import annotations

from optbench.api import load_target
from optbench.cli.main import main

__all__ = ["load_target", "main"]
