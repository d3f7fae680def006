"""Allocation after a few jobs have come or gone, from the allocation before.

The duals of the last relaxation stay feasible, so that the bound moves by the prices of the jobs
that come and go (``dual_prices``). The rows stay but for those that lose a job; what is left over
is allocated anew with the rows that can help most, until it is within the gap; if it does not come
there, the demand is allocated from scratch.
"""

from __future__ import annotations

import numpy as np

from optbench.shapes.colocation.allocations import NOBODY
from optbench.shapes.colocation.colocation_data import Ints
from optbench.shapes.epoch_allocation.allocation_repair import RepairTask, surrogate_mw
from optbench.shapes.epoch_allocation.epoch_allocator import (
    AllocationFound,
    AllocationState,
    allocate,
    allocate_within,
    found_rows,
)
from optbench.shapes.epoch_allocation.epoch_demand import EpochDemand
from optbench.shapes.epoch_allocation.epoch_rows import EpochRows
from optbench.shapes.epoch_allocation.insertion import inserted
from optbench.shapes.epoch_allocation.pattern_solver import SearchLimits
from optbench.shapes.epoch_allocation.row_exchange import exchanged
from optbench.shapes.epoch_allocation.whole_search import CLOSED_MW

# Exchanges that are tried from one row.
MOST_EXCHANGES = 6
# With fewer jobs a repair takes as long as an allocation.
FEWEST_REPAIRED = 300
# Waiting jobs that a repair takes in beside those that came: more would make it a large demand.
MOST_WAITING = 12
TABLES = (
    "counts", "gangs", "alone_per_s", "beside_per_s", "utilisation", "sleep_w", "idle_w", "full_w",
    "alone_prices", "pair_prices",
)  # fmt: skip


def reallocate(
    state: AllocationState,
    demand: EpochDemand,
    was: Ints,
    time_limit_s: float = 60.0,
    gap: float = 0.0,
    prove: bool = True,
) -> AllocationFound:
    """Return an allocation of a demand that differs by a few jobs; ``was`` has the number that each
    job had before, -1 for one that has come.
    """
    limits = SearchLimits.within(time_limit_s)
    prices = None
    if demand.jobs.count and is_same_but_jobs(state.demand, demand, was):
        prices = state.prices.moved(demand, was)
    if prices is None:
        return allocate(demand, time_limit_s, gap, prove)
    rows, lost = carried_rows(state.rows, demand, was)
    for job in (*np.flatnonzero(was < 0).tolist(), *lost.tolist()):
        rows = inserted(demand, rows, job)
    task = RepairTask(demand, np.ceil(prices.bound_mw - CLOSED_MW), gap, limits)
    value = surrogate_mw(demand, rows)
    lacks = value - task.bound_mw
    if lacks > task.allowed_mw(rows):
        rows = exchanged_around(demand, rows, np.concatenate([np.flatnonzero(was < 0), lost]))
        value = surrogate_mw(demand, rows)
        lacks = value - task.bound_mw
    if lacks > task.allowed_mw(rows):
        if demand.jobs.count >= FEWEST_REPAIRED and lacks < demand.shortfall_mw.min() / 2:
            rows = task.repaired(rows, prices, MOST_WAITING)
            value = surrogate_mw(demand, rows)
        if prove and not task.is_enough(rows, value):
            return allocate_within(demand, limits, gap, prove, rows)
    return found_rows(demand, rows, value, task.bound_mw, prices)


def exchanged_around(demand: EpochDemand, rows: EpochRows, jobs: Ints) -> EpochRows:
    """Return the rows after exchanges of those that hold these jobs, and of the last row."""
    for job in jobs.tolist():
        mine = np.flatnonzero((rows.first == job) | (rows.second == job))
        for row in (*mine[:1].tolist(), rows.num_rows - 1):
            if 0 <= row < rows.num_rows:
                rows = exchanged(demand, rows, row, MOST_EXCHANGES)
    return rows


def is_same_but_jobs(before: EpochDemand, demand: EpochDemand, was: Ints) -> bool:
    """Whether tables and prices agree, and the jobs that stay are the same."""
    if (before.migration_price_w, before.best_effort) != (
        demand.migration_price_w,
        demand.best_effort,
    ):
        return False
    for name in TABLES:
        one, other = getattr(before, name), getattr(demand, name)
        if one is not other and not np.array_equal(one, other):
            return False
    stays = was >= 0
    now = demand.jobs
    same = np.array_equal(before.shortfall_mw[was[stays]], demand.shortfall_mw[stays])
    for name in ("job_type", "required_per_s", "is_service", "replicas", "price_j", "before"):
        one = getattr(before.jobs, name)[was[stays]]
        same = same and np.array_equal(one, getattr(now, name)[stays])
    return same


def carried_rows(rows: EpochRows, demand: EpochDemand, was: Ints) -> tuple[EpochRows, Ints]:
    """Return the rows whose jobs are all still there, in the new numbers, and the jobs that lost
    theirs; a job with replicas that loses a row loses all of them.
    """
    size = max(int(rows.first.max(initial=0)), int(rows.second.max(initial=0))) + 2
    size = max(size, int(was.max(initial=0)) + 2)
    now = np.full(size, NOBODY)
    now[was[was >= 0]] = np.flatnonzero(was >= 0)
    first = now[rows.first]
    second = np.where(rows.second == NOBODY, NOBODY, now[rows.second])
    kept = (first != NOBODY) & ((rows.second == NOBODY) | (second != NOBODY))
    while True:
        lost = np.zeros(demand.jobs.count + 1, dtype=np.bool_)
        lost[np.concatenate([first[~kept], second[~kept]])] = True
        lost[:-1] &= demand.several
        lost[-1] = False
        more = kept & (lost[first] | lost[second])
        if not more.any():
            left = np.concatenate([first[~kept], second[~kept]])
            out = EpochRows(rows.gpu_type[kept], first[kept], second[kept])
            return out, np.unique(left[left != NOBODY])
        kept &= ~more
