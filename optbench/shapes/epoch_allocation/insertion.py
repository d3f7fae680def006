"""Where one more job goes at the least price, if at most one other job moves.

The job i goes alone to a free GPU, or it takes a place beside the job a of a row (g, {a}) or
(g, {a, b}), whose other job b then goes alone to a free GPU, or waits:

    min { W(g, i),   W(g, a i) − W(g, a),   W(g, a i) + min(W(g', b), S_b) − W(g, a b),   S_i }

Rows of jobs with replicas, or at best effort, stay as they are.
"""

from __future__ import annotations

import numpy as np

from optbench.shapes.colocation.allocations import NOBODY
from optbench.shapes.colocation.colocation_data import Ints
from optbench.shapes.epoch_allocation.epoch_demand import EpochDemand
from optbench.shapes.epoch_allocation.epoch_rows import EpochRows
from optbench.shapes.epoch_allocation.row_prices import is_column, row_prices_mw

# Dearer than any row: a place that does not exist.
NEVER_MW = np.int64(2**60)


def inserted(demand: EpochDemand, rows: EpochRows, job: int) -> EpochRows:
    """Return the rows with a waiting job of one replica put where it costs least; it may wait."""
    kind = demand.jobs.job_type
    if demand.several[job] or demand.below[job]:
        return rows
    gpus = demand.gangs[kind[rows.first]]
    free = demand.counts - np.bincount(rows.gpu_type, gpus, demand.num_gpu_types).astype(np.int64)
    alone_gpu, alone_mw = _alone(demand, free, np.array([job]))
    best_mw, best = min(int(alone_mw[0]), int(demand.shortfall_mw[job])), None
    fixed = demand.several | demand.below
    paired = rows.second != NOBODY
    loose = ~fixed[rows.first] & ~(paired & fixed[rows.second])
    at = np.concatenate([np.flatnonzero(loose), np.flatnonzero(loose & paired)])
    from_second = np.arange(len(at)) >= int(loose.sum())
    stays = np.where(from_second, rows.second[at], rows.first[at])
    goes = np.where(from_second, rows.first[at], rows.second[at])
    one, gpu = np.full(len(at), job), rows.gpu_type[at]
    allowed = np.flatnonzero(is_column(demand, gpu, one, stays))
    at, one, stays, gpu, moved = (each[allowed] for each in (at, one, stays, gpu, goes))
    if len(at):
        lone = moved == NOBODY
        now = row_prices_mw(demand, gpu, rows.first[at], rows.second[at])
        _, elsewhere = _alone(demand, free, np.where(lone, job, moved))
        elsewhere = np.where(lone, 0, np.minimum(elsewhere, demand.shortfall_mw[moved]))
        total = row_prices_mw(demand, gpu, one, stays) + elsewhere - now
        k = int(np.argmin(total))
        if total[k] < best_mw:
            best = (int(at[k]), int(stays[k]), int(moved[k]))
    if best is None:
        if alone_mw[0] > demand.shortfall_mw[job]:
            return rows
        return _with_row(rows, int(alone_gpu[0]), job)
    row, other_job, moved_job = best
    first, second = rows.first.copy(), rows.second.copy()
    first[row], second[row] = job, other_job
    out = EpochRows(rows.gpu_type, first, second)
    if moved_job == NOBODY:
        return out
    gpu_type, price = _alone(demand, free, np.array([moved_job]))
    if price[0] > demand.shortfall_mw[moved_job]:
        return out
    return _with_row(out, int(gpu_type[0]), moved_job)


def _alone(demand: EpochDemand, free: Ints, jobs: Ints) -> tuple[Ints, Ints]:
    """Return the cheapest free GPU type of jobs alone, and the price there."""
    num_gpus = demand.num_gpu_types
    gpu, job = np.repeat(np.arange(num_gpus), len(jobs)), np.tile(jobs, num_gpus)
    nobody = np.full(len(job), NOBODY)
    there = free[gpu] >= demand.gangs[demand.jobs.job_type[job]]
    at = np.flatnonzero(there & is_column(demand, gpu, job, nobody))
    price = np.full(len(gpu), NEVER_MW)
    price[at] = row_prices_mw(demand, gpu[at], job[at], nobody[at])
    table = price.reshape(num_gpus, len(jobs))
    return table.argmin(axis=0), table.min(axis=0)


def _with_row(rows: EpochRows, gpu: int, job: int) -> EpochRows:
    return EpochRows(
        np.append(rows.gpu_type, gpu), np.append(rows.first, job), np.append(rows.second, NOBODY)
    )
