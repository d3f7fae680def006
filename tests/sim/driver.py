"""Compiled entries into the kernel's functions, which take pointers and cannot be called from
Python.
"""

from __future__ import annotations

import numpy as np

from optbench.compiling.compiled import njit
from optbench.model.instance import Floats, Ints
from optbench.sim.kernel.events import advance, begin, close_accounts, interrupt, pass_time, start
from optbench.sim.kernel.moments import (
    LISTED,
    decisions_at,
    list_fresh,
    list_options,
    start_and_remove,
)
from optbench.sim.kernel.plant import CAPS, POOLS, TASKS, Plant, plant_at
from optbench.sim.kernel.queues import pop_event, put, sift_up, take
from optbench.sim.kernel.remaining import add_part, least_length
from optbench.sim.kernel.spans import duration, lag, whole_ticks
from optbench.sim.kernel.state import (
    DONE,
    NOW,
    NUM_DONE,
    NUM_FRESH,
    READY,
    RUNNING,
    TROUBLE,
    State,
    state_at,
)


@njit(cache=True)
def whole_ticks_of(values: Floats, out: Floats) -> None:
    for i in range(len(values)):
        out[i] = whole_ticks(values[i])


@njit(cache=True)
def lengths_left(ptr: Ints, length: Ints, duration: Ints, whole: Ints, out: Ints) -> None:
    """For each history, whose parts are rows ``ptr[i]`` to ``ptr[i + 1]``, the ticks left in a mode
    that takes ``whole[i]``.
    """
    for i in range(len(whole)):
        parts = ptr[i + 1] - ptr[i]
        lengths, durations_, found = (
            np.zeros(parts, dtype=np.int64),
            np.zeros(parts, dtype=np.int64),
            0,
        )
        for row in range(ptr[i], ptr[i + 1]):
            found = add_part(lengths, durations_, found, length[row], duration[row])
        out[i] = least_length(lengths[:found], durations_[:found], whole[i])


@njit(cache=True)
def durations(plant_row: Ints, task: Ints, mode: Ints, out: Floats) -> None:
    plant = plant_at(plant_row)
    for i in range(len(mode)):
        out[i] = duration(plant, task[i], mode[i])


@njit(cache=True)
def lags(plant_row: Ints, sender: Ints, receiver: Ints, data_gb: Floats, out: Floats) -> None:
    plant = plant_at(plant_row)
    for i in range(len(sender)):
        out[i] = lag(plant, sender[i], receiver[i], data_gb[i], 0.0)


@njit(cache=True)
def through_the_event_heap(
    state_row: Ints, times: Floats, codes: Ints, pops: Ints, out_time: Floats, out_code: Ints
) -> None:
    """Push all, popping ``pops[i]`` events after the i-th push; then pop what is left."""
    state = state_at(state_row)
    done = 0
    for i in range(len(times)):
        sift_up(state, times[i], codes[i])
        for _ in range(pops[i]):
            out_time[done] = state.event_time[0]
            out_code[done] = pop_event(state)
            done += 1
    while done < len(times):
        out_time[done] = state.event_time[0]
        out_code[done] = pop_event(state)
        done += 1


@njit(cache=True)
def through_a_queue(plant_row: Ints, state_row: Ints, keys: Floats, takes: Ints, out: Ints) -> None:
    """Put every task in queue 0, taking ``takes[i]`` after the i-th; then take what is left."""
    plant, state = plant_at(plant_row), state_at(state_row)
    begin(plant, state)
    done = 0
    for i in range(len(keys)):
        put(plant, state, 0, i, keys[i])
        for _ in range(takes[i]):
            out[done] = take(plant, state, 0)
            done += 1
    while done < len(keys):
        out[done] = take(plant, state, 0)
        done += 1


