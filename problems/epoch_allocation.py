"""Allocations of one epoch: jobs that ask for throughput on GPUs of three generations.

``tables=synthetic`` draws ``job_types`` job types. A GPU of generation g = 0, 1, 2 has speed
s = (1, 0.6, 0.25). A type t has a base throughput b, an exponent a of the speed, a share c of the
GPU's bandwidth that it loads, a sensitivity d, and memory m:

    alone_per_s[g, t]     = b_t s_g^a_t,         b = 10^U(0, 3), a = U(0.5, 1.5), 3 digits
    beside_per_s[g, t, s] = alone_per_s[g, t] / (1 + d_t c_s e),   e = exp(0.1 N(0, 1))
    utilisation[g, t]     = U(0.3, 1.0),         c, d = U(0.2, 1), U(0.2, 1.5), m = U(0.1, 0.8)

and a pair does not fit where its memory m_t + m_s is above (1.6, 1.4, 1)_g. ``tables=gavel`` has
the measured throughputs at one GPU of problem ``colocation``, and its assumed utilisation.

A third of the GPUs is of each generation, with the powers of ``GPU_W``. A job requires φ of its
throughput alone: for ``requirement=tight`` on the median generation, φ = U(0.3, 0.8), for ``loose``
on the slowest, φ = U(0.15, 0.55). The progress of a training job is worth ``price`` of the least
energy that it takes alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

import optbench as ob
from optbench.errors import ParameterError
from optbench.shapes.colocation.colocation_data import Floats
from optbench.shapes.epoch_allocation.epoch_allocation_shape import EpochAllocationShape
from optbench.shapes.epoch_allocation.epoch_demand import EpochDemand, JobDemands
from optbench.shapes.protocol.shaped_instance import ShapedInstance

from ._colocation_power import utilisation
from ._gavel import gavel_tables

SPEED, MEMORY = np.array([1.0, 0.6, 0.25]), np.array([1.6, 1.4, 1.0])
# Power of a GPU of each generation: asleep, idle, fully used.
GPU_W = np.array([[22.0, 35.0, 212.0], [17.0, 28.0, 212.0], [15.0, 30.0, 127.0]])
SHARES = {"tight": (0.3, 0.8), "loose": (0.15, 0.55)}
# Seeds of the tables, so that jobs and tables of a seed are independent of each other.
TABLES_SEED = 1


@dataclass
class EpochAllocation(ob.Problem):
    """Jobs on GPUs of three generations, alone or in pairs, for the power less the value of
    progress of one epoch.

    ``migration_w`` is the price of another GPU type than before, ``replicas`` the most of a job.
    """

    jobs: int = 14
    gpus: int = 10
    requirement: Literal["tight", "loose"] = "loose"
    services: float = 0.3
    migration_w: float = 0.0
    replicas: int = 1
    best_effort: bool = False
    tables: Literal["synthetic", "gavel"] = "synthetic"
    job_types: int = 26
    price: float = 0.8

    def __post_init__(self) -> None:
        for name in ("jobs", "gpus", "replicas", "job_types"):
            if getattr(self, name) < 1:
                raise ParameterError(f"{name} is {getattr(self, name)}; it must be at least 1")
        for name in ("migration_w", "price"):
            if getattr(self, name) < 0:
                raise ParameterError(f"{name} is {getattr(self, name)}; it must be at least 0")
        if not 0 <= self.services <= 1:
            raise ParameterError(f"services is {self.services}; it must be a share from 0 to 1")

    def instance(self, seed: int = 0) -> ShapedInstance:
        data = self.demand(seed)
        made = EpochAllocationShape().instance(f"epoch-{self.jobs}-{self.gpus}-{seed}", data)
        return replace(made, problem="epoch_allocation")

    def demand(self, seed: int) -> EpochDemand:
        """Return the data of the instance of a seed."""
        rng = np.random.default_rng([seed, TABLES_SEED])
        alone, beside, used = measured() if self.tables == "gavel" else drawn(self.job_types, rng)
        rng = np.random.default_rng(seed)
        kind = rng.integers(0, alone.shape[1], self.jobs)
        share = rng.uniform(*SHARES[self.requirement], self.jobs)
        service = rng.random(self.jobs) < self.services
        before = rng.integers(-2, len(GPU_W), self.jobs)
        replicas = rng.integers(1, self.replicas + 1, self.jobs)
        runs = np.where(alone > 0, alone, np.nan)
        usual = np.nanmedian(runs, axis=0) if self.requirement == "tight" else np.nanmin(runs, 0)
        sleep, idle, full = GPU_W.T
        energy = np.nanmin((idle[:, None] + used * (full - idle)[:, None]) / runs, axis=0)
        third = self.gpus // 3
        jobs = JobDemands(
            kind,
            share * usual[kind],
            service,
            replicas,
            np.where(service, 0.0, self.price * energy[kind]),
            before,
        )
        return EpochDemand(
            np.array([self.gpus - 2 * third, third, third]),
            sleep,
            idle,
            full,
            np.ones(alone.shape[1], dtype=np.int64),
            alone,
            beside,
            used,
            jobs,
            migration_price_w=self.migration_w,
            best_effort=self.best_effort,
        )


def drawn(count: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Return synthetic throughputs alone and beside each other, and utilisations."""
    base, power = 10.0 ** rng.uniform(0.0, 3.0, count), rng.uniform(0.5, 1.5, count)
    load, sensitivity = rng.uniform(0.2, 1.0, count), rng.uniform(0.2, 1.5, count)
    memory = rng.uniform(0.1, 0.8, count)
    noise = np.exp(0.1 * rng.standard_normal((len(SPEED), count, count)))
    alone = base[None, :] * SPEED[:, None] ** power[None, :]
    alone = rounded(alone)
    slower = 1.0 + sensitivity[None, :, None] * load[None, None, :] * noise
    fits = (memory[:, None] + memory[None, :])[None] <= MEMORY[:, None, None]
    used = np.round(rng.uniform(0.3, 1.0, (len(SPEED), count)), 2)
    return alone, np.where(fits, rounded(alone[:, :, None] / slower), 0.0), used


def rounded(values: Floats) -> Floats:
    """Round to three digits."""
    digits = 10.0 ** (np.floor(np.log10(values)) - 2)
    out: Floats = np.rint(values / digits) * digits
    return out


def measured() -> tuple[Floats, Floats, Floats]:
    """Return Gavel's throughputs at one GPU, and assumed utilisations."""
    tables = gavel_tables()
    single = np.flatnonzero([each.gpus == 1 for each in tables.job_types])
    alone, beside = tables.alone_per_s[:, single], tables.beside_per_s[:, single][:, :, single]
    used = utilisation([tables.job_types[t] for t in single.tolist()], len(alone), "feature")
    fits = (beside > 0) & (np.swapaxes(beside, 1, 2) > 0)
    return alone, np.where(fits, beside, 0.0), used
