"""From estimates to the demand of an epoch, and from its allocation to a placement.

The surrogate that an epoch minimises is never called the objective:

    Σ columns (power beyond sleep − Σ price × rate) + price of waiting × jobs that wait

The progress of a training job of type t is worth ``progress_price`` times the least energy per unit
that any GPU type needs for it alone, as far as it is known. With ``progress_price`` 0 the power of
the epoch alone is minimised, which parks jobs on slow GPUs. Requirements are held against cautious
throughputs, ``margin`` standard deviations below the expected ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.shapes.colocation.allocations import Placement
from optbench.shapes.colocation.colocation_data import Colocation, Floats
from optbench.shapes.colocation.colocation_process import Observation
from optbench.shapes.colocation.epoch_allocator import allocate
from optbench.shapes.colocation.epoch_demand import EpochDemand, JobDemands
from optbench.shapes.colocation.estimates import Estimates


@dataclass(frozen=True)
class AllocationSettings:
    """How estimates are priced; ``misfit_price_w`` is multiplied by the probability of a misfit,
    ``explore_w`` by the uncertainty of a ratio that was never measured.
    """

    progress_price: float = 0.8
    margin: float = 0.0
    pairs: bool = True
    least_fit: float = 0.5
    misfit_price_w: float = 0.0
    explore_w: float = 0.0
    time_limit_s: float = 2.0
    gap: float = 1e-3


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


def placement_of(seen: Observation, expected: Estimates, settings: AllocationSettings) -> Placement:
    """Return the rows that minimise the surrogate of this epoch."""
    demand = demand_of(seen, expected, settings)
    found = allocate(demand, settings.time_limit_s, settings.gap)
    return found.rows.placement(seen.jobs.job)


def demand_of(seen: Observation, expected: Estimates, settings: AllocationSettings) -> EpochDemand:
    """Return what the present jobs ask of the GPUs, by the expected throughputs."""
    public, jobs = seen.public, seen.jobs
    sleep, idle, full = (
        np.array([getattr(each, name) for each in public.gpu_types])
        for name in ("sleep_w", "idle_w", "full_w")
    )
    gangs = np.array([each.gpus for each in public.job_types], dtype=np.int64)
    alone, beside = cautious(expected, settings)
    prices = progress_prices(expected.alone_per_s, public.utilisation, gangs, idle, full)
    price = settings.progress_price * prices[jobs.job_type]
    risk = settings.misfit_price_w * (1.0 - expected.fits)
    reward = settings.explore_w * expected.ratio_sd
    pair_price = risk + np.swapaxes(risk, 1, 2) - reward - np.swapaxes(reward, 1, 2)
    moving = public.migration_s / public.epoch_s * float(full.max())
    return EpochDemand(
        seen.counts,
        sleep,
        idle,
        full,
        gangs,
        alone,
        beside,
        public.utilisation,
        JobDemands(
            jobs.job_type,
            jobs.required_per_s,
            jobs.is_service,
            jobs.replicas,
            np.where(jobs.is_service, 0.0, price),
            jobs.before,
        ),
        pair_price_w=pair_price / 2,
        migration_price_w=moving,
        best_effort=True,
    )


def cautious(expected: Estimates, settings: AllocationSettings) -> tuple[Floats, Floats]:
    """Return throughputs alone and beside, ``margin`` standard deviations below the expected ones;
    pairs that hardly fit are left out.
    """
    low = expected.alone_per_s * np.exp(-settings.margin * expected.alone_log_sd)
    own = expected.alone_per_s[:, :, None]
    ratio = np.divide(
        expected.beside_per_s, own, out=np.zeros_like(expected.beside_per_s), where=own > 0
    )
    lower = np.clip(ratio - settings.margin * expected.ratio_sd, 0.0, None)
    beside = low[:, :, None] * lower
    allowed = (expected.fits >= settings.least_fit) & settings.pairs & (beside > 0)
    allowed &= np.swapaxes(allowed, 1, 2)
    return low, np.where(allowed, beside, 0.0)


def progress_prices(
    alone: Floats, utilisation: Floats, gangs: Floats, idle: Floats, full: Floats
) -> Floats:
    """The least energy per unit of each job type alone, over GPU types."""
    watts = gangs[None, :] * (idle[:, None] + utilisation * (full - idle)[:, None])
    per_unit = np.divide(watts, alone, out=np.full(alone.shape, np.inf), where=alone > 0)
    least = per_unit.min(axis=0)
    out: Floats = np.where(np.isfinite(least), least, 0.0)
    return out
