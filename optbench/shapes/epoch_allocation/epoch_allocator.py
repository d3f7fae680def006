"""Allocate the jobs of one epoch: the best rows found for a demand, and a bound on all others.

The relaxation over patterns is solved; each pattern is used as often as it says, rounded down; the
jobs and GPUs that are left are allocated as a small demand of their own. Where this is not within
the gap that is asked for, parts of the rows are freed and allocated anew, and at last the search
over all patterns that a better allocation can use closes the gap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.shapes.colocation.allocations import NOBODY
from optbench.shapes.colocation.colocation_data import Floats, Ints
from optbench.shapes.epoch_allocation.allocation_repair import RepairTask, surrogate_mw
from optbench.shapes.epoch_allocation.dual_prices import DualPrices
from optbench.shapes.epoch_allocation.epoch_demand import EpochDemand
from optbench.shapes.epoch_allocation.epoch_rows import EpochRows
from optbench.shapes.epoch_allocation.pattern_program import pattern_program
from optbench.shapes.epoch_allocation.pattern_relaxation import PatternRelaxation
from optbench.shapes.epoch_allocation.pattern_solution import point_of, rows_of
from optbench.shapes.epoch_allocation.pattern_solver import SearchLimits, fewest_waiting
from optbench.shapes.epoch_allocation.whole_search import search, value_mw, whole_bound_mw


@dataclass(frozen=True, eq=False)
class AllocationState:
    """What a later allocation begins with: rows, their bound, and what GPUs and jobs cost in it."""

    demand: EpochDemand
    rows: EpochRows
    prices: DualPrices


@dataclass(frozen=True, eq=False)
class AllocationFound:
    """Rows of a demand, their surrogate and a bound on every allocation's, in W.

    ``waiting`` are the jobs without a row; ``state`` is None where there are no jobs. ``duals`` are
    those of the relaxation, of which ``certificate_of_relaxation`` makes a certificate."""

    rows: EpochRows
    surrogate_w: float
    bound_w: float
    waiting: Ints
    state: AllocationState | None
    duals: Floats | None = None

    @property
    def gap_w(self) -> float:
        """How much the best allocation may be below this one."""
        return max(0.0, self.surrogate_w - self.bound_w)


def allocate(
    demand: EpochDemand,
    time_limit_s: float = 60.0,
    gap: float = 0.0,
    prove: bool = True,
    known: EpochRows | None = None,
) -> AllocationFound:
    """Return the best allocation found; it stops within ``gap`` of the power of the GPUs in use.

    Without ``prove`` some repairs come near the bound; with it all patterns that matter are
    searched for as long as the gap is larger. ``known`` are rows to begin with."""
    return allocate_within(demand, SearchLimits.within(time_limit_s), gap, prove, known)


def allocate_within(
    demand: EpochDemand,
    limits: SearchLimits,
    gap: float = 0.0,
    prove: bool = True,
    known: EpochRows | None = None,
) -> AllocationFound:
    """``allocate``, with limits of other kinds."""
    if demand.jobs.count == 0:
        nobody = np.zeros(0, dtype=np.int64)
        return AllocationFound(EpochRows.of([]), 0.0, 0.0, nobody, None)
    program = pattern_program(demand)
    relaxation = PatternRelaxation(program)
    relaxed = relaxation.solve()
    prices = DualPrices.of(program, relaxed)
    task = RepairTask(demand, whole_bound_mw(relaxed), gap, limits)
    if known is None or not task.is_enough(known):
        rows = rows_of(program, relaxation.floor_point(relaxed.values))
        rows = task.anew(rows, np.zeros(rows.num_rows, dtype=np.bool_))
        if known is None or surrogate_mw(demand, rows) < surrogate_mw(demand, known):
            known = rows
    rows, value = known, surrogate_mw(demand, known)
    lacks = prove and lacks_a_job(demand, value - task.bound_mw)
    if lacks:
        fewest, point = fewest_waiting(program, limits)
        if np.isfinite(fewest):
            relaxed = relaxation.with_waiting(relaxed, fewest)
        task = RepairTask(demand, whole_bound_mw(relaxed), gap, limits)
        if point is not None and value_mw(program, point) < value:
            rows = rows_of(program, point)
    if lacks or gap > 0 or not prove:
        rows = task.repaired(rows, prices)
        value = surrogate_mw(demand, rows)
    bound, allowed = task.bound_mw, task.allowed_mw(rows)
    if prove and value - bound > allowed:
        found = search(program, relaxed, point_of(program, rows), allowed, limits)
        if found.value_mw < value:
            rows = rows_of(program, found.point)
        value, bound = found.value_mw, found.bound_mw
    return found_rows(demand, rows, value, bound, prices, relaxed.duals)


def lacks_a_job(demand: EpochDemand, gap_mw: float) -> bool:
    """Whether a gap may be that of a waiting job, and all jobs have one price of waiting."""
    prices = demand.shortfall_mw
    return not demand.below.any() and bool((prices == prices[0]).all()) and gap_mw > prices[0] / 4


def found_rows(
    demand: EpochDemand,
    rows: EpochRows,
    value_mw: int,
    bound_mw: float,
    prices: DualPrices,
    duals: Floats | None = None,
) -> AllocationFound:
    """Return an allocation with what is known of it."""
    placed = np.zeros(demand.jobs.count, dtype=np.bool_)
    placed[np.concatenate([rows.first, rows.second[rows.second != NOBODY]])] = True
    bound_mw = float(min(value_mw, bound_mw))
    state = AllocationState(demand, rows, prices)
    waiting = np.flatnonzero(~placed)
    return AllocationFound(rows, value_mw / 1000.0, bound_mw / 1000.0, waiting, state, duals)
