"""A whole allocation made better a part at a time: some rows are freed, and their jobs, the jobs
that wait and the free GPUs are allocated anew, as a small demand of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from optbench.shapes.colocation.allocations import NOBODY
from optbench.shapes.colocation.colocation_data import Bools, Floats, Ints
from optbench.shapes.epoch_allocation.epoch_demand import EpochDemand
from optbench.shapes.epoch_allocation.epoch_rows import EpochRows
from optbench.shapes.epoch_allocation.pattern_program import pattern_program
from optbench.shapes.epoch_allocation.pattern_relaxation import PatternRelaxation
from optbench.shapes.epoch_allocation.pattern_solution import point_of, rows_of
from optbench.shapes.epoch_allocation.pattern_solver import SearchLimits
from optbench.shapes.epoch_allocation.row_prices import lacks_mw, row_prices_mw
from optbench.shapes.epoch_allocation.whole_search import CLOSED_MW, search, waiting_point

# Rows that a repair frees, repairs in a row without success, and the most nodes of one.
FREED_ROWS, MOST_FAILURES, PART_NODES = 16, 6, 50


class RowPricer(Protocol):
    """Says how much dearer rows are than what the duals of a relaxation pay for them."""

    def reduced_w(self, rows: EpochRows) -> Floats:
        """Return the reduced cost of each row."""


def surrogate_mw(demand: EpochDemand, rows: EpochRows) -> int:
    """Return the surrogate of rows that are allowed."""
    prices = row_prices_mw(demand, rows.gpu_type, rows.first, rows.second)
    return int(prices.sum() + lacks_mw(demand, rows.gpu_type, rows.first, rows.second).sum())


@dataclass(frozen=True, eq=False)
class RepairTask:
    """A demand, a bound on its allocations, and when one is good enough."""

    demand: EpochDemand
    bound_mw: float
    gap: float
    limits: SearchLimits

    def allowed_mw(self, rows: EpochRows) -> float:
        """The gap that is asked for: a share of the power of the GPUs in use, fully used."""
        demand = self.demand
        gpus = demand.gangs[demand.jobs.job_type[rows.first]]
        watts = gpus * (demand.full_w - demand.sleep_w)[rows.gpu_type]
        return max(CLOSED_MW, 1000.0 * self.gap * float(watts.sum()))

    def is_enough(self, rows: EpochRows, value: int | None = None) -> bool:
        """Whether rows, of this surrogate in mW if it is known, are within the gap."""
        value = surrogate_mw(self.demand, rows) if value is None else value
        return value - self.bound_mw <= self.allowed_mw(rows)

    def repaired(
        self, rows: EpochRows, pricer: RowPricer, most_waiting: int | None = None
    ) -> EpochRows:
        """Allocate parts of the rows anew until they are good enough, or this no longer helps."""
        rng = np.random.default_rng(0)
        value, failures, number = surrogate_mw(self.demand, rows), 0, FREED_ROWS
        while value - self.bound_mw > self.allowed_mw(rows) and failures < MOST_FAILURES:
            if self.limits.left_s() <= 0:
                break
            free = dear_rows(pricer.reduced_w(rows), number, rng)
            other = self.anew(rows, free, most_waiting)
            other_value = surrogate_mw(self.demand, other)
            failures = 0 if other_value < value else failures + 1
            number += number // 4
            if other_value < value:
                rows, value = other, other_value
        return rows

    def anew(self, rows: EpochRows, free: Bools, most_waiting: int | None = None) -> EpochRows:
        """Return rows of which those that are free, and what waits (the last ones, so many at
        most), are allocated anew.
        """
        part, jobs, kept = freed(self.demand, rows, free, most_waiting)
        if not len(jobs) or not part.counts.any():
            return rows
        program = pattern_program(part)
        relaxed = PatternRelaxation(program).solve()
        place = np.full(self.demand.jobs.count + 1, NOBODY)
        place[jobs] = np.arange(len(jobs))
        moved = place[rows.first] != NOBODY
        mine = EpochRows(rows.gpu_type[moved], place[rows.first[moved]], place[rows.second[moved]])
        known = point_of(program, mine) if mine.num_rows else waiting_point(program)
        found = search(program, relaxed, known, 0.0, self.limits.with_nodes(PART_NODES))
        return joined(kept, rows_of(program, found.point), jobs)


def dear_rows(reduced_w: Floats, number: int, rng: np.random.Generator) -> Bools:
    """Choose rows: half of them those with the largest reduced costs, the others at random."""
    free = np.zeros(len(reduced_w), dtype=np.bool_)
    if len(reduced_w) <= number:
        return ~free
    key = reduced_w + 1e-6 * rng.random(len(reduced_w))
    free[np.argsort(-key)[: number // 2]] = True
    free[rng.choice(len(reduced_w), number - number // 2, replace=False)] = True
    return free


def part_of_demand(demand: EpochDemand, jobs: Ints, counts: Ints) -> EpochDemand:
    """Return the demand of some jobs on so many GPUs.

    What a job is allowed and what its waiting costs stays as in the whole demand, though it depends
    on all GPUs."""
    given = demand.jobs
    fewer = replace(
        given,
        job_type=given.job_type[jobs],
        required_per_s=given.required_per_s[jobs],
        is_service=given.is_service[jobs],
        replicas=given.replicas[jobs],
        price_j=given.price_j[jobs],
        before=given.before[jobs],
        shortfall_w=demand.shortfall_mw[jobs] / 1000.0,
    )
    out = replace(demand, counts=counts, jobs=fewer)
    # Cached properties that are functions of the GPUs of the whole demand.
    vars(out).update(usable=demand.usable, below=demand.below[jobs])
    return out


def freed(
    demand: EpochDemand, rows: EpochRows, free: Bools, most_waiting: int | None = None
) -> tuple[EpochDemand, Ints, EpochRows]:
    """Return the demand of freed rows and waiting jobs, its jobs, and the rows that stay.

    A job with replicas is freed from all its rows."""
    several = demand.several
    while True:
        members = np.concatenate([rows.first[free], rows.second[free]])
        mine = np.zeros(demand.jobs.count + 1, dtype=np.bool_)
        mine[members[members != NOBODY]] = True
        shared = mine[:-1] & several
        more = shared[rows.first] | ((rows.second != NOBODY) & shared[rows.second])
        if not (more & ~free).any():
            break
        free = free | more
    kept = EpochRows(rows.gpu_type[~free], rows.first[~free], rows.second[~free])
    stays = np.zeros(demand.jobs.count, dtype=np.bool_)
    stays[kept.first] = True
    stays[kept.second[kept.second != NOBODY]] = True
    jobs = np.flatnonzero(~stays)
    if most_waiting is not None:
        waits = np.flatnonzero(~mine[jobs])
        jobs = np.delete(jobs, waits[: max(0, len(waits) - most_waiting)])
    gpus = demand.gangs[demand.jobs.job_type[kept.first]]
    used = np.bincount(kept.gpu_type, gpus, demand.num_gpu_types).astype(np.int64)
    return part_of_demand(demand, jobs, demand.counts - used), jobs, kept


def joined(kept: EpochRows, part: EpochRows, jobs: Ints) -> EpochRows:
    """Return the rows that stay and those of a part, whose jobs have these numbers."""
    second = np.where(part.second == NOBODY, NOBODY, jobs[part.second])
    return EpochRows(
        np.concatenate([kept.gpu_type, part.gpu_type]),
        np.concatenate([kept.first, jobs[part.first]]),
        np.concatenate([kept.second, second]),
    )
