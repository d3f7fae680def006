"""Arriving jobs and sites: compiled policies choose the site, devices and clock of a job.

    a job arrives:  its pool is given (a record, a draw), or the caller decides (``next_choice``):
                    ``send`` or ``hold``
    it reaches it:  it begins at once where a device is free, else it joins the pool's queue (first
                    come, first served, and one class before the next)
    a job ends:     its devices are free; queued jobs begin while a device is free. A start never
                    waits for more devices than its smallest mode takes: the number wanted is
                    clipped to the free ones

At one instant ends are handled first, each followed by the starts that it allows, then arrivals,
then outages. What an outage stops returns to the head of its queue.

The mode of a start is looked up by (kind, pool, devices, clock) in ``mode_at``, where a clock that
has no mode stands for the next one that has; ``fit[kind, pool, free]`` is the largest number of
devices with a mode. A policy picks one by:

    TABLE    ``pick[kind, pool, free]``, NONE to wait
    STICKY   all free devices; a pool's clock becomes LOW with two or more of them free, else
             max(clock, LOW)   (default_policy)
    BANDIT   all free devices; the clock by UCB1 on −(energy per unit), one count of selections for
             all arms   (ucb1)
    WISHED   devices and clock that were decided when the job was sent; clock NONE: the cheapest for
             that number
"""

from __future__ import annotations

import math
from typing import NamedTuple

from optbench.compiling.compiled import njit
from optbench.model.instance import Floats, Ints
from optbench.sim.kernel.accounts import accrue
from optbench.sim.kernel.events import begin, break_down, expect_at, finish, start
from optbench.sim.kernel.plant import CAPS, FAULTS, HAS_INGRESS, POOLS, TASKS, Plant, plant_at
from optbench.sim.kernel.pointers import table_at
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

# Entries of ``shape``; values of PICK and ROUTE.
WIDEST, CLOCKS, CLASSES, PICK, ROUTE, SELECTIONS, KINDS, SHORT_FIRST = range(8)
TABLE, STICKY, BANDIT, WISHED = range(4)
GIVEN, ASKED = range(2)


class Steering(NamedTuple):
    """The parameters and the memory of a policy. ``order`` lists tasks by the time they reach a
    given pool, else by release. ``head``, ``tail`` and ``behind`` are the queues: one per pool
    and class, classes served in order. ``levels`` counts the clocks of a kind at a pool,
    ``column`` is the clock of a mode, ``coming`` counts devices that jobs in transit will take.
    ``moves`` lists what may change while it runs (``sites.moves``).

    ``serving`` lists the classes in the order in which they are served, followed by the rank of
    each (``rank_of``). With SHORT_FIRST that order depends on the jobs so far: the class whose jobs
    take the least mean time, in their fastest modes, comes first. ``seen`` is the number of jobs of
    each class so far, their mean time, and the seconds per unit of the fastest mode of each kind.
    There are few long columns, because each is an argument of every call that is not inlined: five
    more made the reference week twice as slow.
    """

    shape: Ints
    mode_at: Ints
    class_of: Ints
    order: Ints
    reach: Floats
    pool_of: Ints
    wish_devices: Ints
    wish_clock: Ints
    pick: Ints
    best_clock: Ints
    clock_of: Ints
    low_clock: Ints
    arm_count: Floats
    arm_mean: Floats
    head: Ints
    tail: Ints
    behind: Ints
    waiting: Ints
    waiting_units: Floats
    coming: Ints
    fit: Ints
    levels: Ints
    column: Ints
    moves: Ints
    scratch: Ints
    serving: Ints
    seen: Floats


steering_at = table_at(Steering)


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
def rank_of(steering: Steering, of_class: int) -> int:
    """Return the rank at which a class is served."""
    return int(steering.serving[steering.shape[CLASSES] + of_class])


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
    rank, first = (
        rank_of(steering, of_class),
        steering.head[pool * steering.shape[CLASSES] + of_class] == NONE,
    )
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
def pick_mode(plant: Plant, state: State, steering: Steering, task: int, pool: int) -> int:
    """Return the mode for a start on the free devices of a pool, NONE where they are too few."""
    widest, pick = steering.shape[WIDEST], steering.shape[PICK]
    at, free = plant.kind[task] * plant.size[POOLS] + pool, min(state.free[pool], widest)
    if pick == TABLE:
        return int(steering.pick[at * (widest + 1) + free])
    wanted = min(free, steering.wish_devices[task]) if pick == WISHED else free
    devices = steering.fit[at * (widest + 1) + wanted]
    if devices == 0:
        return NONE
    if pick == STICKY:
        low = steering.low_clock[at]
        steering.clock_of[pool] = (
            low if state.free[pool] >= 2 else max(steering.clock_of[pool], low)
        )
        clock = steering.clock_of[pool]
    elif pick == BANDIT:
        clock = select(steering, at)
    else:
        clock = steering.wish_clock[task]
        if clock == NONE:
            clock = steering.best_clock[at * (widest + 1) + devices]
    return int(steering.mode_at[(at * widest + devices - 1) * steering.shape[CLOCKS] + clock])


@njit(cache=True)
def select(steering: Steering, at: int) -> int:
    """Return UCB1's clock: the lowest untried one, else the best mean plus √(2 ln t / N)."""
    steering.shape[SELECTIONS] += 1
    best, value, first = 0, -math.inf, at * steering.shape[CLOCKS]
    for clock in range(steering.levels[at]):
        count = steering.arm_count[first + clock]
        if count == 0.0:
            return clock
        score = steering.arm_mean[first + clock] + math.sqrt(
            2.0 * math.log(steering.shape[SELECTIONS]) / count
        )
        if score > value:
            best, value = clock, score
    return best


@njit(cache=True)
def learn(plant: Plant, steering: Steering, task: int, mode: int) -> None:
    """Update the reward of an arm: minus the energy per unit of the job that has ended."""
    at = plant.kind[task] * plant.size[POOLS] + plant.primary[mode]
    arm = at * steering.shape[CLOCKS] + steering.column[mode]
    steering.arm_count[arm] += 1.0
    steering.arm_mean[arm] += (-plant.energy_j[mode] - steering.arm_mean[arm]) / steering.arm_count[
        arm
    ]


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
