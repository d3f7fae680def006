"""The event kernel: the effects of time and of decisions. All rules, policies and environments run
on it.

    while advance(plant, state):  the next instant: its ends, arrivals, releases and faults
        ...                       decisions: ``enter`` a queue, ``start`` a task in a mode,
                                  ``interrupt`` one

A task becomes *ready* (listed in ``fresh``) when it is released and its predecessors have ended. It
can start in a mode when ``can_start`` says so: devices free, caps kept, data there. Times,
durations and lags are those of the instance, bit for bit.
"""

from __future__ import annotations

import math

from optbench.compiling.compiled import njit
from optbench.sim.kernel.accounts import (
    accrue,
    finish_accounts,
    rest_after_all,
    run_accounts,
    send_accounts,
    share_of,
    start_accounts,
)  # fmt: skip
from optbench.sim.kernel.data_arrivals import next_arrival
from optbench.sim.kernel.heat import begin_heat, change_heat, stay_warm, stays_cool
from optbench.sim.kernel.plant import (
    CAPS,
    COOLED,
    FAULTS,
    HORIZON,
    POOLS,
    PREEMPTIVE,
    SENDS,
    TASKS,
    TICK_S,
    Plant,
)  # fmt: skip
from optbench.sim.kernel.queues import is_awaited, pop_event, push_event, put
from optbench.sim.kernel.remaining import record_part, ticks_left
from optbench.sim.kernel.spans import arrival, fits, uses, whole_ticks
from optbench.sim.kernel.state import (
    BROKEN,
    CHANGES,
    DONE,
    ENTERED,
    EVENT_COUNT,
    EVENT_ROOM,
    EVENTS,
    LOST_J,
    MAKESPAN,
    NONE,
    NOW,
    NUM_DONE,
    NUM_FRESH,
    NUM_PARTS,
    NUM_READY,
    NUM_RUNNING,
    NUM_TOUCHED,
    PART_ROOM,
    PARTS_FULL,
    READY,
    RELEASED,
    REST_W,
    RUNNING,
    SERVED,
    TROUBLE,
    WAITING,
    State,
)  # fmt: skip


@njit(cache=True, forceinline=True)
def has_room(plant: Plant, state: State, mode: int) -> bool:
    """Whether free devices and caps allow a mode to begin now."""
    for r in range(plant.req_ptr[mode], plant.req_ptr[mode + 1]):
        if state.free[plant.req_pool[r]] < plant.req_count[r]:
            return False
    caps, kept = plant.size[CAPS], True
    for c in range(caps):
        kept = kept and state.draw_w[c] + plant.cap_net_w[mode * caps + c] <= plant.cap_room_w[c]
    return kept


@njit(cache=True, forceinline=True)
def has_room_for(plant: Plant, state: State, task: int, mode: int) -> bool:
    """``has_room``, and every cooled place stays within its limit until the task has ended."""
    kept = has_room(plant, state, mode)
    return kept and (plant.size[COOLED] == 0 or stays_cool(plant, state, task, mode))


@njit(cache=True)
def can_start(plant: Plant, state: State, task: int, mode: int) -> bool:
    """Whether this decision is possible now."""
    if (
        state.status[task] != READY
        or not has_room_for(plant, state, task, mode)
        or not fits(plant, task, mode)
    ):
        return False
    return (
        not plant.size[SENDS]
        or arrival(plant, state, task, plant.primary[mode]) <= state.total[NOW]
    )


@njit(cache=True)
def begin(plant: Plant, state: State) -> None:
    """Set time 0, with nothing released."""
    pools, total = plant.size[POOLS], state.total
    for entry in range(EVENT_ROOM):
        state.tally[entry] = 0
    state.tally[ENTERED], state.tally[SERVED] = NONE, NONE
    for entry in range(EVENT_COUNT + 1):
        total[entry] = 0.0
    for task in range(plant.size[TASKS]):
        state.status[task], state.mode[task], state.queue[task] = WAITING, NONE, NONE
        state.remaining[task], state.last_part[task] = plant.units[task], NONE
        state.waiting[task] = plant.pred_ptr[task + 1] - plant.pred_ptr[task] + 1
    for pool in range(pools):
        state.free[pool], state.gone[pool] = plant.pool_count[pool], 0
        total[REST_W] += plant.pool_rest_w[pool] * plant.pool_count[pool]
    for queue in range(pools + 1):
        state.root[queue], state.length[queue], state.is_touched[queue] = NONE, 0, 0
    for cap in range(plant.size[CAPS]):
        state.draw_w[cap] = 0.0
    begin_heat(plant, state)


@njit(cache=True)
def touch(state: State, queue: int) -> None:
    """Mark a queue in which a start can have become possible."""
    if state.is_touched[queue] == 0:
        state.is_touched[queue] = 1
        state.touched[state.tally[NUM_TOUCHED]] = queue
        state.tally[NUM_TOUCHED] += 1


