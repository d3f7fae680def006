"""A solver that finds nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import optbench as ob


@dataclass
class NeverFinds(ob.Solver):
    """A solver that finds nothing."""

    supports: ClassVar[frozenset[str]] = frozenset({"precedence"})

    def solve(self, instance: ob.Instance, run: ob.Run) -> ob.Schedule | None:
        run.report_message("nothing was found, on purpose")
        return None
