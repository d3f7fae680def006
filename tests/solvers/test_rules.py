"""The rules: schedules derived by hand, every family, and what changes of an instance must and must
not change.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import optbench as ob
from optbench.api import load_target
from optbench.errors import ParameterError
from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.model.verify import verify
from optbench.plugins.discovery import load_solver
from optbench.plugins.policy import Policy, RulePolicy
from optbench.sim.kernel.plant import plant_of
from optbench.sim.rules import list_rule, run_rule, within_caps

from ..reference.brute_force import brute_force
from ..reference.mixed_instances import mixed_instance, permuted
from ..reference.random_instances import tiny_instance

RULES = ("fcfs", "sjf_backfill", "edf", "heft", "min_energy", "fixed_dvfs")
# Constraints that a policy may break, as its class declares.
MAY_BREAK = ("deadline", "horizon", "limit")


def rule(name: str, **params: float) -> RulePolicy:
    _, solver = load_solver(name, params)
    assert isinstance(solver, RulePolicy)
    return solver


def play(instance: Instance, name: str, **params: float) -> Schedule:
    schedule = rule(name, **params).play(instance, np.random.default_rng(0)).schedule
    assert schedule is not None
    return schedule


def spans(instance: Instance, name: str, **params: float) -> dict[str, tuple[float, float]]:
    """Start and end of each task by its name."""
    schedule = play(instance, name, **params)
    assert verify(instance, schedule).feasible
    rows = zip(schedule.task.tolist(), schedule.start.tolist(), schedule.end.tolist(), strict=True)
    return {instance.tasks.name(task): (start, end) for task, start, end in rows}


def gang() -> Instance:
    """Two devices; b needs both and c, short, comes after it."""
    m = ob.Model("gang")
    gpu = m.pool("gpu", count=2)
    m.task("a", modes=[m.mode(gpu, time_s=4)])
    m.task("b", modes=[m.mode({gpu: 2}, time_s=3)], release_s=1)
    m.task("c", modes=[m.mode(gpu, time_s=1)], release_s=2)
    m.minimize(makespan=1.0)
    return m.build()


def test_fcfs_lets_nobody_pass() -> None:
    """b waits for both devices until 4, and c behind it until 7."""
    assert spans(gang(), "fcfs") == {"a": (0, 4), "b": (4, 7), "c": (7, 8)}


@pytest.mark.parametrize("name", ["sjf_backfill", "fixed_dvfs"])
def test_backfilling_passes_what_does_not_fit(name: str) -> None:
    """c takes the device that b cannot use."""
    assert spans(gang(), name) == {"a": (0, 4), "b": (4, 7), "c": (2, 3)}


def test_sjf_takes_the_shortest_ready_task() -> None:
    """3 is alone at 0; of 2 and 1, both there at 3, the shorter goes first."""
    m = ob.Model("shortest")
    gpu = m.pool("gpu")
    for name, seconds, release in (("three", 3, 0), ("two", 2, 1), ("one", 1, 2)):
        m.task(name, modes=[m.mode(gpu, time_s=seconds)], release_s=release)
    m.minimize(flow_time_s=1.0)
    assert spans(m.build(), "sjf_backfill") == {"three": (0, 3), "one": (3, 4), "two": (4, 6)}


def test_edf_inherits_the_dates_of_successors() -> None:
    """x has no date, but y behind it is due at 4 and takes 1: x is due at 3, before z at 5. w,
    without a date, comes last.
    """
    m = ob.Model("dates")
    gpu = m.pool("gpu")
    m.task("w", modes=[m.mode(gpu, time_s=1)])
    m.task("z", modes=[m.mode(gpu, time_s=2)], deadline_s=5, hard=False)
    x = m.task("x", modes=[m.mode(gpu, time_s=2)])
    m.task("y", modes=[m.mode(gpu, time_s=1)], after=x, deadline_s=4, hard=False)
    m.minimize(tardiness_s=1.0)
    assert spans(m.build(), "edf") == {"x": (0, 2), "y": (2, 3), "z": (3, 5), "w": (5, 6)}


@pytest.mark.parametrize(("slow", "second"), [(3, (0, 3)), (5, (2, 4))])
def test_heft_waits_for_the_device_on_which_it_ends_first(
    slow: int, second: tuple[int, int]
) -> None:
    """Fast is 2: the second of two tasks ends at 4 there, so a slow device of 3 is better and one
    of 5 is not.
    """
    m = ob.Model("fast and slow")
    fast, other = m.pool("fast"), m.pool("slow")
    for _ in range(2):
        m.task(modes=[m.mode(fast, time_s=2), m.mode(other, time_s=slow)])
    m.minimize(makespan=1.0)
    assert sorted(spans(m.build(), "heft").values()) == sorted([(0, 2), second])


def test_heft_goes_by_upward_rank() -> None:
    """Ranks on one device: a 2 + 2, c 3, b 2."""
    m = ob.Model("ranks")
    gpu = m.pool("gpu")
    m.task("c", modes=[m.mode(gpu, time_s=3)])
    a = m.task("a", modes=[m.mode(gpu, time_s=2)])
    m.task("b", modes=[m.mode(gpu, time_s=2)], after=a)
    m.minimize(makespan=1.0)
    assert spans(m.build(), "heft") == {"a": (0, 2), "c": (2, 5), "b": (5, 7)}


def thrifty(horizon_s: float | None, slow_j: float, idle_w: float) -> Instance:
    """2 s for 100 J, or 4 s for ``slow_j``."""
    m = ob.Model("thrifty", horizon_s=horizon_s)
    gpu = m.pool("gpu", idle_w=idle_w)
    m.task(
        "work", modes=[m.mode(gpu, time_s=2, energy_j=100), m.mode(gpu, time_s=4, energy_j=slow_j)]
    )
    m.minimize(energy_j=1.0)
    return m.build()


@pytest.mark.parametrize(("horizon_s", "slow_j", "idle_w", "hold", "end"), [
    (10, 110, 10, 0.3, 4),  # net of rest 100 - 20 = 80 against 110 - 40 = 70
    (10, 110, 0, 0.3, 2),  # 100 against 110
    (None, 60, 5, 0.3, 4),  # 100 + 0.3 · 5 · 2 = 103 against 60 + 0.3 · 5 · 4 = 66
    (None, 90, 50, 0.3, 2),  # 100 + 30 = 130 against 90 + 60 = 150
    (None, 90, 50, 0.0, 4),  # 100 against 90
])  # fmt: skip
def test_min_energy_weighs_energy_and_rest(
    horizon_s: float | None, slow_j: float, idle_w: float, hold: float, end: int
) -> None:
    assert spans(thrifty(horizon_s, slow_j, idle_w), "min_energy", hold=hold) == {"work": (0, end)}


def clocked(tasks: int) -> Instance:
    """One device; at half the clock a task takes 4 s, at three quarters 3 s, at full clock 2 s."""
    m = ob.Model("clocked")
    gpu = m.pool("gpu")
    modes = [
        m.mode(gpu, time_s=seconds, energy_j=100, clock=clock)
        for seconds, clock in ((4, 0.5), (3, 0.75), (2, 1.0))
    ]
    for _ in range(tasks):
        m.task(modes=modes)
    m.minimize(makespan=1.0)
    return m.build()


@pytest.mark.parametrize(("low", "high", "load", "ends"), [
    # Two tasks for one device: 2/3 > 1/2, high; then 1/2 is not above 1/2, low.
    (0.5, 1.0, 0.5, [2, 6]),
    (0.5, 1.0, 0.4, [2, 4]),  # 1/2 > 0.4
    (0.5, 1.0, 1.0, [4, 8]),  # never pressed
    (0.7, 0.8, 0.5, [3, 6]),  # 0.75 is nearest to both
])  # fmt: skip
def test_fixed_dvfs_raises_the_clock_above_its_load(
    low: float, high: float, load: float, ends: list[int]
) -> None:
    schedule = play(clocked(2), "fixed_dvfs", low_clock=low, high_clock=high, load=load)
    assert sorted(schedule.end.tolist()) == ends


@pytest.mark.parametrize(("name", "field", "value"), [
    ("fixed_dvfs", "low_clock", 1.5), ("fixed_dvfs", "high_clock", -0.1),
    ("fixed_dvfs", "load", 2.0), ("min_energy", "hold", -1.0), ("random_rules", "k", -3),
])  # fmt: skip
def test_parameters_out_of_range_are_named(name: str, field: str, value: float) -> None:
    with pytest.raises(ParameterError, match=rf"{field} is {value}"):
        load_solver(name, {field: value})


@pytest.mark.parametrize("name", RULES)
def test_no_rule_waits_for_a_mode_that_a_cap_never_allows(name: str) -> None:
    """2 s at 200 W is above the cap of 150 W for ever; 4 s at 100 W is left, and 5 s for the energy
    of both together.
    """
    m = ob.Model("capped")
    for pool in ("x", "y"):
        gpu = m.pool(pool, idle_w=10)
        m.task(
            modes=[
                m.mode(gpu, time_s=2, energy_j=400, clock=1.0),
                m.mode(gpu, time_s=4, energy_j=400, clock=0.5),
            ]
        )
    m.limit(power_w=150)
    m.minimize(energy_j=1.0)
    instance = m.build()
    schedule = play(instance, name)
    assert verify(instance, schedule).feasible and sorted(schedule.end.tolist()) == [4, 8]


@pytest.mark.parametrize("name", RULES)
def test_what_needs_nothing_waits_for_nobody(name: str) -> None:
    """A milestone of no pool beside a busy device."""
    m = ob.Model("milestone")
    gpu = m.pool("gpu")
    m.task("busy", modes=[m.mode(gpu, time_s=5)])
    m.task("free", modes=[m.mode(None, time_s=1)], release_s=2)
    m.minimize(makespan=1.0)
    assert spans(m.build(), name) == {"busy": (0, 5), "free": (2, 3)}


def only_allowed(instance: Instance, schedule: Schedule) -> bool:
    broken = {
        violation.constraint.partition(":")[0]
        for violation in verify(instance, schedule).violations
    }
    return broken <= set(MAY_BREAK)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("seed", range(32))
def test_every_family_is_scheduled_up_to_deadlines_and_limits(name: str, seed: int) -> None:
    instance = mixed_instance(seed)
    if instance.features <= rule(name).supports:
        trace = rule(name).play(instance, np.random.default_rng(0))
        assert trace.schedule is None or only_allowed(instance, trace.schedule)
        if trace.schedule is None:  # a missing link, or caps under which some task has no mode
            capped = np.bincount(
                instance.pairs.task, weights=within_caps(instance)[instance.pairs.mode]
            )
            assert np.isinf(instance.links.latency_s).any() or (capped == 0).any()


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_no_rule_beats_the_optimum(name: str, seed: int) -> None:
    instance = tiny_instance(seed)
    result = (
        ob.solve(instance, name, bound=False) if instance.features <= rule(name).supports else None
    )
    best = brute_force(instance)
    if result is not None and result.verified:
        assert best is not None and isinstance(result.objective, float)
        assert result.objective >= best.objective - 1e-6 * max(1.0, abs(best.objective))
    elif result is not None:
        assert result.status == "unknown" and result.message


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize(
    "spec", ["gpu_dag:tasks=30", "jobshop:jobs=6,machines=4", "flexible_jobshop", "rcpsp"]
)
def test_permuting_the_tasks_permutes_the_schedule(name: str, spec: str) -> None:
    instance = load_target(spec, 3)
    order = np.random.default_rng(3).permutation(instance.num_tasks)
    other = permuted(instance, order)
    assert np.array_equal(plant_of(instance).tie[order], plant_of(other).tie), (
        "tasks that nothing tells apart: another seed"
    )
    mine, theirs = play(instance, name), play(other, name)
    assert np.array_equal(
        mine.start[np.argsort(mine.task)][order], theirs.start[np.argsort(theirs.task)]
    )


@pytest.mark.parametrize("name", ["fcfs", "sjf_backfill", "edf", "heft", "fixed_dvfs"])
def test_time_does_not_look_at_power(name: str) -> None:
    """Doubled energies and powers double the energy and leave the schedule alone."""
    instance = load_target("gpu_dag:tasks=30", 1)
    modes, pools = instance.modes, instance.pools
    twice = replace(
        instance,
        modes=replace(
            modes, energy_per_unit_j=2 * modes.energy_per_unit_j, power_w=2 * modes.power_w
        ),
        pools=replace(pools, idle_w=2 * pools.idle_w, sleep_w=2 * pools.sleep_w),
        links=replace(instance.links, j_per_gb=2 * instance.links.j_per_gb),
    )
    mine, theirs = play(instance, name), play(twice, name)
    assert np.array_equal(mine.start, theirs.start) and np.array_equal(mine.mode, theirs.mode)
    assert verify(twice, theirs).metrics["energy_j"] == pytest.approx(
        2 * verify(instance, mine).metrics["energy_j"], rel=1e-12
    )


def test_equal_keys_are_broken_by_what_tasks_are() -> None:
    """Of two tasks with one key on one device, the same goes first in either order of
    declaration.
    """

    def first(order: tuple[int, int]) -> int:
        m = ob.Model("ties")
        gpu = m.pool("gpu")
        work = m.kind(modes=[m.mode(gpu, time_s=1)])
        for seconds in order:
            m.task(kind=work, units=seconds)
        m.minimize(makespan=1.0)
        instance = m.build()
        schedule = run_rule(instance, list_rule(instance, end_weight=1.0)).schedule
        assert schedule is not None
        return int((schedule.end - schedule.start)[np.argmin(schedule.start)])

    assert first((3, 2)) == first((2, 3))


def test_patience_keeps_a_device_for_what_is_coming() -> None:
    """y is free at 0; b, more urgent than c, comes there at 1. c takes 4: within patience 0.5, 1 <=
    2, the device is kept.
    """
    m = ob.Model("coming")
    x, y = m.pool("x"), m.pool("y")
    a = m.task("a", modes=[m.mode(x, time_s=1)])
    m.task("b", modes=[m.mode(y, time_s=5)], after=a)
    m.task("c", modes=[m.mode(y, time_s=4)])
    m.minimize(makespan=1.0)
    instance = m.build()
    for patience, starts in ((0.0, [0, 4, 0]), (0.2, [0, 4, 0]), (0.5, [0, 1, 6])):
        schedule = run_rule(
            instance, list_rule(instance, base=[0, 1, 2], end_weight=1.0, patience=patience)
        ).schedule
        assert schedule is not None and schedule.start[np.argsort(schedule.task)].tolist() == starts


def test_a_broken_deadline_is_named_with_a_next_step() -> None:
    """min_energy takes the slow mode, 4 s, and the deadline is 3."""
    m = ob.Model("late")
    gpu = m.pool("gpu")
    m.task(
        "work",
        modes=[m.mode(gpu, time_s=2, energy_j=100), m.mode(gpu, time_s=4, energy_j=60)],
        deadline_s=3,
    )
    m.minimize(energy_j=1.0)
    result = ob.solve(m.build(), "min_energy")
    assert (result.status, result.objective, result.schedule) == ("unknown", None, None)
    assert result.violations == ("deadline: task work ends at 4, its deadline is 3",)
    assert (
        result.message is not None
        and "work ends at 4" in result.message
        and "-s cpsat" in result.message
    )
    assert ob.solve(m.build(), "random_rules", work_limit=200).objective == 100.0


@pytest.mark.parametrize("name", [*RULES, "random_rules"])
def test_a_rule_as_a_solver_has_time_bound_and_gap(name: str) -> None:
    result = ob.solve("jobshop:jobs=3,machines=2", name, seed=2, time_limit_s=0.5)
    assert (
        result.time_to_first_s is not None and result.bound is not None and result.gap is not None
    )
    assert isinstance(load_solver(name, {})[1], Policy)
