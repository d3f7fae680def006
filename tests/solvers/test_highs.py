"""HiGHS: optima derived by hand, optima by enumeration, and every way in which a run can end."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import highspy
import numpy as np
import pytest

import optbench as ob
from optbench.errors import ContradictionError, ParameterError, UnsupportedError
from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.model.verify import verify
from optbench.plugins.protocol import Run, check_supported
from optbench.plugins.solvers import highs as module
from optbench.plugins.solvers._first_schedules import first_schedules
from optbench.plugins.solvers.highs import STOPPED, Highs, Session, known_end, safe_bound
from optbench.views.milp import formulate

from ..reference.random_instances import in_fine_ticks, tiny_instance
from ..views.milp_cases import tiny


def shop(jobs: int, **options: Any) -> Instance:
    """Jobs of two operations on two machines: 3 ticks on the first, 2 on the second, in
    that order.
    """
    m = ob.Model("shop", **options)
    first, second = m.pool("m0"), m.pool("m1")
    for _ in range(jobs):
        m.task(modes=[m.mode(second, 2.0)], after=m.task(modes=[m.mode(first, 3.0)]))
    m.minimize(makespan=1.0)
    return m.build()


def solved(instance: Instance, solver: Highs | None = None, **budget: Any) -> Run:
    run = Run(instance, **budget)
    assert (solver or Highs()).solve(instance, run) is run.best
    return run


@pytest.mark.parametrize("route", ["array", "pyomo"])
@pytest.mark.parametrize("form", ["auto", "time_indexed", "disjunctive"])
def test_a_flow_shop_derived_by_hand(form: str, route: str) -> None:
    """The first machine is busy for 3 · 3 ticks and the last job then needs 2 more: 11, which the
    order 1, 2, 3 attains.
    """
    run = solved(shop(3), Highs(form, route, first=False))
    assert (run.objective, run.bound, run.termination) == (11.0, 11.0, "finished")
    assert (
        run.info["formulation"] in ("time_indexed", "disjunctive")
        and run.info["formulation_reason"]
    )
    assert run.rejected == []


def test_nanoseconds() -> None:
    """The same shop in ticks of a nanosecond; its bound is the optimum less a slack far below what
    is called a gap.
    """
    run = solved(shop(3, tick_s=1e-9))
    assert run.objective == 11e9
    assert run.bound is not None and 11e9 * (1 - 1e-8) <= run.bound <= 11e9


def test_a_cheap_hour_is_waited_for() -> None:
    """One hour at 1 kW: 0.30 USD at once, 0.10 USD from hour 2 on; each tick of waiting is worth
    0.01 USD: wait, 0.10 + 0.03.
    """
    m = ob.Model("tariff", tick_s=3600.0)
    gpu = m.pool("gpu", idle_w=0.0)
    m.task(modes=[m.mode(gpu, 3600.0, 3.6e6)])
    m.tariff(price_usd_per_kwh=[0.3, 0.3, 0.1])
    m.minimize(cost_usd=1.0, makespan=0.01)
    run = solved(m.build())
    assert run.best is not None and run.best.start.tolist() == [2]
    assert run.objective == pytest.approx(0.13)
    assert (
        run.bound == pytest.approx(0.13, rel=1e-6)
        and run.bound is not None
        and run.bound <= run.objective
    )  # type: ignore[operator]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"capped": True},
        {"shared": False, "limited": True},
        {"varying": True},
        {"varying": True, "fixed": True, "capped": True},
    ],
)
def test_highs_equals_enumeration(options: dict[str, Any]) -> None:
    """Over all starts, not left-shifted ones, since prices vary; no solution of HiGHS is ever
    rejected.
    """
    found = 0
    for seed in range(6):
        inst = tiny(seed, tasks=2, **options)
        best = enumerated(inst)
        for form in ("time_indexed", "disjunctive"):
            if "tariffs" in inst.features and form == "disjunctive":
                continue
            run = solved(inst, Highs(form, first=False))
            assert run.rejected == []
            assert run.proven_infeasible == (best is None)
            if best is not None:
                found += 1
                assert run.objective == pytest.approx(best, rel=1e-9)
                assert run.bound is not None and best * (1 - 1e-6) - 1e-9 <= run.bound <= best * (
                    1 + 1e-9
                )
    assert found > 1


def enumerated(inst: Instance) -> float | None:
    pairs, end = inst.pairs, 12
    choices = [
        [(int(pairs.mode[q]), s) for q in range(pairs.ptr[i], pairs.ptr[i + 1]) for s in range(end)]
        for i in range(inst.num_tasks)
    ]
    values = [
        verify(inst, Schedule.of(inst, [k for k, _ in row], [s for _, s in row])).objective
        for row in product(*choices)
    ]
    return min((value for value in values if isinstance(value, float)), default=None)


def test_infeasible_is_proved() -> None:
    """Two operations of 3 ticks on one machine cannot both end by 5."""
    instance = shop(2)
    limited = instance.with_limits(makespan=7.0)
    for form in ("time_indexed", "disjunctive"):
        run = solved(limited, Highs(form))
        assert run.proven_infeasible and run.best is None and run.termination == "finished"
        assert run.info["highs_status"] == "kInfeasible"


def test_no_time_at_all() -> None:
    run = solved(shop(8), Highs(first=False), time_limit_s=0.0)
    assert (run.best, run.bound, run.termination) == (None, None, "time_limit")


def test_a_time_limit_without_incumbent(monkeypatch: pytest.MonkeyPatch) -> None:
    """HiGHS stopped by its first callback: no schedule, no proof, and nothing raised."""
    instance = shop(12)
    run = Run(instance, time_limit_s=3600.0)
    monkeypatch.setattr(
        module.Session,
        "_on_interrupt",
        lambda self, event: setattr(event.data_in, "user_interrupt", True),
    )
    monkeypatch.setattr(module.Session, "_report", lambda self, values: None)
    assert Highs("disjunctive", first=False).solve(instance, run) is None
    assert (run.termination, run.proven_infeasible) == ("time_limit", False)


def test_wherever_highs_is_stopped_its_bound_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed 755 in fine ticks, stopped at each of its events: at a tolerance of 1e-9 the bound was
    7.67 of 6.70.
    """
    both = in_fine_ticks(tiny_instance(755))
    assert both is not None
    left = iter(range(10**6))

    def stop(self: Session, event: Any, act: Any) -> None:
        act()
        event.data_in.user_interrupt = next(left, None) is None

    monkeypatch.setattr(module.Session, "_guarded", stop)
    best = solved(both[1], Highs(first=False)).objective
    assert best is not None and best == pytest.approx(6.70166015625)
    for events in range(14):
        left = iter(range(events))
        run = solved(both[1], Highs(first=False))
        assert run.bound is None or run.bound <= best + 1e-9


