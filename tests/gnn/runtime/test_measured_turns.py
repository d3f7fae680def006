"""Plans that are measured in turns."""

from __future__ import annotations

from typing import Any

import numpy as np

import optbench as ob
from optbench.gnn.runtime.measured_turns import measured_in_turns
from optbench.shapes.gnn_training.training_plan import TrainingPlan


def test_plans_on_the_same_devices_share_processes_and_others_follow() -> None:
    """Two plans on both devices, and one on the first alone."""
    spec = "gnn_training:graph=grid,nodes=64,parts=2,devices=1:1,minimize=step,features=8"
    instance: Any = ob.load_problem(spec).instance(0)
    halves = np.arange(64, dtype=np.int64) // 32
    plans = [
        TrainingPlan(halves),
        TrainingPlan(halves, device=np.array([0, 0])),
        TrainingPlan(1 - halves),
    ]
    found = measured_in_turns([(instance.data, each) for each in plans], turns=2)
    assert [len(each.readings["step_s"]) for each in found] == [2, 2, 2]
    assert [each.provenance["speeds"] for each in found] == [[1.0, 1.0], [1.0], [1.0, 1.0]]
    assert min(min(each.readings["step_s"]) for each in found) > 0
