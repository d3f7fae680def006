"""Devices are left out where adding up gradients without them saves more than they compute."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import inf

import numpy as np
import pytest

from optbench.api import load_target
from optbench.gnn.placement import placement_milp
from optbench.gnn.placement.fewer_devices import (
    StepBounds,
    device_sets,
    least_step_s,
    most_sets,
    promising_sets,
    restricted,
    search_on_fewer,
    without_one,
)
from optbench.gnn.placement.placement_methods import annealed, place
from optbench.gnn.placement.placement_milp import solve_placement
from optbench.gnn.placement.placement_planner import TimeLeft
from optbench.gnn.placement.placement_table import (
    PlacementTable,
    memory_excess_bytes,
    placement_table,
    table_step_s,
    verified_step_s,
)
from optbench.shapes.gnn_training.training_data import Ints
from optbench.shapes.gnn_training.training_plan import TrainingPlan

SEARCHES = ("local_search", "annealing", "milp")
EVERYTHING = np.arange(3)


def unlimited() -> float:
    return inf


def slow_link(parameter_bytes: float) -> PlacementTable:
    """Six parts of 1 s, without rows between them, on three equal devices. Devices 0 and 1 have a
    link of 1 GB/s; those to device 2 have a tenth of that.
    """
    rate = np.array([[1.0, 1.0, 0.1], [1.0, 1.0, 0.1], [0.1, 0.1, 1.0]])
    work, none = np.ones((6, 3, 1)), np.zeros((6, 6))
    limits, zero = np.full(3, inf), np.zeros((3, 3))
    return PlacementTable(
        work, none, 1.0, 2.0, rate, zero, 0.0, np.ones(6), limits, parameter_bytes
    )


def drawn_table(seed: int, parts: int, devices: int) -> PlacementTable:
    """Links that differ by up to ten times, so that some are better left out."""
    rng = np.random.default_rng(seed)
    rows = np.where(rng.random((parts, parts)) < 0.6, rng.integers(1, 9, (parts, parts)), 0)
    np.fill_diagonal(rows, 0)
    rate = np.exp(rng.uniform(-2.3, 0.0, (devices, devices)))
    return PlacementTable(
        rng.uniform(0.5, 1.5, (parts, devices, 2)), rows.astype(float), 1e7, 2.0, rate,
        rng.uniform(0.0, 0.1, (devices, devices)), 0.2, rng.uniform(0.5, 1.5, parts),
        np.full(devices, inf), 1e8,
    )  # fmt: skip


def every_placement(table: PlacementTable) -> list[Ints]:
    return [np.array(e) for e in product(range(table.num_devices), repeat=table.num_parts)]


@pytest.mark.parametrize("method", SEARCHES)
def test_a_device_with_a_slow_link_is_left_out(method: str) -> None:
    """All three take 2 s and 2 x 2 x (0.3 / 3) / 0.1 = 4 s; devices 0 and 1 take 3 s and
    2 x (0.3 / 2) / 1 = 0.3 s; with device 2 two of them take 3 s and 3 s, and one takes 6 s.
    """
    table = slow_link(3e8)
    assert table_step_s(table, np.array([0, 0, 1, 1, 2, 2])) == pytest.approx(6.0)
    found = place(method, table, np.random.default_rng(0), unlimited)
    assert np.bincount(found, minlength=3).tolist() == [3, 3, 0]
    assert table_step_s(table, found) == pytest.approx(3.3)
    again = place(method, table, np.random.default_rng(0), unlimited)
    assert again.tolist() == found.tolist()


@pytest.mark.parametrize("method", SEARCHES)
def test_nothing_is_left_out_where_it_is_worth_it(method: str) -> None:
    # All three take 2 s and 4 x (0.003 / 3) / 0.1 = 0.04 s; two of them take at least 3 s.
    table = slow_link(3e6)
    found = place(method, table, np.random.default_rng(0), unlimited)
    assert np.bincount(found, minlength=3).tolist() == [2, 2, 2]
    if method == "annealing":
        assert found.tolist() == annealed(table, np.random.default_rng(0), unlimited).tolist()


def test_single_placements_use_all_devices() -> None:
    for method in ("identity", "greedy", "argmin"):
        found = place(method, slow_link(3e8), np.random.default_rng(0), unlimited)
        assert np.bincount(found, minlength=3).tolist() == [2, 2, 2]


def test_what_is_cut_out_is_of_the_chosen_devices() -> None:
    table = slow_link(3e8)
    slow = np.where(table.gb_per_s < 1, 0.01, 0.0)
    table = replace(table, memory_bytes=np.array([4.0, 5.0, 6.0]), latency_s=slow)
    some = restricted(table, np.array([1, 2]))
    assert some.gb_per_s.tolist() == [[1.0, 0.1], [0.1, 1.0]]
    assert some.memory_bytes.tolist() == [5.0, 6.0] and some.work_s.shape == (6, 2, 1)
    assert some.reduce_s == table.reduce_of(np.array([1, 2])) == pytest.approx(3.02)
    # The slowest link, and the longest latency, are between 0 or 1 and 2, of which the first one
    # counts; all are equally weak.
    assert [each.tolist() for each in without_one(table, EVERYTHING)] == [[1, 2], [0, 1]]
    assert without_one(table, np.array([1])) == []


@pytest.mark.parametrize("devices", [(0, 1), (0, 2), (1, 2)])
def test_the_cut_table_meets_the_cost_model(devices: tuple[int, int]) -> None:
    """Two parts, each alone on its device: the table's step is that of the cost model."""
    line = "gnn_training:graph=mesh,nodes=300,devices=4:2:1,parts=2,link_spread=3,minimize=step"
    data = load_target(line).data
    plan = TrainingPlan(np.arange(300) % 2)
    table, used = placement_table(data, plan), np.array(devices)
    expected = verified_step_s(data, plan, used)
    assert table_step_s(restricted(table, used), np.array([0, 1])) == pytest.approx(expected)
    assert table_step_s(table, used) == pytest.approx(expected)
    assert table.reduce_of(used) > 0


