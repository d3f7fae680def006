"""Changing what runs at a site: urgent work interrupts other work, jobs grow and shrink, clocks
follow a power cap.

A change is an interruption and a start in the same instant, so that work already done stays done; a
run has room for so many (MOVES_LEFT). Where the instance is not preemptive nothing that runs is
changed, and caps act on what begins.

    URGENT    a job of the first class without a free device takes those of the job of another class
              that began last
    ELASTIC   a job without a free device gets half of those of the widest job there; devices that
              no job waits for go to the narrowest job to which its table would give more
    UNIFORM   each site has a ceiling for its clocks. While a start does not fit under the cap, the
              ceiling whose next step saves most falls; when work ends, the lowest one rises by a
              step if that fits
    SINGLY    while a start does not fit, the one job (or the start itself) whose next step saves
              most is slowed down; when work ends, the job that is furthest below its wished clock
              is sped up by a step if that fits

"Fits" on the way up: with HEADROOM times the watts it takes, so that clocks do not go up and down
at every event.
"""

from __future__ import annotations

from optbench.compiling.compiled import njit
from optbench.sim.kernel.events import has_room, interrupt, start
from optbench.sim.kernel.plant import CAPS, POOLS, PREEMPTIVE, TASKS, TICK_S, Plant
from optbench.sim.kernel.sites.steering import CLASSES, CLOCKS, WIDEST, Steering
from optbench.sim.kernel.state import (
    EVENTS,
    NONE,
    NOW,
    NUM_FRESH,
    NUM_RUNNING,
    NUM_TOUCHED,
    RUNNING,
    State,
)

# Entries of ``moves``; bits of HOW.
HOW, MOVES_LEFT = range(2)
URGENT, ELASTIC, UNIFORM, SINGLY = 1, 2, 4, 8
# A job is not changed within this many seconds before its end.
NEARLY_DONE_S = 1e-6
HEADROOM = 1.5


@njit(cache=True)
def may_change(plant: Plant, state: State, steering: Steering, task: int) -> bool:
    """Whether a task runs, is not about to end, and another change can be recorded."""
    nearly_done = NEARLY_DONE_S / plant.scalar[TICK_S]
    return bool(
        plant.size[PREEMPTIVE]
        and steering.moves[MOVES_LEFT] > 0
        and task < plant.size[TASKS]
        and state.status[task] == RUNNING
        and state.start[task] < state.total[NOW] < state.end[task] - nearly_done
    )


@njit(cache=True)
def stop(plant: Plant, state: State, steering: Steering, task: int) -> bool:
    """Interrupt a task that may be changed; it is then in no queue."""
    if not interrupt(plant, state, task):
        return False
    steering.moves[MOVES_LEFT] -= 1
    state.tally[NUM_FRESH], state.tally[NUM_TOUCHED] = 0, 0
    return True


@njit(cache=True)
def place_of(plant: Plant, mode: int, task: int) -> int:
    """Return the row of (kind, pool) of a task that runs in a mode."""
    return int(plant.kind[task] * plant.size[POOLS] + plant.primary[mode])


@njit(cache=True)
def at_clock(plant: Plant, steering: Steering, task: int, mode: int, column: int) -> int:
    """Return the mode on the same devices at another clock; NONE where there is none, or it is
    lower than wished.
    """
    widest, clocks = steering.shape[WIDEST], steering.shape[CLOCKS]
    place = place_of(plant, mode, task)
    row = (place * widest + plant.devices[mode] - 1) * clocks
    return (
        int(steering.mode_at[row + column])
        if steering.low_clock[place] <= column < clocks
        else NONE
    )


@njit(cache=True)
def latest_of_others(plant: Plant, state: State, steering: Steering, pool: int, first: int) -> int:
    """Return the job that began last among the jobs at a pool whose class comes after rank
    ``first``.
    """
    best = NONE
    for event in range(state.tally[EVENTS]):
        task = state.event_code[event]
        if may_change(plant, state, steering, task) and plant.primary[state.mode[task]] == pool:
            other = (
                steering.serving[steering.shape[CLASSES] + steering.class_of[plant.kind[task]]]
                > first
            )
            if other and (best == NONE or (state.start[task], task) > (state.start[best], best)):
                best = task
    return best


@njit(cache=True)
def widest_job(plant: Plant, state: State, steering: Steering, pool: int) -> int:
    """Return the job at a pool with the most devices, if it has several."""
    best, most = NONE, 1
    for event in range(state.tally[EVENTS]):
        task = state.event_code[event]
        if may_change(plant, state, steering, task) and plant.primary[state.mode[task]] == pool:
            devices = plant.devices[state.mode[task]]
            if devices > most or (devices == most and best != NONE and task < best):
                best, most = task, devices
    return best


