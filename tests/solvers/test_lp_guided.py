"""lp_guided: prices by hand, schedules no worse than simple rules, nothing known before its time,
the same again.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import optbench as ob
from optbench import api
from optbench.errors import ParameterError
from optbench.model.instance import Instance
from optbench.model.verify import verify
from optbench.model.windows import windows
from optbench.plugins.discovery import load_solver
from optbench.plugins.problems.gpu_dag import GpuDag
from optbench.plugins.solvers._lp_finder import Finder
from optbench.plugins.solvers._lp_guide import guide, guide_from_windows
from optbench.plugins.solvers._remaining_instance import remaining_instance
from optbench.plugins.solvers.lp_guided import LpGuided
from optbench.sim.kernel.plant import Fault, plant_of
from optbench.sim.kernel.state import NOW
from optbench.sim.rules import list_rule, run_rule

SETTINGS = {
    "layered": GpuDag(),
    "tight": GpuDag(tasks=16, deadlines="tight", transfers=False),
    "batch": GpuDag(tasks=20, gpus=8, shape="batch", deadlines="flexible"),
    "pipeline": GpuDag(tasks=16, shape="pipeline", cpus=2, power_cap=0.6),
    "data_parallel": GpuDag(tasks=18, shape="data_parallel", node_cap=0.9),
    "prices": GpuDag(tasks=16, price=True, carbon=True),
    "devices": GpuDag(tasks=12, gpus=5, pooled=False),
}
RIVALS = ("fcfs", "sjf_backfill", "edf", "heft", "min_energy", "fixed_dvfs")


def two_pools(tasks: int = 10) -> Instance:
    """Equal tasks, 1 s on the one x or 2 s on the one y; the makespan counts."""
    m = ob.Model("two pools")
    x, y = m.pool("x", count=1), m.pool("y", count=1)
    kind = m.kind(modes=[m.mode(x, time_s=1.0), m.mode(y, time_s=2.0)])
    for _ in range(tasks):
        m.task(units=1.0, kind=kind)
    m.minimize(makespan=1.0)
    return m.build()


def test_prices_and_shares_are_those_of_the_dual() -> None:
    """a tasks on x, 10 − a on y: C = a = 2 (10 − a), so a = 20/3. A second of C is shared by the
    pools, and a task costs the same on both: p_x + p_y = 1 and p_x = 2 p_y.
    """
    known = guide(two_pools(), math.inf)
    assert known.pool_price == pytest.approx([2 / 3, 1 / 3])
    assert known.value == pytest.approx(20 / 3)
    assert known.share.reshape(10, 2) == pytest.approx(np.tile([2 / 3, 1 / 3], (10, 1)))
    assert known.loss == pytest.approx(np.zeros(20), abs=1e-9)


def test_a_mode_the_programme_does_without_loses_what_it_costs() -> None:
    """Energy alone counts: 3 units take 30 J at the low clock and 45 J at the high one, which loses
    15 J.
    """
    m = ob.Model("clocks")
    pool = m.pool("x", count=1)
    m.task(
        units=3.0,
        modes=[m.mode(pool, time_s=2.0, energy_j=10.0), m.mode(pool, time_s=1.0, energy_j=15.0)],
    )
    m.minimize(energy_j=1.0)
    known = guide(m.build(), math.inf)
    assert known.share == pytest.approx([1.0, 0.0])
    assert known.loss == pytest.approx([0.0, 15.0])


def test_it_meets_the_optimum_of_two_pools() -> None:
    """7 on x and 3 on y end at 7; 6 would be 6 on x and 3 on y, one too few."""
    assert api.solve(two_pools(), "lp_guided", work_limit=1.0).objective == 7.0


@pytest.mark.parametrize("name", SETTINGS)
def test_it_is_no_worse_than_the_simple_rules(name: str) -> None:
    instance = SETTINGS[name].instance(1)
    result = api.solve(instance, "lp_guided", work_limit=2.0, bound=False)
    assert result.verified and isinstance(result.objective, float)
    for rival in RIVALS:
        other = api.solve(instance, rival, bound=False).objective
        assert isinstance(other, float)
        assert result.objective <= other * (1 + 1e-9), rival


def test_the_same_seed_and_work_give_the_same_schedule() -> None:
    instance = GpuDag(tasks=30, gpus=8).instance(2)
    first, second = (
        api.solve(instance, "lp_guided", work_limit=2.0, seed=3, bound=False).schedule
        for _ in range(2)
    )
    assert first is not None and second is not None
    assert np.array_equal(first.mode, second.mode) and np.array_equal(first.start, second.start)


def test_more_work_is_not_worse_than_the_first_points() -> None:
    instance = GpuDag(tasks=30, gpus=8).instance(4)
    first = api.solve(instance, LpGuided(search=False), bound=False).objective
    more = api.solve(instance, LpGuided(), work_limit=1.0, bound=False).objective
    assert isinstance(first, float) and isinstance(more, float) and more <= first


def test_the_value_of_the_search_is_that_of_the_verifier() -> None:
    for instance in (SETTINGS["layered"].instance(3), SETTINGS["prices"].instance(3)):
        finder = Finder(instance, guide(instance, math.inf), 0)
        finder.first(2, lambda: math.inf)
        finder.anneal(500, 0.5, 500)
        schedule = finder.best_schedule()
        assert schedule is not None
        assert verify(instance, schedule).objectives[0] == pytest.approx(finder.value, rel=1e-9)


def test_without_an_answer_in_time_windows_guide_it() -> None:
    instance = SETTINGS["layered"].instance(0)
    known = guide(instance, 1e-6)
    assert np.array_equal(known.share, guide_from_windows(instance, windows(instance)).share)
    assert api.solve(instance, LpGuided(prices=False), work_limit=0.2, bound=False).verified


@pytest.mark.parametrize("name", ["layered", "pipeline", "prices"])
def test_online_it_ends_every_task(name: str) -> None:
    instance = SETTINGS[name].instance(2)
    schedule = (
        LpGuided(steps=100, roundings=2, resolve_every=0.3)
        .play(instance, np.random.default_rng(0))
        .schedule
    )
    assert schedule is not None and verify(instance, schedule).feasible


def arriving(last_units: float) -> Instance:
    """Twelve tasks that arrive over time; the units of the last one, known from 300 on, vary."""
    instance = GpuDag(tasks=12, shape="batch", deadlines="none").instance(1)
    tasks = instance.tasks
    units = tasks.units.copy()
    units[11] = last_units
    release = np.minimum(30 * np.arange(12), 300).astype(np.int64)
    release[11] = 300
    later: Instance = replace(instance, tasks=replace(tasks, units=units, release=release))
    return later


def test_online_nothing_is_known_before_its_release() -> None:
    made = []
    for last_units in (100.0, 2000.0):
        trace = LpGuided(steps=200, roundings=2).play(
            arriving(last_units), np.random.default_rng(0)
        )
        assert trace.schedule is not None
        early = trace.schedule.start < 300
        made.append(
            (trace.schedule.task[early], trace.schedule.mode[early], trace.schedule.start[early])
        )
    for one, other in zip(*made, strict=True):
        assert np.array_equal(one, other)


def test_online_it_goes_on_after_a_fault() -> None:
    instance = GpuDag(tasks=12, shape="batch").instance(0)
    faults = [Fault(20.0, 0, 1), Fault(90.0, 0, -1)]
    trace = LpGuided(steps=100, roundings=2).play(instance, np.random.default_rng(0), faults)
    assert trace.schedule is not None and verify(instance, trace.schedule).feasible


def test_what_is_left_keeps_running_tasks_to_their_modes() -> None:
    """Two tasks of 4 s on two devices, one of them first; at 1 s three quarters of both are left,
    in modes of their own.
    """
    m = ob.Model("left", time="seconds")
    pool = m.pool("x", count=2)
    for _ in range(3):
        m.task(units=2.0, modes=[m.mode(pool, time_s=2.0)])
    late = m.task(units=2.0, modes=[m.mode(pool, time_s=2.0)], release_s=1.0)
    m.minimize(makespan=1.0)
    instance = m.build()
    state = run_rule(instance, list_rule(instance, end_weight=1.0), until=1e9).state
    assert state.total[NOW] == 1e9 and late is not None
    rest = remaining_instance(instance, plant_of(instance), state)
    assert sorted(rest.task.tolist()) == [0, 1, 2, 3]
    running = rest.instance.pairs.duration[np.isin(rest.instance.pairs.task, rest.running)]
    assert running.tolist() == [3_000_000_000] * 2
    assert rest.instance.tasks.release.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("field", "value"),
    [("roundings", -1), ("steps", -5), ("resolve_every", 0.0), ("resolve_every", -1.0)],
)
def test_parameters_out_of_range_are_named(field: str, value: float) -> None:
    with pytest.raises(ParameterError, match=f"lp_guided: {field} is {value}"):
        load_solver("lp_guided", {field: value})


def test_it_decides_without_a_search() -> None:
    assert (
        ob.simulate(SETTINGS["tight"], LpGuided(search=False, roundings=1), bound=False).end
        == "complete"
    )


def test_it_says_why_it_stopped() -> None:
    assert ob.solve(two_pools(), "lp_guided", work_limit=1, bound=False).termination == "work_limit"
    assert (
        ob.solve(two_pools(1000), "lp_guided", time_limit_s=0.2, bound=False).termination
        == "time_limit"
    )


def test_it_says_what_is_wrong_where_nothing_is_feasible() -> None:
    """3 s of work, 2 s to do it in."""
    m = ob.Model("late")
    m.task(modes=[m.mode(m.pool("gpu"), time_s=3)], deadline_s=2)
    m.minimize(makespan=1.0)
    result = ob.solve(m.build(), "lp_guided", work_limit=1)
    assert result.schedule is None and result.message is not None and "deadline" in result.message
