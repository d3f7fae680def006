"""Allocation as a Markov decision process: rewards add up to the step, and features are true."""

from __future__ import annotations

import numpy as np
import pytest

from optbench.gnn.placement.allocation_process import (
    FEATURES,
    INCREASE,
    SMALL,
    HeadWeights,
    play,
    scales_of,
)
from optbench.gnn.placement.placement_board import costs_of
from optbench.gnn.placement.placement_search import construct, work_order
from optbench.gnn.placement.placement_table import PlacementTable, mean_load_s, table_loads

NONE = np.zeros(0, dtype=np.int64)


def drawn_table(parts: int, devices: int, windows: int) -> PlacementTable:
    """Random work, sparse rows and unequal links."""
    rng = np.random.default_rng(4)
    rows = np.where(rng.random((parts, parts)) < 0.4, rng.integers(1, 9, (parts, parts)), 0)
    np.fill_diagonal(rows, 0)
    rate = rng.uniform(0.5, 2.0, (devices, devices))
    work = rng.uniform(0.5, 1.5, (parts, devices, windows))
    flat = np.full((devices, devices), 0.05)
    limits = np.full(devices, np.inf)
    return PlacementTable(
        work, rows.astype(float), 3e7, 2.0, rate, flat, 0.2, np.ones(parts), limits
    )


@pytest.fixture(scope="module")
def table() -> PlacementTable:
    return drawn_table(9, 3, 4)


def head(table: PlacementTable, skip: dict[int, float]) -> HeadWeights:
    """A head of which only the skipped weights are not zero."""
    shapes = (
        *((table.num_parts, 4), (table.num_devices, 4), (len(FEATURES), 4), (4, 4)),
        *((4,), (4,), (len(FEATURES),)),
    )
    weights = HeadWeights(*(np.zeros(shape, dtype=np.float32) for shape in shapes))
    for f, value in skip.items():
        weights.skip[f] = value
    return weights


def test_rewards_add_up_to_the_step(table: PlacementTable) -> None:
    costs = costs_of(table)
    for talk_weight in (0.0, 0.5):
        played = play(costs, work_order(costs), head(table, {}), talk_weight, 1.0, NONE, 5, 7)
        for device, reward in zip(played.device, played.reward, strict=True):
            step = mean_load_s(table, device)
            # The mean talk of the devices is what loads hold besides work.
            work = np.array([table.work_s[device == d, d].sum(axis=0) for d in range(3)]).T
            talk = (table_loads(table, device) - work)[0].mean()
            expected = -(step + talk_weight * talk) / scales_of(costs).step
            assert reward.sum() == pytest.approx(expected, rel=1e-5)


def test_the_balanced_step_is_that_of_shared_work() -> None:
    # 6 s of work on device 0 or 3 s on device 1: shared, 1 / (1/6 + 1/3) = 2 s.
    work = np.array([[[2.0], [1.0]]] * 3)
    zero, flat = np.zeros((3, 3)), np.ones((2, 2))
    limits = np.full(2, np.inf)
    table = PlacementTable(work, zero, 1.0, 1.0, flat, flat, 0.0, np.ones(3), limits)
    scales = scales_of(costs_of(table))
    assert scales.step == pytest.approx(2.0)
    assert scales.speed.tolist() == pytest.approx([1 / 3, 2 / 3])


def test_the_least_increase_is_the_rule(table: PlacementTable) -> None:
    costs = costs_of(table)
    order = work_order(costs)
    played = play(costs, order, head(table, {INCREASE: -1.0}), 0.0, 0.0, NONE, 1, 0)
    rule = construct(costs, order, np.array([1.0, 0.0, 0.0]), 0.0, 0)
    assert played.device[0].tolist() == rule.tolist()
    # In the first step each device has the part alone: its increase is the mean of its work.
    first = played.seen[0, 0, :, INCREASE] / SMALL * scales_of(costs).step
    assert first.tolist() == pytest.approx(table.work_s[order[0]].mean(axis=1).tolist(), rel=1e-5)


def test_given_actions_are_played(table: PlacementTable) -> None:
    costs, given = costs_of(table), np.array([2, 1, 0, 2, 1, 0, 2, 1, 0])
    order = work_order(costs)
    played = play(costs, order, head(table, {}), 0.0, 1.0, given, 1, 0)
    assert played.device[0].tolist() == given.tolist()
    assert played.action[0].tolist() == given[order].tolist()


def test_draws_follow_the_scores(table: PlacementTable) -> None:
    """Scores favour device 1 (15 is the share of speed) or are equal at great heat."""
    costs, order = costs_of(table), work_order(costs_of(table))
    cold = play(costs, order, head(table, {15: 500.0}), 0.0, 1e-3, NONE, 1, 1)
    fastest = int(scales_of(costs).speed.argmax())
    assert set(cold.device[0].tolist()) == {fastest}
    many = play(costs, order, head(table, {}), 0.0, 1.0, NONE, 200, 1)
    share = np.bincount(many.device.ravel(), minlength=3) / many.device.size
    # 1,800 draws: four standard deviations are 4 x sqrt(2/9 / 1800) = 0.044.
    assert share.tolist() == pytest.approx([1 / 3] * 3, abs=0.045)
