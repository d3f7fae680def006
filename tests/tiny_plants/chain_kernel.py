"""Policies that look a state of ``sim.chain`` up in a table, played in the kernel of sites; and how
such a table is learned.

A table of probabilities gives, per state, the chances of its actions. A table of values gives what
a state is worth, h: the action that leads to the state of least h is taken. Learned (average cost,
after-states; no rate and no law of the chain is used):

    h(y) += α [c + λ N dt − g dt + min_a h(y, e, a) − h(y)]
            (y: the state before event e, dt spent and c J drawn there)
    g     = mean of c + λ N dt per second, recent time counting most

λ is changed outside, from ∫ N dt and the arrivals of a pass in which nothing is tried.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from optbench.compiling.compiled import njit
from optbench.model.instance import Floats, Ints
from optbench.sim.kernel.accounts import accrue
from optbench.sim.kernel.plant import POOLS, TASKS, TICK_S, Plant, plant_at
from optbench.sim.kernel.pointers import table_at
from optbench.sim.kernel.sites.sites import handle_event, open_sites, send
from optbench.sim.kernel.sites.steering import Steering, steering_at
from optbench.sim.kernel.state import EVENTS, NONE, NOW, NUM_READY, READY, RELEASED, State, state_at

# Entries of ``shape``, and what LEARNS says: play by chances, play by values, or learn them.
MODES, ROOM, LEARNS, DRAWN, DRAWS, ARRIVED = range(6)
CHANCES, VALUES, LEARNING = range(3)
# Entries of ``number``: λ; g and the sums of cost and time that it is the ratio of; ∫ N dt; how
# often is tried, how far stepped.
LAMBDA, GAIN, COST, TIME, CROWD, EXPLORE, STEP, FORGET = range(8)


class Lookup(NamedTuple):
    """Tables of a chain, the present state (``config`` and ``queue`` of each pool), and a policy.

    ``chance`` is cumulated over the actions of a state: its modes, then the queues of its pools.
    ``drawn`` are uniform numbers.
    """

    shape: Ints
    number: Floats
    first: Ints
    radix: Ints
    config: Ints
    queue: Ints
    after_start: Ints
    after_end: Ints
    free: Ints
    running: Ints
    config_w: Floats
    pool_of: Ints
    devices: Ints
    clock: Ints
    mode_of: Ints
    chance: Floats
    value: Floats
    visits: Floats
    drawn: Floats


lookup_at = table_at(Lookup)


@njit(cache=True)
def play_chain(
    plant_row: Ints, state_row: Ints, steering_row: Ints, lookup_row: Ints, until: float
) -> None:
    """From time 0 to the end; ways take no time, nothing breaks."""
    plant, state, steering, at = (
        plant_at(plant_row),
        state_at(state_row),
        steering_at(steering_row),
        lookup_at(lookup_row),
    )
    open_sites(plant, state, steering)
    for pool in range(plant.size[POOLS]):
        at.config[pool], at.queue[pool] = 0, 0
    while one_event(plant, state, steering, at, until):
        pass


@njit(cache=True)
def one_event(plant: Plant, state: State, steering: Steering, at: Lookup, until: float) -> bool:
    """The next end or arrival, and what is decided on it; False when there is none up to
    ``until``.
    """
    tally = state.tally
    ends, comes = math.inf, math.inf
    if tally[EVENTS] > 0:
        ends = state.event_time[0]
    if tally[RELEASED] < plant.size[TASKS]:
        comes = steering.reach[steering.order[tally[RELEASED]]]
    t = min(ends, comes)
    if t > until or t == math.inf:
        return False
    before, spent = whole_state(plant, at), (t - state.total[NOW]) * plant.scalar[TICK_S]
    cost, crowd = rates_of(plant, at)
    accrue(plant, state, t)
    if ends <= t:
        worth, meant = end_job(plant, state, steering, at, state.event_code[0])
        handle_event(plant, state, steering)
    else:
        task = steering.order[tally[RELEASED]]
        tally[RELEASED] += 1
        tally[NUM_READY] += 1
        state.status[task] = READY
        worth, meant = take_in(plant, state, steering, at, task)
    if at.shape[LEARNS] == LEARNING:
        learn_worth(at, before, cost * spent, crowd * spent, spent, worth, meant)
    return True


@njit(cache=True)
def whole_state(plant: Plant, at: Lookup) -> int:
    """The state as one number; what waits beyond the room of a chain is not seen."""
    state, room = 0, at.shape[ROOM]
    for pool in range(plant.size[POOLS]):
        state += at.radix[pool] * (at.config[pool] * (room + 1) + min(at.queue[pool], room))
    return state


@njit(cache=True)
def rates_of(plant: Plant, at: Lookup) -> tuple[float, float]:
    """Watts above rest, and jobs in the system."""
    watts, jobs = 0.0, 0.0
    for pool in range(plant.size[POOLS]):
        row = at.first[pool] + at.config[pool]
        watts += at.config_w[row]
        jobs += at.running[row] + at.queue[pool]
    return watts, jobs


@njit(cache=True)
def end_job(
    plant: Plant, state: State, steering: Steering, at: Lookup, task: int
) -> tuple[float, bool]:
    """Before a job's end is booked: say how the jobs start that it lets start; the worth of what
    follows.
    """
    mode = at.mode_of[state.mode[task]]
    pool = at.pool_of[mode]
    at.config[pool] = at.after_end[(at.first[pool] + at.config[pool]) * at.shape[MODES] + mode]
    worth, meant, decided = 0.0, True, False
    head = steering.head[pool]
    while at.queue[pool] > 0 and at.free[at.first[pool] + at.config[pool]] > 0:
        now = whole_state(plant, at)
        action, best, greedy = decide(plant, at, now, pool)
        if at.shape[LEARNS] == LEARNING:
            move_value(at, now, best)
        if not decided:
            worth, decided = best, True
        meant = meant and greedy
        steering.wish_devices[head], steering.wish_clock[head] = (
            at.devices[action],
            at.clock[action],
        )
        head = steering.behind[head]
        at.config[pool] = at.after_start[
            (at.first[pool] + at.config[pool]) * at.shape[MODES] + action
        ]
        at.queue[pool] -= 1
    if not decided:
        worth = at.value[whole_state(plant, at)]
    return worth, meant


@njit(cache=True)
def take_in(
    plant: Plant, state: State, steering: Steering, at: Lookup, task: int
) -> tuple[float, bool]:
    """Start a job that has come in, or have it wait somewhere; the worth of what follows."""
    at.shape[ARRIVED] += 1
    action, best, meant = decide(plant, at, whole_state(plant, at), NONE)
    modes = at.shape[MODES]
    if action < modes:
        pool = at.pool_of[action]
        at.config[pool] = at.after_start[(at.first[pool] + at.config[pool]) * modes + action]
        send(plant, state, steering, task, pool, at.devices[action], at.clock[action])
    else:
        pool = action - modes
        at.queue[pool] += 1
        send(plant, state, steering, task, pool, 1, NONE)
    return best, meant


@njit(cache=True)
def decide(plant: Plant, at: Lookup, now: int, pool: int) -> tuple[int, float, bool]:
    """Action, least worth of what any leads to, and whether the action was meant, not tried.
    ``pool`` is where a device asks.
    """
    actions = at.shape[MODES] + plant.size[POOLS]
    plays = at.shape[LEARNS]
    tries = plays == LEARNING and draw(at) < at.number[EXPLORE]
    chosen, lowest, found, luck = NONE, math.inf, 0, 0.0
    if plays == CHANCES:
        luck = draw(at)
    for action in range(actions):
        after = leads_to(plant, at, now, pool, action)
        if after == NONE:
            continue
        found += 1
        value = at.value[after]
        if plays == CHANCES:
            if chosen == NONE and luck < at.chance[now * actions + action]:
                chosen = action
        elif tries:
            if draw(at) * found < 1.0:
                chosen = action
        elif value < lowest:
            chosen = action
        lowest = min(lowest, value)
    if chosen == NONE:
        chosen = shortest_queue(plant, at)
        lowest = at.value[now]
    return chosen, lowest, not tries


@njit(cache=True)
def leads_to(plant: Plant, at: Lookup, now: int, pool: int, action: int) -> int:
    """The state that an action leads to; NONE where it cannot be taken."""
    modes, room = at.shape[MODES], at.shape[ROOM]
    if action < modes:
        p = at.pool_of[action]
        if pool != NONE and p != pool:
            return NONE
        row = at.first[p] + at.config[p]
        after = at.after_start[row * modes + action]
        if after == NONE:
            return NONE
        change = (after - at.config[p]) * (room + 1)
        if pool != NONE:
            change += min(at.queue[p] - 1, room) - min(at.queue[p], room)
        return int(now + at.radix[p] * change)
    p = action - modes
    if pool != NONE or at.free[at.first[p] + at.config[p]] > 0 or at.queue[p] >= room:
        return NONE
    return int(now + at.radix[p])


@njit(cache=True)
def shortest_queue(plant: Plant, at: Lookup) -> int:
    """Where the chain would lose a job: it waits where fewest do."""
    best = 0
    for pool in range(plant.size[POOLS]):
        if at.queue[pool] < at.queue[best]:
            best = pool
    return int(at.shape[MODES] + best)


@njit(cache=True)
def draw(at: Lookup) -> float:
    """The next uniform number, round and round."""
    k = at.shape[DRAWN]
    at.shape[DRAWN] = k + 1 if k + 2 < at.shape[DRAWS] else 0
    return float(at.drawn[k])


@njit(cache=True)
def move_value(at: Lookup, state: int, target: float) -> None:
    """A step towards a target: of 1 / visits at first, never smaller than STEP."""
    at.visits[state] += 1.0
    at.value[state] += max(at.number[STEP], 100.0 / (100.0 + at.visits[state])) * (
        target - at.value[state]
    )


@njit(cache=True)
def learn_worth(
    at: Lookup, before: int, cost: float, crowd: float, spent: float, worth: float, meant: bool
) -> None:
    """One step of h, and of g where nothing was tried."""
    number = at.number
    charged = cost + number[LAMBDA] * crowd
    if meant:
        number[COST] = number[COST] * number[FORGET] + charged
        number[TIME] = number[TIME] * number[FORGET] + spent
        number[GAIN] = number[COST] / number[TIME]
    move_value(at, before, charged - number[GAIN] * spent + worth)
    number[CROWD] += crowd
