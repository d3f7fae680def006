"""The shape of GNN training: metrics, constraints, files, what data refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from optbench.errors import ModelError
from optbench.shapes.gnn_training.operator_costs import (
    Fusion,
    Operator,
    OperatorCost,
    check_fusions,
)
from optbench.shapes.gnn_training.training_data import DataGraph, TrainingDevice
from optbench.shapes.gnn_training.training_plan import TrainingPlan
from tests.shapes.gnn_training.small_training import FAST, instance, plan, training


def verdict(given: TrainingPlan, **changes: Any) -> Any:
    made = instance(**changes)
    return made.shape.verdict_of(made, given)


def broken(given: TrainingPlan, **changes: Any) -> set[str]:
    return {each.constraint for each in verdict(given, **changes).violations}


def test_metrics_of_a_cut() -> None:
    """Node 3 alone: the edges 1-3 and 2-3 are cut, and the other part has 3 of 2 fair nodes."""
    found = verdict(plan([0, 0, 0, 1]))
    assert found.objectives == (2.0,)
    assert found.metrics["imbalance"] == 0.5
    # The whole work takes 2 + 5 + 0.02 s on the fast device and 4 + 5 + 0.02 s on the slow one: the
    # shares of speed are in proportion 1 / 7.02 to 1 / 9.02. The fast one computes for 5.52 s.
    balanced = 1 / (1 / 7.02 + 1 / 9.02)
    assert found.metrics["work_imbalance"] == pytest.approx(5.52 / balanced - 1)


@pytest.mark.parametrize(("aim", "metric"), [("cut", "cut_edges"), ("step", "step_s")])
def test_the_data_choose_what_is_minimised(aim: Any, metric: str) -> None:
    made = instance(minimize=aim)
    found = made.shape.verdict_of(made, plan([0, 0, 0, 1]))
    assert found.objectives == (found.metrics[metric],)
    assert made.shape.label(made) == metric


def test_every_constraint_broken_once() -> None:
    good = [0, 0, 0, 1]
    assert broken(plan(good)) == set()
    assert broken(plan([0, 0, 0, 2])) == {"form"}
    assert broken(plan([0, 0, 1])) == {"form"}
    assert broken(plan(good, device=[0, 2])) == {"form"}
    assert broken(plan(good, device=[0, 1], clock=[1, 1])) == {"form"}
    assert broken(plan(good, fusions=[1])) == {"form"}
    assert broken(plan([0, 0, 0, 0])) == {"max_part"}
    assert broken(plan(good, fusions=[0, 0])) == {"fusion_overlap"}
    # 4.1 GB are kept on the fast device.
    assert broken(plan(good), devices=(small_memory(4.0), FAST)) == {"memory"}
    assert broken(plan(good), step_limit_s=8.0) == {"step_limit"}
    assert broken(plan(good), step_limit_s=9.0) == set()


def small_memory(memory_gb: float) -> TrainingDevice:
    return TrainingDevice("small", 2.0, 1.0, 10.0, 100.0, 50.0, 20.0, (1.0,), memory_gb)


def test_fusions_that_wait_for_each_other_are_refused() -> None:
    """a → b and c → d: {a, d} and {b, c} are convex each, and wait for each other together."""
    cost = OperatorCost(flop_per_node=1.0)
    names = {"a": (-1,), "b": (0,), "c": (-1,), "d": (2,)}
    operators = tuple(Operator(name, "dense", inputs, cost) for name, inputs in names.items())
    fusions = (Fusion("ad", (0, 3), cost), Fusion("bc", (1, 2), cost))
    given = plan([0, 0, 0, 1], fusions=[0, 1])
    assert broken(given, operators=operators, fusions=fusions) == {"fusion_cycle"}


def test_a_fusion_must_be_convex() -> None:
    """In a → b → c the path from a to c leaves {a, c} through b."""
    cost = OperatorCost()
    operators = [Operator(str(k), "dense", (k - 1,), cost) for k in range(3)]
    with pytest.raises(ModelError, match="leaves it and comes back"):
        check_fusions(operators, [Fusion("ac", (0, 2), cost)])


def test_files_keep_an_instance_and_a_decision() -> None:
    made = instance(speeds=np.array([[1.0, 0.5]]))
    again = made.shape.read(made.shape.write(made))
    assert again.hash == made.hash
    given = plan([0, 0, 0, 1], device=[1, 0], fusions=[0])
    read = made.shape.read_decision(again, made.shape.write_decision(made, given))
    assert made.shape.verdict_of(again, read) == made.shape.verdict_of(made, given)


@pytest.mark.parametrize(
    ("tail", "head", "words"),
    [
        ([0, 1], [1, 1], "edge 1 is \\(1, 1\\)"),
        ([0, 0], [1, 1], "repeats the one before"),
        ([0, 0], [2, 1], "out of order"),
        ([0], [3], "head < 3"),
    ],
)
def test_graphs_are_simple_and_in_order(tail: list[int], head: list[int], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        DataGraph(3, np.array(tail), np.array(head))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"max_part": 1}, "it must be at least 2"),
        ({"num_parts": 5}, "from 1 to the 4 nodes"),
        ({"devices": ()}, "at least one device"),
        ({"devices": (FAST,)}, r"links.gb_per_s has shape \(2, 2\)"),
        ({"speeds": np.array([[1.0]])}, "a column for each of the 2 devices"),
        ({"speeds": np.array([[1.0, 0.0]])}, "shares of speed are positive"),
    ],
)
def test_bad_data_name_what_is_wrong(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        training(**changes)


def test_facts_of_an_instance() -> None:
    made = instance()
    facts = made.shape.facts_of(made)
    assert tuple(facts) == tuple(made.shape.fact_words)
    assert (facts["num_nodes"], facts["num_edges"], facts["num_parts"]) == (4, 5, 2)
    # The fast device has 2 Gflop/s and the slow one 1; both links 0.5 GB/s.
    assert (facts["num_devices"], facts["gflops"], facts["slowest_share"]) == (2, 3, 0.5)
    assert facts["link_gb_per_s"] == 0.5 and facts["num_operators"] == 2
