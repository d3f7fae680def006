"""The rules that the rows of one epoch must keep, each with a name; a broken one is a violation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Set

import numpy as np

from optbench.model.checks import Violation
from optbench.shapes.colocation.allocations import NOBODY, Placement
from optbench.shapes.colocation.colocation_data import Colocation, Floats
from optbench.shapes.colocation.epoch_physics import Misfit

RULES = {
    "form": "rows name GPU types and jobs that exist, and jobs in order",
    "gpu_count": "no more GPUs of a type are in use than are available",
    "distinct": "two jobs on a GPU are two different ones",
    "gang_alone": "a job of several GPUs runs alone",
    "profile_alone": "a profile run has one job, which has no other row in the epoch",
    "replicas": "a job runs on no more GPUs than it has replicas",
    "arrival": "a job runs only in epochs that begin after it has arrived",
    "presence": "a job runs only until it has completed or left",
    "known_misfit": "jobs that are known not to fit are not placed together",
    "epochs": "every epoch lies within the horizon",
    "completed": "every training job completes within the horizon",
}


def broken_rules(
    data: Colocation, epoch: int, rows: Placement, left: Floats, known: Set[Misfit]
) -> list[Violation]:
    """Return the rules that the rows of an epoch break."""
    ill_formed = list(_form(data, rows))
    if ill_formed:
        return ill_formed
    return [
        *_counts(data, epoch, rows),
        *_rows(data, rows, known),
        *_jobs(data, epoch, rows, left),
    ]


def _form(data: Colocation, rows: Placement) -> Iterator[Violation]:
    n = data.jobs.count
    sizes = {len(rows.gpu_type), len(rows.first), len(rows.second), len(rows.profile)}
    if len(sizes) != 1:
        yield Violation("form", "the columns of the rows differ in length")
        return
    wrong = (rows.gpu_type < 0) | (rows.gpu_type >= data.num_gpu_types)
    wrong |= (rows.first < 0) | (rows.first >= n)
    wrong |= (rows.second < NOBODY) | (rows.second >= n)
    for r in np.flatnonzero(wrong)[:1].tolist():
        yield Violation(
            "form",
            f"row {r} has GPU type {rows.gpu_type[r]} and jobs {rows.first[r]} and "
            f"{rows.second[r]}; there are {data.num_gpu_types} types and {n:,} jobs",
            float(wrong.sum()),
        )


def _counts(data: Colocation, epoch: int, rows: Placement) -> Iterator[Violation]:
    gpus = data.gangs[data.jobs.job_type[rows.first]]
    used = np.bincount(rows.gpu_type, gpus, data.num_gpu_types)
    there = data.counts(epoch)
    for g in np.flatnonzero(used > there).tolist():
        yield Violation(
            "gpu_count",
            f"epoch {epoch}: {used[g]:.0f} GPUs of type {data.gpu_types[g].name} are in use; "
            f"{there[g]} are available",
            float(used[g] - there[g]),
        )


def _rows(data: Colocation, rows: Placement, known: Set[Misfit]) -> Iterator[Violation]:
    kind, gangs = data.jobs.job_type, data.gangs
    for r in np.flatnonzero(rows.first == rows.second).tolist():
        yield Violation("distinct", f"job {rows.first[r]} stands beside itself")
    paired = rows.second != NOBODY
    gang = (gangs[kind[rows.first]] > 1) | (gangs[kind[np.where(paired, rows.second, 0)]] > 1)
    for r in np.flatnonzero(paired & gang).tolist():
        words = f"jobs {rows.first[r]} and {rows.second[r]} share GPUs; one of them is a gang"
        yield Violation("gang_alone", words)
    for r in np.flatnonzero(paired & rows.profile).tolist():
        yield Violation("profile_alone", f"the profile run of job {rows.first[r]} has a partner")
    named = np.concatenate([rows.first, rows.second[paired]])
    times = np.bincount(named, minlength=data.jobs.count)
    for r in np.flatnonzero(rows.profile & (times[rows.first] > 1)).tolist():
        yield Violation("profile_alone", f"job {rows.first[r]} has a row beside its profile run")
    for r in range(rows.num_rows if known else 0):
        g, one = int(rows.gpu_type[r]), int(kind[rows.first[r]])
        other = int(kind[rows.second[r]]) if paired[r] else NOBODY
        kinds = (NOBODY, one) if other == NOBODY else tuple(sorted((one, other)))
        found = Misfit(g, one, NOBODY) if other == NOBODY else Misfit(g, kinds[0], kinds[1])
        if found in known:
            names = " beside ".join(data.job_types[t].title for t in kinds if t != NOBODY)
            words = f"{names} on {data.gpu_types[g].name} is known not to fit"
            yield Violation("known_misfit", words)


def _jobs(data: Colocation, epoch: int, rows: Placement, left: Floats) -> Iterator[Violation]:
    jobs, begin = data.jobs, epoch * data.epoch_s
    named = np.concatenate([rows.first, rows.second[rows.second != NOBODY]])
    single = data.gangs[jobs.job_type] == 1
    for job, times in Counter(named.tolist()).items():
        allowed = int(jobs.replicas[job]) if single[job] else 1
        if times > allowed:
            words = f"epoch {epoch}: job {job} stands in {times} rows; it has {allowed} replicas"
            yield Violation("replicas", words, float(times - allowed))
        if jobs.arrival_s[job] > begin:
            words = f"epoch {epoch}: job {job} has not arrived at {begin:g} s"
            yield Violation("arrival", words, float(jobs.arrival_s[job] - begin))
        elif jobs.stay_s[job] > 0 and jobs.arrival_s[job] + jobs.stay_s[job] <= begin:
            yield Violation("presence", f"epoch {epoch}: service {job} has left")
        elif jobs.stay_s[job] == 0 and left[job] <= 0:
            yield Violation("presence", f"epoch {epoch}: job {job} has completed")
