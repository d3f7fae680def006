"""What would cost CP-SAT's search time without saying more: second searches, trials that cannot be
refuted, idle heuristics.
"""

from __future__ import annotations

import math
from fractions import Fraction
from importlib import import_module
from typing import Any

import pytest

import optbench as ob
from optbench.api import load_target
from optbench.bounds.auto import lower_bounds
from optbench.bounds.combinatorial import destructive
from optbench.bounds.proving import prove
from optbench.model.instance import Instance
from optbench.model.measures import level_tolerance
from optbench.plugins.protocol import Run
from optbench.sim.primal.project import ProjectSearch
from optbench.views.cpsat import build
from optbench.views.cpsat.scaling import exact_scale, to_int

cpsat = import_module("optbench.plugins.solvers.cpsat")
_cpsat_search = import_module("optbench.plugins.solvers._cpsat_search")


def two_energies() -> Instance:
    """Two tasks in two modes whose energies have no small exact scale."""
    m = ob.Model("two", horizon_s=100)
    gpu = m.pool("gpu")
    for k in range(2):
        m.task(modes=[m.mode(gpu, 10, 7 * math.pi ** (k + 1)), m.mode(gpu, 20, math.e)])
    m.minimize(energy_j=1.0)
    return m.build()


@pytest.mark.parametrize(
    "target", ["jobshop:jobs=4,machines=3", "rcpsp:activities=8", "flexible_jobshop:jobs=3"]
)
def test_a_makespan_is_its_own_objective(target: str) -> None:
    """Nothing is scaled, rounded or searched again; the end is the only term, with the coefficient
    1.
    """
    view = build(load_target(target, 1))
    assert list(view.model.proto.objective.coeffs) == [1]
    assert view.numbers.scale == 1 and view.numbers.charge == 0 and view.numbers.loss == 0


def test_differences_of_floats_are_decimals() -> None:
    # 1.019 and 13.054 as differences of energies of several thousand joules.
    values, scale = [1.018999999999323, 7.5, 13.054000000000087, 6683.167999999999], Fraction(1000)
    assert exact_scale(values) == exact_scale([*values, 1e-13]) == scale
    assert [to_int(v, scale, largest=max(values)) for v in values] == [1019, 7500, 13054, 6683168]
    assert to_int(values[0], scale) == 1018 and to_int(1e-13, scale, largest=max(values)) == 0
    assert exact_scale([1.0, math.pi]) is None


@pytest.mark.parametrize("seed", range(6))
def test_graphs_of_eight_tasks_need_no_second_search(seed: int) -> None:
    """The coarse scale of 256 left an error of 0.3 J, and a second search of the same length."""
    instance = load_target("gpu_dag:tasks=8", seed)
    assert build(instance).numbers.error <= level_tolerance(instance, 50_000.0)


def test_scales_that_leave_as_much_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    instance, built = two_energies(), list[int]()

    class Search:
        work = 0.0

        def __init__(self, view: Any, run: Run, **strategies: Any) -> None:
            built.append(view)

        def run(self, seconds: float = math.inf, work_share: float = 1.0) -> Any:
            return None

    monkeypatch.setattr(_cpsat_search, "_Search", Search)

    def searched(error: float, quick: bool) -> list[float]:
        built.clear()
        run = Run(instance)
        run.report(ob.Schedule.of(instance, [0, 2], [0, 10]))
        run.report_bound(0.0, "none")
        run.termination = "time_limit"
        _cpsat_search.sharpen(instance, run, error, quick=quick)
        return [view.numbers.error for view in built]  # type: ignore[attr-defined]

    every = searched(math.inf, quick=False)
    assert len(every) == 3 and every == sorted(every, reverse=True)
    assert searched(every[0], quick=False) == every[1:]
    assert searched(math.inf, quick=True) == every[2:]
    assert searched(0.0, quick=False) == every[2:]  # the last one is always searched


def test_no_makespan_of_a_known_schedule_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials that cannot be refuted take longest: la16 was proved in 1.7 s instead of 7.9 s without
    them.
    """
    instance, tried, refutes = (
        load_target("jobshop:jobs=6,machines=6", 1),
        list[int](),
        destructive._refutes,
    )

    def recorded(trial: Any, makespan: int, *rest: Any) -> bool:
        tried.append(makespan)
        return refutes(trial, makespan, *rest)

    monkeypatch.setattr(destructive, "_refutes", recorded)
    best = ob.solve(instance, "cpsat", work_limit=20)
    assert best.schedule is not None and best.status == "optimal"
    tried.clear()
    run = Run(instance, time_limit_s=60, warm_start=best.schedule)
    run.report(best.schedule)
    run.prove_bounds(10.0)
    end = int(best.schedule.end.max())
    assert all(makespan < end for makespan in tried)
    bounds = [
        bound for bound in lower_bounds(instance, "auto", 10.0, float(end)) if bound.certificate
    ]
    assert bounds[0].value <= end
    assert prove(instance, str(bounds[0].certificate), again=True).value == bounds[0].value


def test_heuristics_that_find_nothing_give_way() -> None:
    class Improver:
        looks = 0

        def run(
            self, target: Any, report: Any, stop: Any, seconds: float, chunks: Any, spared: int
        ) -> None:
            while not stop():
                self.looks += 1

    run, improver = Run(load_target("jobshop:jobs=2,machines=2", 0)), Improver()
    cpsat.improve(improver, run, math.inf, patience=0.01)  # ends, though it has all the time
    assert improver.looks > 0


@pytest.mark.parametrize(
    ("activities", "share", "far"),
    [(30, 0.5, False), (60, 0.95, False), (60, 0.9, True), (110, 0.98, False), (110, 0.95, True)],
)
def test_projects_far_from_closed_are_left_to_the_heuristics(
    activities: int, share: float, far: bool
) -> None:
    """``share`` is the bound in terms of the makespan."""
    instance = load_target(f"rcpsp:activities={activities},strength=0.2", 1)
    search = ProjectSearch(instance, 0)
    search.step(1)
    run = Run(instance)
    run.report(search.schedule())
    run.report_bound(math.floor(share * search.makespan), "test")
    assert cpsat.is_far_from_closed(instance, run) == far
