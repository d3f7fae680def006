"""Column generation for large fluid LPs: solve over a few modes per task and add those of negative
reduced cost.

Of the many modes of a task one or two are used at the optimum. The LP over some of them is solved;
with its duals y every left-out column has its reduced cost r, and the duals of the choice rows are
lowered to the least r of each task (``repriced``). What y then proves holds for the whole LP, after
any round: stopping early weakens the bound but keeps it valid. It is optimal when no left-out
column is below those that are in.

The first columns minimise e + λ d for several prices λ of time around the typical power e / d, and
d and n d alone; those of least reduced cost in an LP of the same instance that is solved already
join them.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from optbench.bounds.fluid.fluid_program import Fluid
from optbench.bounds.fluid.fluid_units import solve_program
from optbench.bounds.lp.linear_program import LinearProgram
from optbench.model.instance import Bools, Floats, Ints
from optbench.model.metrics import mode_uses

# Multiples of the typical power at which time is priced, and first columns per task and price.
TIME_PRICES, FIRST = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0), 2
# Columns per task of least reduced cost in an earlier LP, and columns per task that a round may
# add.
KNOWN, ADDED = 4, 8
# Rounds end when the restricted value, an upper limit of the whole LP's, is this close to what is
# proved.
NEAR = 1e-5


def solve_by_pricing(
    fluid: Fluid, lp: LinearProgram, time_limit_s: float, known: Floats | None = None
) -> Floats | None:
    """Return the best duals found in time, None when there were none; ``known`` are reduced costs
    per (task, mode) pair.
    """
    began = time.perf_counter()
    inside = first_columns(fluid)
    if known is not None:
        inside |= ranked(fluid.groups.of, known[fluid.groups.pair]) < KNOWN
    others = np.ones(lp.num_columns, dtype=bool)
    others[fluid.share] = False
    best: tuple[float, Floats] | None = None
    round_s = 0.0
    while time.perf_counter() - began + round_s < time_limit_s:
        at = time.perf_counter()
        others[fluid.share] = inside
        found = solve_program(fluid, restricted(lp, others), time_limit_s - (at - began), others)
        if found.dual is None or "nfeasible" in found.status:
            break
        reduced = reduced_costs(lp, found.dual)
        value = proves(fluid, lp, found.dual, reduced)
        if best is None or value > best[0]:
            best = (value, found.dual)
        new = worth_adding(fluid, reduced[fluid.share], inside)
        if not new.any() or found.value - value <= NEAR * abs(found.value):
            break
        inside |= new
        round_s = time.perf_counter() - at
    return None if best is None else best[1]


def by_pair(fluid: Fluid, lp: LinearProgram, dual: Floats) -> Floats:
    """Return the reduced cost of every (task, mode) pair of the instance under these duals."""
    pairs, groups = fluid.instance.pairs, fluid.groups
    place = np.arange(len(pairs.task)) - pairs.ptr[pairs.task]
    return np.asarray(
        reduced_costs(lp, dual)[fluid.share][groups.ptr[groups.group[pairs.task]] + place],
        dtype=float,
    )


def first_columns(fluid: Fluid) -> Bools:
    """Return modes of each group that are best for some price of time."""
    groups = fluid.groups
    long = (groups.duration > 0) & (groups.energy_j > 0)
    power = float(np.median(groups.energy_j[long] / groups.duration[long])) if long.any() else 0.0
    devices = mode_uses(fluid.instance)[groups.mode].sum(axis=1)
    inside = ranked(groups.of, groups.duration) < FIRST
    inside |= ranked(groups.of, groups.duration * devices) < FIRST
    for price in TIME_PRICES:
        inside |= ranked(groups.of, groups.energy_j + price * power * groups.duration) < FIRST
    return inside


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
