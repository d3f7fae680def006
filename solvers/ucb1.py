"""Uniform routing; all free GPUs, the clock by a bandit: UCB1 of the CHSAC-AF paper."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.sim.kernel.sites.steering import BANDIT, Steering
from optbench.sim.sites.sites import ModeGrid, inference_first, steering_of

from ._sites import SitePolicy, sent_or_uniform


@dataclass(frozen=True)
class Ucb1(SitePolicy):
    """All free devices; per site and kind of work a UCB1 bandit over clocks with the reward minus
    energy per unit of completed jobs.

    ``inf_priority`` serves waiting inference work before any other, as in the simulator of the
    paper's authors.
    """

    inf_priority: bool = True

    def steer(self, grid: ModeGrid, rng: np.random.Generator) -> Steering:
        classes = inference_first(grid.instance).tolist() if self.inf_priority else None
        return steering_of(
            grid, pick_by=BANDIT, pools=sent_or_uniform(grid.instance, rng), class_of=classes
        )