def test_an_interrupt_keeps_the_incumbent() -> None:
    instance = shop(12)
    run = Run(instance, warm_start=serial(instance))
    run.on_progress = lambda point: (
        run.stop_requested.set()
    )  # the user asks to stop as soon as there is something
    best = Highs("disjunctive").solve(instance, run)
    assert best is not None and run.termination == "interrupted"


def test_a_work_limit_ends_the_search_at_the_same_schedule() -> None:
    instance = jagged()
    budget = {"time_limit_s": None, "work_limit": 1, "seed": 3, "warm_start": serial(instance)}
    runs = [solved(instance, Highs("disjunctive"), **budget) for _ in range(2)]
    assert {run.termination for run in runs} == {"work_limit"}
    assert runs[0].best is not None and runs[1].best is not None
    assert (runs[0].best.start == runs[1].best.start).all()
    assert runs[0].bound == runs[1].bound


def jagged() -> Instance:
    """Ten jobs on three machines in random order: more than one node's work."""
    rng = np.random.default_rng(0)
    m = ob.Model("jagged")
    machines = [m.pool(f"m{p}") for p in range(3)]
    for _ in range(10):
        before: Any = ()
        for p in rng.permutation(3).tolist():
            before = m.task(modes=[m.mode(machines[p], float(rng.integers(1, 20)))], after=before)
    m.minimize(makespan=1.0)
    return m.build()


def serial(instance: Instance) -> Schedule:
    """One task after the other, in the order declared."""
    end = np.cumsum(instance.pairs.duration)
    return Schedule.of(instance, instance.pairs.mode, end - instance.pairs.duration)


@pytest.mark.parametrize("form", ["time_indexed", "disjunctive"])
def test_a_warm_start_is_never_lost(form: str) -> None:
    instance = shop(4)
    run = solved(instance, Highs(form), warm_start=serial(instance), time_limit_s=0.0)
    assert (
        run.objective is not None and run.objective <= 20.0
    )  # 20 as given; 14 once its starts are moved left
    run = solved(instance, Highs(form), warm_start=serial(instance))
    assert (run.objective, run.bound) == (14.0, 14.0)


