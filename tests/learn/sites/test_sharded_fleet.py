"""A fleet in parts: the rollouts and the trained weights do not depend on how many there are."""

from __future__ import annotations

import numpy as np
import pytest

from optbench.learn.sites.actor_training import train_sites
from optbench.learn.sites.checkpoints import SiteCheckpoint
from optbench.learn.sites.sharded_fleet import ShardedFleet, mean_latency
from optbench.learn.sites.training_settings import SiteTraining
from optbench.learn.work_pool import OneProcess
from optbench.model.instance import Instance
from optbench.plugins.discovery import load_problem

SMALL = "geo_dc:days=0.05,rate=0.01,only=[us-west,ap-southeast],max_gpus=2"
QUICK = SiteTraining(
    decisions=600,
    envs=4,
    steps=25,
    updates=2,
    batch=32,
    calibrate=2,
    budgets_s=(1000.0, 3000.0),
)


@pytest.fixture(scope="module")
def instances() -> list[Instance]:
    problem = load_problem(SMALL)
    return [problem.instance(1000 + k) for k in range(4)]


@pytest.fixture(scope="module")
def made(instances: list[Instance]) -> SiteCheckpoint:
    return train_sites(instances, QUICK, seed=3).checkpoint


@pytest.mark.parametrize("workers", [2, 3, 9])
def test_rollouts_are_the_same_in_parts(
    workers: int, instances: list[Instance], made: SiteCheckpoint
) -> None:
    fleets = [
        ShardedFleet(OneProcess(workers=w), instances, "balanced", 1.0, "regrets")
        for w in (1, workers)
    ]
    assert len(fleets[1].shards) == min(workers, 4)
    for turn in range(2):  # environments go on where they were
        rollouts = []
        for fleet in fleets:
            for env in range(4):
                fleet.set_price(env, 5.0 + 10.0 * env)
            rollouts.append(fleet.roll(made.pilot, 30, np.random.default_rng(turn)))
        for name in ("rows", "masks", "actions", "measured"):
            whole, parted = (getattr(each, name) for each in rollouts)
            assert whole.shape == parted.shape and (whole == parted).all()
    latencies = [fleet.latency(made.pilot, 30, np.random.default_rng(7)) for fleet in fleets]
    assert (latencies[0] == latencies[1]).all()
    whole = fleets[0].roll(made.pilot, 5, np.random.default_rng(8))
    assert mean_latency(whole).shape == (4,)


def test_weights_and_prices_are_the_same_in_parts(
    instances: list[Instance], made: SiteCheckpoint
) -> None:
    parted = train_sites(instances, QUICK, seed=3, pool=OneProcess(workers=3)).checkpoint
    assert (made.pilot.theta == parted.pilot.theta).all()
    assert (made.prices_w == parted.prices_w).all()
