"""One task, a fast mode (2 s, 20 J), a frugal one (4 s, 12 J): least time, then least energy."""

from __future__ import annotations

from dataclasses import dataclass

import optbench as ob


@dataclass(frozen=True)
class TwoLevels(ob.Problem):
    """A lexicographic objective; the optimum is 2 s and then 20 J."""

    def instance(self, seed: int = 0) -> ob.Instance:
        m = ob.Model("two-levels")
        p = m.pool("p")
        m.task(modes=[m.mode(p, time_s=2, energy_j=20), m.mode(p, time_s=4, energy_j=12)])
        m.minimize_in_order("makespan_s", "energy_j")
        return m.build()
