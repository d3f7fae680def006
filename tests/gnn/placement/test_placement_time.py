"""Placements keep to the time that is left, which is asked between pieces of compiled code."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np
import pytest

from optbench.gnn.placement import placement_methods, placement_planner
from optbench.gnn.placement.placement_board import costs_of
from optbench.gnn.placement.placement_methods import place
from optbench.gnn.placement.placement_milp import solve_placement
from optbench.gnn.placement.placement_planner import descended
from optbench.gnn.placement.placement_search import construct, work_order
from optbench.gnn.placement.placement_table import PlacementTable, smallest_table, table_step_s
from optbench.shapes.gnn_training.training_data import Ints


def lone_parts() -> PlacementTable:
    """Six parts of one second on three equal devices, without rows between them."""
    flat = np.ones((3, 3))
    work, rows = np.ones((6, 3, 1)), np.zeros((6, 6))
    return PlacementTable(work, rows, 1.0, 2.0, flat, flat, 0.0, np.ones(6), np.full(3, inf))


def asked(times: int) -> Callable[[], float]:
    """A clock that says infinity so many times, and then 0."""
    left = iter([inf] * times)
    return lambda: next(left, 0.0)


def test_the_descent_makes_no_move_after_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement_planner, "OPERATIONS_AT_ONCE", 1.0)
    costs, start = costs_of(lone_parts()), np.zeros(6, dtype=np.int64)
    for moves in range(4):
        found = descended(costs, start, asked(moves))
        # Each move takes one part from the device of all to the next one, until both have three.
        assert np.bincount(found, minlength=2).tolist() == [6 - moves, moves]
    # No single move or swap makes both of them shorter.
    assert np.bincount(descended(costs, start, lambda: inf)).tolist() == [3, 3]


def test_a_local_search_stops_within_its_first_descent(monkeypatch: pytest.MonkeyPatch) -> None:
    """By greedy, longest first, times 5 4 3 3 3 go to two devices as 5 3 and 4 3, then 3 to the
    second: 8 and 10. Swapping 4 and 3, or 5 and 4, gives 9 and 9, which the time does not allow.
    """
    monkeypatch.setattr(placement_planner, "OPERATIONS_AT_ONCE", 1.0)
    seconds = np.array([5.0, 4.0, 3.0, 3.0, 3.0])
    work, flat = np.tile(seconds[:, None, None], (1, 2, 1)), np.ones((2, 2))
    none, limits = np.zeros((5, 5)), (np.ones(5), np.full(2, inf))
    table = PlacementTable(work, none, 1.0, 2.0, flat, flat, 0.0, *limits)
    costs = costs_of(table)
    greedy: Ints = construct(costs, work_order(costs), np.array((0.0, 1.0, 0.0)), 0.0, 0)
    assert table_step_s(table, greedy) == 10.0
    late = place("local_search", table, np.random.default_rng(0), lambda: 0.0)
    assert late.tolist() == greedy.tolist()
    found = place("local_search", table, np.random.default_rng(0), lambda: inf)
    assert table_step_s(table, found) == 9.0


def test_annealing_in_pieces_ends_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """With pieces of one trial there are 400 for each part, before each of which time is asked."""
    monkeypatch.setattr(placement_planner, "OPERATIONS_AT_ONCE", 1.0)
    answers: list[float] = []

    def left() -> float:
        answers.append(inf if len(answers) < 50 else 0.0)
        return answers[-1]

    found = place("annealing", lone_parts(), np.random.default_rng(0), left)
    assert len(found) == 6
    # Once before the last descent, besides the one that ended the annealing.
    assert answers.count(0.0) == 2


def test_the_exact_programme_is_left_out_where_it_is_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two parts that exchange rows on two devices have one pair and four products of variables."""
    tried = []
    solve = solve_placement

    def counted(*args: object) -> object:
        tried.append(args[2:])
        return solve(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(placement_methods, "solve_placement", counted)
    for most, calls in ((3, 0), (4, 1)):
        monkeypatch.setattr(placement_methods, "MOST_PRODUCTS", most)
        found = place("milp", smallest_table(), np.random.default_rng(0), lambda: inf, 7.0)
        # Apart, the two parts wait at least a second for each other's rows: 2 s together.
        assert found.tolist() == [0, 0] and len(tried) == calls
    # Without a clock it has a number of nodes, and the seconds that end everything.
    assert tried == [(7.0, placement_methods.MILP_NODES)]
