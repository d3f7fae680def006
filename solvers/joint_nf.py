"""Uniform routing; the number of GPUs and the clock of least energy per unit: JointNF of the
CHSAC-AF paper.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.sim.kernel.sites.steering import TABLE, Steering
from optbench.sim.kernel.state import NONE
from optbench.sim.sites.sites import ModeGrid, inference_first, steering_of

from ._sites import SitePolicy, sent_or_uniform


@dataclass(frozen=True)
class JointNf(SitePolicy):
    """Devices n, clipped to the free ones, and clock f of least P(n, f) T(n, f); jobs go where a
    record says, or anywhere.

    ``inf_priority`` serves waiting inference work before any other, as in the simulator of the
    paper's authors.
    """

    inf_priority: bool = True

    def steer(self, grid: ModeGrid, rng: np.random.Generator) -> Steering:
        kinds, pools, widest, clocks = grid.mode_at.shape
        cost = grid.energy_j.reshape(kinds, pools, -1)
        devices, clock = np.divmod(cost.argmin(axis=2), clocks)
        pick = np.full((kinds, pools, widest + 1), NONE, dtype=np.int64)
        for free in range(1, widest + 1):
            taken = np.minimum(devices, free - 1)
            pick[:, :, free] = grid.mode_at[
                np.arange(kinds)[:, None], np.arange(pools), taken, clock
            ]
        classes = inference_first(grid.instance).tolist() if self.inf_priority else None
        return steering_of(
            grid,
            pick_by=TABLE,
            pick=pick,
            pools=sent_or_uniform(grid.instance, rng),
            class_of=classes,
        )