@njit(cache=True)
def one_less(plant: Plant, state: State, task: int) -> None:
    """Remove one pending condition of a task; the last one makes it ready."""
    state.waiting[task] -= 1
    if state.waiting[task] == 0:
        make_ready(plant, state, task)


@njit(cache=True)
def make_ready(plant: Plant, state: State, task: int) -> None:
    state.status[task] = READY
    state.end[task], state.data_at[task] = NONE, math.inf
    state.fresh[state.tally[NUM_FRESH]] = task
    state.tally[NUM_FRESH] += 1
    state.tally[NUM_READY] += 1


@njit(cache=True)
def next_time(plant: Plant, state: State) -> float:
    """Return the time of the next event, inf when there is none."""
    t = math.inf
    released = state.tally[RELEASED]
    if released < plant.size[TASKS]:
        t = plant.release[plant.release_order[released]]
    if state.tally[EVENTS] > 0:
        t = min(t, state.event_time[0])
    broken = state.tally[BROKEN]
    if broken < plant.size[FAULTS]:
        t = min(t, plant.fault_time[broken])
    return t


@njit(cache=True)
def advance(plant: Plant, state: State, until: float = math.inf) -> bool:
    """Advance to the next instant with an event, if it is not after ``until``; False when there is
    none.

    At one instant, ends are handled first, then arrivals at queues, releases, and faults: a device
    that is freed and lost at the same time was free.
    """
    n, tally = plant.size[TASKS], state.tally
    if tally[NUM_DONE] == n:
        return False
    t = next_time(plant, state)
    if t > until or t == math.inf:
        return False
    accrue(plant, state, t)
    while tally[EVENTS] > 0 and state.event_time[0] <= t:
        code = pop_event(state)
        state.total[EVENT_COUNT] += 1.0
        if is_awaited(plant, state, t, code):
            if code < n:
                finish(plant, state, code)
            else:
                handle_arrival_event(plant, state, code - n)
    while tally[RELEASED] < n:
        task = plant.release_order[tally[RELEASED]]
        if plant.release[task] > t:
            break
        tally[RELEASED] += 1
        state.total[EVENT_COUNT] += 1.0
        one_less(plant, state, task)
    while tally[BROKEN] < plant.size[FAULTS] and plant.fault_time[tally[BROKEN]] <= t:
        break_down(plant, state, tally[BROKEN])
        tally[BROKEN] += 1
    return True


@njit(cache=True)
def pass_time(plant: Plant, state: State, t: float) -> None:
    """Advance to time t, before which there is no event, to end a run at a given time."""
    if state.total[NOW] < t < next_time(plant, state):
        accrue(plant, state, t)


@njit(cache=True)
def close_accounts(plant: Plant, state: State) -> None:
    """After the last end, charge rest up to a fixed horizon."""
    horizon, now = plant.scalar[HORIZON], state.total[NOW]
    if horizon < math.inf:
        accrue(plant, state, horizon)
        state.total[NOW] = now


@njit(cache=True)
def enter(plant: Plant, state: State, task: int, queue: int, key: float, time: float) -> None:
    """Send a ready task to a queue, which it reaches at ``time``."""
    if time <= state.total[NOW]:
        put(plant, state, queue, task, key)
        touch(state, queue)
    else:
        state.key[task] = key
        state.queue[task] = queue
        expect_at(plant, state, task, time)


@njit(cache=True)
def wake(plant: Plant, state: State, task: int) -> None:
    """Schedule an event for when the data of a ready task next arrives at a pool where it could
    run.
    """
    soon = next_arrival(plant, state, task)
    if soon < math.inf:
        expect_at(plant, state, task, soon)


@njit(cache=True)
def expect_at(plant: Plant, state: State, task: int, time: float) -> None:
    """Make a ready task wait for one event and for no other."""
    state.end[task] = time
    push_event(plant, state, time, plant.size[TASKS] + task)


@njit(cache=True)
def handle_arrival_event(plant: Plant, state: State, task: int) -> None:
    """Put a task that has arrived into its queue; for a task that is queued already, schedule the
    next arrival of its data at a pool. In both cases the queue is examined again for starts.
    """
    queue = state.queue[task]
    if is_queued(plant, state, task):
        wake(plant, state, task)
    else:
        put(plant, state, queue, task, state.key[task])
    touch(state, queue)


@njit(cache=True)
def is_queued(plant: Plant, state: State, task: int) -> bool:
    """Whether the task is queued: queues of pools are entered on arrival; in the queue of the whole
    plant, tasks wait for their data.
    """
    return state.queue[task] == plant.size[POOLS]