def test_an_infeasible_warm_start_is_set_aside() -> None:
    instance = shop(2)
    broken = Schedule.of(instance, instance.pairs.mode, np.zeros(4, dtype=np.int64))
    run = solved(instance, warm_start=broken)
    assert (run.objective, len(run.rejected)) == (8.0, 1)


def test_the_end_of_time_shrinks_with_a_known_schedule() -> None:
    """makespan + energy <= 30 and all metrics are non-negative, so that 2 makespan <= 30."""
    instance = shop(2).with_objective(ob.Objective.weighted({"makespan": 2.0, "energy_j": 1.0}))
    assert known_end(instance, 30.0) == pytest.approx(15.0)
    assert known_end(instance, None) is None
    assert (
        known_end(instance.with_objective(ob.Objective.weighted({"energy_j": 1.0})), 30.0) is None
    )


def test_several_numbers_of_threads_in_one_process() -> None:
    for threads in (1, 2, 1):
        assert solved(shop(3), threads=threads).objective == 11.0


def test_the_first_schedule_is_good_feasible_and_always_the_same() -> None:
    """Rules find the optimum of the shop: 3 per job on the first machine, then 2. Power caps and
    transfers are kept.
    """
    for tick_s, makespan in ((1.0, 11.0), (1e-9, 11e9)):
        instance = shop(3, tick_s=tick_s)
        assert [verify(instance, schedule).objective for schedule in first_schedules(instance)] == [
            makespan
        ]
    found = 0
    for seed in range(30):
        inst = tiny(seed, tasks=4, capped=True)
        for schedule in first_schedules(inst):
            found += 1
            assert verify(inst, schedule).feasible
            assert [again.start.tolist() for again in first_schedules(inst)] == [
                schedule.start.tolist()
            ]
    assert found == 16  # the others have no feasible schedule


def session(instance: Instance) -> Session:
    run = Run(instance)
    formulation, _ = formulate(instance, "disjunctive")
    return Session(run, formulation, formulation.arrays, np.arange(formulation.arrays.num_columns))


def line(cost: float, upper: float, least: float) -> Any:
    """minimise cost · x over 0 <= x <= upper and x >= least, x whole."""
    return SimpleNamespace(
        cost=np.asarray([cost]),
        lower=np.zeros(1),
        upper=np.asarray([upper]),
        integer=np.ones(1, dtype=bool),
        row_lower=np.asarray([least]),
        row_upper=np.asarray([np.inf]),
        matrix=(np.asarray([0, 1], dtype=np.int32), np.asarray([0], dtype=np.int32), np.ones(1)),
    )


@pytest.mark.parametrize(
    ("model", "unbounded", "infeasible"),
    [
        (line(-1.0, np.inf, 0.0), True, False),
        (line(-1.0, 3.0, 4.0), False, True),
    ],
)
def test_unbounded_and_infeasible_are_told_apart(
    model: Any, unbounded: bool, infeasible: bool
) -> None:
    one = session(shop(2))
    one.model, one.order = model, np.zeros(1, dtype=np.int64)
    one.solve(None)
    assert (one.run.proven_unbounded, one.run.proven_infeasible) == (unbounded, infeasible)
    assert one.run.best is None and one.run.termination == "finished"


class Stopped:
    """A HiGHS that ended in a given status with a given bound and nothing found."""

    def __init__(self, status: Any, bound: float = math.inf) -> None:
        self.status, self.bound = status, bound

    def getModelStatus(self) -> Any:
        return self.status

    def getInfo(self) -> Any:
        return SimpleNamespace(
            mip_node_count=-1, primal_solution_status=0, mip_dual_bound=self.bound
        )


class Undecided(Stopped):
    """A HiGHS that cannot tell infeasible from unbounded until it runs again without an
    objective.
    """

    def __init__(self, then: Any) -> None:
        super().__init__(highspy.HighsModelStatus.kUnboundedOrInfeasible, bound=0.0)
        self.then, self.calls = then, list[str]()

    def disableCallbacks(self) -> None:
        self.calls.append("quiet")

    def changeColsCost(self, count: int, columns: Any, costs: Any) -> None:
        assert count == len(columns) == len(costs) and not costs.any()
        self.calls.append("no objective")

    def run(self) -> None:
        self.calls.append("run")
        self.status = self.then


