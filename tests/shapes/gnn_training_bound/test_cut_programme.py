"""The exact cut by HiGHS and CP-SAT, against enumeration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from optbench import api
from optbench.errors import DisagreementError, UnsupportedError
from optbench.shapes.gnn_training.training_plan import TrainingPlan
from optbench.shapes.gnn_training_bound.cut_problem import CutProblem
from optbench.shapes.gnn_training_bound.cut_programme import CutFormulation, cut_formulation
from optbench.shapes.gnn_training_bound.first_partition import first_partition, searches_of
from optbench.shapes.milp.exact_point import broken
from tests.shapes.gnn_training.small_training import instance as training_instance
from tests.shapes.gnn_training_bound.enumerated_cuts import (
    cut_data,
    cut_instance,
    least_cut,
    partitions,
    random_cut,
)

# A circle of six nodes with a chord between 0 and 3.
CIRCLE = [(0, 1), (0, 3), (0, 5), (1, 2), (2, 3), (3, 4), (4, 5)]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("solver", ["cpsat", "highs"])
def test_exact_solvers_find_the_enumerated_cut(solver: str, seed: int) -> None:
    data = random_cut(seed + 100, 7)
    result = api.solve(cut_instance(data), solver, time_limit_s=20)
    assert (result.objective, result.status) == (least_cut(data), "optimal")


@pytest.mark.parametrize("num_parts", [1, 2, 3])
def test_every_partition_is_a_point_of_the_programme(num_parts: int) -> None:
    """No row forbids a partition within max_part, and encode and decode agree on it."""
    data = cut_data(6, np.array(CIRCLE), num_parts, 6 if num_parts == 1 else 4)
    formulation: CutFormulation = cut_instance(data).formulation
    for part in partitions(6, num_parts):
        if np.bincount(part).max() > data.max_part:
            continue
        point = formulation.encode(TrainingPlan(part))
        assert not broken(formulation.program, point)
        decoded = formulation.decode(point).part
        same = part[:, None] == part[None, :]
        assert (same == (decoded[:, None] == decoded[None, :])).all()


def test_parts_that_are_too_large_are_forbidden() -> None:
    data = cut_data(6, np.array(CIRCLE), 3, 4)
    formulation = cut_formulation(cut_instance(data))
    point = formulation.encode(TrainingPlan(np.array([0, 0, 0, 0, 0, 1])))
    assert "room_0" in {each.constraint for each in broken(formulation.program, point)}


def test_a_decision_is_compared_only_where_the_formulation_was_made() -> None:
    made = cut_instance(cut_data(6, np.array(CIRCLE), 2, 3))
    good = TrainingPlan(np.array([0, 0, 0, 1, 1, 1]))
    assert made.shape.accept(made, good).verdict.objectives == (3.0,)
    assert not made.has_formulation
    wrong: Any = made.formulation
    # A bound that is too high: the programme forbids what the verifier accepts.
    row = wrong.program.rows.index("bound")
    wrong.program.row_lower[row] = 4.0
    with pytest.raises(DisagreementError, match="the formulation forbids"):
        made.shape.accept(made, good)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"minimize": "step"}, "it minimises the step; only the cut has one"),
        ({"step_limit_s": 9.0}, "step_limit_s is 9.0"),
        ({}, "fast has 5 GB, and the whole graph may need 6 GB"),
    ],
)
def test_what_the_programme_leaves_out_is_refused(changes: dict[str, Any], words: str) -> None:
    """The square of ``small_training`` keeps 4 GB of nodes, 1 GB of rows and 1 GB of parameters."""
    with pytest.raises(UnsupportedError, match=words):
        _ = training_instance(**changes).formulation


def test_a_large_graph_has_no_formulation() -> None:
    path = np.column_stack([np.arange(10_999), np.arange(1, 11_000)])
    made = cut_instance(cut_data(11_000, path, 2, 6_000))
    with pytest.raises(UnsupportedError, match="21,999 columns"):
        _ = made.formulation
    decision = TrainingPlan((np.arange(11_000) >= 5_500).astype(np.int64))
    assert made.shape.accept(made, decision).verdict.objectives == (1.0,)


def test_making_a_programme_is_little_work() -> None:
    """Steps of searches times pairs of nodes: 10 n × n² each, of which 2.4 billion are allowed."""
    # All 30 searches of the sizes that were measured; 2.4e9 / 6.4e8 is 3 at 400 nodes.
    assert [searches_of(n) for n in (1, 36, 144, 200, 400, 401)] == [30, 30, 30, 30, 3, 0]
    # A dense table of 100,000 nodes would take 80 GB. Three runs of the path cut two edges.
    tail = np.arange(99_999)
    part = first_partition(CutProblem(100_000, tail, tail + 1, 3, 33_334))
    assert np.bincount(part).max() == 33_334 and (np.diff(part) != 0).sum() == 2


@pytest.mark.parametrize(("nodes", "has_trees"), [(36, True), (3_000, False)])
def test_rows_of_trees_are_made_where_edges_are_few(nodes: int, has_trees: bool) -> None:
    path = np.column_stack([np.arange(nodes - 1), np.arange(1, nodes)])
    program = cut_formulation(cut_instance(cut_data(nodes, path, 2, nodes // 2))).program
    assert any(row.startswith("tree_") for row in program.rows) == has_trees


def test_devices_with_room_have_a_formulation() -> None:
    """The square with a diagonal, in parts of two nodes: the diagonal and two sides are cut."""
    made = training_instance()
    roomy = tuple(replace(each, memory_gb=50.0) for each in made.data.devices)
    formulated = training_instance(devices=roomy, max_part=2)
    result = api.solve(formulated, "highs", time_limit_s=20)
    assert (result.objective, result.status) == (3.0, "optimal")
