"""Bounds on the cut against least cuts by hand and by enumeration."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import combinations

import numpy as np
import pytest

from optbench import api
from optbench.shapes.gnn_training.training_data import GnnTraining
from optbench.shapes.gnn_training.training_plan import TrainingPlan
from optbench.shapes.gnn_training_bound.counting_bound import counted_cut
from optbench.shapes.gnn_training_bound.cut_bound import cut_bounds, fixed_work_bound
from optbench.shapes.gnn_training_bound.cut_problem import (
    CutProblem,
    cut_problem,
    without_small_components,
)
from optbench.shapes.gnn_training_bound.cut_sdp import sdp_multipliers
from optbench.shapes.gnn_training_bound.cut_sdp_proof import proven_cut
from optbench.shapes.gnn_training_bound.spreading_lp import proven_rounds, spreading_rounds
from optbench.shapes.gnn_training_bound.tree_packing import (
    TreePacking,
    best_scaled,
    exact_sum,
    packed_trees,
    proven_packing,
)
from tests.shapes.gnn_training_bound.enumerated_cuts import (
    cut_data,
    cut_instance,
    least_cut,
    random_cut,
    shaped_cut,
)

CYCLE = [(i, i + 1) for i in range(11)] + [(0, 11)]
# Two triangles, 0-1-2 and 3-4-5, and the edge 2-3.
DUMBBELL = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (3, 5), (4, 5)]


def given(num_nodes: int, edges: list[tuple[int, int]], parts: int, most: int) -> GnnTraining:
    return cut_data(num_nodes, np.array(sorted(edges)), parts, most)


def proven(problem: CutProblem) -> dict[str, int]:
    """The bound of each method, after the same work every time."""
    forever = math.inf
    packing = packed_trees(problem, forever, most=80)
    rounds = spreading_rounds(problem, forever, most_rounds=6)
    multipliers = sdp_multipliers(problem, forever, most_rounds=3)
    values = {
        "trees": proven_packing(problem, packing),
        "spreading": proven_rounds(problem, rounds),
        "sdp": proven_cut(problem, multipliers),
    }
    return {name: math.ceil(value) for name, value in values.items()}


@pytest.mark.parametrize(
    ("data", "least", "tight"),
    [
        # One triangle in each part: the edge between them is cut.
        (given(6, DUMBBELL, 2, 3), 1, {"trees", "spreading", "sdp"}),
        # Arcs of at most three nodes: four cuts of the circle.
        (given(12, CYCLE, 4, 3), 4, {"spreading"}),
        # Two arcs: two cuts.
        (given(12, CYCLE, 2, 6), 2, {"spreading", "sdp"}),
        # The centre with four of eight leaves; the other leaves are cut off.
        (given(9, [(0, i) for i in range(1, 9)], 2, 5), 4, {"trees", "spreading"}),
    ],
)
def test_least_cuts_by_hand(data: GnnTraining, least: int, tight: set[str]) -> None:
    assert least_cut(data) == least
    found = proven(cut_problem(data))
    assert all(value <= least for value in found.values())
    assert {name for name, value in found.items() if value == least} >= tight


@pytest.mark.parametrize(
    ("data", "least"),
    [
        # Three pairs of six nodes that all meet: 15 edges, of which 3 are inside.
        (given(6, list(combinations(range(6), 2)), 3, 2), 12),
        # A path of twelve nodes in four parts of three.
        (given(12, CYCLE[:-1], 4, 3), 3),
        # Three paths of two nodes do not fit into two parts of three without a cut.
        (given(6, [(0, 1), (2, 3), (4, 5)], 2, 3), 1),
        # Isolated nodes fill up any part.
        (given(6, [(0, 1), (1, 2)], 2, 3), 0),
        (given(5, [], 3, 2), 0),
    ],
)
def test_counting_by_hand(data: GnnTraining, least: int) -> None:
    assert counted_cut(cut_problem(data)) == least == least_cut(data)


def every_bound(data: GnnTraining) -> dict[str, int]:
    """The bound of counting, and of each method where one part does not hold the whole graph."""
    whole = cut_problem(data)
    found = {"counting": counted_cut(whole)}
    problem = without_small_components(whole)
    if problem.num_nodes > problem.max_part:
        found |= proven(problem)
    return found


def check_no_bound_above(given: Iterable[GnnTraining]) -> None:
    """Compare every method with enumeration; the bounds must also be worth something."""
    total, reached = 0, 0
    for number, data in enumerate(given):
        least, found = least_cut(data), every_bound(data)
        too_high = {name: value for name, value in found.items() if value > least}
        assert not too_high, f"graph {number}: {too_high} above {least}"
        total, reached = total + least, reached + max(*found.values(), 0)
    assert reached >= 0.9 * total


def test_no_bound_above_an_enumerated_cut() -> None:
    check_no_bound_above(random_cut(seed) for seed in range(60))


def test_no_bound_above_the_cut_of_stars_and_complete_graphs() -> None:
    """Also one part, five parts, room for the whole graph, and node sizes, which do not count."""
    check_no_bound_above(shaped_cut(seed) for seed in range(40))


@pytest.mark.slow
def test_no_bound_above_thousands_of_enumerated_cuts() -> None:
    check_no_bound_above(random_cut(seed) for seed in range(60, 2060))
    check_no_bound_above(shaped_cut(seed) for seed in range(40, 2040))


def test_parts_may_be_empty_for_bound_programme_and_verifier() -> None:
    """Two pairs of nodes in four parts of two: two parts stay empty, and nothing is cut."""
    data = given(4, [(0, 1), (2, 3)], 4, 2)
    made = cut_instance(data)
    found = made.shape.accept(made, TrainingPlan(np.array([0, 0, 1, 1]))).verdict
    assert found.feasible and found.objectives == (0.0,) == (float(least_cut(data)),)
    assert cut_bounds(data, 1.0)[0].value == 0.0
    result = api.solve(made, "cpsat", time_limit_s=20)
    assert (result.objective, result.status) == (0.0, "optimal")


def test_only_trees_from_a_number_on_count() -> None:
    """Two trees of three nodes of a path 0-1-2, in parts of one node: the first from node 0 loads
    the edges with 2 and 1, the second from node 1 both with 1. Alone, the latter proves 2.
    """
    problem = cut_problem(given(3, [(0, 1), (1, 2)], 3, 1))
    assert proven_packing(problem, TreePacking([0, 1], [3, 3], first=1)) == 2
    # Sides of 2, loads of 2 and 1: 2 / 2 at scale 2, or (2 - 1) / 1 at scale 1.
    assert proven_packing(problem, TreePacking([0], [3])) == 1
    assert proven_packing(problem, TreePacking([0, 1], [3, 3], first=2)) == 0


def test_sums_may_exceed_64_bits() -> None:
    """Four times 2^62 is 2^64; at a scale of 1, what is beyond it is left."""
    large = np.full(4, 1 << 62, dtype=np.int64)
    assert exact_sum(large) == 1 << 64
    # Sides of 2^64 over loads that are equal: at their scale 2^64 / 2^62.
    assert best_scaled(1 << 64, large) == 4


def test_labels_say_what_a_proof_rests_on() -> None:
    labels = {each.source: each.proof for each in cut_bounds(given(12, CYCLE, 4, 3), 2.0)}
    assert labels == {
        "cut_counting": "combinatorial",
        "cut_trees": "combinatorial",
        "cut_spreading": "exact-lp",
        "cut_sdp": "verified-sdp",
    }


def test_little_time_goes_to_trees() -> None:
    """A circle of 400 nodes would need seconds for the semidefinite programme."""
    circle = [(i, i + 1) for i in range(399)] + [(0, 399)]
    sources = {each.source for each in cut_bounds(given(400, circle, 2, 200), 0.5)}
    assert sources == {"cut_counting", "cut_trees", "cut_spreading"}


def test_small_components_are_left_out() -> None:
    """A circle of 202 nodes and two isolated ones, which are less than a hundredth."""
    circle = [(i, i + 1) for i in range(201)] + [(0, 201)]
    problem = cut_problem(given(204, circle, 2, 102))
    kept = without_small_components(problem)
    assert (problem.num_nodes, kept.num_nodes, kept.num_edges) == (204, 202, 202)
    # 102 of 202 nodes in one part, 100 in the other.
    assert kept.pairs_apart == 102 * 100
    # Isolated nodes that come first: the others are numbered anew.
    late = cut_problem(given(204, [(u + 2, v + 2) for u, v in circle], 2, 102))
    assert np.array_equal(without_small_components(late).tail, kept.tail)


def test_the_highest_bound_comes_first() -> None:
    found = cut_bounds(given(12, CYCLE, 4, 3), 2.0)
    assert [each.value for each in found] == sorted((b.value for b in found), reverse=True)
    assert found[0].value == 4.0
    assert {each.source for each in found} == {
        "cut_counting",
        "cut_trees",
        "cut_spreading",
        "cut_sdp",
    }


def test_the_search_ends_at_the_cut_of_a_decision() -> None:
    """Counting proves the 3 cut edges of a path, so that no other bound is computed."""
    found = cut_bounds(given(12, CYCLE[:-1], 4, 3), 60.0, known=3)
    assert [(each.value, each.source) for each in found] == [(3.0, "cut_counting")]


def test_a_fixed_amount_of_work_gives_one_bound() -> None:
    data = random_cut(7, most_nodes=10)
    assert fixed_work_bound(data) == fixed_work_bound(data) <= least_cut(data)
