"""A solver that raises an error before it has found anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import optbench as ob


@dataclass
class AlwaysCrashes(ob.Solver):
    """A solver that raises an error before it has found anything."""

    supports: ClassVar[frozenset[str]] = frozenset({"precedence"})

    def solve(self, instance: ob.Instance, run: ob.Run) -> ob.Schedule | None:
        raise ValueError("crashed on purpose")
