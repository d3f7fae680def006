"""Random clusters, and a policy that places jobs at random as the rules allow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator

from optbench.shapes.colocation.allocations import NOBODY, Allocation, Placement
from optbench.shapes.colocation.colocation_data import Colocation, GpuType, Jobs, JobType
from optbench.shapes.colocation.colocation_process import (
    ColocationProcess,
    Observation,
    public_misfits,
)
from optbench.shapes.colocation.epoch_physics import Misfit

NUM_GPU_TYPES, NUM_TYPES = 2, 4


def random_cluster(seed: int, jobs: int = 6, **others: Any) -> Colocation:
    """Four job types, one of them a gang of two GPUs; services, replicas and unknown misfits."""
    rng = np.random.default_rng(seed)
    shape = (NUM_GPU_TYPES, NUM_TYPES)
    alone = rng.uniform(1, 4, shape)
    fits = rng.random((*shape, NUM_TYPES)) > 0.2
    fits &= np.swapaxes(fits, 1, 2)
    fits[:, -1, :] = fits[:, :, -1] = False
    beside = alone[:, :, None] * rng.uniform(0.3, 1.1, fits.shape) * fits
    kind = rng.integers(0, NUM_TYPES, jobs)
    required = rng.uniform(0.2, 0.6, jobs) * alone.min(axis=0)[kind]
    service = rng.random(jobs) < 0.3
    span = rng.uniform(100, 500, jobs)
    settings: dict[str, Any] = {"epoch_s": 100.0, "restart_s": 20.0, "profile_s": 25.0}
    settings |= {"horizon_epochs": 120, "known": rng.random(shape) < 0.3}
    gangs = (1, 1, 1, 2)
    return Colocation(
        (GpuType("fast", 2, 10.0, 30.0, 130.0), GpuType("slow", 3, 5.0, 20.0, 60.0)),
        tuple(JobType(f"t{k}", f"f{k % 2}", 8.0, gpus) for k, gpus in enumerate(gangs)),
        alone,
        beside,
        rng.uniform(0.3, 1.0, shape),
        jobs=Jobs(
            kind,
            np.sort(rng.uniform(0, 800, jobs)),
            required,
            np.where(service, 0.0, required * span),
            np.where(service, span, 0.0),
            rng.integers(1, 3, jobs),
        ),
        **(settings | others),
    )


def random_placement(seen: Observation, known: set[Misfit], rng: Generator) -> Placement:
    """Place some of the jobs at random, two on a GPU where that is not known to fail."""
    free, jobs = seen.counts.copy(), seen.jobs
    rows: list[tuple[int, int, int]] = []
    profiled: list[tuple[int, int]] = []
    for k in rng.permutation(len(jobs.job)).tolist():
        kind, job = int(jobs.job_type[k]), int(jobs.job[k])
        gpus = seen.public.job_types[kind].gpus
        g = int(rng.integers(len(free)))
        if rng.random() < 0.1 or Misfit(g, kind, NOBODY) in known:
            continue
        partner = _partner(rows, g, kind, known, seen) if gpus == 1 else None
        if partner is not None and rng.random() < 0.7:
            rows[partner] = (g, rows[partner][1], job)
            continue
        times = int(rng.integers(1, jobs.replicas[k] + 1)) if gpus == 1 else 1
        for _ in range(times):
            if free[g] >= gpus:
                free[g] -= gpus
                if times == 1 and rng.random() < 0.1:
                    profiled.append((g, job))
                else:
                    rows.append((g, job, NOBODY))
    return Placement.of_rows(rows, profiled)


def _partner(
    rows: list[tuple[int, int, int]], g: int, kind: int, known: set[Misfit], seen: Observation
) -> int | None:
    of_job = dict(zip(seen.jobs.job.tolist(), seen.jobs.job_type.tolist(), strict=True))
    for r, (gpu, first, second) in enumerate(rows):
        other = of_job[first]
        pair = Misfit(g, min(kind, other), max(kind, other))
        single = seen.public.job_types[other].gpus == 1
        if gpu == g and second == NOBODY and single and pair not in known:
            return r
    return None


def played(data: Colocation, seed: int) -> tuple[Allocation, list[Observation]]:
    """Play the random policy; return its decision and what it saw."""
    rng = np.random.default_rng(seed)
    process = ColocationProcess(data, seed)
    known, seen = set(public_misfits(data)), []
    while not process.done:
        observation = process.observe()
        known |= set(observation.misfits)
        seen.append(observation)
        process.act(random_placement(observation, known, rng))
    return process.decision(), seen
