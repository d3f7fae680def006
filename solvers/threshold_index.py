"""Threshold policies: many devices per job while a site is quiet, few when it is busy; routed by
energy and time together.

A unit in a mode of n devices costs  e + time_w T  (joules above rest, watts for a second in the
system). Up to a share ``calm`` of busy devices at a site jobs take at most ``wide`` devices there,
up to ``busy`` at most ``middle``, above it at most ``narrow``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.errors import ParameterError
from optbench.sim.kernel.sites.routes import Routes
from optbench.sim.sites.sites import ModeGrid

from ._routers import Router, index, require_at_least


@dataclass(frozen=True)
class ThresholdIndex(Router):
    """Devices per job by thresholds on the busy share of a site, clock and site by the least of
    energy and time.

    ``time_w`` is what a second in the system is worth, in watts; ``whole`` looks at the busy share
    of all sites together.
    """

    time_w: float = 20.0
    calm: float = 0.5
    busy: float = 0.9
    wide: int = 8
    middle: int = 4
    narrow: int = 2
    whole: bool = False

    def __post_init__(self) -> None:
        for field in ("wide", "middle", "narrow"):
            require_at_least("threshold_index", field, getattr(self, field), 1)
        require_at_least("threshold_index", "time_w", self.time_w, 0)
        if not 0 <= self.calm <= self.busy <= 1:
            raise ParameterError(
                f"threshold_index: calm and busy are {self.calm!r} and {self.busy!r}; 0 <= calm "
                "<= busy <= 1"
            )

    def routes(self, grid: ModeGrid) -> Routes:
        most = np.array([self.wide, self.middle, self.narrow])
        allowed = grid.instance.modes.devices[None, :] <= most[:, None]
        return index(
            grid,
            time_w=self.time_w,
            thresholds=(self.calm, self.busy),
            allowed=allowed,
            whole=self.whole,
        )
