"""Allocate the jobs of one epoch: the best rows found for a demand, and a bound on all others.

The relaxation over patterns is solved; each pattern is used as often as it says, rounded down; the
jobs and GPUs that are left are allocated as a small demand of their own. Where this is not within
the gap that is asked for, parts of the rows are freed and allocated anew, and at last the search
over all patterns that a better allocation can use closes the gap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.shapes.colocation.allocation_repair import RepairTask, surrogate_mw
from optbench.shapes.colocation.allocations import NOBODY
from optbench.shapes.colocation.colocation_data import Floats, Ints
from optbench.shapes.colocation.dual_prices import DualPrices
from optbench.shapes.colocation.epoch_demand import EpochDemand
from optbench.shapes.colocation.epoch_rows import EpochRows
from optbench.shapes.colocation.pattern_program import pattern_program
from optbench.shapes.colocation.pattern_relaxation import Relaxation
from optbench.shapes.colocation.pattern_solution import point_of, rows_of
from optbench.shapes.colocation.pattern_solver import SearchLimits
from optbench.shapes.colocation.whole_search import search, whole_bound_mw


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
    relaxation = Relaxation(program)
    relaxed = relaxation.solve()
    prices = DualPrices.of(program, relaxed)
    task = RepairTask(demand, whole_bound_mw(relaxed), gap, limits)
    if known is None or not task.is_enough(known):
        rows = rows_of(program, relaxation.floor_point(relaxed.values))
        rows = task.anew(rows, np.zeros(rows.num_rows, dtype=np.bool_))
        if known is None or surrogate_mw(demand, rows) < surrogate_mw(demand, known):
            known = rows
    rows = task.repaired(known, prices) if gap > 0 or not prove else known
    value, bound = surrogate_mw(demand, rows), task.bound_mw
    allowed = task.allowed_mw(rows)
    if prove and value - bound > allowed:
        found = search(program, relaxed, point_of(program, rows), allowed, limits)
        if found.value_mw < value:
            rows = rows_of(program, found.point)
        value, bound = found.value_mw, found.bound_mw
    return found_rows(demand, rows, value, bound, prices, relaxed.duals)


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
    bound_mw = min(float(value_mw), bound_mw)
    state = AllocationState(demand, rows, prices)
    waiting = np.flatnonzero(~placed)
    return AllocationFound(rows, value_mw / 1000.0, bound_mw / 1000.0, waiting, state, duals)
