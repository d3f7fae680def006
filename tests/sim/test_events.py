"""The kernel against the instance's own numbers, Python's heapq, and the verifier."""

from __future__ import annotations

import heapq
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.model.instance import Instance
from optbench.model.verify import verify
from optbench.sim.kernel.plant import plant_of
from optbench.sim.kernel.pointers import addresses
from optbench.sim.kernel.state import (
    BUSY_J,
    EVENT_COUNT,
    EVENT_ROOM,
    EVENTS,
    MAKESPAN,
    REST_J,
    REST_W,
    new_state,
    schedule_of,
)
from optbench.sim.rules import list_rule, run_rule
from tests.reference.kernel_runs import disagreements, totals
from tests.reference.mixed_instances import mixed_instance, permuted
from tests.sim import driver
from tests.sim.event_runs import one_pool, run


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


def test_stale_events_make_room() -> None:
    """Each interruption leaves an end behind that will not be; a thousand of them fit where there
    is room for ten.
    """
    plant = plant_of(one_pool([1e6]))
    state = new_state(plant, 1)
    assert state.tally[EVENT_ROOM] == 10
    assert driver.start_and_stop(addresses(plant), addresses(state), np.arange(1.0, 1001.0)) == 0
    assert state.total[MAKESPAN] == 1e6 + 1000 and state.tally[EVENTS] <= 10


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
