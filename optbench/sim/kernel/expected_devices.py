"""When devices and tasks are expected: a sorted row of times per pool at which its devices are
free, and when an announced task is ready, for list rules that look ahead.

``busy_until`` holds the times of what runs, ``free_at`` adds what waits for devices and is put back
before the next pass. A device that is free has any time up to now: nothing begins earlier, so that
rows stay valid while time passes and tasks end. Starts are entered one by one; after other changes
(``CHANGES``: interruptions, faults, starts by others) all rows are computed again.
"""

from __future__ import annotations

import math

from optbench.compiling.compiled import njit
from optbench.model.instance import Floats
from optbench.sim.kernel.plant import POOLS, TASKS, Plant
from optbench.sim.kernel.state import (
    CHANGES,
    ENTERED,
    EVENTS,
    NOW,
    NUM_RESERVED,
    RUNNING,
    State,
)  # fmt: skip


@njit(cache=True)
def expect(plant: Plant, state: State) -> None:
    """Find when devices will be free if what runs now runs to its end and nothing is added."""
    tally = state.tally
    if tally[ENTERED] != tally[CHANGES]:
        expect_anew(plant, state)
        return
    for k in range(tally[NUM_RESERVED]):
        pool = state.reserved[k]
        state.is_reserved[pool] = 0
        for device in range(plant.device_ptr[pool], plant.device_ptr[pool + 1]):
            state.free_at[device] = state.busy_until[device]
    tally[NUM_RESERVED] = 0


@njit(cache=True)
def expect_anew(plant: Plant, state: State) -> None:
    """Compute all rows from what runs."""
    now, tasks, tally = state.total[NOW], plant.size[TASKS], state.tally
    for pool in range(plant.size[POOLS]):
        first = plant.device_ptr[pool]
        for device in range(first, plant.device_ptr[pool + 1]):
            state.busy_until[device] = now if device < first + state.free[pool] else math.inf
        state.is_reserved[pool] = 0
    for e in range(tally[EVENTS]):
        task = state.event_code[e]
        if (
            task < tasks
            and state.status[task] == RUNNING
            and state.end[task] == state.event_time[e]
        ):
            mode = state.mode[task]
            for r in range(plant.req_ptr[mode], plant.req_ptr[mode + 1]):
                pool = plant.req_pool[r]
                # Devices of this task follow those that are expected earlier; for each, one inf at
                # the end is dropped.
                insert(plant, state.busy_until, pool, plant.req_count[r], state.end[task])
    for device in range(plant.device_ptr[plant.size[POOLS]]):
        state.free_at[device] = state.busy_until[device]
    tally[ENTERED], tally[NUM_RESERVED] = tally[CHANGES], 0


@njit(cache=True)
def insert(plant: Plant, row: Floats, pool: int, devices: int, time: float) -> None:
    """Insert ``devices`` times into the sorted row of a pool; as many at its end are dropped."""
    first, last = plant.device_ptr[pool], plant.device_ptr[pool + 1]
    i = last - 1
    while i >= first and row[i] > time:
        if i + devices < last:
            row[i + devices] = row[i]
        i -= 1
    for k in range(i + 1, min(i + 1 + devices, last)):
        row[k] = time


@njit(cache=True)
def plan_start(plant: Plant, state: State, mode: int, end: float) -> None:
    """Enter a mode that is started now and ends then."""
    for r in range(plant.req_ptr[mode], plant.req_ptr[mode + 1]):
        reserve(plant, state.free_at, plant.req_pool[r], plant.req_count[r], end)
        reserve(plant, state.busy_until, plant.req_pool[r], plant.req_count[r], end)
    state.tally[ENTERED] += 1


@njit(cache=True)
def plan_wait(plant: Plant, state: State, mode: int, end: float) -> None:
    """Reserve the devices of a mode that waits for them, up to its end, in this pass."""
    for r in range(plant.req_ptr[mode], plant.req_ptr[mode + 1]):
        pool = plant.req_pool[r]
        reserve(plant, state.free_at, pool, plant.req_count[r], end)
        if state.is_reserved[pool] == 0:
            state.is_reserved[pool] = 1
            state.reserved[state.tally[NUM_RESERVED]] = pool
            state.tally[NUM_RESERVED] += 1


@njit(cache=True)
def reserve(plant: Plant, row: Floats, pool: int, devices: int, time: float) -> None:
    """Take the devices of a pool that are expected first until ``time``."""
    first, last = plant.device_ptr[pool], plant.device_ptr[pool + 1]
    i = first
    while i + devices < last and row[i + devices] <= time:
        row[i] = row[i + devices]
        i += 1
    for k in range(i, i + devices):
        row[k] = time


@njit(cache=True)
def coming_at(plant: Plant, state: State, task: int) -> float:
    """Return when an announced task becomes ready; inf where a predecessor was interrupted."""
    there = state.total[NOW]
    for e in range(plant.pred_ptr[task], plant.pred_ptr[task + 1]):
        source = plant.pred[e]
        there = max(there, state.end[source] if state.status[source] >= RUNNING else math.inf)
    return there


@njit(cache=True)
def any_free(plant: Plant, state: State, queue: int) -> bool:
    """Whether a device is free for the tasks of a queue."""
    if queue < plant.size[POOLS]:
        return bool(state.free[queue] > 0)
    for pool in range(plant.size[POOLS]):
        if state.free[pool] > 0:
            return True
    return bool(plant.size[POOLS] == 0)
