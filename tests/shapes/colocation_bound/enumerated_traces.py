"""Instances with two GPUs and two or three jobs, and the outcomes of all their decisions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from optbench.shapes.colocation.allocation_rules import broken_rules
from optbench.shapes.colocation.allocations import NOBODY, Placement
from optbench.shapes.colocation.colocation_data import (
    Colocation,
    Floats,
    GpuType,
    Ints,
    Jobs,
    JobType,
)
from optbench.shapes.colocation.colocation_process import gpu_types_now, public_misfits
from optbench.shapes.colocation.epoch_physics import NEVER, Misfit, epoch_effects


def enumerable_trace(seed: int) -> Colocation:
    """Random tables with unknown misfits, pairs faster than alone, replicas and lost seconds: two
    jobs and three epochs of 10 s, or three jobs and two epochs.
    """
    rng = np.random.default_rng(seed)
    num_types, (n, epochs) = int(rng.integers(1, 4)), ((3, 2), (2, 3))[seed % 2]
    alone = rng.uniform(1, 5, (2, num_types)) * (rng.random((2, num_types)) < 0.85)
    alone[0] = np.maximum(alone[0], 0.8)
    fits = np.triu(rng.random((2, num_types, num_types)) < 0.8)
    fits |= np.swapaxes(fits, 1, 2)
    ratio = rng.uniform(0.3, 1.3, fits.shape)
    kind, service = rng.integers(0, num_types, n), rng.random(n) < 0.4
    required = np.minimum(rng.uniform(0.3, 1.1, n), 1.0) * alone[0, kind]
    span = rng.uniform(3, (epochs - 0.3) * 10, n)
    return Colocation(
        (_gpu(rng, "one"), _gpu(rng, "other")),
        tuple(JobType(f"t{t}", "f", 1.0) for t in range(num_types)),
        alone,
        np.maximum(alone, 0.6)[:, :, None] * ratio * fits,
        rng.uniform(0.2, 1, alone.shape),
        np.full(alone.shape, seed % 3 > 0),
        Jobs(
            kind,
            np.sort(rng.choice([0.0, 0.0, 4.0, 10.0], n)),
            required,
            np.where(service, 0.0, required * span * rng.uniform(0.3, 1, n)),
            np.where(service, span, 0.0),
            rng.integers(1, 3, n),
        ),
        epochs,
        epoch_s=10.0,
        restart_s=3.0,
        profile_s=4.0,
        migration_s=float(rng.choice([0.0, 2.0])),
    )


def _gpu(rng: np.random.Generator, name: str) -> GpuType:
    sleep = float(rng.uniform(0, 10))
    idle = sleep + float(rng.uniform(0, 15) * (rng.random() < 0.8))
    return GpuType(name, 1, sleep, idle, idle + float(rng.uniform(5, 80)))


def placements(num_jobs: int) -> Iterator[Placement]:
    """All ways to put at most two jobs on each of the GPUs, or one of them for a profile run."""
    jobs = range(num_jobs)
    ways: list[tuple[int, ...]] = [(), *((i,) for i in jobs)]
    ways += [(i, j) for i in jobs for j in jobs if i < j]
    for chosen in product(ways, ways):
        rows = [(g, way[0], (*way, NOBODY)[1]) for g, way in enumerate(chosen) if way]
        yield Placement.of_rows(rows)
        for k, (g, job, partner) in enumerate(rows):
            if partner == NOBODY:
                yield Placement.of_rows(rows[:k] + rows[k + 1 :], [(g, job)])


def all_outcomes(data: Colocation) -> list[tuple[float, float]]:
    """Shortfall and energy of every decision that completes the training jobs."""
    ways, found = list(placements(data.jobs.count)), list[tuple[float, float]]()
    sleep, _, _ = data.watts()
    asleep_j = float(sleep.sum()) * data.horizon_epochs * data.epoch_s

    def extend(
        epoch: int, left: Floats, before: Ints, known: set[Misfit], outcome: tuple[float, float]
    ) -> None:
        if epoch == data.horizon_epochs:
            if not (~data.jobs.is_service & (left > 0)).any():
                found.append(outcome)
            return
        for rows in ways:
            if broken_rules(data, epoch, rows, left, known):
                continue
            effects = epoch_effects(data, epoch, rows, left, before)
            after = left - effects.progress
            after[np.isfinite(effects.completed_s)] = 0.0
            shortfall_s = outcome[0] + float(effects.shortfall_s.sum())
            energy_j = outcome[1] + float(effects.energy_j.sum())
            misfits = known | set(effects.misfits)
            now = gpu_types_now(before, rows)
            extend(epoch + 1, after, now, misfits, (shortfall_s, energy_j))

    before = np.full(data.jobs.count, NEVER, dtype=np.int64)
    extend(0, data.jobs.work.copy(), before, set(public_misfits(data)), (0.0, asleep_j))
    return found