@pytest.mark.parametrize(
    ("then", "unbounded", "infeasible", "termination"),
    [
        ("kOptimal", True, False, "finished"),
        ("kInfeasible", False, True, "finished"),
        ("kTimeLimit", False, False, "time_limit"),
        ("kSolveError", False, False, "crashed"),
    ],
)
def test_unbounded_or_infeasible_is_looked_into(
    then: str, unbounded: bool, infeasible: bool, termination: str
) -> None:
    one, highs = session(shop(2)), Undecided(highspy.HighsModelStatus.__members__[then])
    one._settle(highs)
    assert (one.run.proven_unbounded, one.run.proven_infeasible, one.run.termination) == (
        unbounded,
        infeasible,
        termination,
    )
    assert highs.calls == ["quiet", "no objective", "run"] and one.run.bound is None


def test_every_status_of_highs_is_mapped() -> None:
    solved_ones = set(module.SOLVED)
    handled = solved_ones | {"kInfeasible", "kUnbounded"}
    for name, status in highspy.HighsModelStatus.__members__.items():
        one = session(shop(2))
        if name == "kUnboundedOrInfeasible":
            continue  # above
        one._settle(Stopped(status, bound=4.0 * one.scale))
        if name in handled:
            assert one.run.termination == "finished", name
        else:
            expected = STOPPED.get(name, "crashed")
            assert one.run.termination == (
                "time_limit" if expected == "interrupted" else expected
            ), name
        assert one.run.proven_infeasible == (name == "kInfeasible")
        assert one.run.proven_unbounded == (name == "kUnbounded")
        assert (one.run.bound == 4.0) == (name in {*STOPPED, *solved_ones}), (
            name
        )  # stopped for a reason that HiGHS names


def test_infeasible_against_a_schedule_is_handed_on_so_that_the_core_says_so_loudly() -> None:
    one = session(shop(2))
    one.run.report(serial(one.run.instance))
    one._settle(Stopped(highspy.HighsModelStatus.kInfeasible))
    assert str(one.run.infeasibility).startswith("Infeasibility(source='highs', proof='solver'")


def test_a_contradiction_inside_a_callback_comes_out() -> None:
    """An exception must not be lost in HiGHS: a bound above a verified objective stops the run
    loudly.
    """
    instance = shop(4)
    run = Run(instance)
    run.report_bound(15.0, "elsewhere", "combinatorial")  # the optimum is 14
    with pytest.raises(
        ContradictionError, match=r"bound 15.0 from elsewhere exceeds the verified objective 14"
    ):
        Highs("disjunctive", first=False).solve(instance, run)


@pytest.mark.parametrize(
    ("dual", "slack", "grain", "expected"),
    [
        (10.0, 1e-6, None, 10.0 - 1e-6 - 1e-8),
        (10.2, 1e-6, 1.0, 11.0),
        (10.0, 1e-6, 1.0, 10.0),
        (10.0 + 1e-7, 1e-6, 1.0, 10.0),
        (10.0, 1e-6, 1e-7, 10.0 - 1e-6 - 1e-8),
        (-0.4, 0.0, 0.5, 0.0),
    ],
)
def test_the_bound_is_below_the_dual_bound_by_the_slack(
    dual: float, slack: float, grain: float | None, expected: float
) -> None:
    assert safe_bound(dual, slack, grain) == pytest.approx(expected, abs=1e-12)


def test_what_highs_refuses() -> None:
    with pytest.raises(UnsupportedError, match="binaries, more than 200,000"):
        m = ob.Model("seconds", time="seconds")
        gpu = m.pool("gpu")
        m.task(modes=[m.mode(gpu, 1.0, 1.0)])
        m.tariff(price_usd_per_kwh=[0.1, 0.2])
        m.minimize(cost_usd=1.0)
        check_supported(Highs(), "highs", m.build())
    with pytest.raises(UnsupportedError, match="may be interrupted"):
        check_supported(Highs(), "highs", replace(shop(2), preemptive=True))
    with pytest.raises(ParameterError, match="route is 'file'; it must be one of array, pyomo"):
        solved(shop(2), Highs(route="file"))
    check_supported(Highs(), "highs", shop(2))
