"""When a search for a bound ends: by hand, and on graphs whose gap does not close."""

from __future__ import annotations

import math

import numpy as np
import pytest

from optbench.shapes.gnn_training_bound import rising_bound
from optbench.shapes.gnn_training_bound.cut_problem import CutProblem, cut_problem
from optbench.shapes.gnn_training_bound.cut_sdp import sdp_multipliers
from optbench.shapes.gnn_training_bound.cut_sdp_proof import proven_cut
from optbench.shapes.gnn_training_bound.rising_bound import RisingBound
from optbench.shapes.gnn_training_bound.tree_packing import (
    MOST_TREES,
    packed_trees,
    proven_packing,
)
from tests.shapes.gnn_training_bound.enumerated_cuts import cut_data, least_cut, random_cut

FOREVER = math.inf
# A wheel: node 0 and a circle of seven around it.
WHEEL = sorted([(0, i) for i in range(1, 8)] + [(i, i + 1) for i in range(1, 7)] + [(1, 7)])
TRIO = cut_data(8, np.array(WHEEL), 3, 3)


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        # Nothing is known at half of the work.
        ([(1, 10.2)], [False]),
        # 10.5 + 2.5 × 0.3 = 11.25 passes 11; 10.6 + 2.5 × 0.1 = 10.85 does not.
        ([(1, 10.2), (2, 10.5), (4, 10.6)], [False, False, True]),
        # A value below one that is proved is no fall: 10.9 stays, and has not risen.
        ([(1, 10.9), (2, 10.2)], [False, True]),
        # After 3 the last value at half of the work is that after 1: 10.6 + 2.5 × 0.4 = 11.6.
        ([(1, 10.2), (2, 10.5), (3, 10.6)], [False, False, False]),
        # A bound that is whole rises to the next number or not at all.
        ([(1, 11.0), (2, 11.0)], [False, True]),
        # Up to 11 from below: 10.99 + 2.5 × 0.005 = 11.0025 is hardly above it.
        ([(1, 10.985), (2, 10.99)], [False, True]),
    ],
)
def test_a_bound_stands_still(values: list[tuple[float, float]], ends: list[bool]) -> None:
    rising = RisingBound()
    assert [rising.stands_still(work, value) for work, value in values] == ends


def test_the_semidefinite_search_ends_where_no_whole_number_is_in_reach() -> None:
    """Of at most 24 rounds and of at most 400 the result is the same one, made before; without
    the end, 28 edges on 9 nodes in 3 parts give new rows for longer than that.
    """
    data = random_cut(0, most_nodes=10)
    problem = cut_problem(data)
    early, late = (sdp_multipliers(problem, FOREVER, most_rounds=most) for most in (24, 400))
    assert np.array_equal(early.diagonal, late.diagonal)
    assert proven_cut(problem, early) == proven_cut(problem, late) <= least_cut(data)


def test_the_packing_ends_where_no_whole_number_is_in_reach() -> None:
    problem = cut_problem(TRIO)
    packing = packed_trees(problem, FOREVER)
    assert len(packing.roots) < MOST_TREES
    assert proven_packing(problem, packing) <= least_cut(TRIO)


def bounds(problem: CutProblem) -> tuple[int, int]:
    trees = proven_packing(problem, packed_trees(problem, FOREVER, most=4096))
    rows = proven_cut(problem, sdp_multipliers(problem, FOREVER, most_rounds=48))
    return math.ceil(trees), math.ceil(rows)


def test_the_end_costs_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches that never end by themselves prove no more on the best of both methods."""
    data = [random_cut(seed, most_nodes=9) for seed in range(10)]
    problems = [cut_problem(each) for each in data if each.max_part < each.graph.num_nodes]
    assert len(problems) >= 8
    ending = [max(bounds(problem)) for problem in problems]
    monkeypatch.setattr(rising_bound, "LEAST_PASSING", -FOREVER)
    assert ending == [max(bounds(problem)) for problem in problems]


def test_nodes_of_many_edges_come_first_where_time_is_short() -> None:
    """Node 7 is the hub of a wheel, whose rim has degrees of 3; with time, roots are random."""
    hub_last = cut_data(8, np.array(sorted((7 - v, 7 - u) for u, v in WHEEL)), 3, 3)
    problem = cut_problem(hub_last)
    short, long = packed_trees(problem, 1e-7, most=8), packed_trees(problem, FOREVER, most=8)
    assert short.roots[0] == 7 and long.roots[0] != 7
    assert sorted(short.roots) == sorted(long.roots) == list(range(8))
    assert proven_packing(problem, short) <= least_cut(hub_last)
