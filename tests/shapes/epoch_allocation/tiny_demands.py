"""Random tiny demands, and the best allocation of one by enumeration of columns of jobs.

The enumeration knows nothing of classes, lanes or patterns: it goes through all sets of columns
(GPU type, job) and (GPU type, job, job), with prices by the formulas of ``row_prices`` in scalars.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np

from optbench.shapes.epoch_allocation.epoch_demand import EpochDemand, JobDemands

Row = tuple[int, int, int]
SAME = 2.0**-40


def tiny_demand(
    seed: int,
    jobs: int = 5,
    gpus: int = 3,
    migration: bool = False,
    best_effort: bool = False,
    replicas: int = 1,
) -> EpochDemand:
    """Return a demand of two GPU types and three job types, the last one of them a gang at times.

    Requirements are few distinct shares of the throughput, so that classes have several jobs."""
    rng = np.random.default_rng(seed)
    counts = np.array([gpus - gpus // 2, gpus // 2])
    gangs = np.array([1, 1, int(rng.integers(1, 3))])
    alone = np.round(rng.uniform(2.0, 20.0, (2, 3)) * [[1.0], [0.4]], 1)
    alone[rng.random((2, 3)) < 0.1] = 0.0
    ratio = np.round(rng.uniform(0.3, 1.1, (2, 3, 3)), 2)
    beside = np.round(alone[:, :, None] * ratio, 2)
    misfit = rng.random((2, 3, 3)) < 0.2
    gang = gangs > 1
    misfit |= np.swapaxes(misfit, 1, 2) | gang[None, :, None] | gang[None, None, :]
    misfit |= (beside == 0) | (np.swapaxes(beside, 1, 2) == 0)
    beside[misfit] = 0.0
    kind = rng.integers(0, 3, jobs)
    share = rng.choice([0.2, 0.3, 0.5, 0.7], jobs)
    most = np.maximum(alone.max(axis=0), 1.0)
    required = np.round(share * most[kind] * (1.6 if replicas > 1 else 1.0), 3)
    service = rng.random(jobs) < 0.4
    price = np.where(service, 0.0, np.array([2.0, 5.0, 0.0])[kind])
    pair_price = np.round(rng.normal(0.0, 4.0, (2, 3, 3)), 1)
    pair_price += np.swapaxes(pair_price, 1, 2)
    demanded = JobDemands(
        kind, required, service, rng.integers(1, replicas + 1, jobs), price,
        rng.integers(-2, 2, jobs), rng.choice([200.0, 350.0], jobs) if rng.random() < 0.3 else None,
    )  # fmt: skip
    return EpochDemand(
        counts, np.array([20.0, 12.0]), np.array([40.0, 25.0]), np.array([250.0, 120.0]), gangs,
        alone, beside, np.round(rng.uniform(0.3, 1.0, (2, 3)), 2), demanded,
        None if rng.random() < 0.5 else np.round(rng.normal(0.0, 4.0, (2, 3)), 1),
        None if rng.random() < 0.5 else pair_price,
        float(rng.choice([5.0, 40.0])) if migration else 0.0, best_effort,
    )  # fmt: skip


class Enumeration:
    """All allocations of a tiny demand."""

    def __init__(self, demand: EpochDemand) -> None:
        self.demand = demand
        jobs = demand.jobs
        self.gang = [int(demand.gangs[t]) for t in jobs.job_type]
        several = [int(r) if n == 1 else 1 for r, n in zip(jobs.replicas, self.gang, strict=True)]
        self.replicas = several
        self.below = [demand.best_effort and not self.is_served_alone(i) for i in self.all_jobs]
        singles = [(g, i, -1) for g in range(len(demand.counts)) for i in self.all_jobs]
        pairs = [
            (g, i, j) for g in range(len(demand.counts)) for i, j in combinations(self.all_jobs, 2)
        ]
        self.columns = [row for row in (*singles, *pairs) if self.is_column(row)]

    @property
    def all_jobs(self) -> range:
        return range(self.demand.jobs.count)

    def rate(self, g: int, i: int, partner: int) -> float:
        kind = self.demand.jobs.job_type
        if partner < 0:
            return float(self.demand.alone_per_s[g, kind[i]])
        return float(self.demand.beside_per_s[g, kind[i], kind[partner]])

    def credit(self, i: int, rate: float) -> int:
        share = min(1.0, rate * (1 + SAME) / float(self.demand.jobs.required_per_s[i]))
        return int(1_000_000 * share)

    def is_met(self, i: int, rate: float) -> bool:
        return rate >= float(self.demand.jobs.required_per_s[i]) * (1 - SAME)

    def is_served_alone(self, i: int) -> bool:
        there = [g for g, n in enumerate(self.demand.counts) if n >= self.gang[i]]
        best = max((self.rate(g, i, -1) for g in there), default=0.0)
        if self.replicas[i] > 1:
            needed = 1_000_001 - self.replicas[i]
            return self.replicas[i] * self.credit(i, best) >= needed
        return self.is_met(i, best)

    def is_column(self, row: Row) -> bool:
        g, i, j = row
        if j >= 0 and (self.gang[i] > 1 or self.gang[j] > 1):
            return False
        for job, partner in ((i, j), (j, i)):
            if job < 0:
                continue
            rate = self.rate(g, job, partner)
            if rate <= 0:
                return False
            if self.below[job] and partner < 0:
                continue
            if self.below[job] and self.replicas[job] > 1:
                return False
            if self.replicas[job] == 1 and not self.is_met(job, rate):
                return False
        return True

    def price_mw(self, row: Row) -> int:
        """The price of a row, and of a job at best effort in it."""
        demand, jobs = self.demand, self.demand.jobs
        g, i, j = row
        gpus = self.gang[i]
        span = float(demand.full_w[g] - demand.idle_w[g])
        total = round(1000 * gpus * float(demand.idle_w[g] - demand.sleep_w[g]))
        work = 0
        for job, partner in ((i, j), (j, i)):
            if job < 0:
                continue
            t, rate = int(jobs.job_type[job]), self.rate(g, job, partner)
            required = float(jobs.required_per_s[job])
            if jobs.is_service[job] and self.is_met(job, rate):
                rate = required
            alone = float(demand.alone_per_s[g, t])
            part = rate / alone if alone > 0 else 1.0
            work += round(1000 * (gpus * span * float(demand.utilisation[g, t]) * part))
            total -= round(1000 * (float(jobs.price_j[job]) * rate))
            if jobs.before[job] >= -1 and jobs.before[job] != g:
                total += round(1000 * demand.migration_price_w)
            if self.below[job] and partner < 0:
                price = int(demand.shortfall_mw[job])
                got = price * min(1.0, rate / required)
                lack = round(price * (1.0 - min(1.0, rate / required)))
                total += -int(got) if self.replicas[job] > 1 else lack
        total += min(round(1000 * gpus * span), work)
        kind = jobs.job_type
        if j >= 0 and demand.pair_price_w is not None:
            total += round(1000 * float(demand.pair_price_w[g, kind[i], kind[j]]))
        if j < 0 and demand.alone_price_w is not None:
            total += round(1000 * float(demand.alone_price_w[g, kind[i]]))
        return total

    def allocations(
        self, first: int = 0, rows: tuple[Row, ...] = (), free: tuple[int, ...] | None = None
    ) -> Iterator[tuple[Row, ...]]:
        """Yield every set of rows that respects GPUs, replicas and requirements."""
        free = tuple(self.demand.counts.tolist()) if free is None else free
        if self.is_allowed(rows):
            yield rows
        for k in range(first, len(self.columns)):
            g, i, j = self.columns[k]
            members = [job for job in (i, j) if job >= 0]
            if free[g] < self.gang[i]:
                continue
            if any(sum(m in row[1:] for row in rows) >= self.replicas[m] for m in members):
                continue
            left = tuple(n - (self.gang[i] if at == g else 0) for at, n in enumerate(free))
            yield from self.allocations(k, (*rows, self.columns[k]), left)

    def is_allowed(self, rows: tuple[Row, ...]) -> bool:
        """Whether jobs with replicas get what they require."""
        for job in self.all_jobs:
            mine = [row for row in rows if job in row[1:]]
            if self.replicas[job] == 1 or self.below[job] or not mine:
                continue
            got = 0
            for g, i, j in mine:
                got += self.credit(job, self.rate(g, job, j if job == i else i))
            if got < 1_000_001 - self.replicas[job]:
                return False
        return True

    def value_mw(self, rows: tuple[Row, ...]) -> int:
        placed = {job for row in rows for job in row[1:]}
        several = {i for i in self.all_jobs if self.below[i] and self.replicas[i] > 1}
        waiting = [i for i in self.all_jobs if i not in placed or i in several]
        return sum(map(self.price_mw, rows)) + sum(
            int(self.demand.shortfall_mw[i]) for i in waiting
        )

    def best_mw(self) -> int:
        return min(map(self.value_mw, self.allocations()))


def with_jobs(demand: EpochDemand, **changed: object) -> EpochDemand:
    """Return a demand whose jobs have other values."""
    return replace(demand, jobs=replace(demand.jobs, **changed))  # type: ignore[arg-type]
