"""One task at two clocks, and a solver that answers what it is told to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import optbench as ob
from optbench.model.features import FEATURES
from optbench.model.instance import Instance


def two_clocks() -> ob.Model:
    """One task: 2 s for 100 J, or 5 s for 40 J; the device rests at 10 W until completion."""
    m = ob.Model("clocks")
    p = m.pool("p", idle_w=10)
    m.task("x", modes=[m.mode(p, 2, 100), m.mode(p, 5, 40)])
    return m


@dataclass
class Fixed(ob.Solver):
    """A solver that answers with one mode and start, and claims a bound."""

    mode: int = 0
    start: int = 0
    bound: float = -math.inf
    says_infeasible: bool = False
    supports: ClassVar[frozenset[str]] = frozenset(FEATURES)

    def solve(self, instance: Instance, run: ob.Run) -> ob.Schedule | None:
        run.report_bound(self.bound, "claim")
        if self.says_infeasible:
            run.report_infeasible()
        return ob.Schedule.of(instance, [self.mode], [self.start])
