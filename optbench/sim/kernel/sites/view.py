"""The inputs of a policy for sites when it decides about a job, as one row of numbers: the whole,
each site, each option.

    row = GLOBAL_FEATURES | SITE_FEATURES of each pool | OPTION_FEATURES of each option

Option a = pool · widest + n − 1 sends the job to a pool, wanting n devices there. With ν joules per
unit above rest, T seconds per unit, w the tariff of now relative to its mean (1 where energy
counts) and μ the price of a second of latency in watts, its cost is

    c(pool, n) = min over clocks f of  w ν(pool, n, f) + μ T(pool, n, f)        J per unit

and that clock is the option's (or the clock of least energy per unit, where μ does not count); a
job with a deadline takes the lowest clock from there on that meets it. Costs are relative to the
mean least energy, regrets are costs above the least one. Legal are options with free devices that
no job in transit will take; where no site has any, every reachable site, to wait there. With PLAIN
the inputs contain no regrets.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from optbench.compiling.compiled import njit
from optbench.model.instance import Floats, Ints
from optbench.sim.kernel.accounts import period_of
from optbench.sim.kernel.plant import HAS_INGRESS, PERIODS, POOLS, TICK_S, Plant
from optbench.sim.kernel.pointers import table_at
from optbench.sim.kernel.sites.steering import Steering
from optbench.sim.kernel.state import NOW, State
from optbench.units import DAY_S

GLOBAL_FEATURES = (
    "latency_price",
    "size",
    "kind",
    "day_sine",
    "day_cosine",
    "free",
    "waiting",
    "urgent",
)
SITE_FEATURES = (
    "free",
    "free_log",
    "few_free",
    "gone",
    "leaving",
    "queue",
    "wait",
    "regret",
    "way",
    "tariff",
    "size",
    "top_share",
)
OPTION_FEATURES = (
    "legal",
    "regret",
    "legal_regret",
    "energy",
    "time",
    "devices",
    "device_time",
    "free_after",
)
G, S, O = len(GLOBAL_FEATURES), len(SITE_FEATURES), len(OPTION_FEATURES)

# Entries of ``shape``, values of AIM and CLOCK_BY; entries of ``scale``.
WIDEST, CLOCKS, AIM, CLOCK_BY, LEAVES, PLAIN = range(6)
FOR_ENERGY, FOR_COST, FOR_CARBON = range(3)
BALANCED, CHEAPEST = range(2)
PRICE_W, LEAST_J, MEAN_UNITS, MEAN_TIME, MEAN_TARIFF, CALM_W = range(6)
SOON_S, FEW, LIMIT = 3_600.0, 8.0, 5.0


class SiteView(NamedTuple):
    """Costs by (kind, pool, devices, clock), inf where there is no mode; announced losses of
    devices in order of time.

    ``cost``, ``clock``, ``net`` and ``time`` are those of each option at the last call.
    """

    shape: Ints
    scale: Floats
    net_j: Floats
    time_s: Floats
    best_clock: Ints
    leave_time: Floats
    leave_pool: Ints
    leave_devices: Ints
    cost: Floats
    clock: Ints
    net: Floats
    time: Floats
    tariff: Floats
    least: Floats


site_view_at = table_at(SiteView)


@njit(cache=True)
def observe_sites(
    plant: Plant, state: State, steering: Steering, view: SiteView, task: int, row: Any, mask: Any
) -> None:
    """Fill a row of features and the mask of legal options for one job."""
    row[:] = 0.0
    pools, widest = plant.size[POOLS], view.shape[WIDEST]
    anywhere = price_options(plant, state, steering, view, task)
    least, legal_least = math.inf, math.inf
    for pool in range(pools):
        for a in range(pool * widest, (pool + 1) * widest):
            here = view.cost[a] < math.inf and (
                not anywhere or uncommitted_devices(state, steering, pool) > a - pool * widest
            )
            mask[a] = here
            least = min(least, view.cost[a])
            if here:
                legal_least = min(legal_least, view.cost[a])
    write_whole(plant, state, steering, view, task, row)
    for pool in range(pools):
        write_site(plant, state, steering, view, task, pool, least, row)
        for n in range(1, widest + 1):
            write_option(plant, state, view, pool, n, least, legal_least, mask, row)


@njit(cache=True)
def price_options(
    plant: Plant, state: State, steering: Steering, view: SiteView, task: int
) -> bool:
    """Compute cost and clock of every option (inf: none); return whether any has a free device."""
    pools, widest, clocks = plant.size[POOLS], view.shape[WIDEST], view.shape[CLOCKS]
    price_w, anywhere, kind = view.scale[PRICE_W], False, plant.kind[task]
    slack = (plant.deadline[task] - state.total[NOW]) * plant.scalar[TICK_S]
    for pool in range(pools):
        view.tariff[pool] = tariff_of(plant, state, view, pool)
        view.least[pool] = math.inf
        ingress = (
            plant.ingress_ticks[plant.ingress[task] * pools + pool] * plant.scalar[TICK_S]
            if plant.size[HAS_INGRESS]
            else 0.0
        )
        for n in range(widest):
            a, at = pool * widest + n, ((kind * pools + pool) * widest + n) * clocks
            best, chosen = math.inf, 0
            for c in range(clocks):
                value = view.tariff[pool] * view.net_j[at + c] + price_w * view.time_s[at + c]
                if value < best:
                    best, chosen = value, c
            if view.shape[CLOCK_BY] == CHEAPEST:
                chosen = view.best_clock[(kind * pools + pool) * (widest + 1) + n + 1]
            if slack < math.inf:
                while (
                    chosen + 1 < clocks and view.time_s[at + chosen + 1] < math.inf
                    and state.remaining[task] * view.time_s[at + chosen] > slack - ingress
                ):  # fmt: skip
                    chosen += 1
            if best == math.inf or ingress == math.inf:
                view.cost[a], view.clock[a], view.net[a], view.time[a] = math.inf, 0, 0.0, 0.0
                continue
            view.clock[a], view.net[a], view.time[a] = (
                chosen,
                view.net_j[at + chosen],
                view.time_s[at + chosen],
            )
            view.cost[a] = view.tariff[pool] * view.net[a] + price_w * view.time[a]
            view.least[pool] = min(view.least[pool], view.cost[a])
            anywhere = anywhere or uncommitted_devices(state, steering, pool) > n
    return anywhere


@njit(cache=True)
def uncommitted_devices(state: State, steering: Steering, pool: int) -> int:
    """Return the free devices of a pool less those that jobs in transit will take."""
    return int(state.free[pool] - steering.coming[pool])


@njit(cache=True)
def tariff_of(plant: Plant, state: State, view: SiteView, pool: int) -> float:
    """Return the current price or carbon relative to its mean; 1 where energy counts."""
    if view.shape[AIM] == FOR_ENERGY or plant.size[PERIODS] == 0:
        return 1.0
    at = pool * plant.size[PERIODS] + period_of(plant, state.total[NOW])
    return (plant.price[at] if view.shape[AIM] == FOR_COST else plant.carbon[at]) / view.scale[
        MEAN_TARIFF
    ]


@njit(cache=True)
def clipped_feature(value: float) -> float:
    return min(max(value, -LIMIT), LIMIT)


@njit(cache=True)
def write_whole(
    plant: Plant, state: State, steering: Steering, view: SiteView, task: int, row: Any
) -> None:
    """GLOBAL_FEATURES."""
    free, waiting, count = 0, 0, 0
    for pool in range(plant.size[POOLS]):
        free += state.free[pool]
        waiting += steering.waiting[pool]
        count += plant.pool_count[pool]
    hour = 2.0 * math.pi * (state.total[NOW] * plant.scalar[TICK_S] / DAY_S)
    row[0] = clipped_feature(0.5 * math.log((view.scale[PRICE_W] + 0.1) / view.scale[CALM_W]))
    row[1] = clipped_feature(math.log(max(state.remaining[task] / view.scale[MEAN_UNITS], 1e-9)))
    row[2] = plant.kind[task]
    row[3] = math.sin(hour)
    row[4] = math.cos(hour)
    row[5] = free / count
    row[6] = clipped_feature(math.log1p(waiting) / 4.0)
    row[7] = plant.deadline[task] < math.inf


@njit(cache=True)
def write_site(
    plant: Plant,
    state: State,
    steering: Steering,
    view: SiteView,
    task: int,
    pool: int,
    least: float,
    row: Any,
) -> None:
    """Write SITE_FEATURES of one pool."""
    at, count, free, now = G + pool * S, plant.pool_count[pool], state.free[pool], state.total[NOW]
    ingress = (
        plant.ingress_ticks[plant.ingress[task] * plant.size[POOLS] + pool] * plant.scalar[TICK_S]
        if plant.size[HAS_INGRESS]
        else 0.0
    )
    leaving, soon = 0, now + SOON_S / plant.scalar[TICK_S]
    for i in range(view.shape[LEAVES]):
        if view.leave_pool[i] == pool and now < view.leave_time[i] <= soon:
            leaving += view.leave_devices[i]
    row[at] = free / count
    row[at + 1] = math.log1p(free) / math.log1p(count)
    row[at + 2] = min(free, FEW) / FEW
    row[at + 3] = state.gone[pool] / count
    row[at + 4] = max(leaving, 0) / count
    row[at + 5] = clipped_feature(steering.waiting[pool] / count)
    row[at + 6] = clipped_feature(steering.waiting_units[pool] / (count * view.scale[MEAN_UNITS]))
    if not view.shape[PLAIN]:
        row[at + 7] = clipped_feature(4.0 * (view.least[pool] - least) / view.scale[LEAST_J])
    row[at + 8] = clipped_feature(ingress)
    row[at + 9] = clipped_feature(view.tariff[pool] - 1.0)
    row[at + 10] = math.log1p(count) / 5.0
    row[at + 11] = view.shape[WIDEST] / count


@njit(cache=True)
def write_option(
    plant: Plant,
    state: State,
    view: SiteView,
    pool: int,
    n: int,
    least: float,
    legal_least: float,
    mask: Any,
    row: Any,
) -> None:
    """Write OPTION_FEATURES of one option; zeros where there is none."""
    a = pool * view.shape[WIDEST] + n - 1
    at = G + plant.size[POOLS] * S + a * O
    if view.cost[a] == math.inf:
        return
    row[at] = mask[a]
    if not view.shape[PLAIN]:
        row[at + 1] = clipped_feature(4.0 * (view.cost[a] - least) / view.scale[LEAST_J])
        row[at + 2] = clipped_feature(4.0 * (view.cost[a] - legal_least) / view.scale[LEAST_J])
    row[at + 3] = clipped_feature(2.0 * (view.net[a] / view.scale[LEAST_J] - 1.0))
    row[at + 4] = clipped_feature(math.log(view.time[a] / view.scale[MEAN_TIME]))
    row[at + 5] = n / view.shape[WIDEST]
    row[at + 6] = clipped_feature(n * view.time[a] / view.scale[MEAN_TIME])
    row[at + 7] = clipped_feature((state.free[pool] - n) / plant.pool_count[pool])
