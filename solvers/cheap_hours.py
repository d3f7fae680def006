"""Delay work to cheap hours: an index router that compares starting now with starting in a later
period.

Within its patience of ``hold_h`` hours a job begins only where it costs at most 1 + ``reserve``
times the least of all sites and hours within patience, so that cheap hours are not spent on
wasteful sites. With a ``margin`` below 1 it is also held until the cheapest of those hours wherever
that saves more than this share of its cost now, and more than ``time_w`` for the time. Work with a
deadline is not held beyond it. Tariffs are known in advance.
"""

from __future__ import annotations

from dataclasses import dataclass

from optbench.sim.kernel.sites.routes import Routes
from optbench.sim.sites.sites import ModeGrid
from optbench.units import HOUR_S

from ._routers import Router, budget_of, index, require_at_least


@dataclass(frozen=True)
class CheapHours(Router):
    """Hold jobs up to ``hold_h`` hours for lower prices; devices and site by the least of cost and
    time.
    """

    hold_h: float = 15.0
    margin: float = 1.0
    time_w: float = 1.0
    latency_budget_s: float | None = None
    gain: float = 3e-5
    reserve: float = 0.4
    queues: bool = False

    def __post_init__(self) -> None:
        require_at_least("cheap_hours", "latency_budget_s", self.latency_budget_s, 1e-9)
        for field in ("hold_h", "margin", "time_w", "gain", "reserve"):
            require_at_least("cheap_hours", field, getattr(self, field), 0)

    def routes(self, grid: ModeGrid) -> Routes:
        return index(
            grid,
            time_w=self.time_w,
            budget_s=budget_of(grid.instance, self.latency_budget_s),
            gain=self.gain,
            hold_s=HOUR_S * self.hold_h,
            margin=self.margin,
            reserve=self.reserve,
            queues=self.queues,
        )
