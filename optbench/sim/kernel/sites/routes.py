"""Live routing by an index: each job goes where it costs least, in the mode that costs least there,
on top of ``kernel.sites``.

A unit of kind k in mode m (n devices, T seconds, e joules above the rest of its devices) costs,
while pool p is at load level l,

    c[l, m] = e r_p + μ_k T + w[l, p] n T
    r_p     = ENERGY + USD price_p + CARBON carbon_p over the next seconds it takes

where μ_k is the weight of a second in the system and w the price of a device in watts. Of the modes
on at most ``free`` devices the cheapest allowed one counts; if none is allowed, the cheapest of the
widest. A job of u units goes to the pool of least

    u c + μ_k (ingress + wait) + LOAD (busy + waiting) / devices
        + LATE (if its deadline is expected to pass)

of those with a free device, or (QUEUES) of all, with the expected wait (units waiting + u) n T /
devices; where no device is free anywhere and jobs do not queue at cheap pools, to the pool of least
ingress + wait + u T. The level of a pool (WHOLE: of the plant) is the number of thresholds that its
busy share exceeds.

With a BUDGET of seconds, μ_k = max(0, base_k + GAIN debt) and debt ← debt + (ingress + wait + u T −
BUDGET) after each job: an excess is compensated later. With HOLD seconds of patience a job waits
for a period in which it costs less, by more than the share MARGIN and by more than μ for the time;
with RESERVE it begins only where it costs at most 1 + RESERVE times the least of all pools and
periods within patience, until that is over.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from optbench.compiling.compiled import njit
from optbench.model.instance import Floats, Ints
from optbench.sim.kernel.accounts import period_of
from optbench.sim.kernel.plant import HAS_INGRESS, MODES, PERIODS, POOLS, TICK_S, Plant, plant_at
from optbench.sim.kernel.pointers import table_at
from optbench.sim.kernel.sites.sites import hold, open_sites, run_until_choice, send
from optbench.sim.kernel.sites.steering import (
    CLASSES,
    CLOCKS,
    WIDEST,
    Steering,
    rank_of,
    steering_at,
)
from optbench.sim.kernel.state import NONE, NOW, State, state_at
from optbench.units import J_PER_KWH

# Entries of ``option``, of ``weight``, of ``memory``.
LEVELS, KINDS, QUEUES, WHOLE, NUM_COMING = range(5)
ENERGY, USD, CARBON, LOAD, LATE, BUDGET, GAIN, HOLD, MARGIN, RESERVE = range(10)
DEBT, FRESH_UNTIL, DEBT_USED = range(3)
# Jobs in transit that are remembered; the share by which μ may move, and the seconds that may pass,
# before costs are computed again.
MOST_COMING, STALE, REFRESH_S = 256, 0.01, 900.0
# Seconds after which a job that was held for its price is decided again.
RETRY_S = 300.0


class Routes(NamedTuple):
    """``allowed[l, mode]`` and ``device_w[l, p]`` are given; ``cost`` and ``choice`` by (l, kind,
    pool, free) follow from them.

    ``later_cost`` and ``later_at`` are the cheapest period to wait for, by kind; ``coming_*`` are
    jobs in transit.
    """

    option: Ints
    weight: Floats
    memory: Floats
    threshold: Floats
    allowed: Ints
    device_w: Floats
    time_w: Floats
    mean_units: Floats
    num_seen: Floats
    cost: Floats
    choice: Ints
    level: Ints
    later_cost: Floats
    later_at: Floats
    coming: Ints
    coming_at: Floats
    coming_to: Ints


routes_at = table_at(Routes)


@njit(cache=True)
def run_routes(
    plant_row: Ints,
    state_row: Ints,
    steering_row: Ints,
    routes_row: Ints,
    until: float,
    first: bool,
) -> None:
    """Simulate to the last event, or up to ``until``; ``first`` starts the run."""
    plant, state = plant_at(plant_row), state_at(state_row)
    steering, routes = steering_at(steering_row), routes_at(routes_row)
    if first:
        open_sites(plant, state, steering)
    refresh(plant, steering, routes, state.total[NOW])
    while True:
        task = run_until_choice(plant, state, steering, until)
        if task == NONE:
            return
        route(plant, state, steering, routes, task)


@njit(cache=True)
def route(plant: Plant, state: State, steering: Steering, routes: Routes, task: int) -> None:
    """Send a job, or hold it."""
    now, kind, units = state.total[NOW], plant.kind[task], state.remaining[task]
    weight = routes.weight
    if state.queue[task] == NONE:  # this job was not held before
        routes.num_seen[kind] += 1.0
        routes.mean_units[kind] += (units - routes.mean_units[kind]) / routes.num_seen[kind]
    moved = abs(routes.memory[DEBT] - routes.memory[DEBT_USED]) * weight[GAIN]
    if now >= routes.memory[FRESH_UNTIL] or moved > STALE * max(1.0, time_weight(routes, kind)):
        refresh(plant, steering, routes, now)
    forget_arrived(routes, now)
    follow_levels(plant, state, steering, routes)
    pool, price, seconds, at = best_pool(plant, state, steering, routes, task)
    mu = time_weight(routes, kind)
    then, step = routes.later_at[kind], plant.scalar[TICK_S]
    may = now < then <= plant.release[task] + weight[HOLD] / step and then < plant.deadline[task]
    if may and units * routes.later_cost[kind] + mu * (then - now) * step < price * (
        1.0 - weight[MARGIN]
    ):
        hold(plant, state, task, then)
        return
    retry = now + math.ceil(RETRY_S / step)
    patient = (
        weight[RESERVE] > 0.0
        and retry <= plant.release[task] + weight[HOLD] / step
        and retry < plant.deadline[task]
    )
    if patient and price > units * (1.0 + weight[RESERVE]) * ideal_cost(
        plant, steering, routes, kind
    ):
        hold(plant, state, task, retry)
        return
    mode = routes.choice[at]
    if weight[GAIN] > 0.0:
        highest = 0.0
        for k in range(routes.option[KINDS]):
            highest = max(highest, routes.time_w[k])
        routes.memory[DEBT] = max(
            -highest / weight[GAIN], routes.memory[DEBT] + seconds - weight[BUDGET]
        )
    ingress = ingress_latency(plant, task, pool)
    if ingress > 0.0 and routes.option[NUM_COMING] < MOST_COMING:
        k = routes.option[NUM_COMING]
        routes.coming[k], routes.coming_to[k] = plant.devices[mode], pool
        routes.coming_at[k] = now + ingress
        routes.option[NUM_COMING] = k + 1
    send(plant, state, steering, task, pool, plant.devices[mode], NONE)


@njit(cache=True)
def ideal_cost(plant: Plant, steering: Steering, routes: Routes, kind: int) -> float:
    """Return the least cost of a unit now or in a period within patience, if every device were
    free.
    """
    least, row = routes.later_cost[kind], steering.shape[WIDEST] + 1
    for pool in range(plant.size[POOLS]):
        least = min(least, routes.cost[(kind * plant.size[POOLS] + pool) * row + row - 1])
    return least


@njit(cache=True)
def time_weight(routes: Routes, kind: int) -> float:
    """Return μ of a kind, in watts."""
    return max(0.0, routes.time_w[kind] + routes.weight[GAIN] * routes.memory[DEBT])


@njit(cache=True)
def ingress_latency(plant: Plant, task: int, pool: int) -> float:
    return (
        plant.ingress_ticks[plant.ingress[task] * plant.size[POOLS] + pool]
        if plant.size[HAS_INGRESS]
        else 0.0
    )


@njit(cache=True)
def forget_arrived(routes: Routes, now: float) -> None:
    """Remove jobs in transit that have reached their pool, where they are counted."""
    kept = 0
    for k in range(routes.option[NUM_COMING]):
        if routes.coming_at[k] > now:
            routes.coming[kept], routes.coming_at[kept] = routes.coming[k], routes.coming_at[k]
            routes.coming_to[kept] = routes.coming_to[k]
            kept += 1
    routes.option[NUM_COMING] = kept


@njit(cache=True)
def free_at(state: State, routes: Routes, pool: int) -> int:
    """Return the free devices that no job in transit will take."""
    free = state.free[pool]
    for k in range(routes.option[NUM_COMING]):
        if routes.coming_to[k] == pool:
            free -= routes.coming[k]
    return max(0, free)


@njit(cache=True)
def best_pool(
    plant: Plant, state: State, steering: Steering, routes: Routes, task: int
) -> tuple[int, float, float, int]:
    """Return the pool of least price, that price, the seconds expected in the system, and the place
    of its mode in ``choice``.
    """
    pools, widest, kind = plant.size[POOLS], steering.shape[WIDEST], plant.kind[task]
    units, weight, mu = state.remaining[task], routes.weight, time_weight(routes, kind)
    best, least, lowest, stay, place = NONE, math.inf, 0.0, 0.0, 0
    for turn in range(2):
        if turn == 1 and best != NONE:
            break
        for pool in range(pools):
            there = plant.pool_count[pool] - state.gone[pool]
            ingress = ingress_latency(plant, task, pool) * plant.scalar[TICK_S]
            free = free_at(state, routes, pool)
            at = ((routes.level[pool] * routes.option[KINDS] + kind) * pools + pool) * (widest + 1)
            queues = free == 0 or routes.choice[at + min(free, widest)] == NONE
            if ingress == math.inf or (queues and turn == 0 and routes.option[QUEUES] == 0):
                continue
            at += widest if queues else min(free, widest)
            mode = routes.choice[at]
            if mode == NONE:
                continue
            wait = expected_wait(plant, state, steering, kind, units, pool, mode) if queues else 0.0
            seconds = ingress + wait + units * plant.time_s[mode]
            price = units * routes.cost[at] + mu * (ingress + wait)
            price += weight[LOAD] * (there - free + steering.waiting[pool]) / max(1, there)
            if state.total[NOW] + seconds / plant.scalar[TICK_S] > plant.deadline[task]:
                price += weight[LATE]
            rank = seconds if turn == 1 else price
            if rank < least:
                best, least, lowest, stay, place = pool, rank, price, seconds, at
    return best, lowest, stay, place


@njit(cache=True)
def expected_wait(
    plant: Plant, state: State, steering: Steering, kind: int, units: float, pool: int, mode: int
) -> float:
    """Return the work queued before a job over the number of devices; the most urgent class waits
    for the next end only.
    """
    ahead = units
    if steering.shape[CLASSES] == 1 or rank_of(steering, steering.class_of[kind]) > 0:
        ahead += steering.waiting_units[pool]
    devices = plant.pool_count[pool] - state.gone[pool]
    return ahead * plant.devices[mode] * plant.time_s[mode] / max(0.001, devices)


@njit(cache=True)
def follow_levels(plant: Plant, state: State, steering: Steering, routes: Routes) -> None:
    """Update the choice of modes at pools whose load level has changed."""
    pools, row, busy, there = plant.size[POOLS], steering.shape[WIDEST] + 1, 0, 0
    if routes.option[WHOLE]:
        for pool in range(pools):
            there += plant.pool_count[pool] - state.gone[pool]
            busy += plant.pool_count[pool] - state.gone[pool] - state.free[pool]
    for pool in range(pools):
        if not routes.option[WHOLE]:
            there = plant.pool_count[pool] - state.gone[pool]
            busy = there - state.free[pool]
        level = 0
        while level < routes.option[LEVELS] - 1 and busy > routes.threshold[level] * there:
            level += 1
        if level != routes.level[pool]:
            routes.level[pool] = level
            for kind in range(routes.option[KINDS]):
                source = ((level * routes.option[KINDS] + kind) * pools + pool) * row
                for free in range(row):
                    steering.pick[(kind * pools + pool) * row + free] = routes.choice[source + free]


@njit(cache=True)
def refresh(plant: Plant, steering: Steering, routes: Routes, now: float) -> None:
    """Compute the tables again, at the rates from now on."""
    pools, kinds = plant.size[POOLS], routes.option[KINDS]
    routes.memory[DEBT_USED] = routes.memory[DEBT]
    for level in range(routes.option[LEVELS]):
        for kind in range(kinds):
            for pool in range(pools):
                fill(plant, steering, routes, level, kind, pool, now)
    for pool in range(pools):
        routes.level[pool] = NONE
    if now >= routes.memory[FRESH_UNTIL]:
        routes.memory[FRESH_UNTIL] = math.inf
        if plant.size[PERIODS] > 0:
            routes.memory[FRESH_UNTIL] = now + REFRESH_S / plant.scalar[TICK_S]
            after = period_of(plant, now) + 1
            if after < plant.size[PERIODS]:
                routes.memory[FRESH_UNTIL] = min(routes.memory[FRESH_UNTIL], plant.period[after])
            for kind in range(kinds):
                look_ahead(plant, steering, routes, kind, now)


@njit(cache=True)
def fill(
    plant: Plant, steering: Steering, routes: Routes, level: int, kind: int, pool: int, now: float
) -> None:
    """Compute the cheapest mode of a kind at a pool on at most 1, 2, ... devices."""
    pools, widest, clocks = plant.size[POOLS], steering.shape[WIDEST], steering.shape[CLOCKS]
    place = ((level * routes.option[KINDS] + kind) * pools + pool) * (widest + 1)
    least, chosen = math.inf, NONE
    routes.cost[place], routes.choice[place] = math.inf, NONE
    for n in range(1, widest + 1):
        spare_cost, spare = math.inf, NONE
        for c in range(clocks):
            mode = steering.mode_at[((kind * pools + pool) * widest + n - 1) * clocks + c]
            if mode == NONE:
                continue
            cost = unit_cost(plant, routes, level, kind, pool, mode, now)
            if cost < spare_cost:
                spare_cost, spare = cost, mode
            if routes.allowed[level * plant.size[MODES] + mode] and cost < least:
                least, chosen = cost, mode
        if chosen != NONE:
            routes.cost[place + n], routes.choice[place + n] = least, chosen
        elif spare != NONE:
            routes.cost[place + n], routes.choice[place + n] = spare_cost, spare
        else:
            routes.cost[place + n] = routes.cost[place + n - 1]
            routes.choice[place + n] = routes.choice[place + n - 1]


@njit(cache=True)
def unit_cost(
    plant: Plant, routes: Routes, level: int, kind: int, pool: int, mode: int, now: float
) -> float:
    """Return c[l, m] of work that begins now."""
    seconds, weight = plant.time_s[mode], routes.weight
    rate = weight[ENERGY]
    if plant.size[PERIODS] > 0:
        end = now + max(1.0, routes.mean_units[kind] * seconds / plant.scalar[TICK_S])
        price = mean_rate(plant, plant.price, plant.price_before, pool, now, end)
        carbon = mean_rate(plant, plant.carbon, plant.carbon_before, pool, now, end)
        rate += weight[USD] / J_PER_KWH * price
        rate += weight[CARBON] / J_PER_KWH * carbon
    net_j = plant.energy_j[mode] - plant.mode_rest_w[mode] * seconds
    device_w = routes.device_w[level * plant.size[POOLS] + pool] * plant.devices[mode]
    return net_j * rate + (time_weight(routes, kind) + device_w) * seconds


@njit(cache=True)
def mean_rate(
    plant: Plant, rate: Floats, before: Floats, pool: int, begin: float, end: float
) -> float:
    """Return the mean of a tariff over [begin, end]."""
    row = pool * plant.size[PERIODS]
    first, last = row + period_of(plant, begin), row + period_of(plant, end)
    into = begin - plant.period[first - row]
    out = end - plant.period[last - row]
    return (before[last] + out * rate[last] - before[first] - into * rate[first]) / (end - begin)


@njit(cache=True)
def look_ahead(plant: Plant, steering: Steering, routes: Routes, kind: int, now: float) -> None:
    """Find the period within patience, until the next such search, in which a unit would cost
    least.
    """
    pools = plant.size[POOLS]
    per_kind = pools * steering.shape[WIDEST] * steering.shape[CLOCKS]
    routes.later_cost[kind], routes.later_at[kind] = math.inf, math.inf
    if routes.weight[HOLD] <= 0.0:
        return
    step, least = plant.scalar[TICK_S], math.inf
    waiting_w = time_weight(routes, kind) / max(1e-9, routes.mean_units[kind])
    for period in range(period_of(plant, now) + 1, plant.size[PERIODS]):
        start = plant.period[period]
        if (
            start
            > min(now + REFRESH_S / step, routes.memory[FRESH_UNTIL]) + routes.weight[HOLD] / step
        ):
            return
        for k in range(per_kind):
            mode = steering.mode_at[kind * per_kind + k]
            if mode == NONE or not routes.allowed[mode]:
                continue
            cost = unit_cost(plant, routes, 0, kind, (k * pools) // per_kind, mode, start)
            if cost + waiting_w * (start - now) * step < least:
                least = cost + waiting_w * (start - now) * step
                routes.later_cost[kind], routes.later_at[kind] = cost, start
