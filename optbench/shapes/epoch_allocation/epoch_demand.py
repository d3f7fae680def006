"""What one epoch has to allocate: GPUs, expected throughputs, and jobs with what they ask for.

A policy makes an ``EpochDemand`` from its estimates in every epoch, the oracle from the truth. The
tables are those of ``Colocation``, of GPU types g and job types t, s:

    alone_per_s[g, t], beside_per_s[g, t, s]     expected throughputs; 0 is not allowed
    utilisation[g, t]                            share of the GPU that a job alone uses
    alone_price_w[g, t], pair_price_w[g, t, s]   what a column costs beside its power (a risk, the
                                                 value of a measurement); negative is a reward

Where ``shortfall_w`` is not given, each waiting job costs

    S = 1 W + Σ_g counts_g (h_g − l_g),      h_g = (full − sleep)_g + p_g⁺ + 2 m,
                                             l_g = (idle − sleep)_g − p_g⁻ − 2 v_g

with p_g⁺ and p_g⁻ the largest extra price and reward of a column, m the price of a migration, and
v_g the largest value of the progress of a job there. No two allocations differ by more than S − 1 W
in power, prices and value, so that the number of waiting jobs is minimised first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from optbench.errors import ModelError
from optbench.shapes.colocation.colocation_data import Bools, Floats, Ints
from optbench.shapes.colocation.epoch_physics import NEVER, SAME


@dataclass(frozen=True)
class JobDemands:
    """One entry per job that is there.

    ``price_j`` is the value of a unit of progress, 0 for services. ``before`` is the GPU type of
    the epoch before (-1 waiting, -2 never run). ``shortfall_w`` is the price of waiting."""

    job_type: Ints
    required_per_s: Floats
    is_service: Bools
    replicas: Ints
    price_j: Floats
    before: Ints
    shortfall_w: Floats | None = None

    @property
    def count(self) -> int:
        return len(self.job_type)


@dataclass(frozen=True)
class EpochDemand:
    """GPUs, tables and jobs of one epoch; ``best_effort`` lets jobs that no GPU type alone serves
    as required run alone below their requirement.
    """

    counts: Ints
    sleep_w: Floats
    idle_w: Floats
    full_w: Floats
    gangs: Ints
    alone_per_s: Floats
    beside_per_s: Floats
    utilisation: Floats
    jobs: JobDemands
    alone_price_w: Floats | None = None
    pair_price_w: Floats | None = None
    migration_price_w: float = 0.0
    best_effort: bool = False

    def __post_init__(self) -> None:
        check_sizes(self)
        check_values(self)

    @property
    def num_gpu_types(self) -> int:
        return len(self.counts)

    @property
    def num_job_types(self) -> int:
        return len(self.gangs)

    @cached_property
    def alone_prices(self) -> Floats:
        """Extra prices of columns with one job."""
        if self.alone_price_w is None:
            return np.zeros(self.alone_per_s.shape)
        return self.alone_price_w

    @cached_property
    def pair_prices(self) -> Floats:
        """Extra prices of columns with two jobs."""
        if self.pair_price_w is None:
            return np.zeros(self.beside_per_s.shape)
        return self.pair_price_w

    @cached_property
    def alone_prices_mw(self) -> Ints:
        """Extra prices of columns with one job, in whole milliwatts."""
        return milliwatts(self.alone_prices)

    @cached_property
    def pair_prices_mw(self) -> Ints:
        """Extra prices of columns with two jobs, in whole milliwatts."""
        return milliwatts(self.pair_prices)

    @cached_property
    def several(self) -> Bools:
        """Whether a job may run on several GPUs; a gang has one row, whatever its replicas."""
        jobs = self.jobs
        out: Bools = (jobs.replicas > 1) & (self.gangs[jobs.job_type] == 1)
        return out

    @cached_property
    def usable(self) -> Bools:
        """Whether a job of a type has GPUs enough of a type, and runs there alone: [g, t]."""
        out: Bools = (self.counts[:, None] >= self.gangs[None, :]) & (self.alone_per_s > 0)
        return out

    @cached_property
    def below(self) -> Bools:
        """Whether a job is served at best effort: no GPU type alone, all replicas together, gives
        it what it requires.
        """
        jobs = self.jobs
        if not self.best_effort:
            return np.zeros(jobs.count, dtype=np.bool_)
        best = np.where(self.usable, self.alone_per_s, 0.0).max(axis=0, initial=0.0)
        rate = best[jobs.job_type]
        enough = self.several & (jobs.replicas * credits(rate, jobs.required_per_s) >= needed(self))
        out: Bools = ~np.where(self.several, enough, meets(rate, jobs.required_per_s))
        return out

    @cached_property
    def shortfall_mw(self) -> Ints:
        """Price of each job that waits, in whole milliwatts."""
        given = self.jobs.shortfall_w
        prices = np.full(self.jobs.count, default_shortfall_w(self)) if given is None else given
        return milliwatts(prices)


def milliwatts(watts: Any) -> Ints:
    """Round to whole milliwatts."""
    out: Ints = np.rint(1000.0 * np.asarray(watts, dtype=float)).astype(np.int64)
    return out


def meets(rate: Any, required: Any) -> Any:
    """Whether a rate meets a requirement, up to rounding."""
    return rate >= required * (1.0 - SAME)


# A replica's share of the requirement counts in whole millionths, rounded down.
WHOLE_CREDIT = 1_000_000


def credits(rate: Any, required: Any) -> Ints:
    """Share of the requirement that a rate gives, in millionths."""
    share = np.minimum(1.0, np.asarray(rate) * (1.0 + SAME) / required)
    out: Ints = np.floor(WHOLE_CREDIT * share).astype(np.int64)
    return out


def needed(demand: EpochDemand) -> Ints:
    """Millionths that the replicas of a job need together; what rounding takes is forgiven."""
    out: Ints = WHOLE_CREDIT + 1 - demand.jobs.replicas
    return out


def default_shortfall_w(demand: EpochDemand) -> float:
    """The price of waiting that puts the number of waiting jobs first."""
    jobs, g = demand.jobs, demand.num_gpu_types
    extra = np.concatenate(
        [demand.alone_prices.reshape(g, -1), demand.pair_prices.reshape(g, -1)], axis=1
    )
    most = np.where(demand.usable, demand.alone_per_s, 0.0)
    most = np.maximum(most, demand.beside_per_s.max(axis=2, initial=0.0))
    price = np.zeros(demand.num_job_types)
    np.maximum.at(price, jobs.job_type, jobs.price_j)
    value = (most * price).max(axis=1, initial=0.0)
    high = demand.full_w - demand.sleep_w + 2 * demand.migration_price_w
    high = high + np.maximum(extra.max(axis=1, initial=0.0), 0.0)
    low = demand.idle_w - demand.sleep_w - 2 * value + np.minimum(extra.min(axis=1, initial=0), 0)
    return float(np.ceil(1.0 + (demand.counts * (high - low)).sum()))


def check_sizes(demand: EpochDemand) -> None:
    """Refuse arrays whose sizes do not fit each other."""
    g, t, n = len(demand.counts), len(demand.gangs), demand.jobs.count
    if not g or not t:
        raise ModelError("an epoch's demand needs at least one GPU type and one job type")
    wanted: dict[str, tuple[int, ...]] = {
        "sleep_w": (g,), "idle_w": (g,), "full_w": (g,), "alone_per_s": (g, t),
        "beside_per_s": (g, t, t), "utilisation": (g, t), "alone_price_w": (g, t),
        "pair_price_w": (g, t, t),
    }  # fmt: skip
    found = {name: getattr(demand, name) for name in wanted}
    for name in ("required_per_s", "is_service", "replicas", "price_j", "before", "shortfall_w"):
        wanted[f"jobs.{name}"], found[f"jobs.{name}"] = (n,), getattr(demand.jobs, name)
    for name, size in wanted.items():
        array = found[name]
        if array is not None and np.shape(array) != size:
            raise ModelError(f"{name} has the size {np.shape(array)}; it must be {size}")


def check_values(demand: EpochDemand) -> None:
    """Refuse values out of range; the message names the first one."""
    jobs, beside = demand.jobs, demand.beside_per_s
    known = (jobs.job_type >= 0) & (jobs.job_type < demand.num_job_types)
    _refuse("jobs.job_type", jobs.job_type, known, f"0 to {demand.num_job_types - 1}")
    last = demand.num_gpu_types - 1
    there = (jobs.before >= NEVER) & (jobs.before <= last)
    _refuse("jobs.before", jobs.before, there, f"-2 (never run), -1 (waiting), or 0 to {last}")
    at_least_0 = "finite and at least 0"
    for name in ("counts", "sleep_w", "alone_per_s", "beside_per_s"):
        array = getattr(demand, name)
        _refuse(name, array, (array >= 0) & np.isfinite(array), at_least_0)
    used = demand.utilisation
    _refuse("utilisation", used, (used >= 0) & (used <= 1), "from 0 to 1")
    _refuse("gangs", demand.gangs, demand.gangs >= 1, "at least 1")
    _refuse("idle_w", demand.idle_w, demand.idle_w >= demand.sleep_w, "at least sleep_w")
    full = (demand.full_w >= demand.idle_w) & np.isfinite(demand.full_w)
    _refuse("full_w", demand.full_w, full, "finite and at least idle_w")
    required = jobs.required_per_s
    _refuse("jobs.required_per_s", required, (required > 0) & np.isfinite(required), "above 0")
    _refuse("jobs.replicas", jobs.replicas, jobs.replicas >= 1, "at least 1")
    priced = (
        (jobs.price_j >= 0) & np.isfinite(jobs.price_j) & ~(jobs.is_service & (jobs.price_j > 0))
    )
    _refuse("jobs.price_j", jobs.price_j, priced, "at least 0, and 0 for a service")
    if jobs.shortfall_w is not None:
        given = jobs.shortfall_w
        _refuse("jobs.shortfall_w", given, (given >= 0) & np.isfinite(given), at_least_0)
    for name in ("alone_price_w", "pair_price_w"):
        array = getattr(demand, name)
        if array is not None:
            _refuse(name, array, np.isfinite(array), "finite")
    if demand.pair_price_w is not None:
        same = demand.pair_price_w == np.swapaxes(demand.pair_price_w, 1, 2)
        _refuse("pair_price_w", demand.pair_price_w, same, "symmetric in the two job types")
    gang = demand.gangs > 1
    paired = (beside > 0) & (gang[None, :, None] | gang[None, None, :])
    _refuse("beside_per_s", beside, ~paired, "0 for jobs of several GPUs, which run alone")
    if not (demand.migration_price_w >= 0 and np.isfinite(demand.migration_price_w)):
        words = f"migration_price_w is {demand.migration_price_w}; it must be {at_least_0}"
        raise ModelError(words)


def _refuse(name: str, values: Any, allowed: Any, words: str) -> None:
    """Raise an error that names the first entry that is not allowed."""
    places = np.argwhere(~allowed)
    if len(places):
        at = tuple(int(i) for i in places[0])
        where = ", ".join(map(str, at))
        raise ModelError(f"{name}[{where}] is {values[at]}; it must be {words}")