def test_a_search_has_the_whole_time_on_the_only_set_worth_it() -> None:
    asked = []

    def search(table: PlacementTable, left: TimeLeft) -> Ints:
        asked.append((table.num_devices, left()))
        return np.arange(table.num_parts) % table.num_devices

    found = search_on_fewer(slow_link(3e8), search, lambda: 8.0)
    assert asked == [(2, 8.0)] and found.tolist() == [0, 1, 0, 1, 0, 1]
    # Once a tenth of the time is over nothing else is chosen, and all devices are searched.
    answers = iter([8.0, 8.0, 7.0])
    search_on_fewer(slow_link(3e8), search, lambda: next(answers, 7.0))
    assert asked[1:] == [(3, 7.0)]
    # Nothing can be saved without gradients to add up.
    search_on_fewer(slow_link(0.0), search, lambda: 8.0)
    assert asked[2:] == [(3, 8.0)]


@pytest.mark.parametrize("spread", [False, True])
def test_near_sets_share_the_time(spread: bool) -> None:
    """With 8.25e7 bytes devices 0 and 1 take 3 + 0.0825 s; all three 2 + 4 x 0.275 = 3.1 s, which
    is within 5 %, and so searched in the second half of the time, unless 3.0825 s are known by
    then, which is less than 3.1 s, the bound: that half is spent on devices 0 and 1.
    """
    asked = []

    def search(table: PlacementTable, left: TimeLeft) -> Ints:
        asked.append((table.num_devices, left()))
        return np.arange(6) % (table.num_devices if spread or len(asked) > 1 else 1)

    table = slow_link(8.25e7)
    sets = promising_sets(StepBounds(table), unlimited)
    assert [each.tolist() for each in sets] == [[0, 1], [0, 1, 2]]
    found = search_on_fewer(table, search, lambda: 8.0)
    assert asked == [(2, 4.0), (2 if spread else 3, 8.0)]
    assert table_step_s(table, found) == pytest.approx(3.0825 if spread else 3.1)


def test_one_set_is_searched_where_time_is_short() -> None:
    """Six parts, 8000 trials for each, 3 x (3 + 1) operations a trial: 576,000, or 0.000576 s."""
    table = slow_link(8.25e7)
    assert [most_sets(table, each) for each in (5e-4, 1.2e-3, 8.0, inf)] == [1, 2, 3, 3]
    sets = promising_sets(StepBounds(table), lambda: 5e-4)
    assert [each.tolist() for each in sets] == [[0, 1]]


def test_memory_comes_before_leaving_out() -> None:
    """Devices 0 and 1 alone would take 3.3 s, but have room for two parts each."""
    room = 3e8 + 2.0
    table = replace(slow_link(3e8), memory_bytes=np.array([room, room, inf]), row_bytes=0.0)
    for method in SEARCHES:
        found = place(method, table, np.random.default_rng(0), unlimited)
        assert not memory_excess_bytes(table, found).any()
        # Two of six on device 2 at least: all three take 6 s at best, and so does device 2 alone.
        assert table_step_s(table, found) == pytest.approx(6.0)


@pytest.mark.parametrize("seed", range(3))
def test_bounds_are_below_every_placement(seed: int) -> None:
    table = drawn_table(seed, 4, 4)
    bounds = StepBounds(table)
    least: dict[tuple[int, ...], float] = {}
    for device in every_placement(table):
        used = tuple(np.unique(device).tolist())
        least[used] = min(least.get(used, inf), table_step_s(table, device))
    sets = [tuple(each.tolist()) for each in device_sets(table)]
    assert sorted(sets) == sorted(least) and len(sets) == 15
    for used, step in least.items():
        assert bounds.step_s(np.array(used)) <= step
    assert 0 < least_step_s(bounds, 0.0) <= min(least.values())


@pytest.mark.parametrize("most_devices", [6, 3])
@pytest.mark.parametrize("seed", range(3))
def test_the_proven_bound_is_never_above_the_best(
    seed: int, most_devices: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """256 placements, of which those of the best use fewer than four devices."""
    monkeypatch.setattr(placement_milp, "MOST_DEVICES", most_devices)
    table = drawn_table(seed, 4, 4)
    steps = {tuple(each.tolist()): table_step_s(table, each) for each in every_placement(table)}
    best = min(steps, key=lambda each: steps[each])
    assert len(set(best)) < 4
    for limit_s in (0.0, 60.0):
        found = solve_placement(table, np.arange(4), limit_s)
        assert found.bound_s <= steps[best] * (1 + 1e-6)
        assert found.step_s == pytest.approx(steps[tuple(found.device.tolist())])
        if limit_s and most_devices == 6:
            assert found.is_closed
            assert found.step_s == pytest.approx(steps[best], rel=2e-4)
