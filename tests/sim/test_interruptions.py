"""Faults in the kernel: what is interrupted is kept or done again, and devices that are gone do no
work.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import optbench as ob
from optbench.model.instance import Instance
from optbench.model.task_progress import progress
from optbench.model.verify import verify
from optbench.sim.kernel.plant import Fault, plant_of
from optbench.sim.kernel.pointers import addresses
from optbench.sim.kernel.state import (
    BUSY_J,
    LOST_J,
    MAKESPAN,
    NUM_PARTS,
    PARTS_FULL,
    REST_J,
    new_state,
    schedule_of,
)
from optbench.sim.rules import list_rule, run_rule
from tests.reference.kernel_runs import disagreements
from tests.reference.mixed_instances import mixed_instance
from tests.sim import driver
from tests.sim.event_runs import devices_at_work, one_pool, run


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
