"""Small random co-location instances, and legal policies that place at random or greedily."""

from __future__ import annotations

from collections import Counter

import numpy as np

from optbench.shapes.colocation.allocations import Allocation, Placement
from optbench.shapes.colocation.colocation_data import Colocation, GpuType, Jobs, JobType, Outage
from optbench.shapes.colocation.colocation_process import ColocationProcess, Observation
from optbench.shapes.colocation.epoch_physics import Misfit


def small_trace(seed: int) -> Colocation:
    """Two or three GPU types, up to four job types with gangs, misfits, replicas and services."""
    rng = np.random.default_rng(seed)
    num_gpu_types, num_types = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    gpus = np.where(rng.random(num_types) < 0.2, 2, 1)
    alone = rng.uniform(1, 10, (num_gpu_types, num_types))
    alone *= rng.random(alone.shape) < 0.85
    alone[0] = np.maximum(alone[0], 1.0)
    ratio = rng.uniform(0.2, 1.2, (num_gpu_types, num_types, num_types))
    beside = np.maximum(alone, 0.5)[:, :, None] * ratio
    fits = np.triu(rng.random(beside.shape) < 0.7)
    fits |= np.swapaxes(fits, 1, 2)
    single = gpus == 1
    beside *= fits & single[None, :, None] & single[None, None, :]
    n = int(rng.integers(1, 7))
    job_type = rng.integers(0, num_types, n)
    service = rng.random(n) < 0.4
    epoch_s = float(rng.choice([10.0, 7.3]))
    required = rng.uniform(0.2, 1.0, n) * alone[0, job_type]
    return Colocation(
        tuple(_gpu_type(rng, g, int(gpus.max())) for g in range(num_gpu_types)),
        tuple(JobType(f"t{t}", "f", 1.0, int(gpus[t])) for t in range(num_types)),
        alone,
        beside,
        rng.uniform(0.2, 1.0, alone.shape),
        rng.random(alone.shape) < 0.5,
        Jobs(
            job_type,
            np.sort(rng.choice([0.0, 20.0, *rng.uniform(0, 60, 3)], n)),
            required,
            np.where(service, 0.0, required * rng.uniform(5, 60, n)),
            np.where(service, rng.uniform(2, 60, n), 0.0),
            rng.integers(1, 3, n),
        ),
        60,
        (Outage(0, 1, 2, 4),) if rng.random() < 0.3 else (),
        epoch_s,
        float(rng.choice([0.0, 3.0])),
        2.5,
        float(rng.choice([0.0, 1.5])),
    )


def _gpu_type(rng: np.random.Generator, g: int, gang: int) -> GpuType:
    sleep = float(rng.uniform(0, 10))
    idle = sleep + float(rng.uniform(0, 10))
    count = int(rng.integers(gang if g == 0 else 0, 4))
    return GpuType(f"g{g}", max(count, int(g == 0)), sleep, idle, idle + float(rng.uniform(5, 50)))


def random_placement(
    data: Colocation, seen: Observation, known: set[Misfit], rng: np.random.Generator, lazy: float
) -> Placement:
    """Put the jobs that are there, in random order, on random GPUs or beside random others."""
    free = seen.counts.copy()
    rows: list[tuple[int, int, int]] = []
    profiled: list[tuple[int, int]] = []
    times = [
        (job, k)
        for job, k in zip(seen.jobs.job.tolist(), seen.jobs.replicas.tolist(), strict=True)
        for _ in range(k if data.gangs[data.jobs.job_type[job]] == 1 else 1)
    ]
    for at in rng.permutation(len(times)).tolist():
        job = times[at][0]
        if rng.random() < lazy:
            continue
        gang = int(data.gangs[data.jobs.job_type[job]])
        open_rows = [
            k for k, row in enumerate(rows) if _may_join(data, row, job, known) and gang == 1
        ]
        if open_rows and rng.random() < 0.6:
            k = int(rng.choice(open_rows))
            rows[k] = (rows[k][0], rows[k][1], job)
            continue
        kind = int(data.jobs.job_type[job])
        types = [
            g for g in np.flatnonzero(free >= gang).tolist() if Misfit(g, kind, -1) not in known
        ]
        if not types:
            continue
        g = int(rng.choice(types))
        free[g] -= gang
        if rng.random() < 0.1:
            profiled.append((g, job))
        else:
            rows.append((g, job, -1))
    # A profile run is the job's only row.
    named = Counter(job for row in rows for job in row[1:]) + Counter(job for _, job in profiled)
    rows += [(g, job, -1) for g, job in profiled if named[job] > 1]
    return Placement.of_rows(rows, [each for each in profiled if named[each[1]] == 1])


def _may_join(data: Colocation, row: tuple[int, int, int], job: int, known: set[Misfit]) -> bool:
    g, first, second = row
    kinds = sorted((int(data.jobs.job_type[first]), int(data.jobs.job_type[job])))
    gang = int(data.gangs[kinds[0]]) > 1 or int(data.gangs[kinds[1]]) > 1
    return second < 0 and first != job and not gang and Misfit(g, *kinds) not in known


def random_decision(data: Colocation, seed: int, lazy: float) -> Allocation:
    """Play a random legal policy; ``lazy`` is the chance that a job waits."""
    from optbench.shapes.colocation.colocation_process import public_misfits

    rng = np.random.default_rng(seed)
    process = ColocationProcess(data, seed)
    known = set(public_misfits(data))
    while not process.done:
        seen = process.observe()
        known |= set(seen.misfits)
        process.act(random_placement(data, seen, known, rng, lazy))
    return process.decision()
