"""The cleanest site with a free device: least carbon per unit, in the mode of least carbon; joules
where carbon is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

from optbench.sim.kernel.sites.routes import Routes
from optbench.sim.sites.sites import ModeGrid

from ._routers import Router, index, require_at_least, scaled_rates


@dataclass(frozen=True)
class CarbonRoute(Router):
    """Least carbon among sites with a free device; ``time_w`` is what a second in the system is
    worth, in mean watts.
    """

    time_w: float = 0.0

    def __post_init__(self) -> None:
        require_at_least("carbon_route", "time_w", self.time_w, 0)

    def routes(self, grid: ModeGrid) -> Routes:
        return index(grid, rates=scaled_rates(grid.instance, 0.0, 0.0, 1.0), time_w=self.time_w)
