"""The stages of one thread: each alone is right, and the relaxation never says too much."""

from __future__ import annotations

import math
from importlib import import_module

import pytest
from ortools.sat.python import cp_model

import optbench as ob
from optbench.api import load_target
from optbench.model.instance import Instance
from optbench.plugins.protocol import Run
from optbench.views.cpsat import build
from tests.reference.brute_force import brute_force
from tests.reference.random_instances import tiny_instance

_cpsat_search = import_module("optbench.plugins.solvers._cpsat_search")


@pytest.mark.parametrize("seed", range(40))
def test_without_sharing_the_bound_stays_below_the_optimum(seed: int) -> None:
    instance = tiny_instance(seed)
    best, view = brute_force(instance), build(instance, shared=False)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    status = solver.solve(view.model)
    if best is not None:
        assert status == cp_model.OPTIMAL
        assert view.bound(solver.best_objective_bound) <= best.objective * (1 + 1e-9) + 1e-9


@pytest.fixture(scope="module")
def graph() -> tuple[Instance, float]:
    """Seven tasks with transfers under a limit on the makespan, and the optimum."""
    instance = load_target("gpu_dag:tasks=7,gpus=4,types=2,clocks=3", 3).with_limits(
        makespan_s=260.0
    )
    result = ob.solve(instance, work_limit=60)
    assert result.status == "optimal" and isinstance(result.objective, float)
    return instance, result.objective


@pytest.mark.parametrize("shares", [(1e-9, 1e-9, 1.0), (1e-9, 1e-9, 1e-9), (1e-9, 0.5, 1.0)])
def test_each_stage_alone_finds_the_optimum(
    graph: tuple[Instance, float],
    shares: tuple[float, float, float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    instance, optimum = graph
    for name, share in zip(("PLAIN_SHARE", "UNSHARED_SHARE", "MIXED_SHARE"), shares, strict=True):
        monkeypatch.setattr(_cpsat_search, name, share)
    run = Run(instance, time_limit_s=60)
    assert _cpsat_search.search_in_stages(build(instance), run)
    assert run.objective == pytest.approx(optimum, rel=1e-9)
    assert run.bound is not None and run.bound == pytest.approx(optimum, rel=1e-6)


def two_tasks(devices: int) -> Run:
    """Two tasks of 10 s at 100 J or 20 s at 60 J, all within 20 s."""
    m = ob.Model("two", horizon_s=20)
    gpu = m.pool("gpu", count=devices)
    for _ in range(2):
        m.task(modes=[m.mode(gpu, 10, 100), m.mode(gpu, 20, 60)])
    m.minimize(energy_j=1.0)
    return Run(m.build(), time_limit_s=20)


def test_an_unshared_optimum_that_happens_to_fit_closes() -> None:
    run = two_tasks(2)
    run.report(ob.Schedule.of(run.instance, [0, 0], [0, 0]))
    assert _cpsat_search.bound_unshared(run.instance, run)
    assert (run.objective, run.bound) == (120, 120)


def test_one_that_does_not_fit_is_a_bound_and_no_schedule() -> None:
    # On one device both tasks need their fast mode: 200 J. Sharing nothing but the load of 20 s
    # they need it too; without an incumbent nothing is closed.
    run = two_tasks(1)
    assert not _cpsat_search.bound_unshared(run.instance, run)
    assert run.best is None and run.rejected == [] and run.bound == 200
    assert run.bounds[-1].source == "cpsat:unshared"


def test_infeasible_without_sharing_is_infeasible() -> None:
    m = ob.Model("late", horizon_s=5)
    gpu = m.pool("gpu")
    m.task(modes=[m.mode(gpu, 10, 100)])
    m.minimize(energy_j=1.0)
    run = Run(m.build(), time_limit_s=20)
    assert _cpsat_search.bound_unshared(run.instance, run) and run.proven_infeasible


def test_a_work_limit_knows_no_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bool:
        raise AssertionError("stages need a clock")

    monkeypatch.setattr(_cpsat_search, "search_in_stages", refuse)
    assert math.isfinite(ob.solve("gpu_dag:tasks=4", work_limit=20).wall_s)


def test_what_was_compiled_within_the_limit_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """The meter of compiling shows 3.2 s more after the heuristics than before."""
    module = import_module("optbench.plugins.solvers.cpsat")
    shown = iter([10.0, 13.2])
    monkeypatch.setattr(module, "compiled_s", lambda: next(shown))
    monkeypatch.setattr(module.CpSat, "probe", lambda *_: False)
    result = ob.solve("flexible_jobshop:jobs=3,machines=3,operations=3", "cpsat", time_limit_s=3)
    assert result.info["compiling"].startswith("3.2 s of the time limit went into compiling")


def test_nothing_is_said_where_nothing_was_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("optbench.plugins.solvers.cpsat")
    monkeypatch.setattr(module.CpSat, "probe", lambda *_: False)
    result = ob.solve("flexible_jobshop:jobs=3,machines=3,operations=3", "cpsat", time_limit_s=3)
    assert "compiling" not in result.info


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("direct", [0, 20])
def test_proving_with_cuts_finds_the_optimum(
    graph: tuple[Instance, float], threads: int, direct: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance, optimum = graph
    monkeypatch.setattr(_cpsat_search, "DIRECT_TASKS", direct)
    run = Run(instance, time_limit_s=60, threads=threads)
    assert _cpsat_search.prove(build(instance, cuts=True), run)
    assert run.objective == pytest.approx(optimum, rel=1e-9)
    assert run.bound is not None and run.bound == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize(("alone", "provers"), [(True, 2), (False, 1)])
def test_two_threads_both_prove_only_where_nothing_else_runs(alone: bool, provers: int) -> None:
    """Of two strategies that are named CP-SAT drops one for neighbourhoods."""
    instance = load_target("gpu_dag:tasks=12", 100)
    workers = _cpsat_search.Strategies(("no_lp", "lb_tree_search"), alone)
    searching = _cpsat_search._Search(build(instance), Run(instance, threads=2), workers=workers)
    lines: list[str] = []
    searching.solver.parameters.log_search_progress = True
    searching.solver.parameters.log_to_stdout = False
    searching.solver.log_callback = lines.append
    searching.run(1.0)
    assert f"{provers} full problem subsolver" in "\n".join(lines)
