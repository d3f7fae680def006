"""The kernel against the instance's own numbers, Python's heapq, and the verifier."""

from __future__ import annotations

import heapq
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.model.instance import Instance
from optbench.model.metrics import profile_of
from optbench.model.schedule import Schedule
from optbench.model.task_progress import progress
from optbench.model.verify import verify
from optbench.sim.kernel.moments import new_decision_table
from optbench.sim.kernel.plant import Fault, plant_of
from optbench.sim.kernel.pointers import addresses
from optbench.sim.kernel.state import (
    BUSY_J,
    EVENT_COUNT,
    EVENT_ROOM,
    EVENTS,
    LOST_J,
    MAKESPAN,
    NUM_PARTS,
    PARTS_FULL,
    REST_J,
    REST_W,
    new_state,
    schedule_of,
)  # fmt: skip
from optbench.sim.rules import list_rule, run_rule
from tests.reference.kernel_runs import disagreements, totals
from tests.reference.mixed_instances import mixed_instance, permuted
from tests.sim import driver


def one_pool(
    seconds: list[float],
    *,
    count: int = 1,
    tick_s: float = 1.0,
    preemptive: bool = False,
    **pool: Any,
) -> Instance:
    """A task of so many seconds each, at 100 W on identical devices."""
    m = ob.Model("one pool", tick_s=tick_s, preemptive=preemptive)
    gpu = m.pool("gpu", count=count, **pool)
    for length in seconds:
        m.task(modes=[m.mode(gpu, time_s=length, energy_j=100.0 * length)])
    m.minimize(energy_j=1.0)
    return m.build()


