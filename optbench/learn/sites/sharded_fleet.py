"""A fleet of site environments in parts: each part rolls on a worker of a training's pool.

Environments do not depend on each other, and every decision's random number is drawn here, so that
the rollouts are the same however many parts there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optbench.learn.sites.parallel_weeks import Rollout, SiteFleet
from optbench.learn.sites.pilot import RoutingNetwork
from optbench.learn.work_pool import WorkPool, parts
from optbench.model.instance import Floats, Instance
from optbench.sim.kernel.sites.pilot import SERVICE_S, WAITED_S
from optbench.sim.kernel.sites.view import LEAST_J


@dataclass(frozen=True, eq=False)
class FleetPart:
    """What a part is built from."""

    instances: tuple[Instance, ...]
    clock: str
    mean_units: float
    seen: str


@dataclass(frozen=True, eq=False)
class RolloutOrder:
    """A rollout of one part: the network, the price of latency in each environment, and a random
    number for each decision.
    """

    pilot: RoutingNetwork
    prices_w: Floats
    draws: Floats


@dataclass(frozen=True)
class FleetSizes:
    """What a training knows of its environments: sites, most devices of a job, the length of a row,
    and the least energy of a unit in the first one.
    """

    pools: int
    widest: int
    width: int
    least_j: float


def fleet_of(part: FleetPart) -> SiteFleet:
    return SiteFleet(part.instances, part.clock, part.mean_units, part.seen)


def sizes_of(fleet: SiteFleet, _: None) -> FleetSizes:
    return FleetSizes(fleet.pools, fleet.widest, fleet.width, float(fleet.views[0].scale[LEAST_J]))


def rolled(fleet: SiteFleet, order: RolloutOrder) -> Rollout:
    for env, price_w in enumerate(order.prices_w.tolist()):
        fleet.set_price(env, price_w)
    return fleet.play(order.pilot, order.draws)


def latency_of_rolled(fleet: SiteFleet, order: RolloutOrder) -> Floats:
    return mean_latency(rolled(fleet, order))


def mean_latency(rollout: Rollout) -> Floats:
    """Return the mean time in the system per decision of each environment."""
    measured = rollout.measured
    return np.asarray((measured[:, :, SERVICE_S] + measured[:, :, WAITED_S]).mean(axis=1))


class ShardedFleet:
    """Environments that continue from rollout to rollout, in as many parts as there are workers."""

    def __init__(
        self,
        pool: WorkPool,
        instances: Sequence[Instance],
        clock: str,
        mean_units: float,
        seen: str,
    ) -> None:
        self.parts = parts(len(instances), pool.workers)
        given = [
            FleetPart(tuple(instances[env] for env in part), clock, mean_units, seen)
            for part in self.parts
        ]
        self.shards = pool.shards(fleet_of, given)
        self.prices_w = np.zeros(len(instances))
        self.sizes = self.shards.each(sizes_of, [None] * len(self.parts))[0]

    def __len__(self) -> int:
        return len(self.prices_w)

    def set_price(self, env: int, price_w: float) -> None:
        """Set the price of a second of latency in one environment, from its next decision on."""
        self.prices_w[env] = price_w

    def roll(self, pilot: RoutingNetwork, steps: int, rng: np.random.Generator) -> Rollout:
        """Take ``steps`` decisions in each environment."""
        found = self.shards.each(rolled, self._orders(pilot, steps, rng))
        return Rollout(
            *(
                np.concatenate([getattr(each, name) for each in found])
                for name in ("rows", "masks", "actions", "measured")
            )
        )

    def latency(self, pilot: RoutingNetwork, steps: int, rng: np.random.Generator) -> Floats:
        """Take ``steps`` decisions in each environment; return the mean latency of each."""
        return np.concatenate(self.shards.each(latency_of_rolled, self._orders(pilot, steps, rng)))

    def _orders(
        self, pilot: RoutingNetwork, steps: int, rng: np.random.Generator
    ) -> list[RolloutOrder]:
        draws = rng.random((len(self), steps))
        return [
            RolloutOrder(
                pilot,
                self.prices_w[part.start : part.stop].copy(),
                draws[part.start : part.stop].copy(),
            )
            for part in self.parts
        ]
