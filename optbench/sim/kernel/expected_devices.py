"""When devices and tasks are expected: a sorted row of times per pool at which its devices are
free, and when an announced task is ready, for list rules that look ahead.
"""

from __future__ import annotations

import math

from optbench.compiling.compiled import njit
from optbench.sim.kernel.plant import POOLS, TASKS, Plant
from optbench.sim.kernel.state import EVENTS, NOW, RUNNING, State


@njit(cache=True)
def expect(plant: Plant, state: State) -> None:
    """Compute when devices will be free if what runs now runs to its end and nothing is added."""
    now, tasks = state.total[NOW], plant.size[TASKS]
    for pool in range(plant.size[POOLS]):
        first = plant.device_ptr[pool]
        for device in range(first, plant.device_ptr[pool + 1]):
            state.free_at[device] = now if device < first + state.free[pool] else math.inf
    for e in range(state.tally[EVENTS]):
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
                insert(plant, state, pool, plant.req_count[r], state.end[task])


@njit(cache=True)
def insert(plant: Plant, state: State, pool: int, devices: int, time: float) -> None:
    """Insert ``devices`` times into the sorted row; as many at its end are dropped."""
    free_at, first, last = state.free_at, plant.device_ptr[pool], plant.device_ptr[pool + 1]
    i = last - 1
    while i >= first and free_at[i] > time:
        if i + devices < last:
            free_at[i + devices] = free_at[i]
        i -= 1
    for k in range(i + 1, min(i + 1 + devices, last)):
        free_at[k] = time


@njit(cache=True)
def reserve(plant: Plant, state: State, pool: int, devices: int, time: float) -> None:
    """Reserve the devices expected first until ``time``."""
    free_at, first, last = state.free_at, plant.device_ptr[pool], plant.device_ptr[pool + 1]
    i = first
    while i + devices < last and free_at[i + devices] <= time:
        free_at[i] = free_at[i + devices]
        i += 1
    for k in range(i, i + devices):
        free_at[k] = time


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
