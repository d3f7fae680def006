"""Arriving jobs and sites: compiled policies choose the site, devices and clock of a job.

    a job arrives:  its pool is given (a record, a draw), or the caller decides (``next_choice``):
                    ``send`` or ``hold``
    it reaches it:  it begins at once where a device is free, else it joins the pool's queue (first
                    come, first served, and one class before the next)
    a job ends:     its devices are free; queued jobs begin while a device is free. A start never
                    waits for more devices than its smallest mode takes: the number wanted is
                    clipped to the free ones

At one instant ends are handled first, each followed by the starts that it allows, then arrivals,
then outages. What an outage stops returns to the head of its queue. ``start_modes`` picks the mode
of a start.
"""

from __future__ import annotations

import math

from optbench.compiling.compiled import njit
from optbench.model.instance import Ints
from optbench.sim.kernel.accounts import accrue
from optbench.sim.kernel.events import begin, break_down, expect_at, finish, start
from optbench.sim.kernel.plant import CAPS, FAULTS, HAS_INGRESS, POOLS, TASKS, Plant, plant_at
from optbench.sim.kernel.queues import is_awaited, pop_event
from optbench.sim.kernel.sites.moves import (
    ELASTIC,
    HOW,
    URGENT,
    grow,
    latest_of_others,
    raise_clocks,
    shrink,
    stop,
    under_cap,
)
from optbench.sim.kernel.sites.start_modes import learn, pick_mode
from optbench.sim.kernel.sites.steering import (
    BANDIT,
    CLASSES,
    CLOCKS,
    GIVEN,
    KINDS,
    PICK,
    ROUTE,
    SELECTIONS,
    SHORT_FIRST,
    WIDEST,
    Steering,
    rank_of,
    steering_at,
)
from optbench.sim.kernel.state import (
    BROKEN,
    EVENTS,
    NONE,
    NOW,
    NUM_FRESH,
    NUM_READY,
    NUM_TOUCHED,
    READY,
    RELEASED,
    State,
    state_at,
)  # fmt: skip


@njit(cache=True)
def run_sites(plant_row: Ints, state_row: Ints, steering_row: Ints, until: float) -> None:
    """Simulate from time 0 to the last event, or up to ``until``; every pool is given."""
    plant, state, steering = plant_at(plant_row), state_at(state_row), steering_at(steering_row)
    open_sites(plant, state, steering)
    while run_until_choice(plant, state, steering, until) != NONE:
        pass


@njit(cache=True)
def open_sites(plant: Plant, state: State, steering: Steering) -> None:
    """Start at time 0, with bandits without data and every pool at its top clock."""
    begin(plant, state)
    pools, clocks = plant.size[POOLS], steering.shape[CLOCKS]
    for queue in range(pools * steering.shape[CLASSES]):
        steering.head[queue], steering.tail[queue] = NONE, NONE
    for pool in range(pools):
        steering.waiting[pool], steering.waiting_units[pool], steering.clock_of[pool] = 0, 0.0, 0
        steering.coming[pool] = 0
    for at in range(steering.shape[KINDS] * pools):
        steering.clock_of[at % pools] = max(steering.clock_of[at % pools], steering.levels[at] - 1)
        for arm in range(at * clocks, (at + 1) * clocks):
            steering.arm_count[arm], steering.arm_mean[arm] = 0.0, 0.0
    steering.shape[SELECTIONS] = 0
    for rank in range(steering.shape[CLASSES]):
        steering.serving[rank], steering.serving[steering.shape[CLASSES] + rank] = rank, rank
        steering.seen[rank], steering.seen[steering.shape[CLASSES] + rank] = 0.0, 0.0


@njit(cache=True)
def run_until_choice(plant: Plant, state: State, steering: Steering, until: float) -> int:
    """Simulate until a job needs a pool; return it, NONE at the end or where pools are given."""
    n, tally, given = plant.size[TASKS], state.tally, steering.shape[ROUTE] == GIVEN
    while True:
        met = tally[RELEASED]
        ends, comes, breaks = math.inf, math.inf, math.inf
        if tally[EVENTS] > 0:
            ends = state.event_time[0]
        if met < n:
            comes = steering.reach[steering.order[met]]
        if tally[BROKEN] < plant.size[FAULTS]:
            breaks = plant.fault_time[tally[BROKEN]]
        t = min(ends, comes, breaks)
        if t > until or t == math.inf:
            return NONE
        accrue(plant, state, t)
        if ends <= t:
            asked = handle_event(plant, state, steering)
            if asked != NONE:
                return asked
        elif comes <= t:
            task = steering.order[met]
            tally[RELEASED] = met + 1
            tally[NUM_READY] += 1
            state.status[task] = READY
            if steering.shape[SHORT_FIRST]:
                learn_order(plant, state, steering, task)
            if given:
                reach_pool(plant, state, steering, task, steering.pool_of[task])
            else:
                return int(task)
        else:
            break_down(plant, state, tally[BROKEN])
            tally[BROKEN] += 1
            requeue_stopped(plant, state, steering)


