"""Each job, in order of arrival, goes where it adds the least power per value of its progress.

The choices of a job are free GPUs of each type and GPUs with one job whose requirement still holds.
Power and rates are those of the surrogate of the allocation ILP, with the same estimates; what is
missing is the search over all jobs together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
from numpy.random import Generator

from optbench.errors import ParameterError
from optbench.plugins.process_policy import Act, ProcessPolicy
from optbench.shapes.colocation.allocations import NOBODY, Placement
from optbench.shapes.colocation.colocation_process import Observation
from optbench.shapes.colocation.estimates import Estimator
from optbench.shapes.epoch_allocation.epoch_demand import EpochDemand, meets

from ._estimated_demand import AllocationSettings, demand_of


@dataclass(frozen=True)
class GreedyEfficiency(ProcessPolicy):
    """One job after the other where it adds the least of the surrogate; no search."""

    shapes: ClassVar[frozenset[str]] = frozenset({"colocation"})

    estimator: Literal["partner_mean", "matrix_completion", "trees"] = "partner_mean"
    most_risk: float = 0.5  # the largest probability of missing a requirement

    def __post_init__(self) -> None:
        if not 0 <= self.most_risk <= 1:
            words = f"most_risk is {self.most_risk!r}; it must be a probability, from 0 to 1"
            raise ParameterError(f"greedy_efficiency: {words}")

    def actor(self, rng: Generator) -> Act:
        estimators: list[Estimator] = []
        settings = AllocationSettings(most_risk=self.most_risk)

        def act(seen: Observation) -> Placement:
            if not estimators:
                from optbench.learn.colocation.estimators import estimator_named

                estimators.append(estimator_named(self.estimator, seen.public))
            estimators[0].learn(seen)
            demand = demand_of(seen, estimators[0].estimates(), settings)
            return GreedyRows(demand).placement(seen)

        return act


@dataclass
class GreedyRows:
    """Rows (GPU type, job, other job) of an epoch, made one job after the other."""

    demand: EpochDemand
    rows: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.free = self.demand.counts.copy()

    def placement(self, seen: Observation) -> Placement:
        """Place the jobs in their order; those that find no room wait."""
        kind = self.demand.jobs.job_type
        for job in range(self.demand.jobs.count):
            found = min(self._choices(job), default=None)
            if found is None:
                continue
            _, g, row = found
            if row < 0:
                self.free[g] -= self.demand.gangs[kind[job]]
                self.rows.append([g, job, NOBODY])
            else:
                self.rows[row][2] = job
        ids = seen.jobs.job
        return Placement.of_rows(
            [(g, int(ids[i]), NOBODY if j < 0 else int(ids[j])) for g, i, j in self.rows]
        )

    def _choices(self, job: int) -> Iterator[tuple[float, int, int]]:
        """Yield (added surrogate, GPU type, row to join or -1) of the places that serve a job; of
        those that do not, the one with the most of its requirement counts if there is no other.
        """
        demand = self.demand
        kind, gangs = int(demand.jobs.job_type[job]), demand.gangs
        served = False
        for g in np.flatnonzero(self.free >= gangs[kind]).tolist():
            if self._serves(g, job, NOBODY):
                served = True
                yield self._watts(g, job, NOBODY), g, -1
        for r, (g, other, second) in enumerate(self.rows):
            single = gangs[kind] == 1 and gangs[demand.jobs.job_type[other]] == 1
            if second == NOBODY and single and self._serves(g, job, other):
                served = True
                yield self._watts(g, job, other) - self._watts(g, other, NOBODY), g, r
        rate = np.where(self.free >= gangs[kind], demand.alone_per_s[:, kind], 0.0)
        if not served and rate.max(initial=0.0) > 0:
            yield 0.0, int(rate.argmax()), -1

    def _rate(self, g: int, job: int, other: int) -> float:
        kind = self.demand.jobs.job_type
        if other == NOBODY:
            return float(self.demand.alone_per_s[g, kind[job]])
        return float(self.demand.beside_per_s[g, kind[job], kind[other]])

    def _serves(self, g: int, job: int, other: int) -> bool:
        required = self.demand.jobs.required_per_s
        own = self._rate(g, job, other)
        if other == NOBODY:
            return own > 0 and bool(meets(own, required[job]))
        theirs = self._rate(g, other, job)
        both = meets(own, required[job]) and meets(theirs, required[other])
        return own > 0 and theirs > 0 and bool(both)

    def _watts(self, g: int, job: int, other: int) -> float:
        """The surrogate of a row: power beyond sleep less the value of progress."""
        demand = self.demand
        jobs = demand.jobs
        used, value = 0.0, 0.0
        for one, two in ((job, other), (other, job)) if other != NOBODY else ((job, NOBODY),):
            rate, kind = self._rate(g, one, two), int(jobs.job_type[one])
            if jobs.is_service[one]:
                rate = min(rate, float(jobs.required_per_s[one]))
            alone = float(demand.alone_per_s[g, kind])
            # As in the process: without a throughput alone any rate counts as full use.
            part = rate / alone if alone > 0 else float(rate > 0)
            used += float(demand.utilisation[g, kind]) * part
            value += float(jobs.price_j[one]) * rate
        span = float(demand.full_w[g] - demand.idle_w[g])
        watts = float(demand.idle_w[g] - demand.sleep_w[g]) + min(1.0, used) * span
        return float(demand.gangs[jobs.job_type[job]]) * watts - value
