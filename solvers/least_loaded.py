"""The site with the smallest share of busy devices; there the mode of least energy above rest."""

from __future__ import annotations

from dataclasses import dataclass

from optbench.sim.kernel.sites.routes import Routes
from optbench.sim.sites.sites import ModeGrid

from ._routers import Router, index, on_devices, require_at_least

# A weight so large that energy only breaks ties of the load.
LOAD = 1e15


@dataclass(frozen=True)
class LeastLoaded(Router):
    """To the site of the smallest load (busy devices and waiting jobs per device); ``gpus`` fixes
    how many each job takes.
    """

    gpus: int | None = None

    def __post_init__(self) -> None:
        require_at_least("least_loaded", "gpus", self.gpus, 1)

    def routes(self, grid: ModeGrid) -> Routes:
        return index(grid, load=LOAD, allowed=on_devices(grid.instance, self.gpus))
