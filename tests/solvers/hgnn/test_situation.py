"""What the network sees: independent of the order of tasks and devices, and of merged pools."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from optbench.model.classes import class_view
from optbench.model.instance import Instance
from optbench.model.verify import verify
from optbench.sim.rules import run_rule
from solvers.hgnn.forward_pass import ForwardPass
from solvers.hgnn.milestone_rule import numbers_of, rule_of
from solvers.hgnn.network_design import Weights
from solvers.hgnn.network_settings import NetworkSettings
from solvers.hgnn.seen_arrays import CLASS_COLUMNS, TASK_COLUMNS, WHOLE_COLUMNS, SeenArrays
from solvers.hgnn.situation import situation_of
from tests.solvers.hgnn.small_clusters import NUM_TASKS, POOLS, small_cluster

TASKS = tuple(int(i) for i in np.random.default_rng(3).permutation(NUM_TASKS))
ORDER = (3, 2, 0, 1)


@pytest.fixture(scope="module")
def network(weights: Weights, settings: NetworkSettings) -> ForwardPass:
    return ForwardPass(weights, settings)


def value_of(instance: Instance, network: ForwardPass) -> float:
    found = situation_of(instance)
    rule = rule_of(instance, found, network.answers(found.seen))
    schedule = run_rule(instance, rule).schedule
    assert schedule is not None
    verdict = verify(instance, schedule)
    assert verdict.violations == ()
    return float(verdict.objectives[0])


def test_the_small_cluster_has_alike_pools(cluster: Instance) -> None:
    assert class_view(cluster).pool_class.tolist() == [0, 1, 0, 2]


def permuted(seen: SeenArrays, order: list[int]) -> SeenArrays:
    """The same tables with the tasks listed in this order."""
    place = np.argsort(order)
    rows = {name: getattr(seen, name)[order] for name in ("task", "pair", "fits", "importance")}
    return replace(seen, **rows, source=place[seen.source], target=place[seen.target])


def test_permuting_tasks_permutes_the_answers(cluster: Instance, network: ForwardPass) -> None:
    found = situation_of(cluster)
    plain = network.answers(found.seen)
    moved = network.answers(permuted(found.seen, list(TASKS)))
    for name in ("task", "task_factor"):
        expected = getattr(plain, name)[list(TASKS)]
        np.testing.assert_allclose(getattr(moved, name), expected, atol=1e-5)
    for name in ("whole", "device", "set_factor"):
        np.testing.assert_allclose(getattr(moved, name), getattr(plain, name), atol=1e-5)


def test_permuting_tasks_permutes_the_features(cluster: Instance) -> None:
    """All but the shares of work before and behind a task: tasks of equal head or tail are ranked
    in the order in which they are listed.
    """
    found, other = situation_of(cluster), situation_of(small_cluster(tasks=TASKS))
    expected = permuted(found.seen, list(TASKS))
    ranked = [TASK_COLUMNS.index(name) for name in ("work_before", "work_behind")]
    rest = [k for k in range(len(TASK_COLUMNS)) if k not in ranked]
    np.testing.assert_allclose(other.seen.task[:, rest], expected.task[:, rest], atol=1e-5)
    np.testing.assert_allclose(np.sort(found.load[list(TASKS)]), np.sort(other.load), rtol=1e-12)
    for name in ("pair", "whole", "device", "sets", "importance"):
        found_value, value = getattr(other.seen, name), getattr(expected, name)
        np.testing.assert_allclose(found_value, value, atol=1e-5, err_msg=name)


def test_permuting_devices_permutes_the_prices(cluster: Instance, network: ForwardPass) -> None:
    other = small_cluster(order=ORDER)
    made = []
    for instance in (cluster, other):
        found = situation_of(instance)
        made.append(numbers_of(instance, found, network.answers(found.seen)))
    assert [name[-3:] for name in other.pools.names] == [f"{p:03}" for p in ORDER]
    np.testing.assert_allclose(made[1].pool_cost, made[0].pool_cost[list(ORDER)], rtol=1e-4)
    np.testing.assert_allclose(made[1].due, made[0].due, rtol=1e-4)
    assert value_of(other, network) == pytest.approx(value_of(cluster, network), rel=1e-9)


def test_two_alike_pools_are_fed_as_one_of_both(cluster: Instance) -> None:
    """Pools of 2 and 1 fast devices are one class of 3, as a single pool of 3 is. The link of a
    class to itself is not read.
    """
    merged = small_cluster(pools=(("fast", 3), ("slow", 3), ("old", 2)))
    assert merged.num_pools == 3 and cluster.num_pools == 4
    one, two = situation_of(merged).seen, situation_of(cluster).seen
    for name, value in vars(one).items():
        other = getattr(two, name)
        if name == "link":
            value, other = (each[~np.eye(3, dtype=bool)] for each in (value, other))
        np.testing.assert_allclose(other, value, rtol=1e-6, atol=1e-6, err_msg=name)


def test_unlike_pools_stay_classes_of_their_own() -> None:
    different = (("fast", 2), ("slow", 3), ("old", 2))
    seen = situation_of(small_cluster(pools=different)).seen
    assert len(seen.device) == len(different) < len(POOLS)


def test_features_by_hand() -> None:
    """One fast and one old device. Shares of devices are 1/2 each; an old one is never cheaper or
    faster, so that all work goes to the fast one: demand log(1 + work / span) with span at least
    that work over two devices.
    """
    found = situation_of(small_cluster(pools=(("fast", 1), ("old", 1))))
    seen = found.seen
    column = {name: k for k, name in enumerate(CLASS_COLUMNS)}
    assert seen.device[:, column["share"]].tolist() == [0.5, 0.5]
    assert (found.choice == 0).all()
    demand = np.log1p(found.load.sum() / found.span)
    assert seen.device[:, column["demand_at_1"]] == pytest.approx([demand, 0.0], rel=1e-6)
    assert seen.device[:, column["slowness"]][0] == 0.0 < seen.device[:, column["slowness"]][1]
    assert seen.task.shape == (NUM_TASKS, len(TASK_COLUMNS))
    assert seen.whole.shape == (len(WHOLE_COLUMNS),)
    # Every fifth task needs 20 GB, more than an old device has.
    assert seen.fits[:, 1].tolist() == [i % 5 != 0 for i in range(NUM_TASKS)]
    assert not np.isnan(seen.task).any() and not np.isnan(seen.pair).any()
