"""Least marginal energy first: each job goes where its energy above rest is least among the sites
with a free device.

Jobs for which the best site has no room go to the next best; where no device is free at all, jobs
queue where that is expected to cost least. There is no price of time and no memory: it is the
simplest baseline.
"""

from __future__ import annotations

from dataclasses import dataclass

from optbench.sim.kernel.sites.routes import Routes
from optbench.sim.sites.sites import ModeGrid

from ._routers import Router, index, on_devices, require_at_least


@dataclass(frozen=True)
class Greedy(Router):
    """Least energy above rest (or cost, or carbon) among sites with a free device; ``gpus`` fixes
    how many each job takes.
    """

    gpus: int | None = None

    def __post_init__(self) -> None:
        require_at_least("greedy", "gpus", self.gpus, 1)

    def routes(self, grid: ModeGrid) -> Routes:
        return index(grid, allowed=on_devices(grid.instance, self.gpus))
