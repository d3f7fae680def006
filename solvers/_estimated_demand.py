"""From estimates to the demand of an epoch, and from its allocation to a placement.

The surrogate that an epoch minimises is never called the objective:

    Σ columns (power beyond sleep − Σ price × rate + risks) + ``waiting_w`` × jobs that wait

The progress of a training job of type t is worth ``progress_price`` times the least energy per unit
that any GPU type needs for it alone, as far as it is known. With ``progress_price`` 0 the power of
the epoch alone is minimised, which parks jobs on slow GPUs.

Of an uncertain throughput with mean m and standard deviation s, the requirement r is missed with
the probability Φ((r − m) / (``caution`` s)), which costs ``risk_w`` each; a pair that fits with the
probability p costs ``misfit_w`` (1 − p). A column whose risk of missing is above ``most_risk`` is
left out.

The programme knows job types and not jobs. Present jobs of one type are therefore split into kinds
by their requirement: each job is a kind of its own up to ``MOST_KINDS`` jobs, beyond that there are
``SPLITS`` kinds per type, and the risk is that of the mean requirement of the kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from optbench.errors import ParameterError
from optbench.plugins.author_errors import label
from optbench.plugins.process_policy import Act
from optbench.shapes.colocation.allocations import Placement
from optbench.shapes.colocation.colocation_data import Colocation, Floats, Ints
from optbench.shapes.colocation.colocation_process import Observation, PresentJobs, PublicFacts
from optbench.shapes.colocation.estimates import Estimates, Estimator
from optbench.shapes.epoch_allocation.epoch_allocator import allocate_within
from optbench.shapes.epoch_allocation.epoch_demand import EpochDemand, JobDemands
from optbench.shapes.epoch_allocation.pattern_solver import SearchLimits

MOST_KINDS, SPLITS = 100, 4
# A job that waits costs at least so many times the power of all its GPUs, however many these are.
ABOVE_POWER = 1.5
# A standard deviation of 0 would divide by 0.
LEAST_SD = 1e-9


@dataclass(frozen=True)
class AllocationSettings:
    """How estimates are priced: parameters of every policy with an allocation ILP."""

    progress_price: float = 0.9  # value of progress; 0 minimises the power of the epoch alone
    waiting_w: float = 3000.0  # price of a job that waits
    risk_w: float = 10.0  # price of missing a requirement, times its probability
    most_risk: float = 0.7  # the largest probability of missing one
    caution: float = 1.0  # factor on standard deviations of estimates
    misfit_w: float = 100.0  # price of a pair that may not fit, times its probability
    least_fit: float = 0.5  # least probability to fit of a pair that is tried
    explore_w: float = 0.0  # reward of a pair of uncertain ratio
    pairs: bool = True  # whether jobs may share GPUs
    nodes: int = 1000  # of each search of the ILP of an epoch: the same seed, the same decision
    ilp_limit_s: float = 60.0  # of the ILP of an epoch; a decision depends on it once it is hit
    gap: float = 1e-3  # at which the ILP of an epoch stops

    def __post_init__(self) -> None:
        for name in ("progress_price", "waiting_w", "risk_w", "misfit_w", "explore_w"):
            self._require(0 <= getattr(self, name) < np.inf, name, "at least 0, and finite")
        for name in ("most_risk", "least_fit"):
            self._require(0 <= getattr(self, name) <= 1, name, "a probability, from 0 to 1")
        self._require(0 < self.caution < np.inf, "caution", "above 0, and finite")
        self._require(self.nodes >= 1, "nodes", "at least 1")
        self._require(self.ilp_limit_s > 0, "ilp_limit_s", "above 0")
        self._require(0 <= self.gap < 1, "gap", "at least 0 and below 1")

    def _require(self, holds: bool, field: str, allowed: str) -> None:
        if not holds:
            words = f"{field} is {getattr(self, field)!r}; it must be {allowed}"
            raise ParameterError(f"{label(self)}: {words}")


@dataclass(frozen=True)
class Kinds:
    """Kinds of present jobs: the type of each kind, its mean requirement, and the kind of each
    job.
    """

    job_type: Ints
    required_per_s: Floats
    of_job: Ints


def true_estimates(data: Colocation) -> Estimates:
    """The truth, for policies with perfect information."""
    fits = (data.beside_per_s > 0).astype(float)
    return Estimates(
        data.alone_per_s,
        data.beside_per_s,
        np.zeros_like(data.alone_per_s),
        np.zeros_like(data.beside_per_s),
        fits,
    )


def acting_on(
    estimator_of: Callable[[PublicFacts], Estimator], settings: AllocationSettings
) -> Act:
    """Return the function that acts in one run: learn, estimate, allocate, in every epoch."""
    made: list[Estimator] = []

    def act(seen: Observation) -> Placement:
        if not made:
            made.append(estimator_of(seen.public))
        made[0].learn(seen)
        return placement_of(seen, made[0].estimates(), settings)

    return act


def placement_of(seen: Observation, expected: Estimates, settings: AllocationSettings) -> Placement:
    """Return the rows that minimise the surrogate of this epoch."""
    demand = demand_of(seen, expected, settings)
    limits = SearchLimits.within(settings.ilp_limit_s, settings.nodes)
    found = allocate_within(demand, limits, settings.gap)
    return found.rows.placement(seen.jobs.job)


def demand_of(seen: Observation, expected: Estimates, settings: AllocationSettings) -> EpochDemand:
    """Return what the present jobs ask of the GPUs, by the expected throughputs."""
    public, jobs = seen.public, seen.jobs
    sleep, idle, full = (
        np.array([getattr(each, name) for each in public.gpu_types])
        for name in ("sleep_w", "idle_w", "full_w")
    )
    gangs = np.array([each.gpus for each in public.job_types], dtype=np.int64)
    kinds = kinds_of(jobs)
    t = kinds.job_type
    here = of_kinds(expected, t)
    missed_alone, missed = risks(here, kinds.required_per_s, settings.caution)
    fits = here.fits * (settings.pairs & (here.beside_per_s > 0))
    risk = missed + np.swapaxes(missed, 1, 2)
    reward = here.ratio_sd + np.swapaxes(here.ratio_sd, 1, 2)
    allowed = (fits >= settings.least_fit) & (missed <= settings.most_risk)
    allowed &= np.swapaxes(allowed, 1, 2)
    pair_price = settings.risk_w * risk + settings.misfit_w * (1.0 - fits)
    pair_price = pair_price - settings.explore_w * reward
    prices = progress_prices(expected.alone_per_s, public.utilisation, gangs, idle, full)
    price = settings.progress_price * prices[jobs.job_type]
    # Where no GPU type is likely to serve a kind alone, every one of them is tried.
    missing = np.where(here.alone_per_s > 0, missed_alone, 1.0)
    hopeless = missing.min(axis=0) > settings.most_risk
    usable = (missed_alone <= settings.most_risk) | hopeless[None, :]
    return EpochDemand(
        seen.counts,
        sleep,
        idle,
        full,
        gangs[t],
        np.where(usable, here.alone_per_s, 0.0),
        np.where(allowed, here.beside_per_s, 0.0),
        public.utilisation[:, t],
        JobDemands(
            kinds.of_job,
            jobs.required_per_s,
            jobs.is_service,
            jobs.replicas,
            np.where(jobs.is_service, 0.0, price),
            jobs.before,
            np.maximum(settings.waiting_w, ABOVE_POWER * gangs[jobs.job_type] * full.max()),
        ),
        alone_price_w=settings.risk_w * missed_alone,
        pair_price_w=(pair_price + np.swapaxes(pair_price, 1, 2)) / 2,
        migration_price_w=public.migration_s / public.epoch_s * float(full.max()),
        best_effort=True,
    )


def kinds_of(jobs: PresentJobs) -> Kinds:
    """Split the present jobs of each type by their requirement."""
    n = len(jobs.job)
    order = np.lexsort((jobs.required_per_s, jobs.job_type))
    rank = np.empty(n, dtype=np.int64)
    _, begins, sizes = np.unique(jobs.job_type[order], return_index=True, return_counts=True)
    within = np.arange(n) - np.repeat(begins, sizes)
    split = within if n <= MOST_KINDS else within * SPLITS // np.repeat(sizes, sizes)
    rank[order] = split
    keys, of_job = np.unique(np.stack([jobs.job_type, rank], axis=1), axis=0, return_inverse=True)
    flat = of_job.reshape(-1)
    count = np.bincount(flat, minlength=len(keys))
    required = np.bincount(flat, jobs.required_per_s, len(keys)) / count
    return Kinds(keys[:, 0], required, flat)


def of_kinds(expected: Estimates, job_type: Ints) -> Estimates:
    """Return the estimates of kinds of these types."""
    pair = (slice(None), job_type[:, None], job_type[None, :])
    return Estimates(
        expected.alone_per_s[:, job_type],
        expected.beside_per_s[pair],
        expected.alone_log_sd[:, job_type],
        expected.ratio_sd[pair],
        expected.fits[pair],
    )


def risks(here: Estimates, required: Floats, caution: float) -> tuple[Floats, Floats]:
    """Return the probability that a kind's requirement is missed, alone and beside another."""
    alone = here.alone_per_s
    sd = np.maximum(caution * alone * here.alone_log_sd, LEAST_SD)
    missed_alone = ndtr((required[None, :] * (1 - LEAST_SD) - alone) / sd)
    own = alone[:, :, None]
    spread = caution * np.hypot(
        own * here.ratio_sd, here.beside_per_s * here.alone_log_sd[:, :, None]
    )
    short = required[None, :, None] * (1 - LEAST_SD) - here.beside_per_s
    return missed_alone, ndtr(short / np.maximum(spread, LEAST_SD))


def progress_prices(
    alone: Floats, utilisation: Floats, gangs: Ints, idle: Floats, full: Floats
) -> Floats:
    """The least energy per unit of each job type alone, over GPU types."""
    watts = gangs[None, :] * (idle[:, None] + utilisation * (full - idle)[:, None])
    per_unit = np.divide(watts, alone, out=np.full(alone.shape, np.inf), where=alone > 0)
    least = per_unit.min(axis=0)
    out: Floats = np.where(np.isfinite(least), least, 0.0)
    return out
