"""Bounds on the step and on the energy, against plans and by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from optbench.errors import OptbenchError
from optbench.shapes.gnn_training.training_data import TrainingDevice
from optbench.shapes.gnn_training.training_plan import TrainingPlan
from optbench.shapes.gnn_training_bound.step_bound import (
    least_cost,
    least_step_s,
    prove_step,
    step_bound,
)
from tests.shapes.gnn_training.small_training import FAST, SLOW, instance, training

# The devices of ``small_training`` without launches and limits of memory.
PLAIN_FAST = replace(FAST, launch_s=0.0, memory_gb=None)
PLAIN_SLOW = replace(SLOW, launch_s=0.0, memory_gb=None)


def test_all_work_over_all_speeds_by_hand() -> None:
    """Four nodes of 1 Gflop and 0.4 GB, ten arcs of 0.1 Gflop and 0.5 GB, without fusions.

    By bytes alone, 6.6 GB at 1 GB/s on each of two devices: 3.3 s at least."""
    data = training(fusions=(), devices=(PLAIN_FAST, PLAIN_SLOW))
    assert least_step_s(data) >= 3.3 - 1e-12
    # Flops of the slow device: 5 Gflop at 1 Gflop/s, 2.5 s for half of it; bytes need longer.
    assert least_step_s(data) < 3.5


def test_a_fusion_counts_at_its_share() -> None:
    """1 Gflop per node and 0.1 per arc apart; fused 1.5 per node for both, 0.75 for each."""
    cost = least_cost(training())
    assert cost.flop_per_node == 0.75e9
    assert cost.flop_per_arc == cost.bytes_per_arc == 0.0
    # Two launches apart, one fused: half a launch for each operator.
    assert cost.launches == 1.0


def random_plan(rng: np.random.Generator) -> TrainingPlan:
    fused = rng.integers(0, 1, int(rng.integers(0, 2)))
    device = rng.integers(0, 2, 2)
    clock = np.array([int(rng.integers(0, 2)) if d == 0 else 0 for d in device])
    return TrainingPlan(rng.integers(0, 2, 4), device, clock, fused)


@pytest.mark.parametrize("aim", ["step", "energy"])
@pytest.mark.parametrize("changes", [{}, {"fusions": ()}, {"cheap": True}], ids=str)
def test_no_plan_is_below_the_bound(aim: Any, changes: dict[str, Any]) -> None:
    """Also with power below idling, with recorded speeds, and with sizes of nodes."""
    rng = np.random.default_rng(4)
    devices: tuple[TrainingDevice, ...] = (PLAIN_FAST, PLAIN_SLOW)
    if changes.pop("cheap", False):
        devices = (replace(FAST, idle_w=60.0, memory_gb=None), replace(SLOW, memory_gb=None))
    made = instance(minimize=aim, max_part=4, devices=devices, **changes)
    slower = rng.uniform(0.3, 1.0, (3, 2))
    varied = replace(made, data=replace(made.data, speeds=slower))
    for each in (made, varied):
        bound = step_bound(each.data)
        assert bound.value > 0
        reached = []
        for _ in range(300):
            found = each.shape.verdict_of(each, random_plan(rng))
            reached += list(found.objectives)
        assert len(reached) > 100
        assert bound.value <= min(reached)
        # Worth something: at least a quarter of the best plan.
        assert bound.value >= 0.25 * min(reached)


def test_the_bound_is_proved_again() -> None:
    made = instance(minimize="step")
    bound = made.shape.bounds(made, "auto", 1.0, None)[0]
    assert made.shape.prove(made, bound.certificate or "") == bound
    assert made.shape.labelled(made, bound).proof == "combinatorial"
    with pytest.raises(OptbenchError, match="not that of 'training_work' for energy"):
        prove_step(training(minimize="energy"), bound.certificate or "")