@njit(cache=True)
def shrink(plant: Plant, state: State, steering: Steering, pool: int) -> bool:
    """Halve the devices of the widest job."""
    task = widest_job(plant, state, steering, pool)
    if task == NONE:
        return False
    mode, widest = state.mode[task], steering.shape[WIDEST]
    row = place_of(plant, mode, task)
    half = steering.fit[row * (widest + 1) + plant.devices[mode] // 2]
    if half == 0:
        return False
    smaller = steering.mode_at[
        (row * widest + half - 1) * steering.shape[CLOCKS] + steering.column[mode]
    ]
    if smaller == NONE or not stop(plant, state, steering, task):
        return False
    start(plant, state, task, smaller)
    return True


@njit(cache=True)
def grow(plant: Plant, state: State, steering: Steering, pool: int) -> None:
    """Give devices that no job waits for to the narrowest job to which its table would give
    more.
    """
    widest, free = steering.shape[WIDEST], state.free[pool]
    if free <= 0 or steering.waiting[pool] > 0:
        return
    best, least, wider = NONE, widest, NONE
    for event in range(state.tally[EVENTS]):
        task = state.event_code[event]
        if may_change(plant, state, steering, task) and plant.primary[state.mode[task]] == pool:
            devices = plant.devices[state.mode[task]]
            row = place_of(plant, state.mode[task], task) * (widest + 1)
            mode = steering.pick[row + min(widest, devices + free)]
            if mode == NONE or plant.devices[mode] <= devices:
                continue
            if best == NONE or devices < least or (devices == least and task < best):
                best, least, wider = task, devices, mode
    if best != NONE and stop(plant, state, steering, best):
        start(plant, state, best, wider if has_room(plant, state, wider) else state.mode[best])


@njit(cache=True)
def saving(plant: Plant, mode: int, lower: int) -> float:
    """Return the watts under the caps that a lower clock saves."""
    caps, watts = plant.size[CAPS], 0.0
    for c in range(caps):
        watts += plant.cap_net_w[mode * caps + c] - plant.cap_net_w[lower * caps + c]
    return watts


@njit(cache=True)
def fastest_alone(plant: Plant, state: State, steering: Steering, task: int, mode: int) -> int:
    """Where no running work could end: return the fastest mode that the caps allow, on the fewest
    devices, whatever clock is wished.
    """
    widest, clocks = steering.shape[WIDEST], steering.shape[CLOCKS]
    place = place_of(plant, mode, task)
    for devices in range(plant.devices[mode], 0, -1):
        for column in range(steering.column[mode], -1, -1):
            other = steering.mode_at[(place * widest + devices - 1) * clocks + column]
            if other != NONE and has_room(plant, state, other):
                return int(other)
    return NONE


@njit(cache=True)
def under_cap(plant: Plant, state: State, steering: Steering, task: int, mode: int) -> int:
    """Return a mode in which a job can begin under the caps, slowing down others where that helps;
    NONE where it has to wait.
    """
    if state.tally[NUM_RUNNING] == 0:
        return fastest_alone(plant, state, steering, task, mode)
    if steering.moves[HOW] & UNIFORM:
        return under_ceilings(plant, state, steering, task, mode)
    while mode != NONE and not has_room(plant, state, mode):
        lower = at_clock(plant, steering, task, mode, steering.column[mode] - 1)
        best, most = NONE, -1.0
        if lower != NONE and lower != mode:
            best, most = task, saving(plant, mode, lower)
        if steering.moves[HOW] & SINGLY:
            for event in range(state.tally[EVENTS]):
                other = state.event_code[event]
                if may_change(plant, state, steering, other):
                    slower = at_clock(
                        plant,
                        steering,
                        other,
                        state.mode[other],
                        steering.column[state.mode[other]] - 1,
                    )
                    if (
                        slower != NONE
                        and slower != state.mode[other]
                        and saving(plant, state.mode[other], slower) > most
                    ):
                        best, most = other, saving(plant, state.mode[other], slower)
        if best == NONE:
            return NONE
        if best == task:
            mode = lower
        else:
            change_clock(plant, state, steering, best, steering.column[state.mode[best]] - 1)
    return mode


@njit(cache=True)
def change_clock(plant: Plant, state: State, steering: Steering, task: int, column: int) -> None:
    """Change the clock of a running job."""
    mode = at_clock(plant, steering, task, state.mode[task], column)
    if mode != NONE and mode != state.mode[task] and stop(plant, state, steering, task):
        start(plant, state, task, mode)


@njit(cache=True)
def under_ceilings(plant: Plant, state: State, steering: Steering, task: int, mode: int) -> int:
    """Lower the ceiling that saves most, repeatedly."""
    pool = plant.primary[mode]
    while True:
        now = below_ceiling(plant, steering, task, mode, steering.clock_of[pool])
        if has_room(plant, state, now):
            return now
        best, most = NONE, 0.0
        for site in range(plant.size[POOLS]):
            ceiling = steering.clock_of[site] - 1
            if ceiling < 0:
                continue
            watts = watts_at_ceiling(plant, state, steering, site, ceiling)
            if site == pool:
                watts += saving(plant, now, below_ceiling(plant, steering, task, now, ceiling))
            if watts > most:
                best, most = site, watts
        if best == NONE:
            if steering.clock_of[pool] == 0:
                return NONE
            best = pool  # the jobs there run at even lower clocks: the ceiling is lowered to them
        steering.clock_of[best] -= 1
        apply_ceiling(plant, state, steering, best)


@njit(cache=True)
def below_ceiling(plant: Plant, steering: Steering, task: int, mode: int, ceiling: int) -> int:
    """Return the mode, or the one at the ceiling where its clock is higher."""
    if steering.column[mode] <= ceiling:
        return mode
    lower = at_clock(plant, steering, task, mode, ceiling)
    return mode if lower == NONE else lower


@njit(cache=True)
def watts_at_ceiling(
    plant: Plant, state: State, steering: Steering, site: int, ceiling: int
) -> float:
    """Return the watts that the jobs running at a site would save under a ceiling; negative where
    it allows higher clocks.
    """
    watts = 0.0
    for event in range(state.tally[EVENTS]):
        task = state.event_code[event]
        if may_change(plant, state, steering, task) and plant.primary[state.mode[task]] == site:
            wanted = min(ceiling, steering.wish_clock[task])
            other = at_clock(plant, steering, task, state.mode[task], wanted)
            if other != NONE:
                watts += saving(plant, state.mode[task], other)
    return watts


@njit(cache=True)
def apply_ceiling(plant: Plant, state: State, steering: Steering, site: int) -> None:
    """Set every job at a site to its wished clock, or to the ceiling."""
    found = 0
    for event in range(state.tally[EVENTS]):
        task = state.event_code[event]
        if may_change(plant, state, steering, task) and plant.primary[state.mode[task]] == site:
            steering.scratch[found] = task
            found += 1
    for k in range(found):
        task = steering.scratch[k]
        if may_change(plant, state, steering, task):
            change_clock(
                plant,
                state,
                steering,
                task,
                min(steering.clock_of[site], steering.wish_clock[task]),
            )


@njit(cache=True)
def headroom(plant: Plant, state: State, watts: float) -> bool:
    """Whether this many more watts are well within every cap."""
    fits = True
    for c in range(plant.size[CAPS]):
        fits = fits and state.draw_w[c] + HEADROOM * watts <= plant.cap_room_w[c]
    return fits


@njit(cache=True)
def raise_clocks(plant: Plant, state: State, steering: Steering) -> None:
    """After an end, raise clocks by one step where that fits."""
    if steering.moves[HOW] & UNIFORM:
        lowest = NONE
        for site in range(plant.size[POOLS]):
            below = steering.clock_of[site] < steering.shape[CLOCKS] - 1
            if below and (lowest == NONE or steering.clock_of[site] < steering.clock_of[lowest]):
                lowest = site
        if lowest != NONE:
            more = -watts_at_ceiling(plant, state, steering, lowest, steering.clock_of[lowest] + 1)
            if headroom(plant, state, more):
                steering.clock_of[lowest] += 1
                apply_ceiling(plant, state, steering, lowest)
    elif steering.moves[HOW] & SINGLY:
        slowest, most = NONE, 0
        for event in range(state.tally[EVENTS]):
            task = state.event_code[event]
            if may_change(plant, state, steering, task):
                below = steering.wish_clock[task] - steering.column[state.mode[task]]
                if below > most:
                    slowest, most = task, below
        if slowest != NONE:
            column = steering.column[state.mode[slowest]] + 1
            faster = at_clock(plant, steering, slowest, state.mode[slowest], column)
            if faster != NONE and headroom(
                plant, state, -saving(plant, state.mode[slowest], faster)
            ):
                change_clock(plant, state, steering, slowest, column)
