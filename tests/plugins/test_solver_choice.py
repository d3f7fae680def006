"""Which solvers take an instance, and which one is chosen where none is named."""

from __future__ import annotations

from typing import Any

import pytest

import optbench as ob
from optbench.errors import UnsupportedError
from optbench.plugins import solver_choice
from optbench.shapes.milp.milp_shape import MILPS
from tests.reference.random_milps import random_milp
from tests.sample_files.jobs_shape import JobData, Jobs, Order, ShortestFirst


@pytest.fixture(scope="module")
def jobs() -> Any:
    return Jobs().instance("three", JobData([3.0, 1.0, 2.0]))


@pytest.fixture(scope="module")
def shop() -> ob.Instance:
    made: ob.Instance = ob.load_problem("jobshop:jobs=2,machines=2").instance(0)
    return made


def test_cpsat_for_schedules_and_highs_for_programmes(shop: ob.Instance) -> None:
    assert solver_choice.usual_solver(shop) == "cpsat"
    assert ob.solve(shop, time_limit_s=5).solver == "cpsat"
    programme: Any = MILPS.instance(random_milp("mixed", 1))
    assert solver_choice.usual_solver(programme) == "highs"
    assert ob.solve(programme, time_limit_s=5).solver == "highs"


def test_a_shape_names_its_usual_solver(jobs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Jobs, "usual_solver", "shortest_first")
    assert solver_choice.usual_solver(jobs) == "shortest_first"
    graph: Any = ob.load_problem("gnn_training:graph=grid,nodes=16,parts=2").instance(0)
    assert solver_choice.usual_solver(graph) == "hyperscale"


def test_a_shape_that_nobody_takes(jobs: Any) -> None:
    message = (
        r"no solver takes 'three', which is a job_order; write one with shapes = \{'job_order'"
    )
    with pytest.raises(UnsupportedError, match=message):
        ob.solve(jobs)
    with pytest.raises(UnsupportedError, match=r"this is a job_order. No solver takes it."):
        ob.solve(jobs, "cpsat")


def test_the_first_solver_that_takes_a_shape(jobs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(ShortestFirst):
        def refuse(self, instance: Any) -> str:
            return "it has too many jobs"

    found = {"a_refusing": Refusing, "b_shortest": ShortestFirst, "c_cpsat": type("C", (), {})}
    found["c_cpsat"].shapes = {"schedule"}  # type: ignore[attr-defined]
    monkeypatch.setattr(solver_choice, "names", lambda kind: list(found))
    monkeypatch.setattr(solver_choice, "load_class", lambda kind, name: found[name])
    monkeypatch.setattr(solver_choice, "load_solver", lambda name: (name, found[name]()))
    assert solver_choice.solvers_of_shape(jobs.shape) == ["a_refusing", "b_shortest"]
    assert solver_choice.usual_solver(jobs) == "b_shortest"
    assert "too many jobs" in str(solver_choice.refusals(jobs)["a_refusing"])
    with pytest.raises(UnsupportedError, match="These take it: a_refusing, b_shortest"):
        ob.solve(jobs, "fcfs")
    del found["b_shortest"]
    with pytest.raises(UnsupportedError, match=r"no solver takes 'three'.*it has too many jobs"):
        solver_choice.usual_solver(jobs)


def test_a_solver_of_a_shape_without_a_model(jobs: Any) -> None:
    # 1 h, 2 h, 3 h: ends at 1, 3 and 6.
    result: Any = ob.solve(jobs, ShortestFirst())
    assert result.verified and result.objective == 10.0 and result.gap is None
    assert result.schedule == Order([1, 2, 0])


def test_features_refuse_a_schedule(shop: ob.Instance) -> None:
    found = solver_choice.refusals(shop)
    assert found["cpsat"] is None and "precedence" in str(found["ucb1"])
