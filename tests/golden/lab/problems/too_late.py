"""Two tasks of three seconds on one device, both due after five: no schedule exists."""

from __future__ import annotations

from dataclasses import dataclass

import optbench as ob


@dataclass(frozen=True)
class TooLate(ob.Problem):
    """Infeasible by two hard deadlines."""

    def instance(self, seed: int = 0) -> ob.Instance:
        m = ob.Model("too-late")
        modes = [m.mode(m.pool("p"), time_s=3, energy_j=1)]
        for name in ("a", "b"):
            m.task(name, modes=modes, deadline_s=5.0, hard=True)
        m.minimize(makespan_s=1.0)
        return m.build()
