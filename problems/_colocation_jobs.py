"""Jobs of problem ``colocation``: types, requirements, services, work, arrivals that fit a load.

With φ uniform in [0.3, 0.8] the required rate of a job is φ times its throughput alone on the
median GPU type of those that run its type (``tight``), with φ in [0.15, 0.55] φ times that on the
slowest one (``loose``). No policy sees φ or the throughput that it multiplies. A training job has
the work that it does at its required rate in a time T, a service stays for T; T is lognormal with a
given median and σ = 0.6.

Arrivals are fitted to a load before anything runs. The first job arrives at 0, the last one at

    span = Σ_i gpus_i units_i / alone_i / (GPUs × load),      units_i = work_i or rate_i stay_i

where alone_i is the throughput of job i alone on its median GPU type; the times between keep the
proportions in which they were drawn or recorded, up to their rounding to epochs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from optbench.errors import ParameterError
from optbench.shapes.colocation.colocation_data import Bools, Floats, Ints, Jobs, JobType

from ._throughput_tables import ThroughputTables

Requirements: TypeAlias = Literal["tight", "loose"]
PHI = {"tight": (0.3, 0.8), "loose": (0.15, 0.55)}
SIGMA = 0.6
# Families that are held out where none are named: at least so many, with at least this share of
# the job types with one GPU.
LEAST_FAMILIES, LEAST_SHARE = 2, 1 / 3


@dataclass(frozen=True)
class Wanted:
    """What arrives: a job type each and an arrival time, both drawn or recorded.

    Recorded ``work``, ``stay_s`` and ``required_per_s`` are NaN where they are to be drawn."""

    job_type: Ints
    arrival_s: Floats
    work: Floats
    stay_s: Floats
    required_per_s: Floats

    @property
    def count(self) -> int:
        return len(self.job_type)

    @classmethod
    def of_types(cls, job_type: Ints, arrival_s: Floats) -> Wanted:
        """Jobs of which nothing else is recorded."""
        nothing = np.full(len(job_type), np.nan)
        return cls(job_type, arrival_s, nothing, nothing, nothing)


def held_out_families(rng: np.random.Generator, job_types: tuple[JobType, ...]) -> tuple[str, ...]:
    """Draw the families whose throughputs are not public; at least one family stays public."""
    single = [each.family for each in job_types if each.gpus == 1]
    families = sorted({each.family for each in job_types})
    out: list[str] = []
    for family in rng.permutation(families)[: len(families) - 1].tolist():
        share = sum(each in out for each in single) / max(1, len(single))
        if len(out) >= LEAST_FAMILIES and share >= LEAST_SHARE:
            break
        out.append(family)
    return tuple(sorted(out))


def share_of(rng: np.random.Generator, among: Bools, share: float) -> Bools:
    """Mark a share of all, rounded, at random among those that may be marked."""
    places = np.flatnonzero(among)
    number = min(len(places), round(share * len(among)))
    out = np.zeros(len(among), dtype=np.bool_)
    out[rng.permutation(places)[:number]] = True
    return out


def draw_types(
    rng: np.random.Generator,
    number: int,
    tables: ThroughputTables,
    held_out: tuple[str, ...],
    shares: tuple[float, float],
    counts: Ints,
) -> Ints:
    """Draw job types: ``shares`` are those of strangers (of held-out families) and of gangs.

    A gang has s GPUs with a probability in proportion to 1 / s, of the sizes that are at most half
    the GPUs of a type which runs it. Where no stranger (or no public type) has that size, the job
    is a single one. Types of one size are equally likely."""
    strangers, gangs = (share_of(rng, np.ones(number, dtype=np.bool_), each) for each in shares)
    room = np.where(tables.alone_per_s > 0, counts[:, None], 0).max(axis=0)
    size = np.array([each.gpus for each in tables.job_types])
    strange = np.array([each.family in held_out for each in tables.job_types])
    if not (size <= room).any():
        raise ParameterError(
            f"problem 'colocation': gpus is {counts.sum()}; the smallest job of the tables needs "
            f"{size.min()} of one type, of which there are {counts.max()}"
        )
    sizes = np.unique(size[(size > 1) & (2 * size <= room)])
    if len(sizes) == 0:
        gangs = np.zeros(number, dtype=np.bool_)
    out = np.zeros(number, dtype=np.int64)
    for k in range(number):
        wanted = int(rng.choice(sizes, p=(1 / sizes) / (1 / sizes).sum())) if gangs[k] else 1
        mine = strange if strangers[k] and strange.any() else ~strange
        choices = (mine & (size == wanted), mine & (size == 1), size == 1, size > 0)
        found = (np.flatnonzero(each & (size <= room)) for each in choices)
        out[k] = rng.choice(next(each for each in found if len(each)))
    return out


def poisson_times(rng: np.random.Generator, number: int) -> Floats:
    """Arrivals of a Poisson process of rate 1, the first one at 0."""
    gaps = rng.exponential(1.0, number)
    gaps[0] = 0.0
    return np.cumsum(gaps)


def references(tables: ThroughputTables, requirements: Requirements) -> Floats:
    """Throughput of each job type alone on its median (``tight``) or slowest GPU type."""
    runs = np.where(tables.alone_per_s > 0, tables.alone_per_s, np.nan)
    out: Floats = np.nanmedian(runs, axis=0) if requirements == "tight" else np.nanmin(runs, axis=0)
    return out


def jobs_of(
    rng: np.random.Generator,
    wanted: Wanted,
    tables: ThroughputTables,
    requirements: Requirements,
    services: float,
    duration_s: float,
    replicas: int,
) -> Jobs:
    """Draw what is not recorded of the jobs; their arrivals are as they stand.

    Services are drawn among the jobs with one GPU whose stay is not recorded. Where work is
    recorded, a job that becomes a service stays for as long as the work takes at its required rate.
    """
    n, kind = wanted.count, wanted.job_type
    single = np.array([each.gpus == 1 for each in tables.job_types])[kind]
    phi = rng.uniform(*PHI[requirements], n)
    drawn = phi * references(tables, requirements)[kind]
    required = np.where(np.isnan(wanted.required_per_s), drawn, wanted.required_per_s)
    time_s = duration_s * np.exp(SIGMA * rng.standard_normal(n))
    given = ~np.isnan(wanted.stay_s)
    service = share_of(rng, single & ~given, services)
    service[given] = wanted.stay_s[given] > 0
    work = np.where(np.isnan(wanted.work), required * time_s, wanted.work)
    stay = np.where(given, wanted.stay_s, work / required)
    return Jobs(
        kind,
        wanted.arrival_s,
        required,
        np.where(service, 0.0, work),
        np.where(service, stay, 0.0),
        np.where(single, replicas, 1).astype(np.int64),
    )


def required_gpu_s(jobs: Jobs, tables: ThroughputTables) -> Floats:
    """GPU-seconds of each job alone on the median GPU type of those that run its type."""
    gpus = np.array([each.gpus for each in tables.job_types])
    units = np.where(jobs.is_service, jobs.required_per_s * jobs.stay_s, jobs.work)
    out: Floats = units / references(tables, "tight")[jobs.job_type] * gpus[jobs.job_type]
    return out


def fitted_times(times: Floats, gpu_s: float, num_gpus: int, load: float) -> Floats:
    """Scale arrival times in proportion, so that the offered load is as given."""
    since = times - times[0]
    if not since[-1] > 0:
        raise ParameterError(
            "problem 'colocation': load cannot be fitted where all jobs arrive at the same time; "
            "give load=none, or at least two jobs at different times"
        )
    out: Floats = since / since[-1] * (gpu_s / (num_gpus * load))
    return out
