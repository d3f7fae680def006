"""The fluid programme: bounds derived by hand, and every verified schedule is a point of it at no
higher cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import optbench as ob
from optbench.bounds.auto import lower_bounds
from optbench.bounds.fluid import fluid_tariffs
from optbench.bounds.fluid.fluid_bound import fluid_bound
from optbench.bounds.fluid.fluid_point import point_of
from optbench.bounds.fluid.fluid_program import fluid_model
from optbench.model.instance import Instance
from optbench.model.objective import METRICS, Objective
from optbench.model.schedule import Schedule
from optbench.model.verify import verify
from tests.bounds.shops import shop
from tests.reference.brute_force import brute_force
from tests.reference.plain_facts import task_modes
from tests.reference.random_instances import in_fine_ticks, tiny_instance

SEEDS = range(250)


def in_nanoseconds(instance: Instance) -> Instance:
    """About the same numbers, of a tick of one second, in ticks of 1 ns: rounding hardly changes a
    duration.
    """
    modes, links, tasks, tariffs = instance.modes, instance.links, instance.tasks, instance.tariffs
    tick, finer = instance.tick_s, 10**9
    limits = {
        name: limit * finer if name == "makespan" else limit
        for name, limit in instance.limits.metric_max.items()
    }
    return replace(
        instance,
        tick_s=1e-9,
        horizon=None if instance.horizon is None else instance.horizon * finer,
        tasks=replace(tasks, release=tasks.release * finer, deadline=tasks.deadline * finer),
        modes=replace(modes, time_per_unit_s=modes.time_per_unit_s / tick / 1.1),
        links=replace(links, latency_s=links.latency_s / tick, s_per_gb=links.s_per_gb / tick),
        limits=replace(instance.limits, metric_max=limits),
        tariffs=None if tariffs is None else replace(tariffs, times=tariffs.times * finer),
    )


def schedules(instance: Instance, rng: np.random.Generator) -> Iterator[Schedule]:
    """A few feasible schedules: tasks in topological order, each a random time after it may
    start.
    """
    for _ in range(12):
        mode = np.array([rng.choice(task_modes(instance, i)) for i in range(instance.num_tasks)])
        primary = instance.modes.primary[mode]
        length = np.asarray(instance.duration(mode, instance.tasks.units), dtype=float)
        start = np.zeros(instance.num_tasks)
        for i in instance.order.tolist():
            here = np.flatnonzero(instance.edges.target == i)
            source = instance.edges.source[here]
            lag = np.asarray(
                instance.lag(primary[source], primary[i], instance.edges.data_gb[here]), dtype=float
            )
            start[i] = max(
                float(instance.tasks.release[i]),
                float((start[source] + length[source] + lag).max(initial=0.0)),
            )
            start[i] += (
                rng.integers(0, 4)
                if instance.tick_s > 1e-9
                else rng.choice([0.0, np.rint(rng.uniform(0, 3e9))])
            )
        if np.isfinite(start).all():
            schedule = Schedule.of(instance, mode, start)
            if verify(instance, schedule).feasible:
                yield schedule


def check_point(instance: Instance, schedule: Schedule, keep_edges: bool) -> set[str]:
    """Assert that the schedule is a point of the programme; the families of its rows."""
    fluid = fluid_model(instance, keep_edges)
    lp, point = fluid.program(), point_of(fluid, schedule)
    size = np.maximum(
        1.0, np.bincount(lp.row, weights=np.abs(lp.value * point[lp.column]), minlength=lp.num_rows)
    )
    slack = (lp.times(point) - lp.right) / size
    broken = [lp.family[r] for r in np.flatnonzero((slack < -1e-9) | (lp.equal & (slack > 1e-9)))]
    assert broken == []
    assert (point >= lp.lower - 1e-9 * np.maximum(1, np.abs(lp.lower))).all()
    # Time is cut off where some optimum has ended: a later schedule satisfies all but that.
    if point[fluid.makespan] <= lp.upper[fluid.makespan]:
        assert (point <= lp.upper + 1e-9 * np.maximum(1, np.abs(lp.upper))).all()
    objective = verify(instance, schedule).objectives[0]
    assert float(lp.cost @ point) <= objective + 1e-9 * max(1.0, abs(objective))
    return set(lp.family)


@pytest.mark.parametrize("seeds", [SEEDS[::2], pytest.param(SEEDS, marks=pytest.mark.slow)])
def test_every_verified_schedule_is_a_point_of_the_programme(seeds: range) -> None:
    families: Counter[str] = Counter()
    checked: Counter[str] = Counter()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        ticks = tiny_instance(seed)
        for instance in (ticks, in_nanoseconds(ticks)):
            for schedule in schedules(instance, rng):
                families.update(
                    check_point(instance, schedule, keep_edges=bool(rng.random() < 0.8))
                )
                checked.update(instance.features | instance.objective.metrics)
    wanted = {
        "assign",
        "capacity",
        "start",
        "completion",
        "deadline",
        "power",
        "energy",
        "flow",
        "lateness",
        "tardiness",
        "worked",
        "room",
        "early",
        "late",
        "rest",
        "cost_usd",
        "carbon_g",
    }
    assert wanted <= set(families)
    features = {
        "precedence",
        "transfers",
        "releases",
        "deadlines",
        "modes",
        "multi_resource",
        "pooled",
        "power_cap",
        "limits",
        "tariffs",
        "fixed_horizon",
        "energy",
        "due_dates",
    }
    assert min(checked[name] for name in features | set(METRICS)) >= 10


def test_merged_tariff_periods_are_a_relaxation(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = 0
    for seed in SEEDS:
        instance = tiny_instance(seed)
        priced = bool({"cost_usd", "carbon_g"} & instance.objective.metrics)
        if priced and instance.tariffs is not None and len(instance.tariffs.times) > 2:
            monkeypatch.setattr(fluid_tariffs, "MAX_SLOTS", 2 * instance.num_modes)
            for schedule in schedules(instance, np.random.default_rng(seed)):
                assert len(fluid_model(instance).slot) <= 2 * instance.num_modes
                check_point(instance, schedule, keep_edges=True)
                checked += 1
    assert checked > 20


def test_no_fluid_bound_exceeds_the_optimum() -> None:
    exact = 0
    for seed in SEEDS:
        instance = tiny_instance(seed)
        optimum, proof = brute_force(instance), fluid_bound(instance)
        if optimum is not None and proof is not None:
            assert proof.bound.value <= optimum.objective + 1e-9 * max(
                1.0, abs(optimum.objective)
            ), seed
            exact += proof.bound.value >= optimum.objective - 1e-6 * max(
                1.0, abs(optimum.objective)
            )
    assert exact > 80


def test_nothing_is_lost_in_nanoseconds() -> None:
    """The same numbers a billion times finer: HiGHS, whose tolerances are absolute, is given units
    of their size.
    """
    checked = same = 0
    for seed in range(80):
        both = in_fine_ticks(tiny_instance(seed))
        if both is None:
            continue
        coarse, fine = (fluid_bound(instance) for instance in both)
        if coarse is None or float(coarse.proven) == 0.0:
            continue
        assert fine is not None, seed
        # Coarse ticks round loads up, and with them the least makespan: fine ones may prove less by
        # that, and only rarely do.
        assert float(fine.proven) <= float(coarse.proven) * (1 + 1e-6), seed
        same += float(fine.proven) >= float(coarse.proven) * (1 - 1e-6)
        checked += 1
    assert checked > 30 and same >= 0.8 * checked


def test_shares_balance_machines_of_different_speed() -> None:
    # Two kinds of two tasks: 2 on machine 0 or 6 on machine 1, and 6 or 2: each to its own machine
    # makes 4, no load sees it.
    jobs = [
        [[(0, 2), (1, 6)]],
        [[(0, 2), (1, 6)]],
        [[(0, 6), (1, 2)]],
        [[(0, 6), (1, 2)]],
        [[(0, 3), (1, 3)]],
    ]
    # With the fifth the work is 4 + 4 + 3 on two machines: 5.5, and 6 in whole ticks.
    bounds = {bound.source: bound.value for bound in lower_bounds(shop(jobs, [1, 1]), "fluid")}
    assert bounds == {"fluid_lp": 6}


def test_energy_and_makespan_are_bounded_together() -> None:
    # One task: 2 s and 100 J, or 10 s and 20 J, and 5 J/s for the makespan: 110 or 70. Each metric
    # alone gives 2 · 5 + 20 = 30.
    m = ob.Model()
    gpu = m.pool("gpu")
    m.task(modes=[m.mode(gpu, time_s=2, energy_j=100), m.mode(gpu, time_s=10, energy_j=20)])
    m.minimize(energy_j=1.0, makespan_s=5.0)
    assert lower_bounds(m.build(), "combinatorial", 0)[0].value == pytest.approx(30)
    assert lower_bounds(m.build(), "fluid")[0].value == pytest.approx(70)


def test_energy_and_tardiness_are_bounded_together() -> None:
    # One task, due after 2 s: 2 s and 100 J, or 10 s and 20 J, 8 s late at 5 J each: 100 or 60.
    # Each metric alone gives 20 + 0.
    m = ob.Model()
    gpu = m.pool("gpu")
    modes = [m.mode(gpu, time_s=2, energy_j=100), m.mode(gpu, time_s=10, energy_j=20)]
    m.task(modes=modes, deadline_s=2, hard=False)
    m.minimize(energy_j=1.0, tardiness_s=5.0)
    assert lower_bounds(m.build(), "combinatorial", 0)[0].value == pytest.approx(20)
    assert lower_bounds(m.build(), "fluid")[0].value == pytest.approx(60)


def test_only_soft_deadlines_have_lateness_rows() -> None:
    # Due softly after 3, hard after 9, and never: tasks of 5 s, of which one has T ≥ S + 5 − 3.
    m = ob.Model()
    gpu = m.pool("gpu")
    for deadline_s, hard in ((3, False), (9, True), (None, False)):
        m.task(modes=[m.mode(gpu, time_s=5)], deadline_s=deadline_s, hard=hard)
    m.minimize(tardiness_s=1.0)
    fluid = fluid_model(m.build())
    lp = fluid.program()
    (row,) = [r for r in range(lp.num_rows) if lp.family[r] == "lateness"]
    assert lp.of[row] == fluid.groups.group[0]
    assert lp.right[row] == pytest.approx(-3)
    here = slice(lp.row_ptr[row], lp.row_ptr[row + 1])
    late, start = fluid.late[lp.of[row]], fluid.start[lp.of[row]]
    (share,) = fluid.share[fluid.groups.of == lp.of[row]]
    terms = dict(zip(lp.column[here].tolist(), lp.value[here].tolist(), strict=True))
    assert terms == {late: 1, start: -1, share: -5}


def test_work_replaces_rest_in_ticks_of_any_length() -> None:
    # One device at 10 W, busy until the end: 2,400 J in two minutes or 1,000 J in ten, and 5 J a
    # second: 2,400 + 600 = 3,000 or 1,000 + 3,000 = 4,000. Each metric alone gives 1,000 + 600.
    m = ob.Model(tick_s=60)
    gpu = m.pool("gpu", idle_w=10)
    m.task(modes=[m.mode(gpu, time_s=120, energy_j=2400), m.mode(gpu, time_s=600, energy_j=1000)])
    m.minimize(energy_j=1.0, makespan_s=5.0)
    assert lower_bounds(m.build(), "combinatorial", 0)[0].value < 2000
    assert lower_bounds(m.build(), "fluid")[0].value == pytest.approx(3000)


def test_an_energy_budget_slows_down() -> None:
    # Of 100 J in 2 s and 20 J in 10 s, a budget of 60 J allows half of each: 6 s. The only mode
    # that keeps it takes 10.
    m = ob.Model()
    gpu = m.pool("gpu")
    m.task(modes=[m.mode(gpu, time_s=2, energy_j=100), m.mode(gpu, time_s=10, energy_j=20)])
    m.limit(energy_j=60)
    m.minimize(makespan=1.0)
    # The budget is overstepped by the verifier's tolerance, and the result rounded up.
    assert lower_bounds(m.build(), "fluid")[0].value == 6


def test_a_power_cap_is_an_energy_per_time() -> None:
    # Four tasks of 10 s at 100 W under a cap of 250 W with 2 · 4 devices: 4,000 J / 250 W = 16 s.
    m = ob.Model()
    gpu = m.pool("gpu", count=8)
    for _ in range(4):
        m.task(modes=[m.mode(gpu, time_s=10, energy_j=1000)])
    m.limit(power_w=250)
    m.minimize(makespan=1.0)
    assert lower_bounds(m.build(), "fluid")[0].value == 16


def test_alike_tasks_are_one_group() -> None:
    m = ob.Model()
    a, b = m.pool("a"), m.pool("b")
    m.tasks(np.ones(1000), modes=[m.mode(a, time_s=3), m.mode(b, time_s=4)])
    m.minimize(makespan=1.0)
    instance = m.build()
    assert fluid_model(instance).program().num_columns < 10
    # 3 x = 4 (1000 − x): x = 571.4, 1714.3 ticks.
    assert lower_bounds(instance, "fluid")[0].value == 1715


def test_tasks_wait_for_a_cheap_slot_as_far_as_it_reaches() -> None:
    # Cheap from hour 1 to hour 2 only: two of the three one-hour tasks on one device pay the high
    # price.
    m = ob.Model(tick_s=60, horizon_s=3 * 3600)
    gpu = m.pool("gpu")
    for _ in range(3):
        m.task(modes=[m.mode(gpu, time_s=3600, energy_j=3.6e6)])
    m.tariff(price_usd_per_kwh=(0.3, 0.1, 0.3))
    m.minimize(cost_usd=1.0)
    assert lower_bounds(m.build(), "combinatorial", 0)[0].value == pytest.approx(0.3)
    assert lower_bounds(m.build(), "fluid")[0].value == pytest.approx(0.7)


def test_a_level_with_a_limit_is_bounded_under_it() -> None:
    instance = shop([[(0, 2)], [(0, 3)]], [1]).with_objective(
        Objective.in_order("makespan", "flow_time_s")
    )
    second = instance.with_limits(makespan=5.0).with_objective(instance.objective.level(1))
    # Both orders end at 5; the shorter first: 2 + 5.
    assert lower_bounds(second, time_limit_s=1.0)[0].value == pytest.approx(7)


def test_coefficients_that_highs_refuses_leave_no_bound_and_no_error() -> None:
    """A task of 10^15 ticks is valid; HiGHS takes no coefficient from 10^15 on."""
    m = ob.Model("long")
    gpu = m.pool("gpu", count=1, idle_w=10.0)
    first = m.task(modes=[m.mode(gpu, time_s=1e15, energy_j=1.0)])
    m.task(modes=[m.mode(gpu, time_s=1.0, energy_j=1.0)], after=first)
    m.minimize(energy_j=1.0)
    instance = m.build()
    assert fluid_bound(instance) is None
    assert (
        [bound.proof for bound in ob.bound(instance)]
        == ["combinatorial"] * len(ob.bound(instance))
        != []
    )
