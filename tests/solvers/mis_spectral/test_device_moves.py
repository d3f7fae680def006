"""Moves between devices, on the cost model: balance, exchange, memory, and fewer devices."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.errors import UnsupportedError
from optbench.plugins.discovery import load_problem
from optbench.plugins.solvers.mis_spectral.device_balance import DeviceBalance
from optbench.plugins.solvers.mis_spectral.part_loads import device_choices, ideal_step_s
from optbench.shapes.gnn_training.gnn_training_shape import GnnTrainingShape
from optbench.shapes.gnn_training.step_costs import step_costs
from optbench.shapes.gnn_training.training_plan import TrainingPlan


def instance(spec: str, **changes: Any) -> Any:
    made: Any = load_problem(f"gnn_training:minimize=step,{spec}").instance(0)
    return GnnTrainingShape().instance("small", replace(made.data, **changes))


def step_s(data: Any, part: Any, device: Any) -> float:
    return step_costs(data, TrainingPlan(np.asarray(part), np.asarray(device))).step_s


def solved(given: Any, **options: Any) -> Any:
    settings = {"work_limit": 12, "time_limit_s": 60.0, "bound": False} | options
    return ob.solve(given, "mis_spectral", **settings)


def test_an_unbalanced_path_is_settled() -> None:
    """Without exchange a path of 30 on 2 : 1 is best at 20 to 10 nodes; the border moves there."""
    data = instance("graph=grid,nodes=30,parts=2,devices=2:1,latency_s=0,link_gb_per_s=1e9").data
    device = np.array([0, 1])
    part = (np.arange(30) >= 15).astype(np.int64)
    found = DeviceBalance(data, device).settled(part, 0)
    assert abs(int((found == 0).sum()) - 20) <= 1
    assert step_s(data, found, device) < 0.75 * step_s(data, part, device)


@pytest.mark.parametrize("aim", ["step", "energy"])
def test_settled_partitions_are_never_worse(aim: Any) -> None:
    """Also with several parts on a device, recorded speeds, and a limit of nodes."""
    rng = np.random.default_rng(1)
    speeds = rng.uniform(0.4, 1.0, (3, 3))
    given = instance("graph=power,nodes=120,parts=5,devices=4:2:1,max_part=40")
    data = replace(given.data, speeds=speeds, minimize=aim)
    device = np.arange(5) % 3
    for _ in range(5):
        part = rng.permutation(np.arange(120) % 5)
        found = DeviceBalance(data, device).settled(part, 3)
        name = "step_s" if aim == "step" else "energy_j"
        before, after = (
            getattr(step_costs(data, TrainingPlan(each, device)), name) for each in (part, found)
        )
        assert after < before and np.bincount(found, minlength=5).max() <= 40


def test_one_device_is_found_where_exchanging_takes_longer() -> None:
    """A message takes a second: every node on the device of speed 4, the others without a part."""
    given = instance("graph=grid,nodes=40,parts=3,devices=4:2:1,latency_s=1.0")
    result = solved(given)
    assert set(result.schedule.device[np.unique(result.schedule.part)].tolist()) == {0}
    assert result.metrics["step_s"] == pytest.approx(
        step_s(given.data, np.zeros(40, dtype=np.int64), [0, 0, 0])
    )


def test_two_of_three_devices_are_found() -> None:
    """The slowest one is behind a link of a second; the other two talk for nothing."""
    given = instance("graph=mesh,nodes=200,parts=3,devices=1:1:0.5,latency_s=0")
    slow = np.zeros((3, 3))
    slow[2, :2] = slow[:2, 2] = 1.0
    links = replace(given.data.links, latency_s=slow, gb_per_s=np.full((3, 3), 1e3))
    result = solved(GnnTrainingShape().instance("far", replace(given.data, links=links)))
    assert sorted(set(result.schedule.device.tolist())) == [0, 1]


def test_a_small_memory_is_held() -> None:
    given = instance("graph=mesh,nodes=200,parts=2,devices=2:1,latency_s=0")
    needed = step_costs(given.data, TrainingPlan(np.zeros(200, np.int64), np.array([0, 0])))
    room = 0.4 * float(needed.memory_bytes[0]) / 1e9
    small = replace(given.data.devices[0], memory_gb=room)
    result = solved(
        GnnTrainingShape().instance(
            "small", replace(given.data, devices=(small, given.data.devices[1]))
        )
    )
    assert result.verified and np.bincount(result.schedule.part)[0] <= 80


def test_memories_that_are_too_small_together_are_named() -> None:
    given = instance("graph=mesh,nodes=200,parts=2,devices=2:1")
    needed = step_costs(given.data, TrainingPlan(np.zeros(200, np.int64), np.array([0, 0])))
    room = 0.3 * float(needed.memory_bytes[0]) / 1e9
    devices = tuple(replace(each, memory_gb=room) for each in given.data.devices)
    result = solved(GnnTrainingShape().instance("small", replace(given.data, devices=devices)))
    assert result.schedule is None and "do not hold what training keeps" in (result.message or "")


def test_fusions_are_executed_and_balanced_for() -> None:
    spec = "graph=mesh,nodes=200,parts=2,devices=2:1,latency_s=0"
    given = instance(spec)
    names = "spmm_epilogue1+spmm_epilogue2"
    found: Any = ob.solve(given, f"mis_spectral:fusions={names}", work_limit=4, bound=False)
    chosen = [given.data.fusions[k].name for k in found.schedule.fusions.tolist()]
    assert chosen == names.split("+") and found.verified
    plain = solved(given, work_limit=4)
    assert found.metrics["step_s"] < plain.metrics["step_s"]
    assert found.metrics["work_imbalance"] < 0.02


@pytest.mark.parametrize(
    ("names", "words"),
    [("spmm9", "fusions: 'spmm9' is unknown"), ("spmm1+spmm_epilogue1", "replace one operator")],
)
def test_fusions_that_no_plan_has_are_refused(names: str, words: str) -> None:
    with pytest.raises(UnsupportedError, match=words):
        solved_by = f"mis_spectral:fusions={names}"
        ob.solve(instance("graph=grid,nodes=16,parts=2"), solved_by, work_limit=1)


def test_the_least_step_of_small_graphs_is_found() -> None:
    """Against all plans of 8 nodes on two devices in two parts, whichever devices hold them."""
    for seed in range(3):
        problem = "gnn_training:graph=community,nodes=8,degree=3,parts=2,devices=2:1,minimize=step"
        made: Any = load_problem(f"{problem},latency_s=0,features=32").instance(seed)
        given = GnnTrainingShape().instance("tiny", replace(made.data, fusions=()))
        least = min(
            step_s(given.data, np.array(part), device)
            for part in product((0, 1), repeat=8)
            for device in ([0, 1], [0, 0])
        )
        assert solved(given).metrics["step_s"] == pytest.approx(least)


def test_devices_are_tried_from_all_to_the_fastest_alone() -> None:
    data = instance("graph=grid,nodes=40,parts=4,devices=1:4:2").data
    tried = [each.tolist() for each in device_choices(data)]
    assert tried == [[0, 1, 2, 0], [1, 2, 1, 2], [1, 1, 1, 1]]
    ideal = [ideal_step_s(data, np.array(each)) for each in tried]
    # In units of 1 / speed: 1 / 7, 1 / 6 and 1 / 4.
    assert ideal[0] * 7 == pytest.approx(ideal[1] * 6) == pytest.approx(ideal[2] * 4)
    few = instance("graph=grid,nodes=40,parts=2,devices=1:4:2").data
    assert [each.tolist() for each in device_choices(few)] == [[1, 2], [1, 1]]
