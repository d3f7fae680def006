"""What an epoch of co-located jobs does: progress, shortfall, energy and misfits.

In an epoch of D seconds a row holds one gang, one job, or two jobs on a GPU of type g. A row that
does not fit makes its later job fail, which makes no progress and costs idle power for the restart
time, on top of all other energy; the other job goes on alone. With T_ir the true throughput of job
i in row r, l_ir its seconds lost to migration, and w_r the row's window (D, or the time of a
profile run), a training job that still needs W_i has completed at the first f with

    Σ_r T_ir (min(f, w_r) − l_ir)⁺ = W_i

and is active in row r until min(f, w_r). A service is active until it leaves or w_r is over; it
does q_i = min(required_i, Σ_r T_ir) per second, each row its share of the throughput. With x_ir the
rate in a row and τ_r the longest time for which one of its jobs is active,

    u_r = min(1, Σ_i utilisation_i x_ir / alone_i)        E_r = gpus_r (P(u_r) − P_sleep) τ_r
    P(u) = P_idle + u (P_full − P_idle)

Rates are constant within an epoch: that a partner has completed does not make a job faster before
the next epoch. The shortfall of a job is the time that it is in the system, waiting included, less
its active time times min(1, rate / required).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.shapes.colocation.allocations import NOBODY, Placement
from optbench.shapes.colocation.colocation_data import Bools, Colocation, Floats, Ints

# A rate within this share of the requirement meets it.
SAME = 2.0**-40
# GPU type of a job in the epoch before: it has not run yet, or it was waiting.
NEVER, WAITING = -2, -1


@dataclass(frozen=True)
class Members:
    """The jobs of all rows of an epoch: two entries for a row with two jobs.

    ``rate_per_s`` is the throughput of the job there, 0 where it fails; ``fails`` marks those."""

    row: Ints
    job: Ints
    partner: Ints
    rate_per_s: Floats
    fails: Bools


@dataclass(frozen=True)
class Misfit:
    """Job types that do not fit on a GPU type together; ``partner_type`` is -1 for one alone."""

    gpu_type: int
    job_type: int
    partner_type: int


@dataclass(frozen=True)
class EpochEffects:
    """Per job: progress in units, seconds in the system, in shortfall and below the requirement,
    and when within the epoch it completes (infinite where it does not). Per row: energy beyond
    sleep and busy GPU-seconds.
    """

    members: Members
    progress: Floats
    present_s: Floats
    shortfall_s: Floats
    below_s: Floats
    completed_s: Floats
    energy_j: Floats
    busy_gpu_s: Floats
    misfits: tuple[Misfit, ...]


def members_of(data: Colocation, rows: Placement) -> Members:
    """Return the jobs of the rows with their true throughputs; later jobs of misfits fail."""
    double = np.flatnonzero(rows.second != NOBODY)
    row = np.concatenate([np.arange(rows.num_rows), double])
    job = np.concatenate([rows.first, rows.second[double]])
    partner = np.concatenate([rows.second, rows.first[double]])
    kind, gpu = data.jobs.job_type, rows.gpu_type[row]
    paired = partner != NOBODY
    alone = data.alone_per_s[gpu, kind[job]]
    beside = data.beside_per_s[gpu, kind[job], kind[np.where(paired, partner, job)]]
    misfit = paired & (beside == 0)
    # Of a pair that does not fit the later job fails, and the other one is alone.
    fails = (misfit & (job > partner)) | ((~paired | misfit) & (alone == 0))
    rate = np.where(paired & ~misfit, beside, alone)
    return Members(row, job, partner, np.where(fails, 0.0, rate), fails)


def misfits_of(data: Colocation, rows: Placement, members: Members) -> tuple[Misfit, ...]:
    """Return what the failures of these rows make known."""
    kind = data.jobs.job_type
    found: dict[Misfit, None] = {}
    for k in np.flatnonzero(members.fails).tolist():
        g, job, partner = (
            int(rows.gpu_type[members.row[k]]),
            int(members.job[k]),
            int(members.partner[k]),
        )
        was_alone = partner == NOBODY or job < partner  # of a pair, the earlier job stays
        if was_alone and data.alone_per_s[g, kind[job]] == 0:
            found[Misfit(g, int(kind[job]), NOBODY)] = None
        if partner != NOBODY:
            one, other = sorted((int(kind[job]), int(kind[partner])))
            found[Misfit(g, one, other)] = None
    return tuple(found)


def epoch_effects(
    data: Colocation, epoch: int, rows: Placement, left: Floats, before: Ints
) -> EpochEffects:
    """Return what an epoch does; ``left`` is the work that is left per training job, ``before`` the
    GPU type of each job in the epoch before (``NEVER``, ``WAITING``).
    """
    jobs, n = data.jobs, data.jobs.count
    members = members_of(data, rows)
    job, row = members.job, members.row
    gpu = rows.gpu_type[row]
    window = np.where(rows.profile, data.profile_s, data.epoch_s)[row]
    moved = (before[job] != gpu) & (before[job] != NEVER)
    lost = np.minimum(np.where(moved, data.migration_s, 0.0), window)
    rate = members.rate_per_s

    begin = epoch * data.epoch_s
    leaves = np.where(jobs.is_service, jobs.arrival_s + jobs.stay_s, np.inf)
    present = _present_s(data, begin, leaves, left)
    completed = _completions(n, job, rate, lost, window, left, jobs.is_service)
    present = np.where(np.isfinite(completed), np.minimum(present, completed), present)
    until = np.where(jobs.is_service, np.maximum(leaves - begin, 0.0), completed)[job]
    active = np.minimum(until, window)
    active[members.fails] = 0.0
    productive = np.clip(active - lost, 0.0, None)

    total = np.bincount(job, rate, n)
    served: Floats = np.where(jobs.is_service, np.minimum(jobs.required_per_s, total), total)
    share = np.divide(served, total, out=np.zeros(n), where=total > 0)
    done_rate = rate * share[job]
    progress = np.bincount(job, done_rate * productive, n).astype(np.float64)
    finished = np.isfinite(completed) & ~jobs.is_service
    progress[finished] = left[finished]

    meets = np.minimum(1.0, done_rate / jobs.required_per_s[job])
    useful = np.bincount(job, meets * productive, n)
    shortfall = np.clip(present - np.minimum(useful, present), 0.0, None)
    shortfall[shortfall <= SAME * data.epoch_s] = 0.0  # the rounding of seconds of an epoch
    enough = served >= jobs.required_per_s * (1 - SAME)
    longest = np.zeros(n)
    np.maximum.at(longest, job, productive)
    below = np.where(enough, np.clip(present - longest, 0.0, None), present)

    energy, busy = _energy(data, rows, members, done_rate, active)
    misfits = misfits_of(data, rows, members)
    return EpochEffects(
        members, progress, present, shortfall, below, completed, energy, busy, misfits
    )


def _present_s(data: Colocation, begin: float, leaves: Floats, left: Floats) -> Floats:
    """Seconds of an epoch in which each job is in the system, if it does not complete."""
    end = begin + data.epoch_s
    seconds: Floats = np.minimum(leaves, end) - np.maximum(data.jobs.arrival_s, begin)
    done = ~data.jobs.is_service & (left <= 0)
    out: Floats = np.where(done, 0.0, np.maximum(seconds, 0.0))
    return out


def _completions(
    n: int, job: Ints, rate: Floats, lost: Floats, window: Floats, left: Floats, service: Bools
) -> Floats:
    """The first time at which the work of a training job is done; infinite where it is not."""
    out = np.full(n, np.inf)
    rows_of = np.bincount(job, minlength=n)
    single = (rows_of[job] == 1) & ~service[job] & (rate > 0)
    with np.errstate(divide="ignore"):
        at = lost[single] + left[job[single]] / rate[single]
    out[job[single]] = np.where(at <= window[single], at, np.inf)
    for i in np.flatnonzero((rows_of > 1) & ~service).tolist():
        mine = np.flatnonzero((job == i) & (rate > 0))
        out[i] = _completion(rate[mine], lost[mine], window[mine], float(left[i]))
    return out


def _completion(rate: Floats, lost: Floats, window: Floats, left: float) -> float:
    """The first f with Σ rate (min(f, window) − lost)⁺ = left."""
    points = np.unique(np.concatenate([lost, window]))
    done_at = [
        float((rate * np.clip(np.minimum(f, window) - lost, 0.0, None)).sum()) for f in points
    ]
    for k, done in enumerate(done_at):
        if done >= left:
            if k == 0:
                return float(points[0])
            slope = (done - done_at[k - 1]) / (points[k] - points[k - 1])
            return float(points[k - 1] + (left - done_at[k - 1]) / slope)
    return np.inf


def _energy(
    data: Colocation, rows: Placement, members: Members, rate: Floats, active: Floats
) -> tuple[Floats, Floats]:
    """Energy beyond sleep and busy GPU-seconds of each row."""
    sleep, idle, full = data.watts()
    kind = data.jobs.job_type[members.job]
    gpu = rows.gpu_type[members.row]
    alone = data.alone_per_s[gpu, kind]
    # A pair may run where a job alone was never measured; its rate then counts as full use.
    part = np.divide(rate, alone, out=(rate > 0).astype(float), where=alone > 0)
    used = np.bincount(members.row, data.utilisation[gpu, kind] * part, rows.num_rows)
    used = np.minimum(1.0, used)
    busy = np.zeros(rows.num_rows)
    np.maximum.at(busy, members.row, active)
    g = rows.gpu_type
    gpus = data.gangs[data.jobs.job_type[rows.first]]
    watts = idle[g] + used * (full[g] - idle[g]) - sleep[g]
    failures = np.bincount(members.row, members.fails, rows.num_rows)
    energy = gpus * (watts * busy + failures * idle[g] * data.restart_s)
    return energy, gpus * busy
