"""Lower all clocks of a site together under a power cap, the site that saves most first.

The cap is kept at every moment, as instances require. ``cap_uniform`` of the CHSAC-AF paper's
simulator has this order of sites but another effect: it checks every few seconds, lets the cap be
exceeded in between, and lowers a clock that running jobs do not follow, so that what it expects to
save is nothing and it stops.

What runs is slowed down only where an instance is preemptive; elsewhere the cap acts on what
begins. What does not fit waits; so does work that would fit only at a clock below ``floor`` (a
share of the top clock).
"""

from __future__ import annotations

from dataclasses import dataclass

from optbench.errors import ParameterError
from optbench.sim.kernel.sites.moves import UNIFORM
from optbench.sim.kernel.sites.routes import Routes
from optbench.sim.sites.sites import ModeGrid

from ._routers import CappedRouter, index, on_devices, require_at_least


@dataclass(frozen=True)
class CapBySite(CappedRouter):
    """Energy and time as in drift_penalty; each site has a ceiling for its clocks that follows the
    cap.
    """

    time_w: float = 20.0
    gpus: int | None = None
    floor: float = 0.7

    def __post_init__(self) -> None:
        require_at_least("cap_by_site", "time_w", self.time_w, 0)
        require_at_least("cap_by_site", "gpus", self.gpus, 1)
        require_at_least("cap_by_site", "floor", self.floor, 0)
        if self.floor > 1:
            raise ParameterError(
                f"cap_by_site: floor is {self.floor!r}; it must be at most 1, a share of the top "
                "clock"
            )

    @property
    def how(self) -> int:
        return UNIFORM

    def routes(self, grid: ModeGrid) -> Routes:
        return index(grid, time_w=self.time_w, allowed=on_devices(grid.instance, self.gpus))
