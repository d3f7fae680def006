"""Uniform routing; all free GPUs at a lowered clock: the default policy of the CHSAC-AF paper's simulator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.errors import ParameterError
from optbench.model.instance import Floats, Ints
from optbench.sim.kernel.sites import STICKY, Steering
from optbench.sim.sites import Grid, steering_of

from ._sites import SitePolicy, sent_or_uniform


@dataclass(frozen=True)
class DefaultPolicy(SitePolicy):
    """All free devices; a site's clock falls to ``low`` when two or more are free at a start, and stays where it is."""

    low: float = 0.6

    def __post_init__(self) -> None:
        if not 0 < self.low <= 1:
            raise ParameterError(f"default_policy: low is {self.low!r}; it must be above 0 and at most 1")

    def steer(self, grid: Grid, rng: np.random.Generator) -> Steering:
        low = nearest_clock(grid.clocks, self.low)
        return steering_of(grid, pick_by=STICKY, low_clock=low, pools=sent_or_uniform(grid.instance, rng))


def nearest_clock(clocks: Floats, wanted: float) -> Ints:
    """Per (kind, pool), the column of the clock nearest to the one wanted."""
    return np.asarray(np.where(np.isnan(clocks), np.inf, np.abs(clocks - wanted)).argmin(axis=2), dtype=np.int64)