@njit(cache=True)
def start(plant: Plant, state: State, task: int, mode: int) -> None:
    """Begin a ready task that is in no queue; ``can_start`` must hold."""
    now = state.total[NOW]
    # Calls that pass whole tables cost more than their work: this one is for the few interrupted
    # tasks.
    if state.last_part[task] == NONE:
        end = now + whole_ticks(plant.units[task] * plant.ticks_per_unit[mode])
    else:
        end = now + ticks_left(plant, state, task, mode)
    state.status[task], state.mode[task], state.queue[task] = RUNNING, mode, NONE
    state.start[task], state.end[task] = now, end
    state.tally[NUM_RUNNING] += 1
    state.tally[NUM_READY] -= 1
    state.tally[CHANGES] += 1
    occupy(plant, state, mode, 1)
    stay_warm(plant, state, mode, end)
    start_accounts(plant, state, task, mode, end)
    push_event(plant, state, end, task)


@njit(cache=True)
def occupy(plant: Plant, state: State, mode: int, sign: int) -> None:
    """Occupy (1) or free (-1) the devices and watts of a mode."""
    for r in range(plant.req_ptr[mode], plant.req_ptr[mode + 1]):
        pool = plant.req_pool[r]
        state.free[pool] -= sign * plant.req_count[r]
        if sign < 0:
            touch(state, pool)
    caps = plant.size[CAPS]
    for c in range(caps):
        state.draw_w[c] += sign * plant.cap_net_w[mode * caps + c]
    change_heat(plant, state, mode, sign)
    state.total[REST_W] -= sign * plant.mode_rest_w[mode]
    if sign < 0:
        touch(state, plant.size[POOLS])


@njit(cache=True)
def finish(plant: Plant, state: State, task: int) -> None:
    """End a task now."""
    state.status[task] = DONE
    state.tally[NUM_RUNNING] -= 1
    state.tally[NUM_DONE] += 1
    state.total[MAKESPAN] = max(state.total[MAKESPAN], state.end[task])
    occupy(plant, state, state.mode[task], -1)
    finish_accounts(plant, state, task)
    for e in range(plant.succ_ptr[task], plant.succ_ptr[task + 1]):
        one_less(plant, state, plant.succ[e])


@njit(cache=True)
def interrupt(plant: Plant, state: State, task: int) -> bool:
    """Stop a running task now; it is ready again with the rest of its work, or with all of it where
    work cannot be kept.

    Returns False, with ``tally[TROUBLE]`` set and the task unchanged, where there is no room to
    record the part.
    """
    now, mode, began = state.total[NOW], state.mode[task], state.start[task]
    elapsed, keeps = now - began, plant.size[PREEMPTIVE] and now > began
    if now >= state.end[task]:
        finish(plant, state, task)
        return True
    if keeps and state.tally[NUM_PARTS] >= state.tally[PART_ROOM]:
        state.tally[TROUBLE] = PARTS_FULL
        return False
    state.tally[NUM_RUNNING] -= 1
    state.tally[CHANGES] += 1
    occupy(plant, state, mode, -1)
    run_accounts(plant, state, task, mode, began, state.end[task], -1.0)
    if keeps:
        run_accounts(plant, state, task, mode, began, now, 1.0)
        record_part(plant, state, task, mode, began, now)
    else:
        drawn_j = plant.units[task] * plant.energy_j[mode] * share_of(plant, task, mode, elapsed)
        state.total[LOST_J] += drawn_j - plant.mode_rest_w[mode] * elapsed * plant.scalar[TICK_S]
        rest_after_all(plant, state, mode, began, now)
        if plant.size[SENDS] and state.last_part[task] == NONE:
            state.total[LOST_J] += send_accounts(plant, state, task, mode, -1.0)
    make_ready(plant, state, task)
    return True


@njit(cache=True)
def break_down(plant: Plant, state: State, fault: int) -> None:
    """Remove or return devices. If needed devices are busy, tasks are stopped, the one that began
    last first.
    """
    pool, devices = plant.fault_pool[fault], plant.fault_devices[fault]
    state.free[pool] -= devices
    state.gone[pool] += devices
    state.tally[CHANGES] += 1
    if devices < 0:
        touch(state, pool)
        touch(state, plant.size[POOLS])
    while state.free[pool] < 0:
        victim = NONE
        for event in range(state.tally[EVENTS]):  # every running task has its end in the events
            task = state.event_code[event]
            if (
                task < plant.size[TASKS]
                and state.status[task] == RUNNING
                and uses(plant, state.mode[task], pool)
            ):
                later = victim == NONE or state.start[task] > state.start[victim]
                same = victim != NONE and state.start[task] == state.start[victim]
                if later or (same and plant.tie[task] > plant.tie[victim]):
                    victim = task
        if victim == NONE or not interrupt(plant, state, victim):
            return