@njit(cache=True)
def learn_order(plant: Plant, state: State, steering: Steering, task: int) -> None:
    """Order classes by the mean least time of their jobs so far; ties by number."""
    kind, classes = plant.kind[task], steering.shape[CLASSES]
    mine, turn, seen = steering.class_of[kind], steering.serving, steering.seen
    seen[mine] += 1.0
    seconds = state.remaining[task] * seen[2 * classes + kind]
    seen[classes + mine] += (seconds - seen[classes + mine]) / seen[mine]
    for k in range(1, classes):
        moved, at = turn[k], k
        while at > 0 and (seen[classes + turn[at - 1]], turn[at - 1]) > (
            seen[classes + moved],
            moved,
        ):
            turn[at] = turn[at - 1]
            at -= 1
        turn[at] = moved
    for k in range(classes):
        turn[classes + turn[k]] = k


@njit(cache=True)
def handle_event(plant: Plant, state: State, steering: Steering) -> int:
    """Handle the first event; return a held job that is decided again, else NONE."""
    n, time = plant.size[TASKS], state.event_time[0]
    code = pop_event(state)
    if not is_awaited(plant, state, time, code):
        return NONE
    if code < n:
        mode = state.mode[code]
        finish(plant, state, code)
        if steering.shape[PICK] == BANDIT:
            learn(plant, steering, code, mode)
        after_end(plant, state, steering, plant.primary[mode])
        state.tally[NUM_TOUCHED] = 0
    elif state.queue[code - n] == plant.size[POOLS]:
        return int(code - n)
    else:
        pool = state.queue[code - n]
        steering.coming[pool] -= steering.wish_devices[code - n]
        reach_pool(plant, state, steering, code - n, pool)
    return NONE


@njit(cache=True)
def after_end(plant: Plant, state: State, steering: Steering, pool: int) -> None:
    """Serve the queue; under a cap, an end anywhere gives room to all."""
    serve_site(plant, state, steering, pool)
    if plant.size[CAPS]:
        for other in range(plant.size[POOLS]):
            serve_site(plant, state, steering, other)
        raise_clocks(plant, state, steering)
    if steering.moves[HOW] & ELASTIC:
        grow(plant, state, steering, pool)


@njit(cache=True)
def requeue_stopped(plant: Plant, state: State, steering: Steering) -> None:
    """Return tasks stopped by an outage to the heads of their queues, last begun first."""
    for f in range(state.tally[NUM_FRESH]):
        task = state.fresh[f]
        join_queue(plant, state, steering, task, plant.primary[state.mode[task]], True)
    state.tally[NUM_FRESH], state.tally[NUM_TOUCHED] = 0, 0
    for pool in range(plant.size[POOLS]):
        serve_site(plant, state, steering, pool)


@njit(cache=True)
def send(
    plant: Plant, state: State, steering: Steering, task: int, pool: int, devices: int, clock: int
) -> None:
    """Send a job to a pool with wishes for devices and a clock (NONE: the cheapest)."""
    row = (plant.kind[task] * plant.size[POOLS] + pool) * (steering.shape[WIDEST] + 1)
    devices = min(max(devices, 1), steering.shape[WIDEST])
    while steering.fit[row + devices] == 0 and devices < steering.shape[WIDEST]:
        devices += 1
    steering.pool_of[task], steering.wish_devices[task], steering.wish_clock[task] = (
        pool,
        devices,
        clock,
    )
    latency = (
        plant.ingress_ticks[plant.ingress[task] * plant.size[POOLS] + pool]
        if plant.size[HAS_INGRESS]
        else 0.0
    )
    if latency > 0.0:
        state.queue[task] = pool
        steering.coming[pool] += devices
        expect_at(plant, state, task, state.total[NOW] + latency)
    else:
        reach_pool(plant, state, steering, task, pool)


