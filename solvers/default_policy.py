"""Uniform routing; all free GPUs at a lowered clock: the default policy of the CHSAC-AF paper's
simulator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.errors import ParameterError
from optbench.model.instance import Floats, Ints
from optbench.sim.kernel.sites.steering import STICKY, Steering
from optbench.sim.sites.sites import ModeGrid, inference_first, steering_of

from ._sites import SitePolicy, sent_or_uniform


@dataclass(frozen=True)
class DefaultPolicy(SitePolicy):
    """All free devices; a site's clock falls to ``low`` when two or more are free at a start, and
    stays where it is.

    Inference work takes the top clock, at which its site then stays. ``inf_priority`` serves it
    before any other that waits.
    """

    low: float = 0.6
    inf_priority: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.low <= 1:
            raise ParameterError(
                f"default_policy: low is {self.low!r}; it must be above 0 and at most 1"
            )

    def steer(self, grid: ModeGrid, rng: np.random.Generator) -> Steering:
        classes = inference_first(grid.instance).tolist() if self.inf_priority else None
        pools = sent_or_uniform(grid.instance, rng)
        return steering_of(
            grid, pick_by=STICKY, low_clock=lowered(grid, self.low), pools=pools, class_of=classes
        )


def lowered(grid: ModeGrid, low: float) -> Ints:
    """Return, per (kind, pool), the column of the clock nearest to ``low``; the highest for
    inference work.
    """
    out = nearest_clock(grid.clocks, low)
    top = np.maximum((~np.isnan(grid.clocks)).sum(axis=2) - 1, 0)
    of_inference = [name.startswith("inference") for name in grid.instance.modes.kind_names]
    return np.where(np.array(of_inference)[:, None], top, out)


def nearest_clock(clocks: Floats, wanted: float) -> Ints:
    """Return, per (kind, pool), the column of the clock nearest to the wished one."""
    return np.asarray(
        np.where(np.isnan(clocks), np.inf, np.abs(clocks - wanted)).argmin(axis=2), dtype=np.int64
    )
