"""What the jobs of a trace demand in bins of whole epochs: the sides of the offline bound's rows.

Bin b is the epochs edges[b] to edges[b + 1] − 1. Job i can start at the first beginning of an epoch
at which it has arrived, ``start``; until then it is in the system, waits, and is in shortfall,
whatever is decided: ``wait_s``. Jobs of one type that are both training jobs or both services are
divided into at most ``groups`` classes of similar requirement.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

import numpy as np

from optbench.errors import ModelError
from optbench.shapes.colocation.colocation_data import Bools, Colocation, Floats, Ints

# Epochs of a bin that no job has to use are put together into this many bins.
IDLE_BINS = 2


@dataclass(frozen=True)
class JobClasses:
    """Classes of interchangeable jobs, and the class of each job.

    ``floor_per_s`` and ``ceiling_per_s`` are the least and the largest requirement of a class;
    ``alone`` marks classes of one job, ``single`` those whose jobs have one replica each."""

    of_job: Ints
    job_type: Ints
    is_service: Bools
    floor_per_s: Floats
    ceiling_per_s: Floats
    alone: Bools
    single: Bools

    @property
    def count(self) -> int:
        return len(self.job_type)


@dataclass(frozen=True)
class OfflineDemand:
    """Jobs in bins: ``available_s[i, b]`` is the time for which a job can be placed in a bin."""

    edges: Ints
    start_s: Floats
    wait_s: Floats
    available_s: Floats
    since_start_s: Floats
    capacity_gpu_s: Floats
    most_gpus: Ints

    @property
    def num_bins(self) -> int:
        return len(self.edges) - 1


def job_classes(data: Colocation, groups: int) -> JobClasses:
    """Divide jobs of one type and kind by their requirement."""
    jobs, n = data.jobs, data.jobs.count
    of_job = np.zeros(n, dtype=np.int64)
    members: list[Ints] = []
    for kind in sorted({*zip(jobs.job_type.tolist(), jobs.is_service.tolist(), strict=True)}):
        mine = np.flatnonzero((jobs.job_type == kind[0]) & (jobs.is_service == kind[1]))
        mine = mine[np.argsort(jobs.required_per_s[mine], kind="stable")]
        for part in np.array_split(mine, min(groups, len(mine))):
            of_job[part] = len(members)
            members.append(part)
    required = [jobs.required_per_s[part] for part in members]
    return JobClasses(
        of_job,
        np.array([jobs.job_type[part[0]] for part in members]),
        np.array([jobs.is_service[part[0]] for part in members]),
        np.array([each.min() for each in required]),
        np.array([each.max() for each in required]),
        np.array([len(part) == 1 for part in members]),
        np.array([bool((jobs.replicas[part] == 1).all()) for part in members]),
    )


def first_epochs(data: Colocation) -> Ints:
    """The first epoch that begins at or after the arrival of each job."""
    arrival = data.jobs.arrival_s
    first = np.floor(arrival / data.epoch_s).astype(np.int64)
    first = np.maximum(first - 1, 0)
    for _ in range(3):
        first = np.where(first * data.epoch_s < arrival, first + 1, first)
    return first


def waits(data: Colocation) -> Floats:
    """Seconds in the system before the first epoch that a job can run in."""
    jobs = data.jobs
    leaves = np.where(jobs.is_service, jobs.arrival_s + jobs.stay_s, np.inf)
    until = np.minimum(first_epochs(data), data.horizon_epochs) * data.epoch_s
    out: Floats = np.maximum(np.minimum(leaves, until) - jobs.arrival_s, 0.0)
    return out


def total_wait_s(data: Colocation) -> float:
    """The shortfall that no decision avoids: jobs wait for the next epoch.

    It is lowered by the rounding of the ends of epochs, of which the verifier may compute others.
    """
    waiting = waits(data)
    rounding = 2.0**-51 * data.horizon_epochs * data.epoch_s
    return max(fsum(waiting.tolist()) - int((waiting > 0).sum()) * rounding, 0.0)


def even_edges(data: Colocation, num_bins: int) -> Ints:
    """Bins of nearly equal length until the last job should be done, and few after that."""
    jobs, horizon = data.jobs, data.horizon_epochs
    first = first_epochs(data)
    needs = np.where(jobs.is_service, jobs.stay_s, jobs.work / jobs.required_per_s)
    end = int(np.ceil((first * data.epoch_s + needs).max() / data.epoch_s))
    begin, end = int(min(first.min(), horizon - 1)), min(end, horizon)
    busy = np.linspace(begin, max(end, begin + 1), num_bins + 1)
    after = np.linspace(max(end, begin + 1), horizon, IDLE_BINS + 1)
    return np.unique(np.round(np.concatenate([busy, after])).astype(np.int64))


def check_edges(data: Colocation, edges: Ints) -> None:
    """Refuse bins that are out of order, or that leave out epochs in which a job can run."""
    wrong = len(edges) < 2 or (np.diff(edges) <= 0).any() or edges[-1] != data.horizon_epochs
    begin = min(int(first_epochs(data).min()), data.horizon_epochs - 1)
    if wrong or not 0 <= edges[0] <= begin:
        raise ModelError(
            f"edges of bins must rise from at most {begin} to {data.horizon_epochs}; "
            f"they are {edges.tolist()!r:.80}"
        )


def demand_of(data: Colocation, edges: Ints) -> OfflineDemand:
    """Put jobs and GPUs into bins."""
    check_edges(data, edges)
    jobs, step = data.jobs, data.epoch_s
    start = first_epochs(data)
    leaves = np.where(jobs.is_service, jobs.arrival_s + jobs.stay_s, np.inf)
    begin = np.maximum(edges[None, :-1], start[:, None])
    within = np.maximum(edges[None, 1:] - begin, 0) * step
    stays = np.maximum(leaves[:, None] - begin * step, 0.0)
    waiting: Floats = waits(data)
    there: Floats = np.minimum(within, stays)
    counts: Ints = np.array([data.counts(e) for e in range(int(edges[0]), int(edges[-1]))])
    at = edges[:-1] - edges[0]
    return OfflineDemand(
        edges,
        np.asarray(start * step, dtype=np.float64),
        waiting,
        there,
        np.maximum(edges[None, 1:] - start[:, None], 0) * step,
        np.add.reduceat(counts, at, axis=0).T * step,
        np.maximum.reduceat(counts, at, axis=0).T,
    )
