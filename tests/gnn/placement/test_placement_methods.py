"""Placing parts on devices: the table is an upper bound of the cost model, and moves are priced as
they turn out.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest

from optbench.api import load_target
from optbench.errors import ModelError, UnknownNameError
from optbench.gnn.placement.placement_board import board_of, board_price, costs_of, move_price
from optbench.gnn.placement.placement_methods import place
from optbench.gnn.placement.placement_milp import solve_placement
from optbench.gnn.placement.placement_planner import placement_key
from optbench.gnn.placement.placement_table import (
    PlacementTable,
    mean_load_s,
    memory_excess_bytes,
    placement_table,
    table_loads,
    table_step_s,
    verified_step_s,
)
from optbench.shapes.gnn_training.training_plan import TrainingPlan


def unlimited() -> float:
    return inf


def two_devices(**changed: Any) -> PlacementTable:
    """Three parts on two devices, the second half as fast, in two windows: in the second window the
    first device drops to a quarter. Parts 0 and 1 send each other 4 and 2 rows, at 1 s a row.
    Adding up gradients takes both devices 2 x (5e8 / 2 / 1e9 + 0.25) = 1 s, and one device nothing.
    """
    work = np.array([[[1.0, 4.0], [2.0, 2.0]]] * 3)
    rows = np.array([[0.0, 4.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    flat = np.ones((2, 2))
    table = PlacementTable(
        work, rows, 1e9, 2.0, flat, flat * 0.25, 0.0, np.ones(3), np.full(2, inf), 5e8
    )
    return replace(table, **changed)


def test_the_step_is_the_mean_of_the_longest_loads() -> None:
    # Apart, parts 0 and 1 talk for 2 x 0.25 s of latency and max(4, 2) x 1 s: 4.5 s on both sides.
    # Window 0: device 0 has 1 + 1 + 4.5 and device 1 has 2 + 4.5; window 1: 8 + 4.5 and 2 + 4.5.
    apart = np.array([0, 1, 0])
    assert table_loads(two_devices(), apart).tolist() == [[6.5, 6.5], [12.5, 6.5]]
    assert table_step_s(two_devices(), apart) == (6.5 + 12.5) / 2 + 1.0
    # Together on device 1 with part 2 on device 0 nothing is exchanged: 4 s in both windows.
    assert table_step_s(two_devices(), np.array([1, 1, 0])) == 5.0


def test_methods_find_the_best_of_eight_placements() -> None:
    found = place("local_search", two_devices(), np.random.default_rng(0), unlimited)
    # All on device 1 takes 6 s, and all on device 0 takes 3 and 12; parts 0 and 1 stay together.
    assert found.tolist() == [1, 1, 0]


def test_memory_comes_before_the_step() -> None:
    # Two parts on device 1 keep 2 bytes, of which there is one besides the gradients' 5e8: 0 or 1
    # must go to device 0.
    table = two_devices(memory_bytes=np.array([inf, 5e8 + 1]), row_bytes=0.0)
    assert memory_excess_bytes(table, np.array([1, 1, 0])).tolist() == [0.0, 1.0]
    found = place("local_search", table, np.random.default_rng(0), unlimited)
    assert placement_key(table, found)[0] == 0.0


@pytest.fixture(scope="module")
def partitioned() -> tuple[object, TrainingPlan]:
    instance = load_target("gnn_training:graph=mesh,nodes=600,devices=4:2:1,parts=12,minimize=step")
    x = np.random.default_rng(1).integers(0, 12, 600)
    return instance.data, TrainingPlan(x)


def test_a_placement_beyond_the_memory_is_no_proof() -> None:
    # Both parts on device 0 take 1.5 s and exceed its byte by one; apart, device 1 takes 100 s.
    work = np.array([[[1.0], [100.0]], [[0.5], [100.0]]])
    flat = np.ones((2, 2))
    rooms = np.array([1.0, 10.0])
    table = PlacementTable(
        work, np.zeros((2, 2)), 0.0, 2.0, flat, flat * 0.25, 0.0, np.ones(2), rooms
    )
    found = solve_placement(table, np.array([0, 0]), 20.0)
    assert sorted(found.device.tolist()) == [0, 1]
    assert found.is_closed and found.excess_bytes == 0 and found.step_s == 100.0
    # From one that fits, the programme without a better one proves it.
    again = solve_placement(table, np.array([0, 1]), 20.0)
    assert again.is_closed and again.bound_s == pytest.approx(100.0)
    # No part fits anywhere: what is known stays, and is not closed.
    nowhere = replace(table, memory_bytes=np.array([0.5, 0.5]))
    left = solve_placement(nowhere, np.array([0, 0]), 20.0)
    assert left.device.tolist() == [0, 0] and left.excess_bytes == 1.5
    assert not left.is_closed and left.bound_s == inf


def test_the_table_is_never_below_the_cost_model(partitioned: tuple[object, TrainingPlan]) -> None:
    data, plan = partitioned
    table = placement_table(data, plan)  # type: ignore[arg-type]
    rng = np.random.default_rng(2)
    for _ in range(20):
        device = rng.integers(0, 3, 12)
        verified = verified_step_s(data, plan, device)  # type: ignore[arg-type]
        assert table_step_s(table, device) >= verified - 1e-12


def test_every_move_costs_what_was_foretold(partitioned: tuple[object, TrainingPlan]) -> None:
    data, plan = partitioned
    table = placement_table(data, plan)  # type: ignore[arg-type]
    # Links that are slower in one direction.
    rate = table.gb_per_s * np.arange(1.0, 10.0).reshape(3, 3)
    table = replace(table, gb_per_s=rate)
    costs, rng = costs_of(table), np.random.default_rng(3)
    device = rng.integers(0, 3, 12)
    board = board_of(costs, device)
    assert board_price(costs, board, 0.0) == pytest.approx(mean_load_s(table, device), rel=1e-12)
    for p in range(12):
        for d in range(3):
            moved = np.where(np.arange(12) == p, d, device)
            expected = pytest.approx(mean_load_s(table, moved), rel=1e-12)
            assert move_price(costs, board, p, d, 0.0) == expected


@pytest.mark.parametrize("method", ["identity", "greedy", "argmin", "local_search", "annealing"])
def test_the_same_seed_gives_the_same_placement(
    method: str, partitioned: tuple[object, TrainingPlan]
) -> None:
    data, plan = partitioned
    table = placement_table(data, plan)  # type: ignore[arg-type]
    first, again = (place(method, table, np.random.default_rng(5), unlimited) for _ in range(2))
    assert first.tolist() == again.tolist()
    assert set(first.tolist()) <= {0, 1, 2}


def test_what_does_not_exist_is_named() -> None:
    with pytest.raises(UnknownNameError, match="gredy"):
        place("gredy", two_devices(), np.random.default_rng(0), unlimited)
    with pytest.raises(ModelError, match="rows has shape"):
        two_devices(rows=np.zeros((2, 2)))