@njit(cache=True)
def hold(plant: Plant, state: State, task: int, until: float) -> None:
    """Hold a job at its ingress; it is decided again at a later time."""
    state.queue[task] = plant.size[POOLS]
    expect_at(plant, state, task, until)


@njit(cache=True)
def reach_pool(plant: Plant, state: State, steering: Steering, task: int, pool: int) -> None:
    """Begin a job or queue it; no job overtakes another of its class."""
    of_class = steering.class_of[plant.kind[task]]
    rank = rank_of(steering, of_class)
    first = steering.head[pool * steering.shape[CLASSES] + of_class] == NONE
    if steering.moves[HOW] & (URGENT | ELASTIC) and state.free[pool] == 0:
        free_devices_for(plant, state, steering, pool, rank)
    if not (first and begin_job(plant, state, steering, task, pool)):
        join_queue(plant, state, steering, task, pool, False)
    if steering.moves[HOW] & (URGENT | ELASTIC):
        serve_site(plant, state, steering, pool)


@njit(cache=True)
def free_devices_for(plant: Plant, state: State, steering: Steering, pool: int, rank: int) -> None:
    """Free devices for a job: shrink other work, or interrupt less urgent work."""
    if steering.moves[HOW] & ELASTIC and shrink(plant, state, steering, pool):
        return
    if steering.moves[HOW] & URGENT and rank == 0:
        task = latest_of_others(plant, state, steering, pool, rank)
        if task != NONE and stop(plant, state, steering, task):
            join_queue(plant, state, steering, task, pool, True)


@njit(cache=True)
def join_queue(
    plant: Plant, state: State, steering: Steering, task: int, pool: int, first: bool
) -> None:
    """Add a job to the queue of a pool, at its end or at its head."""
    queue = pool * steering.shape[CLASSES] + steering.class_of[plant.kind[task]]
    state.queue[task], state.end[task] = pool, NONE
    head, tail = steering.head[queue], steering.tail[queue]
    if head == NONE:
        steering.head[queue], steering.tail[queue], steering.behind[task] = task, task, NONE
    elif first:
        steering.behind[task], steering.head[queue] = head, task
    else:
        steering.behind[tail], steering.behind[task], steering.tail[queue] = task, NONE, task
    steering.waiting[pool] += 1
    steering.waiting_units[pool] += state.remaining[task]


@njit(cache=True)
def serve_site(plant: Plant, state: State, steering: Steering, pool: int) -> None:
    """Begin queued jobs while a device is free."""
    classes = steering.shape[CLASSES]
    for turn in range(classes):
        queue = pool * classes + steering.serving[turn]
        while state.free[pool] > 0 and steering.head[queue] != NONE:
            task = steering.head[queue]
            if not begin_job(plant, state, steering, task, pool):
                break
            steering.head[queue] = steering.behind[task]
            steering.waiting[pool] -= 1
            steering.waiting_units[pool] -= state.remaining[task]


@njit(cache=True)
def begin_job(plant: Plant, state: State, steering: Steering, task: int, pool: int) -> bool:
    """Start a job in the mode that the policy picks; False where it picks none."""
    mode = pick_mode(plant, state, steering, task, pool) if state.free[pool] > 0 else NONE
    if mode != NONE and plant.size[CAPS]:
        steering.wish_clock[task] = steering.column[mode]
        mode = under_cap(plant, state, steering, task, mode)
    if mode == NONE:
        return False
    start(plant, state, task, mode)
    return True


@njit(cache=True)
def next_choice(
    plant_row: Ints, state_row: Ints, steering_row: Ints, until: float, first: bool
) -> int:
    """For Python: the next job that needs a pool, NONE at the end; ``first`` starts the run."""
    plant, state, steering = plant_at(plant_row), state_at(state_row), steering_at(steering_row)
    if first:
        open_sites(plant, state, steering)
    return int(run_until_choice(plant, state, steering, until))


@njit(cache=True)
def send_to(
    plant_row: Ints,
    state_row: Ints,
    steering_row: Ints,
    task: int,
    pool: int,
    devices: int,
    clock: int,
) -> None:
    """For Python: ``send``."""
    plant, state, steering = plant_at(plant_row), state_at(state_row), steering_at(steering_row)
    send(plant, state, steering, task, pool, devices, clock)


@njit(cache=True)
def hold_until(plant_row: Ints, state_row: Ints, task: int, until: float) -> None:
    """For Python: ``hold``."""
    plant, state = plant_at(plant_row), state_at(state_row)
    hold(plant, state, task, until)
