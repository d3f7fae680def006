"""Heaps in compiled code: events by (time, code), and one skew heap of ready tasks per queue by
(key, tie).
"""

from __future__ import annotations

from optbench.compiling.compiled import njit
from optbench.sim.kernel.plant import TASKS, Plant
from optbench.sim.kernel.state import (
    EVENT_ROOM,
    EVENTS,
    EVENTS_FULL,
    NONE,
    READY,
    RUNNING,
    TROUBLE,
    State,
)


@njit(cache=True)
def push_event(plant: Plant, state: State, time: float, code: int) -> None:
    """Add an event; at equal times the smaller code comes first."""
    if state.tally[EVENTS] >= state.tally[EVENT_ROOM]:
        drop_stale(plant, state)
        if state.tally[EVENTS] >= state.tally[EVENT_ROOM]:
            state.tally[TROUBLE] = EVENTS_FULL
            return
    sift_up(state, time, code)


@njit(cache=True)
def is_awaited(plant: Plant, state: State, time: float, code: int) -> bool:
    """Whether the task of an event still waits for it; a task that was interrupted or waits for
    another event does not.
    """
    tasks = plant.size[TASKS]
    task = code if code < tasks else code - tasks
    status = state.status[task]
    waits = status == RUNNING if code < tasks else status == READY and state.queue[task] != NONE
    return bool(waits and state.end[task] == time)


@njit(cache=True)
def drop_stale(plant: Plant, state: State) -> None:
    """Remove the events that no task waits for any more."""
    held = state.tally[EVENTS]
    state.tally[EVENTS] = 0
    for i in range(held):
        time, code = state.event_time[i], state.event_code[i]
        if is_awaited(plant, state, time, code):
            sift_up(state, time, code)


@njit(cache=True)
def sift_up(state: State, time: float, code: int) -> None:
    """Add an event to the heap, which must have room."""
    times, codes = state.event_time, state.event_code
    i = state.tally[EVENTS]
    state.tally[EVENTS] = i + 1
    while i > 0:
        parent = (i - 1) >> 1
        if times[parent] < time or (times[parent] == time and codes[parent] <= code):
            break
        times[i], codes[i] = times[parent], codes[parent]
        i = parent
    times[i], codes[i] = time, code


@njit(cache=True)
def pop_event(state: State) -> int:
    """Remove the first event and return its code."""
    times, codes = state.event_time, state.event_code
    code = codes[0]
    last = state.tally[EVENTS] - 1
    state.tally[EVENTS] = last
    if last == 0:
        return int(code)
    time, moved = times[last], codes[last]
    i, child = 0, 1
    while child < last:
        other = child + 1
        if other < last and (
            times[other] < times[child]
            or (times[other] == times[child] and codes[other] < codes[child])
        ):
            child = other
        if time < times[child] or (time == times[child] and moved <= codes[child]):
            break
        times[i], codes[i] = times[child], codes[child]
        i, child = child, 2 * child + 1
    times[i], codes[i] = time, moved
    return int(code)


@njit(cache=True)
def precedes(plant: Plant, state: State, a: int, b: int) -> bool:
    """Whether task a comes before task b in a queue."""
    if state.key[a] != state.key[b]:
        return bool(state.key[a] < state.key[b])
    return bool(plant.tie[a] < plant.tie[b])


@njit(cache=True)
def meld(plant: Plant, state: State, a: int, b: int) -> int:
    """Merge two skew heaps along the right spines, swapping children."""
    left, right = state.left, state.right
    if a == NONE:
        return b
    if b == NONE:
        return a
    if precedes(plant, state, b, a):
        a, b = b, a
    root = a
    while True:
        # ``a`` keeps its place: its right side becomes the left one, its left side is melded with b
        # on the right.
        rest = right[a]
        right[a] = left[a]
        if rest == NONE:
            left[a] = b
            return root
        if precedes(plant, state, b, rest):
            rest, b = b, rest
        left[a] = rest
        a = rest


@njit(cache=True)
def put(plant: Plant, state: State, queue: int, task: int, key: float) -> None:
    """Insert a task into a queue: a smaller key comes first, ties in the order of ``plant.tie``."""
    state.key[task] = key
    state.left[task] = NONE
    state.right[task] = NONE
    state.queue[task] = queue
    state.root[queue] = meld(plant, state, state.root[queue], task)
    state.length[queue] += 1


@njit(cache=True)
def take(plant: Plant, state: State, queue: int) -> int:
    """Remove the head of a queue; its key stays, so that ``put`` can reinsert it at the
    same place.
    """
    task = state.root[queue]
    state.root[queue] = meld(plant, state, state.left[task], state.right[task])
    state.length[queue] -= 1
    state.queue[task] = NONE
    return int(task)
