"""The solution of the fluid LP by task: shares of its modes, the cost of each at the LP's prices,
its start.

With rows A v ≥ b, duals y ≥ 0 and reduced costs r = c − Aᵀ y, a mode of r = 0 is one the LP would
use and r > 0 is what a task in it loses, everything priced: device-time by the duals of capacity
rows, watts by those of caps, a task's time by those of its start, completion and lateness rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from optbench.bounds.fluid.fluid_program import Fluid, fluid_model
from optbench.bounds.fluid.fluid_units import solve_program
from optbench.bounds.lp.linear_program import LinearProgram, LpSolution
from optbench.model.instance import Floats, Instance, Ints
from optbench.model.windows import Windows, windows

# Numbers of (task, mode) pairs solved in a second with and without edges, and the largest number
# that is solved at all.
PAIRS_PER_S, LARGE = {True: 12_500, False: 50_000}, {True: 60_000, False: 1_000_000}
# A price must not depend on a floor that is only slightly above the rows.
GIVEN_WAY = 1e-6
# Rows whose duals price device-time, by pool.
PRICED = ("capacity", "room")
# Rows whose duals price a task's end, by group.
ENDS = ("completion", "deadline", "lateness")


@dataclass(frozen=True, eq=False)
class Guide:
    """Rows of task i are ``ptr[i]`` to ``ptr[i + 1]``. ``loss`` is r above the task's least;
    ``pool_price`` and ``end_price`` are per unit of device-time and of time; ``tail`` is the time
    that must pass after a task's end.
    """

    value: float
    ptr: Ints
    mode: Ints
    share: Floats
    loss: Floats
    start: Floats
    tail: Floats
    makespan: float
    pool_price: Floats
    end_price: Floats


def guide(instance: Instance, time_limit_s: float) -> Guide:
    """Solve the LP of the objective's first level; if it is not solved in time, use windows
    alone.
    """
    known = windows(instance)
    pairs = len(instance.pairs.task)
    if instance.num_tasks and not instance.preemptive and np.isfinite(known.critical_path):
        for keep_edges in (True, False):
            if pairs > min(LARGE[keep_edges], PAIRS_PER_S[keep_edges] * time_limit_s):
                continue
            fluid = fluid_model(instance, keep_edges)
            program = with_rows_for_floors(fluid, fluid.program())
            solution = solve_program(fluid, program, min(time_limit_s, 1e6))
            if solution.status == "Optimal" and solution.dual is not None:
                return _read(instance, fluid, program, solution, solution.dual, known, keep_edges)
    return guide_from_windows(instance, known)


def with_rows_for_floors(fluid: Fluid, program: LinearProgram) -> LinearProgram:
    """Replace floors of the makespan and of metrics by equivalent rows, so that the prices are
    those of rows.
    """
    lower = program.lower.copy()
    floors = [fluid.makespan, *fluid.metric.values()]
    lower[floors] *= 1 - GIVEN_WAY
    return replace(program, lower=lower)


def guide_from_windows(instance: Instance, known: Windows) -> Guide:
    """Return a guide with uniform shares of modes and the earliest starts."""
    pairs, n = instance.pairs, instance.num_tasks
    alike = 1.0 / np.maximum(1, np.diff(pairs.ptr))[pairs.task]
    end = float((known.head + known.shortest).max(initial=0.0))
    return Guide(
        1.0,
        pairs.ptr,
        pairs.mode,
        alike,
        np.zeros(len(pairs.task)),
        known.head,
        known.tail,
        end,
        np.zeros(instance.num_pools),
        np.ones(n),
    )


def _read(
    instance: Instance,
    fluid: Fluid,
    program: LinearProgram,
    solution: LpSolution,
    dual: Floats,
    known: Windows,
    keep_edges: bool,
) -> Guide:
    groups, pairs = fluid.groups, instance.pairs
    reduced = program.cost - np.bincount(
        program.column, weights=dual[program.row] * program.value, minlength=program.num_columns
    )
    entry = (
        groups.ptr[groups.group[pairs.task]] + np.arange(len(pairs.task)) - pairs.ptr[pairs.task]
    )
    share = np.maximum(0.0, solution.primal[fluid.share] / groups.size[groups.of])[entry]
    loss = reduced[fluid.share][entry]
    least = np.full(instance.num_tasks, np.inf)
    np.minimum.at(least, pairs.task, loss)
    start = solution.primal[fluid.start] / groups.size if keep_edges else groups.head
    family = np.asarray(program.family)
    pool_price, end_price = np.zeros(instance.num_pools), np.zeros(instance.num_tasks)
    priced = np.isin(family, PRICED)
    np.add.at(pool_price, program.of[priced], dual[priced])
    ends = np.zeros(len(groups.size))
    at = np.isin(family, ENDS)
    np.add.at(ends, program.of[at], dual[at])
    end_price = (ends / groups.size)[groups.group]
    if keep_edges and len(instance.edges.source):
        np.add.at(end_price, instance.edges.source, dual[family == "start"])
    return Guide(
        solution.value,
        pairs.ptr,
        pairs.mode,
        share,
        loss - least[pairs.task],
        start[groups.group],
        known.tail,
        float(solution.primal[fluid.makespan]),
        pool_price,
        end_price,
    )
