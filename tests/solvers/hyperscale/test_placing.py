"""When hyperscale places parts, and what it asks of the clock meanwhile."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.plugins.discovery import load_problem
from optbench.plugins.protocol import Run
from optbench.plugins.solvers.hyperscale.placing import is_within_memory, placed, warm_up
from optbench.shapes.gnn_training.training_plan import TrainingPlan
from tests.shapes.gnn_training.small_training import training

hyperscale: Any = import_module("optbench.plugins.solvers.hyperscale")
SMALL = "gnn_training:graph=community,nodes=120,parts=6,features=32,devices=2:1"


class CountingRun(Run):
    """A run that counts how often its clock is read."""

    reads = 0

    def elapsed_s(self) -> float:
        self.reads += 1
        return super().elapsed_s()


def made(aim: str) -> Any:
    return load_problem(f"{SMALL},minimize={aim}").instance(0)


def in_turn(data: Any) -> TrainingPlan:
    return TrainingPlan(np.arange(data.graph.num_nodes, dtype=np.int64) % data.num_parts)


@pytest.mark.parametrize(("aim", "is_placed"), [("cut", False), ("step", True)])
def test_parts_are_not_placed_for_their_cut(
    aim: str, is_placed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def counted(*args: Any) -> Any:
        calls.append(args[0])
        return placed(*args)

    monkeypatch.setattr(hyperscale, "placed", counted)
    result: Any = ob.solve(made(aim), hyperscale.HyperScale(), work_limit=2, bound=False)
    assert result.verified and bool(calls) == is_placed
    if aim == "cut":
        assert result.schedule.device.tolist() == [0, 1, 0, 1, 0, 1]


def test_memory_is_a_reason_to_place() -> None:
    data = training()
    plan = TrainingPlan(np.array([0, 0, 0, 1]))
    for memory_gb, fits in ((None, True), (1e3, True), (1e-9, False)):
        devices = tuple(replace(each, memory_gb=memory_gb) for each in data.devices)
        assert is_within_memory(replace(data, devices=devices), plan) == fits


@pytest.mark.parametrize("method", ["local_search", "annealing", "milp"])
def test_no_clock_is_read_where_work_is_limited(method: Any) -> None:
    """There is no limit of time, so that nothing has to know it."""
    data = made("step").data
    found = []
    for _ in range(2):
        run = CountingRun(made("step"), time_limit_s=None, work_limit=4)
        found.append(placed(method, data, in_turn(data), run.rng, run).tolist())
        assert run.reads == 0
    assert found[0] == found[1]


def test_warming_up_does_not_look_at_the_graph() -> None:
    """What has no graph would fail."""
    data: Any = SimpleNamespace(num_devices=2)
    for method in ("greedy", "local_search", "annealing", "milp"):
        warm_up(method, data)


@pytest.mark.parametrize(
    ("method", "termination"),
    [("annealing", "work_limit"), ("local_search", "work_limit"), ("greedy", "finished")],
)
def test_an_allocation_by_work_is_the_same_again(method: str, termination: str) -> None:
    """The time limit would give the search as long as it is."""
    solver = f"mdp_allocation:method={method}"
    limits: Any = {"work_limit": 1, "time_limit_s": 60.0, "bound": False, "seed": 2}
    results: list[Any] = [ob.solve(made("step"), solver, **limits) for _ in range(2)]
    one, again = results
    assert one.termination == again.termination == termination
    assert one.schedule.device.tolist() == again.schedule.device.tolist()
