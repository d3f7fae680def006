"""Planned starts at sites: a job books devices at the site and time of least cost of energy,
devices and waiting.

Time is cut into slots of L seconds. Of a job with u units that takes D = u T seconds in mode m at
pool p, begun at time t,

    cost(p, m, t) = e (F_p(t + D) − F_p(t)) + n (W_p(t + D) − W_p(t))
                    + μ (t + D − now) + κ (t + D − end)⁺

with e the watts above rest, n the devices, F_p the tariff and W_p the price of a device, both
summed up over time, and κ what it costs to work on after the last arrival. Starts are now, or at
the beginning of a later slot within ``patience`` slots, where the devices booked leave room. Work
with a deadline begins at once, in a mode that meets it. W is what is learned: it keeps good devices
in cheap hours for future work.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from optbench.compiling.compiled import njit
from optbench.model.instance import Floats, Ints
from optbench.sim.kernel.plant import HAS_INGRESS, POOLS, TICK_S, Plant, plant_at
from optbench.sim.kernel.pointers import table_at
from optbench.sim.kernel.sites.sites import hold, open_sites, run_until_choice, send
from optbench.sim.kernel.sites.steering import steering_at
from optbench.sim.kernel.state import NONE, NOW, State, state_at

# Entries of ``shape``, of ``weight``.
SLOTS, OPTIONS, PATIENCE = range(3)
SLOT_S, MU, KAPPA, END_S, ROOM = range(5)


class Plans(NamedTuple):
    """``first[k, p]`` to ``first[k, p + 1]`` are the options of a kind at a pool: watts above rest,
    devices, seconds a unit, clock. ``fee`` and ``tariff`` are W and F at the edges of slots by
    pool, ``booked`` the devices in each slot.
    """

    shape: Ints
    weight: Floats
    first: Ints
    watts: Floats
    devices: Ints
    unit_s: Floats
    clock: Ints
    tariff: Floats
    fee: Floats
    booked: Floats
    to_pool: Ints
    to_option: Ints


plans_at = table_at(Plans)


@njit(cache=True)
def run_plans(
    plant_row: Ints, state_row: Ints, steering_row: Ints, plans_row: Ints, until: float
) -> None:
    """Simulate from time 0 to the last event, or up to ``until``."""
    plant, state, steering = plant_at(plant_row), state_at(state_row), steering_at(steering_row)
    plans = plans_at(plans_row)
    open_sites(plant, state, steering)
    while True:
        task = run_until_choice(plant, state, steering, until)
        if task == NONE:
            return
        if plans.to_pool[task] == NONE:
            then = plan(plant, state, plans, task)
            if then > state.total[NOW]:
                hold(plant, state, task, then)
                continue
        option = plans.to_option[task]
        send(
            plant,
            state,
            steering,
            task,
            plans.to_pool[task],
            plans.devices[option],
            plans.clock[option],
        )


@njit(cache=True)
def summed(table: Floats, slots: int, pool: int, at: float) -> float:
    """Return a cumulated table at a time in slots; the last slot continues."""
    k = min(int(at), slots - 1)
    row = pool * (slots + 1)
    return float(table[row + k] + (at - k) * (table[row + k + 1] - table[row + k]))


@njit(cache=True)
def plan(plant: Plant, state: State, plans: Plans, task: int) -> float:
    """Book the cheapest start of a job; return its tick."""
    pools, slots, step = plant.size[POOLS], plans.shape[SLOTS], plant.scalar[TICK_S]
    slot_s, weight, units = plans.weight[SLOT_S], plans.weight, state.remaining[task]
    kind = plant.kind[task]
    now = state.total[NOW] * step
    here = int(now / slot_s)
    due = plant.deadline[task] * step
    urgent = due < math.inf
    least, at_pool, at_option, at_s = math.inf, NONE, NONE, now
    for pool in range(pools):
        ingress = (
            plant.ingress_ticks[plant.ingress[task] * pools + pool] * step
            if plant.size[HAS_INGRESS]
            else 0.0
        )
        if ingress == math.inf:
            continue
        for option in range(
            plans.first[kind * (pools + 1) + pool], plans.first[kind * (pools + 1) + pool + 1]
        ):
            n, lasts = plans.devices[option], units * plans.unit_s[option]
            if urgent and (now + ingress + lasts > due or state.free[pool] < n):
                continue
            last = here if urgent else here + plans.shape[PATIENCE]
            for slot in range(here, min(last, slots - 1) + 1):
                begin = max(now + ingress, slot * slot_s)
                end = begin + lasts
                price = weight[MU] * (end - now) + weight[KAPPA] * max(0.0, end - weight[END_S])
                if price >= least:
                    break
                a, b = begin / slot_s, end / slot_s
                price += plans.watts[option] * (
                    summed(plans.tariff, slots, pool, b) - summed(plans.tariff, slots, pool, a)
                )
                price += n * (summed(plans.fee, slots, pool, b) - summed(plans.fee, slots, pool, a))
                if price < least and (urgent or has_room(plans, plant, pool, a, b, n)):
                    least, at_pool, at_option, at_s = price, pool, option, begin - ingress
    if at_pool == NONE:  # no site has room, or the plan has ended
        at_pool, at_option = soonest(plant, state, plans, task)
        at_s = now
    book(
        plans,
        at_pool,
        at_s / slot_s,
        (at_s + units * plans.unit_s[at_option]) / slot_s,
        plans.devices[at_option],
    )
    plans.to_pool[task], plans.to_option[task] = at_pool, at_option
    return max(state.total[NOW], math.floor(at_s / step + 0.5))


@njit(cache=True)
def soonest(plant: Plant, state: State, plans: Plans, task: int) -> tuple[int, int]:
    """Return the option in which a job that fits nowhere would end first, if it began now or after
    half of the busy work there.
    """
    pools, kind, best = plant.size[POOLS], plant.kind[task], math.inf
    pool_of, option_of = NONE, NONE
    for pool in range(pools):
        ingress = (
            plant.ingress_ticks[plant.ingress[task] * pools + pool] * plant.scalar[TICK_S]
            if plant.size[HAS_INGRESS]
            else 0.0
        )
        for option in range(
            plans.first[kind * (pools + 1) + pool], plans.first[kind * (pools + 1) + pool + 1]
        ):
            lasts = ingress + state.remaining[task] * plans.unit_s[option]
            if state.free[pool] < plans.devices[option]:
                lasts += 1e6 / max(1, plant.pool_count[pool])
            if lasts < best:
                best, pool_of, option_of = lasts, pool, option
    return pool_of, option_of


@njit(cache=True)
def has_room(plans: Plans, plant: Plant, pool: int, a: float, b: float, n: int) -> bool:
    slots = plans.shape[SLOTS]
    most = plans.weight[ROOM] * plant.pool_count[pool]
    for slot in range(int(a), min(int(b), slots - 1) + 1):
        share = min(b, slot + 1.0) - max(a, float(slot))
        if plans.booked[pool * slots + slot] + n * share > most:
            return False
    return True


@njit(cache=True)
def book(plans: Plans, pool: int, a: float, b: float, n: int) -> None:
    slots = plans.shape[SLOTS]
    for slot in range(int(a), min(int(b), slots - 1) + 1):
        plans.booked[pool * slots + slot] += n * (min(b, slot + 1.0) - max(a, float(slot)))