@njit(cache=True)
def work_off(
    plant_row: Ints, state_row: Ints, decisions_row: Ints, draws: Floats, stops: int
) -> int:
    """Start options at random, and interrupt running tasks at random up to ``stops`` times, until
    nothing happens any more.

    Returns after how many events devices did not add up, or a cap was exceeded.
    """
    plant, state, decisions = plant_at(plant_row), state_at(state_row), decisions_at(decisions_row)
    begin(plant, state)
    decisions.held[LISTED] = 0
    wrong, drawn, stopped = 0, 0, 0
    while advance(plant, state):
        for task in range(plant.size[TASKS]):
            drawn += 1
            if (
                state.status[task] == RUNNING
                and stopped < stops
                and draws[drawn % len(draws)] < 0.3
            ):
                interrupt(plant, state, task)
                stopped += 1
        list_fresh(plant, state, decisions)
        options = list_options(plant, state, decisions)
        while options > 0:
            drawn += 1
            k = int(draws[drawn % len(draws)] * options)
            start_and_remove(
                plant, state, decisions, decisions.option_task[k], decisions.option_mode[k]
            )
            options = list_options(plant, state, decisions)
        wrong += overfull(plant, state)
    if state.tally[NUM_DONE] == plant.size[TASKS]:
        close_accounts(plant, state)
    return wrong


@njit(cache=True)
def overfull(plant: Plant, state: State) -> int:
    """Pools whose devices (free, gone, and busy with what runs) do not add up, and caps whose watts
    do not.
    """
    wrong = 0
    for pool in range(plant.size[POOLS]):
        busy = 0
        for task in range(plant.size[TASKS]):
            if state.status[task] == RUNNING:
                for r in range(
                    plant.req_ptr[state.mode[task]], plant.req_ptr[state.mode[task] + 1]
                ):
                    if plant.req_pool[r] == pool:
                        busy += plant.req_count[r]
        if (
            state.free[pool] < 0
            or state.free[pool] + state.gone[pool] + busy != plant.pool_count[pool]
        ):
            wrong += 1
    for cap in range(plant.size[CAPS]):
        draw_w = 0.0
        for task in range(plant.size[TASKS]):
            if state.status[task] == RUNNING:
                draw_w += plant.cap_net_w[state.mode[task] * plant.size[CAPS] + cap]
        # The watts that were added and taken away one by one are exactly those of what runs.
        if draw_w != state.draw_w[cap] or draw_w > plant.cap_room_w[cap]:
            wrong += 1
    return wrong


@njit(cache=True)
def stop_again_and_again(plant_row: Ints, state_row: Ints, times: int) -> int:
    """Start task 0 in mode 0 and interrupt it at once, many times; how often it was possible."""
    plant, state = plant_at(plant_row), state_at(state_row)
    begin(plant, state)
    advance(plant, state)
    for k in range(times):
        start(plant, state, 0, 0)
        if not interrupt(plant, state, 0) or state.tally[TROUBLE] != 0:
            return k
    return times


@njit(cache=True)
def start_and_stop(plant_row: Ints, state_row: Ints, stops: Floats) -> int:
    """Run task 0 in mode 0, stop it at the given times and start it again; returns TROUBLE."""
    plant, state = plant_at(plant_row), state_at(state_row)
    begin(plant, state)
    advance(plant, state)
    start(plant, state, 0, 0)
    for k in range(len(stops)):
        state.tally[NUM_FRESH] = 0
        while advance(plant, state, stops[k]):
            pass
        if state.status[0] == DONE:
            break
        pass_time(plant, state, stops[k])
        if not interrupt(plant, state, 0):
            return int(state.tally[TROUBLE])
        if state.status[0] == READY:
            start(plant, state, 0, 0)
    while advance(plant, state):
        pass
    return int(state.tally[TROUBLE])


@njit(cache=True)
def stop_and_go(plant_row: Ints, state_row: Ints, stops: Floats, at: Floats) -> None:
    """Tasks in their first modes, as they become ready; time is let pass to each stop. ``at`` is
    the time found there.
    """
    plant, state = plant_at(plant_row), state_at(state_row)
    begin(plant, state)
    for k in range(len(stops)):
        while advance(plant, state, stops[k]):
            for f in range(state.tally[NUM_FRESH]):
                start(plant, state, state.fresh[f], plant.kind_ptr[plant.kind[state.fresh[f]]])
            state.tally[NUM_FRESH] = 0
        pass_time(plant, state, stops[k])
        at[k] = state.total[NOW]
    if state.tally[NUM_DONE] == plant.size[TASKS]:
        close_accounts(plant, state)