@pytest.mark.parametrize("tick_s", [1e-9, 1.0, 0.1, 1 / 3, 3600.0])
def test_durations_and_lags_are_the_instance_s_bit_for_bit(tick_s: float) -> None:
    rng = np.random.default_rng(1)
    base = mixed_instance(5)
    instance = replace(base, tick_s=tick_s)
    pools, n, tasks = instance.num_pools, 200_000, instance.num_tasks
    instance = replace(
        instance,
        links=replace(
            instance.links,
            latency_s=np.where(
                rng.random((pools, pools)) < 0.3, np.inf, rng.random((pools, pools))
            ),
            s_per_gb=rng.choice([0.0, 0.1, 0.3, 1.0], (pools, pools)),
        ),
    )
    out = np.empty(n)
    for _ in range(20):
        units: Any = rng.choice([0.1, 0.5, 1.0, 3.0, 1e3], tasks) * rng.integers(1, 1000, tasks)
        instance = replace(instance, tasks=replace(instance.tasks, units=units))
        plant = plant_of(instance)
        task, mode = rng.integers(0, tasks, n // 20), rng.integers(0, instance.num_modes, n // 20)
        driver.durations(addresses(plant), task, mode, out[: n // 20])
        assert (out[: n // 20] == instance.duration(mode, units[task])).all()
    sender, receiver = rng.integers(-1, pools, (2, n))
    data_gb = rng.choice([0.0, 0.1, 0.5, 2.0], n) * rng.integers(0, 100, n)
    driver.lags(addresses(plant), sender, receiver, data_gb, out)
    assert (out == instance.lag(sender, receiver, data_gb)).all()


def test_the_event_heap_is_heapq() -> None:
    """Ties in time are broken by the smaller code."""
    rng = np.random.default_rng(2)
    n = 3000
    state = new_state(plant_of(one_pool([1.0] * n)))
    times, codes = rng.integers(0, 40, n).astype(float), rng.permutation(n)
    pops = np.zeros(n, dtype=np.int64)
    held = 0
    for i in range(n):
        held += 1
        pops[i] = rng.integers(0, min(held, 3) + 1) if rng.random() < 0.5 else 0
        held -= pops[i]
    out_time, out_code = np.empty(n), np.empty(n, dtype=np.int64)
    driver.through_the_event_heap(addresses(state), times, codes, pops, out_time, out_code)
    heap: list[tuple[float, int]] = []
    right = []
    for time, code, popped in zip(times.tolist(), codes.tolist(), pops.tolist(), strict=True):
        heapq.heappush(heap, (time, code))
        right += [heapq.heappop(heap) for _ in range(popped)]
    right += [heapq.heappop(heap) for _ in range(len(heap))]
    assert list(zip(out_time.tolist(), out_code.tolist(), strict=True)) == right


def test_queues_are_heaps_by_key_and_tie() -> None:
    rng = np.random.default_rng(3)
    n = 2000
    instance = one_pool([1.0 + i / 7 for i in range(n)])
    plant = plant_of(instance)
    state = new_state(plant)
    keys = rng.integers(0, 25, n).astype(float)
    takes = (rng.random(n) < 0.4).astype(np.int64)
    out = np.empty(n, dtype=np.int64)
    driver.through_a_queue(addresses(plant), addresses(state), keys, takes, out)
    heap: list[tuple[float, int, int]] = []
    right = []
    for task, (key, taken) in enumerate(zip(keys.tolist(), takes.tolist(), strict=True)):
        heapq.heappush(heap, (key, int(plant.tie[task]), task))
        right += [heapq.heappop(heap)[2] for _ in range(taken)]
    right += [heapq.heappop(heap)[2] for _ in range(len(heap))]
    assert out.tolist() == right
    assert sorted(plant.tie.tolist()) == list(range(n))


def run(
    instance: Instance, seed: int, stops: int = 0, faults: tuple[Fault, ...] = ()
) -> tuple[Any, Schedule | None]:
    """Random starts and interruptions; devices and watts must add up after every event."""
    plant = plant_of(instance, faults)
    state, decisions = new_state(plant, stops), new_decision_table(plant)
    draws = np.random.default_rng(seed).random(997)
    assert (
        driver.work_off(addresses(plant), addresses(state), addresses(decisions), draws, stops) == 0
    )
    return state, schedule_of(instance, plant, state)


@pytest.mark.parametrize("seed", range(24))
def test_interrupted_work_is_kept_where_the_instance_is_preemptive(seed: int) -> None:
    """The verifier agrees with every part, in coarse ticks and in fine ones, and with what the
    kernel has counted.
    """
    instance = replace(mixed_instance(seed), preemptive=True)
    state, schedule = run(instance, seed, stops=30)
    if schedule is None:
        return
    assert disagreements(instance, state, schedule) == []
    assert state.total[LOST_J] == 0.0 or (instance.edges.data_gb > 0).any()


def test_some_work_was_interrupted() -> None:
    states = [
        run(replace(mixed_instance(seed), preemptive=True), seed, stops=30)[0] for seed in range(8)
    ]
    assert sum(int(state.tally[NUM_PARTS]) for state in states) > 20


@pytest.mark.parametrize("seed", range(16))
def test_interrupted_work_is_done_again_where_it_cannot_be_kept(seed: int) -> None:
    instance = replace(mixed_instance(seed), preemptive=False)
    state, schedule = run(instance, seed, stops=10)
    if schedule is not None:
        assert disagreements(instance, state, schedule) == []


def test_energy_of_lost_work() -> None:
    """4 s of 10 s at 100 W, 20 W of which the idle device would have drawn: 320 J in vain, and 80 J
    of rest.
    """
    instance = one_pool([10.0], idle_w=20.0)
    plant = plant_of(instance)
    state = new_state(plant, 1)
    assert driver.start_and_stop(addresses(plant), addresses(state), np.array([4.0])) == 0
    assert state.total[LOST_J] == pytest.approx(320.0) and state.total[REST_J] == pytest.approx(
        80.0
    )
    assert state.total[BUSY_J] == 1000.0 and state.total[MAKESPAN] == 14.0


@pytest.mark.parametrize(
    ("tick_s", "stops"), [(1.0, [1, 2, 7]), (1e-9, [10**8, 3 * 10**8 + 1, 10**10 - 1])]
)
def test_parts_of_a_task_add_up(tick_s: float, stops: list[int]) -> None:
    instance = one_pool([10.0], tick_s=tick_s, preemptive=True)
    plant = plant_of(instance)
    state = new_state(plant, 3)
    assert (
        driver.start_and_stop(addresses(plant), addresses(state), np.array(stops, dtype=float)) == 0
    )
    schedule = schedule_of(instance, plant, state)
    assert schedule is not None and verify(instance, schedule).feasible
    lengths = schedule.end - schedule.start
    assert (
        len(lengths) == 4
        and (lengths > 0).all()
        and lengths.sum() == instance.pairs.duration[0] == state.total[MAKESPAN]
    )


@pytest.mark.parametrize("seed", range(20))
def test_interrupted_work_ends_in_the_first_tick_that_completes_it(seed: int) -> None:
    """Mixed modes and random stops: with the last segment of any task one tick shorter, it is not
    complete.
    """
    instance = replace(mixed_instance(seed), preemptive=True)
    _, schedule = run(instance, seed, stops=40)
    if schedule is None:
        return
    assert progress(instance, schedule).complete.all()
    order = np.argsort(schedule.end, kind="stable")
    last = dict(zip(schedule.task[order].tolist(), order.tolist(), strict=True))
    long = [row for row in last.values() if schedule.end[row] > schedule.start[row]]
    end = schedule.end.copy()
    end[long] -= 1
    assert not progress(instance, replace(schedule, end=end)).complete[schedule.task[long]].any()


def test_no_room_for_a_part_is_said() -> None:
    plant = plant_of(one_pool([10.0], preemptive=True))
    state = new_state(plant, 1)
    assert (
        driver.start_and_stop(addresses(plant), addresses(state), np.array([1.0, 2.0]))
        == PARTS_FULL
    )


def test_stale_events_make_room() -> None:
    """Each interruption leaves an end behind that will not be; a thousand of them fit where there
    is room for ten.
    """
    plant = plant_of(one_pool([1e6]))
    state = new_state(plant, 1)
    assert state.tally[EVENT_ROOM] == 10
    assert driver.start_and_stop(addresses(plant), addresses(state), np.arange(1.0, 1001.0)) == 0
    assert state.total[MAKESPAN] == 1e6 + 1000 and state.tally[EVENTS] <= 10


def devices_at_work(
    instance: Instance, schedule: Schedule, faults: tuple[Fault, ...], pool: int
) -> float:
    """Most devices of a pool busy or gone at one time, from the schedule alone."""
    start, end, demand = [], [], []
    modes = instance.modes
    for k in range(schedule.num_segments):
        mode = schedule.mode[k]
        for r in range(modes.req_ptr[mode], modes.req_ptr[mode + 1]):
            if modes.req_pool[r] == pool:
                start.append(float(schedule.start[k]))
                end.append(float(schedule.end[k]))
                demand.append(float(modes.req_count[r]))
    last = max(end, default=0.0) + max((fault.time for fault in faults), default=0.0) + 1.0
    for fault in faults:
        if fault.pool == pool:
            start.append(fault.time)
            end.append(last)
            demand.append(float(fault.devices))
    return float(max(profile_of(*map(np.array, (start, end, demand)))[1])) if start else 0.0


@pytest.mark.parametrize("seed", range(32))
def test_devices_that_are_gone_do_no_work(seed: int) -> None:
    """Faults come and go; no task is lost, and busy and missing devices never exceed the pool."""
    rng = np.random.default_rng(seed)
    instance = replace(mixed_instance(seed), preemptive=bool(seed % 2), horizon=None)
    span = float(instance.pairs.duration.mean()) * 3
    faults: tuple[Fault, ...] = ()
    for pool, count in enumerate(instance.pools.count.tolist()):
        begin = round(float(rng.random()) * span)
        for k in range(3):
            devices = int(rng.integers(1, count + 1))
            faults += (
                Fault(float(begin + 7 * k), pool, devices),
                Fault(float(begin + 7 * k + 5), pool, -devices),
            )
    state, schedule = run(instance, seed, faults=faults)
    without = run(instance, seed)[1]
    assert (
        (schedule is None) <= (without is None)
        or (instance.edges.data_gb > 0).any()
        or len(instance.limits.cap_w) > 0
    )
    if schedule is None:
        return
    assert disagreements(instance, state, schedule) == []
    for pool in range(instance.num_pools):
        assert devices_at_work(instance, schedule, faults, pool) <= instance.pools.count[pool]


def test_a_device_taken_at_the_end_of_a_task_was_free() -> None:
    state, schedule = run(one_pool([4.0]), 0, faults=(Fault(4.0, 0, 1),))
    assert schedule is not None and state.total[LOST_J] == 0.0


def test_the_task_that_began_last_is_stopped_first() -> None:
    """Two devices, work of 5 and 3 s from 0 on; one vanishes at 2 for 10 s: of two that began
    together, one goes on.
    """
    instance = one_pool([5.0, 3.0], count=2)
    _, schedule = run(instance, 0, faults=(Fault(2.0, 0, 1), Fault(12.0, 0, -1)))
    assert schedule is not None
    assert sorted(schedule.start.tolist())[0] == 0.0 and sorted(schedule.start.tolist())[1] in (
        3.0,
        5.0,
    )


def test_faults_that_cannot_be_are_refused() -> None:
    instance = one_pool([1.0], count=2)
    with pytest.raises(ob.ModelError, match="3 of 2 devices of pool gpu would be lost"):
        plant_of(instance, [Fault(0.0, 0, 3)])
    with pytest.raises(ob.ModelError, match="pool 1 does not exist; pools are 0 to 0"):
        plant_of(instance, [Fault(0.0, 1, 1)])
    with pytest.raises(ob.ModelError, match="time is nan"):
        plant_of(instance, [Fault(float("nan"), 0, 1)])
    with pytest.raises(ob.ModelError, match=r"time is 0\.5; it must be a whole number of ticks"):
        plant_of(one_pool([1.0]), [Fault(0.5, 0, 1)])


def test_a_run_that_was_stopped_goes_on_where_it_was() -> None:
    """Time stands at each stop, never beyond it, and rest is counted up to there; in the end
    nothing is different.
    """
    m = ob.Model("stops", tick_s=0.25, horizon_s=40.0)
    gpu = m.pool("gpu", count=3, idle_w=7.0)
    for length, release in ((4.0, 0.0), (2.5, 1.0), (3.0, 9.0)):
        m.task(modes=[m.mode(gpu, time_s=length, energy_j=100.0 * length)], release_s=release)
    m.tariff(price_usd_per_kwh=[0.3, 0.1, 0.2], every_s=5.0)
    m.minimize(cost_usd=1.0)
    instance = m.build()
    plant = plant_of(instance)
    state, other = new_state(plant), new_state(plant)
    # Between events, at one (the end at 4), beyond the next release, and after the last end at 12.
    stops = np.array([0.5, 3.25, 4.0, 8.0, 9.0, 11.0, 12.0]) / instance.tick_s
    at = np.empty_like(stops)
    driver.stop_and_go(addresses(plant), addresses(state), stops, at)
    assert at.tolist() == stops.tolist()
    driver.stop_and_go(addresses(plant), addresses(other), np.array([200.0]), np.empty(1))
    assert totals(state) == pytest.approx(totals(other), rel=1e-12)
    schedule = schedule_of(instance, plant, state)
    assert schedule is not None and disagreements(instance, state, schedule) == []
    # Cut at 8: 3 devices idle, but for 4 + 2.5 device-seconds.
    driver.stop_and_go(addresses(plant), addresses(other), np.array([32.0]), np.empty(1))
    assert other.total[REST_J] == pytest.approx(7.0 * (3 * 8 - 6.5))


def test_no_tasks_no_events() -> None:
    instance = one_pool([1.0])
    columns = ("kind", "units", "release", "deadline", "deadline_hard", "weight", "memory_gb")
    nobody = replace(
        instance,
        tasks=replace(
            instance.tasks,
            names=(),
            **{name: getattr(instance.tasks, name)[:0] for name in columns},
        ),
    )
    state, schedule = run(nobody, 0)
    assert schedule is not None and schedule.num_segments == 0
    assert verify(nobody, schedule).feasible and state.total[EVENT_COUNT] == 0


def test_tasks_that_need_no_device_and_no_time() -> None:
    """Both at once, then what follows them: 0 + 2."""
    m = ob.Model("instant")
    gpu = m.pool("gpu", idle_w=5)
    modes = [m.mode({}, time_s=0.0), m.mode(gpu, time_s=0.0, energy_j=7.0)]
    firsts = [m.task(modes=[mode]) for mode in modes]
    m.task(modes=[m.mode(gpu, time_s=2.0, energy_j=30.0)], after=firsts)
    m.minimize(energy_j=1.0)
    instance = m.build()
    state, schedule = run(instance, 0)
    assert schedule is not None and disagreements(instance, state, schedule) == []
    assert state.total[MAKESPAN] == 2.0 and state.total[BUSY_J] == 37.0


def brim(tasks: int) -> Instance:
    """Watts that are no binary fractions, under a cap with room for exactly three tasks at once."""
    m = ob.Model("brim", tick_s=1e-6)
    gpu = m.pool("gpu", count=5, idle_w=0.1)
    m.tasks(np.linspace(0.1, 0.9, tasks), modes=[m.mode(gpu, time_s=1.0, energy_j=0.7)])
    m.limit(power_w=0.5 + 3 * 0.6)
    m.minimize(energy_j=1.0)
    return m.build()


@pytest.mark.slow
def test_a_million_events_do_not_drift() -> None:
    instance = brim(500_000)
    trace = run_rule(instance, list_rule(instance, strict=True))
    assert trace.schedule is not None and trace.state.total[EVENT_COUNT] == 1_000_000
    assert disagreements(instance, trace.state, trace.schedule) == []
    assert trace.state.draw_w[0] == 0.0 and trace.state.total[REST_W] == pytest.approx(
        0.5, rel=1e-9
    )


def test_a_cap_is_filled_to_the_brim() -> None:
    """Three tasks that add 0.6 W each fill what is left above rest exactly, in any order of
    floats.
    """
    instance = brim(300)
    state, schedule = run(instance, 0)
    assert schedule is not None and disagreements(instance, state, schedule) == []
    # Never fewer than three at once, until the last few end.
    assert state.total[MAKESPAN] * instance.tick_s < 300 * 0.5 / 3 * 1.02


@pytest.mark.parametrize(("column", "bad"), [("units", np.float32), ("kind", np.int32)])
def test_columns_of_another_type_are_refused(column: str, bad: type) -> None:
    plant = plant_of(one_pool([1.0]))
    with pytest.raises(
        TypeError, match=rf"Plant\.{column}: {np.dtype(bad).name} .* expected contiguous"
    ):
        addresses(plant._replace(**{column: getattr(plant, column).astype(bad)}))
    with pytest.raises(TypeError, match=r"Plant\.units"):
        addresses(plant._replace(units=np.ones(4)[::2]))


@pytest.mark.parametrize("seed", range(16))
def test_ties_follow_the_task_and_not_its_place(seed: int) -> None:
    """Ranks are permuted with the tasks, but for tasks that nothing tells apart, which share a set
    of ranks.
    """
    instance = mixed_instance(seed)
    order = np.random.default_rng(seed).permutation(instance.num_tasks)
    one, two = plant_of(instance), plant_of(permuted(instance, order))
    by_rank = [
        np.stack((plant.kind, plant.units, plant.release, plant.deadline))[:, np.argsort(plant.tie)]
        for plant in (one, two)
    ]
    assert (by_rank[0] == by_rank[1]).all()


@pytest.mark.parametrize("seed", range(24))
def test_rules_keep_what_the_kernel_keeps_whatever_breaks(seed: int) -> None:
    """Queues of pools and of the whole plant, data on its way, and devices that come and go, under
    list rules.
    """
    rng = np.random.default_rng(seed)
    instance = replace(mixed_instance(seed), preemptive=bool(seed % 2), horizon=None)
    span = 2 * float(instance.pairs.duration.mean())
    faults = []
    for pool, count in enumerate(instance.pools.count.tolist()):
        for k in range(6):
            at, devices = (
                float(round(span * (k + float(rng.random())))),
                int(rng.integers(1, count + 1)),
            )
            faults += [Fault(at, pool, devices), Fault(at + round(0.5 * span), pool, -devices)]
    faults = [fault for fault in faults if fault.pool != 0] if seed % 3 else faults[:2]
    if not possible(instance, faults):
        faults = faults[:2]
    for options in ({"strict": True}, {"end_weight": 1.0}, {"end_weight": 1.0, "lookahead": True}):
        trace = run_rule(instance, list_rule(instance, ready_weight=1.0, **options), faults)
        if trace.schedule is not None:
            assert disagreements(instance, trace.state, trace.schedule) == []
            for pool in range(instance.num_pools):
                assert (
                    devices_at_work(instance, trace.schedule, tuple(faults), pool)
                    <= instance.pools.count[pool]
                )


def possible(instance: Instance, faults: list[Fault]) -> bool:
    """Whether never more devices are gone than there are."""
    gone = np.zeros(instance.num_pools)
    for fault in sorted(faults):
        gone[fault.pool] += fault.devices
        if gone[fault.pool] > instance.pools.count[fault.pool]:
            return False
    return True
