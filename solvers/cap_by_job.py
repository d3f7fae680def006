"""Lower clocks job by job under a power cap, the job whose next step saves most first.

The cap is kept at every moment, as instances require. ``cap_greedy`` of the CHSAC-AF paper's
simulator checks every few seconds instead, lets the cap be exceeded in between, and begins with the
step that saves least for the speed it costs; jobs are sent to sites at random there.

What runs is slowed down only where an instance is preemptive; elsewhere the cap acts on what
begins. What does not fit waits; so does work that would fit only at a clock below ``floor`` (a
share of the top clock).
"""

from __future__ import annotations

from dataclasses import dataclass

from optbench.errors import ParameterError
from optbench.sim.kernel.sites.moves import SINGLY
from optbench.sim.kernel.sites.routes import Routes
from optbench.sim.sites.sites import ModeGrid

from ._routers import CappedRouter, index, on_devices, require_at_least


@dataclass(frozen=True)
class CapByJob(CappedRouter):
    """Energy and time as in drift_penalty; single jobs are slowed down while the cap
    requires it.
    """

    time_w: float = 20.0
    gpus: int | None = None
    floor: float = 0.7

    def __post_init__(self) -> None:
        require_at_least("cap_by_job", "time_w", self.time_w, 0)
        require_at_least("cap_by_job", "gpus", self.gpus, 1)
        require_at_least("cap_by_job", "floor", self.floor, 0)
        if self.floor > 1:
            raise ParameterError(
                f"cap_by_job: floor is {self.floor!r}; it must be at most 1, a share of the top "
                "clock"
            )

    @property
    def how(self) -> int:
        return SINGLY

    def routes(self, grid: ModeGrid) -> Routes:
        return index(grid, time_w=self.time_w, allowed=on_devices(grid.instance, self.gpus))
