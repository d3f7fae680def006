"""Many site environments in lockstep, each with its own price of latency, run by one network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optbench.learn.sites.pilot import Float32, RoutingNetwork, row_size, view_of
from optbench.model.instance import Bools, Floats, Instance, Ints
from optbench.sim.kernel.plant import plant_of
from optbench.sim.kernel.pointers import addresses
from optbench.sim.kernel.sites.pilot import NUM_MEASURED, roll
from optbench.sim.kernel.sites.steering import WISHED
from optbench.sim.kernel.sites.view import PRICE_W
from optbench.sim.kernel.state import NONE, last_moment, new_state
from optbench.sim.sites.sites import grid_of, inference_first, steering_of


@dataclass(frozen=True, eq=False)
class Rollout:
    """Arrays of (environments, steps, ...); ``rows`` and ``masks`` have one more step. The columns
    of ``measured`` are those of ``sim.kernel.sites.pilot``.
    """

    rows: Float32
    masks: Bools
    actions: Ints
    measured: Floats


class SiteFleet:
    """Environments that continue from rollout to rollout and restart at the end of their
    instance.
    """

    def __init__(
        self,
        instances: Sequence[Instance],
        clock: str = "balanced",
        mean_units: float = 1.0,
        seen: str = "regrets",
    ) -> None:
        grids = [grid_of(instance) for instance in instances]
        self.plants = [plant_of(instance) for instance in instances]
        self.states = [new_state(plant) for plant in self.plants]
        self.steerings = [
            steering_of(grid, pick_by=WISHED, class_of=inference_first(grid.instance).tolist())
            for grid in grids
        ]
        self.views = [
            view_of(grid, mean_units=mean_units, clock=clock, seen=seen) for grid in grids
        ]
        self.pools, self.widest = int(grids[0].mode_at.shape[1]), grids[0].widest
        self.width = row_size(self.pools, self.widest)
        tables = (self.plants, self.states, self.steerings, self.views)
        self._addresses = [np.array([addresses(table) for table in column]) for column in tables]
        self._until = np.array([last_moment(instance, np.inf) for instance in instances])
        self._asked = np.full(len(instances), NONE, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.plants)

    def set_price(self, env: int, price_w: float) -> None:
        """Set the price of a second of latency in one environment, from its next decision on."""
        self.views[env].scale[PRICE_W] = price_w

    def roll(self, pilot: RoutingNetwork, steps: int, rng: np.random.Generator) -> Rollout:
        """Take ``steps`` decisions in each environment."""
        return self.play(pilot, rng.random((len(self), steps)))

    def play(self, pilot: RoutingNetwork, draws: Floats) -> Rollout:
        """Take a decision in each environment for each of its random numbers in [0, 1)."""
        envs, options, steps = len(self), self.pools * self.widest, draws.shape[1]
        out = Rollout(
            np.zeros((envs, steps + 1, self.width), dtype=np.float32),
            np.zeros((envs, steps + 1, options), dtype=np.bool_),
            np.zeros((envs, steps), dtype=np.int64),
            np.zeros((envs, steps, NUM_MEASURED)),
        )
        roll(
            *self._addresses,
            pilot.net,
            pilot.theta,
            draws,
            self._until,
            self._asked,
            out.rows,
            out.masks,
            out.actions,
            out.measured,
        )
        return out
