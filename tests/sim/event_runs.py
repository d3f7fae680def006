"""Instances on one pool, runs of random starts and interruptions, and the devices at work in a
schedule.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import optbench as ob
from optbench.model.instance import Instance
from optbench.model.metrics import profile_of
from optbench.model.schedule import Schedule
from optbench.sim.kernel.moments import new_decision_table
from optbench.sim.kernel.plant import Fault, plant_of
from optbench.sim.kernel.pointers import addresses
from optbench.sim.kernel.state import new_state, schedule_of
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
