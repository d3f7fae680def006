"""Route by cost and carbon: each job goes where its electricity, its priced carbon and its time
cost least over its run.

    price of a joule at pool p
        = price_p + carbon_usd_per_kg carbon_p / 1000   (USD per kWh, scaled to 1 on the average)

taken over the hours in which the job would run. Where an instance has no tariffs, joules count.
"""

from __future__ import annotations

from dataclasses import dataclass

from optbench.sim.kernel.sites.routes import Routes
from optbench.sim.sites.sites import ModeGrid

from ._routers import Router, index, require_at_least, scaled_rates


@dataclass(frozen=True)
class CostRoute(Router):
    """Least cost of electricity with a price on carbon; ``time_w`` is what a second in the system
    is worth, in mean watts.
    """

    carbon_usd_per_kg: float = 0.1
    time_w: float = 0.0

    def __post_init__(self) -> None:
        for field in ("carbon_usd_per_kg", "time_w"):
            require_at_least("cost_route", field, getattr(self, field), 0)

    def routes(self, grid: ModeGrid) -> Routes:
        rates = scaled_rates(grid.instance, 0.0, 1.0, self.carbon_usd_per_kg / 1000.0)
        return index(grid, rates=rates, time_w=self.time_w)
