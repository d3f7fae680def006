"""Column generation for large fluid LPs: solve over a few modes per task and add those of negative
reduced cost.

Of the many modes of a task one or two are used at the optimum. The LP over some of them is solved;
with its duals y every left-out column has its reduced cost r, and the duals of the choice rows are
lowered to the least r of each task (``repriced``). What y then proves holds for the whole LP, after
any round: stopping early weakens the bound but keeps it valid. It is optimal when no left-out
column is below those that are in.

The first columns are those that some price λ ≥ 0 of time makes best: per task the lower hull of
(d, e + π n d), where n d is device-time and π its price. With the prices of the LP without edges,
which is solved in a tenth of the time, one or two rounds are enough; what edges change in them lies
between nothing and all of them (``PRICE_SHARES``).
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from optbench.bounds.fluid.fluid_program import Fluid
from optbench.bounds.fluid.fluid_units import solve_program
from optbench.bounds.lp.linear_program import LinearProgram, LpSolution
from optbench.model.instance import Bools, Floats, Ints
from optbench.model.metrics import mode_uses
from optbench.model.objective_prices import end_cost, joule_price

# Prices of device-time for the first columns: shares of the prices of the LP without edges, and of
# a price alike in all pools that would pay for the whole makespan.
PRICE_SHARES = ((0.0, 0.0), (0.5, 0.0), (1.0, 0.0), (0.5, 0.3), (0.85, 0.3))
# Columns per task that a round may add.
ADDED = 8
# Rounds end when the restricted value, an upper limit of the whole LP's, is this close to what is
# proved.
NEAR = 1e-5


def solve_by_pricing(
    fluid: Fluid,
    lp: LinearProgram,
    time_limit_s: float,
    known: Floats | None = None,
    most_rounds: float = math.inf,
    rough: bool = False,
) -> LpSolution | None:
    """Return the best duals found in time, None when there were none, and the primal of their
    round; ``known`` are prices of device-time per pool. A ``rough`` LP begins with the fastest and
    the cheapest of its first columns per task.
    """
    began = time.perf_counter()
    inside = first_columns(fluid, known)
    if rough:
        inside = shortest_and_longest(fluid, inside)
    others = np.ones(lp.num_columns, dtype=bool)
    others[fluid.share] = False
    best: LpSolution | None = None
    round_s, rounds = 0.0, 0
    while rounds < most_rounds and time.perf_counter() - began + round_s < time_limit_s:
        at = time.perf_counter()
        others[fluid.share] = inside
        found = solve_program(fluid, restricted(lp, others), time_limit_s - (at - began), others)
        if found.dual is None or "nfeasible" in found.status:
            break
        reduced = reduced_costs(lp, found.dual)
        value = proves(fluid, lp, found.dual, reduced)
        if best is None or value > best.value:
            best = LpSolution(found.status, value, scattered(found.primal, others), found.dual)
        new = worth_adding(fluid, reduced[fluid.share], inside)
        if not new.any() or found.value - value <= NEAR * abs(found.value):
            break
        inside |= new
        rounds += 1
        round_s = time.perf_counter() - at
    return best


def scattered(primal: Floats, kept: Bools) -> Floats:
    """Return a point of the whole LP from one of the LP restricted to the columns ``kept``."""
    point = np.zeros(len(kept))
    point[kept] = primal
    return point


def by_pair(fluid: Fluid, lp: LinearProgram, dual: Floats) -> Floats:
    """Return the reduced cost of every (task, mode) pair of the instance under these duals."""
    pairs, groups = fluid.instance.pairs, fluid.groups
    place = np.arange(len(pairs.task)) - pairs.ptr[pairs.task]
    return np.asarray(
        reduced_costs(lp, dual)[fluid.share][groups.ptr[groups.group[pairs.task]] + place],
        dtype=float,
    )


def first_columns(fluid: Fluid, known: Floats | None = None) -> Bools:
    """Return modes of each group that are best for some price of time, at several prices of
    device-time, and those of least device-time.
    """
    groups, instance = fluid.groups, fluid.instance
    uses = mode_uses(instance)[groups.mode].astype(float)
    net_j = groups.energy_j - instance.mode_rest_w[groups.mode] * groups.duration * instance.tick_s
    cost = joule_price(instance) * (net_j + fluid.sent_j)
    prices = np.zeros(instance.num_pools) if known is None else known
    whole = end_cost(instance) / max(1.0, float(instance.pools.count.sum()))
    inside = ranked(groups.of, groups.duration * uses.sum(axis=1)) < 1
    for share, alike in PRICE_SHARES:
        price = share * prices + alike * whole
        inside |= lower_hull(groups.ptr, groups.duration, cost + (uses @ price) * groups.duration)
    return np.asarray(inside, dtype=bool)


def shortest_and_longest(fluid: Fluid, inside: Bools) -> Bools:
    """Return two of the columns ``inside`` per group, or its one."""
    of, length = fluid.groups.of, fluid.groups.duration
    shortest = ranked(of, np.where(inside, length, np.inf)) == 0
    longest = ranked(of, np.where(inside, -length, np.inf)) == 0
    return np.asarray(shortest | longest, dtype=bool)


def lower_hull(ptr: Ints, length: Floats, cost: Floats) -> Bools:
    """Return the entries of each group (from ``ptr``) that minimise cost + λ length for some λ ≥ 0.

    All groups walk along their hulls at once: from the cheapest entry to the one that saves length
    at the least extra cost, until none is shorter.
    """
    of = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    cheapest, _ = first_least(ptr, of, cost)
    _, now = first_least(ptr, of, np.where(cost <= cheapest[of], length, np.inf))
    inside = np.zeros(len(of), dtype=bool)
    inside[now] = True
    while True:
        saved, more = length[now][of] - length, cost - cost[now][of]
        shorter = saved > 0
        slope = np.where(shorter, more / np.where(shorter, saved, 1.0), np.inf)
        least, after = first_least(ptr, of, slope)
        walks = np.isfinite(least)
        if not walks.any():
            return inside
        now = np.where(walks, after, now)
        inside[now] = True


def first_least(ptr: Ints, of: Ints, value: Floats) -> tuple[Floats, Ints]:
    """Return the least value of each group, and its first entry."""
    least = np.minimum.reduceat(value, ptr[:-1])
    at = np.flatnonzero(value <= least[of])
    first = np.full(len(ptr) - 1, len(of))
    np.minimum.at(first, of[at], at)
    return np.asarray(least, dtype=float), first


def ranked(of: Ints, cost: Floats) -> Ints:
    """Return the rank of each entry within its group, from 0, by cost."""
    order = np.lexsort((cost, of))
    size = np.bincount(of)
    rank = np.empty(len(of), dtype=np.int64)
    rank[order] = np.arange(len(of)) - np.repeat(np.cumsum(size) - size, size)
    return rank


def restricted(lp: LinearProgram, keep: Bools) -> LinearProgram:
    """Return the LP over some of its columns."""
    new, entry = np.cumsum(keep) - 1, keep[lp.column]
    count = np.bincount(lp.row[entry], minlength=lp.num_rows)
    return replace(
        lp,
        cost=lp.cost[keep],
        lower=lp.lower[keep],
        upper=lp.upper[keep],
        row_ptr=np.concatenate(([0], np.cumsum(count))).astype(np.int64),
        column=new[lp.column[entry]],
        value=lp.value[entry],
    )


def reduced_costs(lp: LinearProgram, dual: Floats) -> Floats:
    priced = np.bincount(lp.column, weights=lp.value * dual[lp.row], minlength=lp.num_columns)
    return np.asarray(lp.cost - priced, dtype=float)


def proves(fluid: Fluid, lp: LinearProgram, dual: Floats, reduced: Floats) -> float:
    """Estimate in floats what these duals will prove of the whole LP once they are re-priced, to
    compare rounds.
    """
    size, of = fluid.groups.size, fluid.groups.of
    least = np.full(len(size), np.inf)
    np.minimum.at(least, of, reduced[fluid.share])
    rest = reduced.copy()
    rest[fluid.share] = 0.0
    side = np.where(rest < 0, np.where(np.isfinite(lp.upper), lp.upper, 0.0), lp.lower)
    return float(dual @ lp.right + size @ least + rest @ side)


def worth_adding(fluid: Fluid, reduced: Floats, inside: Bools) -> Bools:
    """Return the columns left out whose reduced cost is below the least of those that are in."""
    of = fluid.groups.of
    least = np.full(len(fluid.groups.size), np.inf)
    np.minimum.at(least, of[inside], reduced[inside])
    below = ~inside & (reduced < least[of] - 1e-9 * np.maximum(1.0, np.abs(least[of])))
    return np.asarray(below & (ranked(of, np.where(below, reduced, np.inf)) < ADDED), dtype=bool)
