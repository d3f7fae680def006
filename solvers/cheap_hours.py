"""Work that can wait waits for cheap hours: an index router that compares starting now with starting in a later period.

A job is held until the period within ``hold_h`` hours in which it would cost least, if that saves more than the share ``margin``
of its cost now and more than ``time_w`` for the time; work with a deadline is not held beyond it. Tariffs are known beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass

from optbench.sim.kernel.site_routes import Routes
from optbench.sim.sites import Grid

from ._routers import Router, budget_of, index, require_at_least


@dataclass(frozen=True)
class CheapHours(Router):
    """Hold jobs up to ``hold_h`` hours for lower prices; devices and site by the least of cost and time."""

    hold_h: float = 12.0
    margin: float = 0.1
    time_w: float = 1.0
    latency_budget_s: float | None = None
    gain: float = 3e-5
    queues: bool = False

    def __post_init__(self) -> None:
        require_at_least("cheap_hours", "latency_budget_s", self.latency_budget_s, 1e-9)
        for field in ("hold_h", "margin", "time_w", "gain"):
            require_at_least("cheap_hours", field, getattr(self, field), 0)

    def routes(self, grid: Grid) -> Routes:
        return index(
            grid, time_w=self.time_w, budget_s=budget_of(grid.instance, self.latency_budget_s), gain=self.gain,
            hold_s=3600.0 * self.hold_h, margin=self.margin, queues=self.queues,
        )  # fmt: skip
