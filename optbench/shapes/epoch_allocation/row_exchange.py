"""Exchanges between one row and every other one, as long as they lower the price of both.

Rows (g, a b) and (h, c d), where b and d may be nobody, become one of

    (g, c d) (h, a b),   (g, a c) (h, b d),   (g, b d) (h, a c),   (g, a d) (h, b c),
    (g, b c) (h, a d).

Rows of gangs, of jobs with replicas and of jobs at best effort stay as they are.
"""

from __future__ import annotations

import numpy as np

from optbench.shapes.colocation.allocations import NOBODY
from optbench.shapes.colocation.colocation_data import Bools, Ints
from optbench.shapes.epoch_allocation.epoch_demand import EpochDemand
from optbench.shapes.epoch_allocation.epoch_rows import EpochRows
from optbench.shapes.epoch_allocation.row_prices import is_column, row_prices_mw

# Members of the row on g and of the row on h, as places in (a, b, c, d).
SPLITS = ((2, 3, 0, 1), (0, 2, 1, 3), (1, 3, 0, 2), (0, 3, 1, 2), (1, 2, 0, 3))


def exchanged(demand: EpochDemand, rows: EpochRows, row: int, most: int) -> EpochRows:
    """Return the rows after the best exchanges of a row, then of the rows that it changed."""
    loose = _loose(demand, rows)
    waiting = [row]
    while waiting and most > 0:
        row, most = waiting.pop(), most - 1
        if not loose[row]:
            continue
        found = _best(demand, rows, row, np.flatnonzero(loose))
        if found is not None:
            other, members = found
            first, second = rows.first.copy(), rows.second.copy()
            first[row], second[row], first[other], second[other] = members
            rows = EpochRows(rows.gpu_type, first, second)
            waiting += [row, other]
    used = rows.first != NOBODY
    return EpochRows(rows.gpu_type[used], rows.first[used], rows.second[used])


def _loose(demand: EpochDemand, rows: EpochRows) -> Bools:
    """Rows that may be changed."""
    fixed = demand.several | demand.below | (demand.gangs[demand.jobs.job_type] > 1)
    out: Bools = ~fixed[rows.first] & ~((rows.second != NOBODY) & fixed[rows.second])
    return out


def _best(
    demand: EpochDemand, rows: EpochRows, row: int, others: Ints
) -> tuple[int, tuple[int, int, int, int]] | None:
    """Return the best exchange with another row: its number, and the members of both."""
    others = others[(others != row) & (rows.first[others] != NOBODY)]
    if rows.first[row] == NOBODY or not len(others):
        return None
    mine = np.full((2, len(others)), [[rows.first[row]], [rows.second[row]]])
    members = np.stack([*mine, rows.first[others], rows.second[others]])
    made = np.concatenate([members[list(split)] for split in SPLITS], axis=1)
    gpu = np.full(made.shape[1], rows.gpu_type[row])
    other_gpu = np.tile(rows.gpu_type[others], len(SPLITS))
    first = np.concatenate([made[0], made[2]])
    second = np.concatenate([made[1], made[3]])
    lone = first == NOBODY
    first, second = np.where(lone, second, first), np.where(lone, NOBODY, second)
    price, allowed = _prices(demand, np.concatenate([gpu, other_gpu]), first, second)
    total = price.reshape(2, -1).sum(axis=0)
    now, _ = _prices(demand, rows.gpu_type, rows.first, rows.second)
    change = total - np.tile(now[row] + now[others], len(SPLITS))
    change = np.where(allowed.reshape(2, -1).all(axis=0), change, 0)
    k = int(np.argmin(change))
    if change[k] >= 0:
        return None
    half = made.shape[1]
    best = (int(first[k]), int(second[k]), int(first[half + k]), int(second[half + k]))
    return int(others[k % len(others)]), best


def _prices(demand: EpochDemand, gpu: Ints, first: Ints, second: Ints) -> tuple[Ints, Bools]:
    """Prices of rows, 0 of those without a job, and whether they may be."""
    at = np.flatnonzero(first != NOBODY)
    allowed, price = np.ones(len(gpu), dtype=np.bool_), np.zeros(len(gpu), dtype=np.int64)
    allowed[at] = is_column(demand, gpu[at], first[at], second[at])
    price[at] = row_prices_mw(demand, gpu[at], first[at], second[at])
    return price, allowed
