"""Allocate the jobs of one epoch: the best rows found for a demand, and a bound that proves them.

The relaxation of the programme over patterns is solved by column generation. A whole point is then
sought over the patterns of least reduced cost r. With U the value of the best point and L the bound
of the relaxation, a better point uses no pattern with r > U − L: the search over the other ones
proves the optimum.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from optbench.shapes.colocation.colocation_data import Ints
from optbench.shapes.colocation.epoch_demand import EpochDemand
from optbench.shapes.colocation.epoch_rows import EpochRows
from optbench.shapes.colocation.pattern_program import PatternProgram, pattern_program
from optbench.shapes.colocation.pattern_solution import rows_of
from optbench.shapes.colocation.pattern_solver import (
    SolvedRelaxation,
    WholeResult,
    best_whole,
    relax,
)

# Patterns per group in the first search for a whole point.
PATTERNS_PER_GROUP = 10
# Each further search has at least so many times the patterns of the one before.
GROWTH = 4
# Half a milliwatt: prices are whole milliwatts.
CLOSED_MW = 0.5


@dataclass(frozen=True, eq=False)
class AllocationState:
    """What a later allocation begins with."""

    program: PatternProgram
    point: Ints
    relaxed: SolvedRelaxation


@dataclass(frozen=True, eq=False)
class AllocationFound:
    """Rows of a demand, their surrogate and a bound on every allocation's, in W.

    ``waiting`` are the jobs without a row; ``state`` is None where there are no jobs."""

    rows: EpochRows
    surrogate_w: float
    bound_w: float
    waiting: Ints
    state: AllocationState | None

    @property
    def gap_w(self) -> float:
        """How much the best allocation may be below this one."""
        return max(0.0, self.surrogate_w - self.bound_w)


def allocate(
    demand: EpochDemand,
    time_limit_s: float = 60.0,
    gap: float = 0.0,
    warm: AllocationState | None = None,
) -> AllocationFound:
    """Return the best allocation found; it stops within ``gap`` of the power of the GPUs in use."""
    deadline = time.perf_counter() + time_limit_s
    if demand.jobs.count == 0:
        return AllocationFound(EpochRows.of([]), 0.0, 0.0, np.zeros(0, dtype=np.int64), None)
    program = pattern_program(demand)
    relaxed = relax(program)
    if relaxed is None:
        raise RuntimeError("the relaxation of an allocation always has an optimum")
    del warm
    bound_mw = float(np.ceil(relaxed.value_mw - CLOSED_MW))
    point = waiting_point(program)
    best = WholeResult(point, value_mw(program, point), bound_mw)
    count = program.patterns.count
    reduced = relaxed.reduced_w[:count]
    size = PATTERNS_PER_GROUP * program.groups.count
    limit_w = 0.0
    while best.value_mw - bound_mw > max(CLOSED_MW, gap * power_mw(program, best.point)):
        open_w = (best.value_mw - bound_mw) / 1000.0
        limit_w = open_w
        if size < count:
            limit_w = min(open_w, float(np.partition(reduced, size)[size]))
        chosen = np.flatnonzero((reduced <= limit_w) | (relaxed.values[:count] > 0))
        columns = np.concatenate([chosen, np.arange(count, program.num_columns)])
        allowed = max(CLOSED_MW, gap * power_mw(program, best.point))
        left = deadline - time.perf_counter()
        found = best_whole(program, columns, left, allowed, best.point)
        if found.point is not None and found.value_mw < best.value_mw:
            best = found
        if limit_w >= (best.value_mw - bound_mw) / 1000.0:
            # What is left out is no better than the best point.
            bound_mw = max(bound_mw, min(best.value_mw, np.ceil(found.bound_mw - CLOSED_MW)))
            if limit_w >= open_w or best.value_mw - bound_mw <= allowed:
                break
        if time.perf_counter() >= deadline:
            break
        size *= GROWTH
    rows = rows_of(program, best.point)
    placed = np.zeros(demand.jobs.count, dtype=np.bool_)
    placed[np.concatenate([rows.first, rows.second[rows.second >= 0]])] = True
    state = AllocationState(program, best.point, relaxed)
    waiting = np.flatnonzero(~placed)
    return AllocationFound(rows, best.value_mw / 1000.0, bound_mw / 1000.0, waiting, state)


def waiting_point(program: PatternProgram) -> Ints:
    """Return the point at which every job waits."""
    point = np.zeros(program.num_columns, dtype=np.int64)
    several = program.groups.several[program.groups.class_group[program.waiting]]
    size = program.groups.class_size[program.waiting]
    point[program.column_begin[3] :] = np.where(several, 1, size)
    return point


def value_mw(program: PatternProgram, point: Ints) -> int:
    """Return the surrogate of a point."""
    return int((program.cost_mw * point).sum()) + program.constant_mw


def power_mw(program: PatternProgram, point: Ints) -> float:
    """Return the power of idle GPUs in use, the scale of gaps."""
    patterns, demand = program.patterns, program.demand
    gpus = demand.gangs[program.groups.job_type[patterns.group]]
    watts = (demand.full_w - demand.sleep_w)[patterns.gpu] * gpus
    return 1000.0 * float((watts * point[: patterns.count]).sum())
