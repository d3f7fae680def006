"""Milestones: what the fluid LP says of every task of an instance, and the bound that it proves.

The LP (``fluid_program``) is solved with its precedence edges over classes of alike pools, by
pricing where it is large. Its primal gives every task a start and a length, its duals a price to
every task's end and to device-time of every pool. All of it is carried back to the pools of the
instance: a class's price is that of each of its pools, and a share of its mode is divided evenly
among the modes it stands for. The certificate is that of ``fluid_bound`` and needs no second solve.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from optbench.bounds.combinatorial.merging import MergedInstance, merge_pools
from optbench.bounds.fluid.fluid_bound import (
    LARGE,
    is_bounded,
    pool_prices,
    proof_of,
    seconds_with_edges,
    solution_of,
)
from optbench.bounds.fluid.fluid_program import Fluid, fluid_model
from optbench.bounds.fluid.pricing import reduced_costs, solve_by_pricing
from optbench.bounds.lp.linear_program import LinearProgram
from optbench.bounds.proving import num_pairs, remember
from optbench.model.instance import Floats, Instance, Ints
from optbench.model.result import Bound

# The most (task, mode) pairs of the merged instance that are solved at all.
MOST_PAIRS = 1_000_000
# Share of the time of the whole LP that two modes per task take.
ROUGH_SHARE = 0.4
# The LP is begun whole where so many times what it is expected to take is left.
MARGIN = 1.2
# Statuses of HiGHS with a primal to read: solved, or by the interior point method nearly so.
SOLVED = ("Optimal", "Unknown")
# Seconds of the LP where nothing limits it.
LONGEST_S = 1e6
# Rounds of pricing in the LP without edges, whose prices are needed only roughly.
LOOSE_ROUNDS = 1
# Rows whose duals price a task's end, by group.
ENDS = ("completion", "deadline", "lateness")


@dataclass(frozen=True, eq=False)
class Milestones:
    """The solution of the fluid LP by task, pool, and row of ``instance.pairs``.

    Times are in ticks. ``end_price`` and ``pool_price`` are what a tick later of a task's end, and
    a tick of one device, cost in the objective; ``share`` is how much of a task runs in a mode, and
    ``loss`` what the task loses in it against its best mode at these prices. ``bound`` is certified
    for the instance itself. ``value`` is that of the LP as HiGHS found it. ``rough`` milestones are
    those of two modes per task, the fastest and the cheapest: a third of the time, and a bound that
    is some per cent weaker.
    """

    value: float
    makespan: float
    start: Floats
    end: Floats
    end_price: Floats
    pool_price: Floats
    share: Floats
    loss: Floats
    bound: Bound
    timings_s: dict[str, float]
    rough: bool = False


def find_milestones(instance: Instance, time_limit_s: float = math.inf) -> Milestones | None:
    """Solve the LP of the objective's first level with its edges, roughly where it would not end in
    time; None where it has none, or not even that does.
    """
    began = time.perf_counter()
    merged = merge_pools(instance)
    small = merged.instance
    limit_s = min(time_limit_s, LONGEST_S)
    needed_s = MARGIN * expected_s(small)
    rough = needed_s > limit_s
    if not is_bounded(small) or needed_s * ROUGH_SHARE**rough > limit_s:
        return None
    known = None
    if len(small.pairs.task) > LARGE:
        known = loose_prices(small, limit_s)
    fluid = fluid_model(small)
    program = fluid.program()
    built = time.perf_counter()
    found = solution_of(fluid, program, limit_s - (built - began), known, rough)
    solved = time.perf_counter()
    if found.dual is None or found.status not in SOLVED:
        return None
    proof = proof_of(fluid, program, found.dual, keep_edges=True)
    if proof is None:
        return None
    remember(instance, [proof.bound])
    timings = {
        "build": built - began,
        "solve": solved - built,
        "prove": time.perf_counter() - solved,
    }
    made = _read(instance, merged, fluid, program, found.primal, found.dual, proof.bound, timings)
    return replace(made, rough=rough)


def loose_prices(instance: Instance, time_limit_s: float) -> Floats | None:
    """Return prices of device-time in the LP without edges: roughly, from a few of its columns."""
    fluid = fluid_model(instance, keep_edges=False)
    program = fluid.program()
    found = solve_by_pricing(fluid, program, time_limit_s, most_rounds=LOOSE_ROUNDS)
    return None if found is None or found.dual is None else pool_prices(fluid, program, found.dual)


def expected_s(instance: Instance) -> float:
    """Return about how long the LP of a merged instance takes; inf where it is too large."""
    if num_pairs(instance) > MOST_PAIRS:
        return math.inf
    return seconds_with_edges(len(instance.pairs.task))


def _read(
    instance: Instance,
    merged: MergedInstance,
    fluid: Fluid,
    program: LinearProgram,
    primal: Floats,
    dual: Floats,
    bound: Bound,
    timings: dict[str, float],
) -> Milestones:
    groups, pairs = fluid.groups, merged.instance.pairs
    entry = (
        groups.ptr[groups.group[pairs.task]] + np.arange(len(pairs.task)) - pairs.ptr[pairs.task]
    )
    share = np.maximum(0.0, primal[fluid.share] / groups.size[groups.of])[entry]
    loss = reduced_costs(program, dual)[fluid.share][entry]
    least = np.full(instance.num_tasks, np.inf)
    np.minimum.at(least, pairs.task, loss)
    start = (primal[fluid.start] / groups.size)[groups.group]
    length = np.bincount(
        pairs.task, weights=share * pairs.duration, minlength=instance.num_tasks
    ) / np.maximum(1e-9, np.bincount(pairs.task, weights=share, minlength=instance.num_tasks))
    row, copies = image_rows(instance, merged)
    return Milestones(
        float(program.cost @ primal),
        float(primal[fluid.makespan]),
        start,
        start + length,
        end_prices(fluid, program, dual),
        pool_prices(fluid, program, dual)[merged.pool],
        (share / copies)[row],
        (loss - least[pairs.task])[row],
        bound,
        timings,
    )


def image_rows(instance: Instance, merged: MergedInstance) -> tuple[Ints, Floats]:
    """Return, for each row of the instance's pairs, the row of the merged one that stands for it,
    and for each of those, for how many rows it stands.
    """
    pairs, small = instance.pairs, merged.instance.pairs
    width = merged.instance.num_modes
    key = small.task * width + small.mode
    order = np.argsort(key)
    row = order[np.searchsorted(key[order], pairs.task * width + merged.mode[pairs.mode])]
    return row, np.bincount(row, minlength=len(key)).astype(float)


def end_prices(fluid: Fluid, program: LinearProgram, dual: Floats) -> Floats:
    """Return what a tick later of each task's end costs: the duals of the rows that it is in."""
    groups, edges = fluid.groups, fluid.instance.edges
    family = np.asarray(program.family)
    by_group = np.zeros(len(groups.size))
    at = np.isin(family, ENDS)
    np.add.at(by_group, program.of[at], dual[at])
    price = (by_group / groups.size)[groups.group]
    if len(edges.source):
        np.add.at(price, edges.source, dual[family == "start"])
    return np.asarray(price, dtype=float)
