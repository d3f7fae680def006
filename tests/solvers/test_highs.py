"""HiGHS: optima derived by hand, optima by enumeration, limits and warm starts."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.errors import ParameterError, UnsupportedError
from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.model.verify import verify
from optbench.plugins.protocol import Run, check_supported
from optbench.plugins.solvers import highs as module
from optbench.plugins.solvers._first_schedules import first_schedules
from optbench.plugins.solvers.highs import Highs, Session, known_end
from tests.solvers.highs_shops import jagged, serial, shop, solved

from ..reference.random_instances import in_fine_ticks, tiny_instance
from ..views.milp_cases import tiny


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
    assert run.objective is not None and run.objective == pytest.approx(0.13)
    assert run.bound is not None and run.bound == pytest.approx(0.13, rel=1e-6)
    assert run.bound <= run.objective


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
    monkeypatch.setattr(module.Session, "report_values", lambda self, values: None)
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
