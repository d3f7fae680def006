"""The offline bound of a whole trace: an LP over classes of jobs, proved in whole numbers.

Arrivals are known and work is conserved; GPUs and epochs are divisible. Time is cut into bins b of
whole epochs, jobs of one type and similar requirement form classes c (``offline_demand``). The
variables, all at least 0, are x_bp, the seconds for which column p (one class, or a pair of
classes, on a GPU type g) runs in a bin, z_ib, the work of training job i in a bin, s_ib, its
shortfall in a bin, and s_cb, that of a class of services. Work is counted in seconds at the highest
rate of the class: a_pc is the rate of class c in column p, m_pc the number of its jobs there, r_i a
requirement, W_i the work of a job.

    min  Σ gpus_p w_p x_bp                           (with shortfall as the objective: Σ s)
    capacity  Σ_p on g gpus_p x_bp ≤ GPU-seconds of g in b, without those that have failed
    work      Σ_p a_pc x_bp ≥ Σ_i∈c z_ib             c a class of training jobs
    done      Σ_b z_ib ≥ W_i                         only bins that end after the job can start
    time      Σ_p m_pc x_bp ≤ Σ_i∈c replicas_i × (seconds of b in which i can be placed)

and, where shortfall is the objective or held at a value S,

    goal      Σ_{b' ≤ b} (z_ib' + r_i s_ib') ≥ min(W_i, r_i (t_b − start_i))
    presence  Σ_i∈c s_ib ≥ Σ_i∈c d_ib (1 − Σ_{b' ≤ b} z_ib' / W_i)
                           + Σ_p (bonus_pcb − credit_pc) x_bp
    lack      Σ_i∈c s_ib ≥ Σ_p lack_pc x_bp
    service   Σ_p a_pc x_bp + r_c s_cb ≥ Σ_i∈c r_i × (seconds of b in which i can be placed)
    held      Σ s ≤ S − Σ_i wait_i

with wait_i the time from arrival to start_i, the first epoch that begins at or after it, d_ib the
seconds of b after start_i, credit = min(1, T / r), lack = 1 − credit for T the rate in the column
and r the lowest requirement of the class, and bonus_pcb = min(1, a_pc min_i d_ib / W_i) where jobs
of the class have one replica each, else 0. d_ib is set to 0 in bins long after i should be done.

Why no decision lies below it. Take a feasible decision. A row of an epoch, busy for τ, draws the
power of all its members for τ. At each moment of τ some of its members are active: let x_bp count
those moments by class, z_ib the rate of a training job times the time for which it is active, and
s_ib the shortfall of ``epoch_physics`` from start_i on.

 - Capacity: τ is at most an epoch, and a profile run holds its GPU for the rest of one. A job that
   fails is never active, and costs energy that the LP does not count; the other job of its row is
   alone. Time: no job is in more rows at once than it has replicas.
 - Done: progress is the rate times the active time, less migration, so that z_ib adds up to W_i at
   least. Before start_i no job is placed.
 - Goal: in an epoch, useful time is Σ_rows min(1, rate / r_i) × (active time less migration), at
   most progress / r_i; shortfall is presence less useful time. While i is not done it is present:
   Σ (progress + r_i s_i) ≥ r_i (t − start_i). If it is done, its work is W_i.
 - Service: the same in each bin, since a service is present until it leaves. Its rate in a row is
   at most min(r_i, throughput).
 - Presence: let Z be the sum of z up to b. A job that is not done at the end of b is present for
   d_ib, and d (1 − Z / W) + Σ min(1, a d / W) x ≤ d (1 − (Z − z) / W) ≤ d. A job that is done has
   Z ≥ W, and is present for at least as long as it is active. Useful time is at most credit ×
   active time, for the lowest requirement of the class too.
 - Lack: a job in one row at a time is present while active, and useful for T / r of that time.

What remains are moments that are no column: a service below its highest rate, one member of a pair
after the other has completed or left. They matter to the dual rows of columns alone: v, what a
moment earns at given multipliers less its power (``offline_proof``), must not exceed that of some
column, or 0. With u = min(1, Σ utilisation × rate / alone), −P(u) is convex in the rates. So v is
convex in the rates of services, and largest where each of them is 0 or at its highest; at 0 the
moment earns no more than the other member alone at its rate. Of a training job alone at rate T, v
is convex up to T = r and from r on, and at most 0 at T = 0: it is largest at T = r or at the
highest T, alone or beside any class, and both are columns. Where a job alone was never measured, u
does not depend on T, and the same holds of T just above 0.

Numbers are rounded to the safe side (``offline_relaxation``), HiGHS only proposes multipliers
(``offline_master``), and the value that these prove is evaluated in whole numbers. Energy is then
lowered by 2^-44 of itself, more than the rounding of the verifier's sums: no comparison needs a
tolerance. A certificate with held shortfall S proves nothing of an instance held at more than S, or
not held.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction

from optbench.errors import OptbenchError
from optbench.model.result import Bound
from optbench.shapes.colocation.colocation_data import Colocation, Ints
from optbench.shapes.colocation_bound.offline_certificate import (
    OfflineCertificate,
    read_certificate,
    write_certificate,
)
from optbench.shapes.colocation_bound.offline_demand import even_edges, job_classes, total_wait_s
from optbench.shapes.colocation_bound.offline_master import OfflineMaster
from optbench.shapes.colocation_bound.offline_proof import OfflineMultipliers, proven_sum
from optbench.shapes.colocation_bound.offline_relaxation import in_whole_numbers, relaxation
from optbench.shapes.milp.milp_shape import outward

FREE, HELD = "offline_lp", "offline_lp_held"
# The evaluation of energy rounds a few sums of floats; the bound is lowered by this share.
EVALUATION = Fraction(1, 1 << 44)
MOST_CLASSES = 160
# Few bins come first: they give most of the value, and all of it where time is short.
FEW_BINS, MOST_BINS, JOBS_TIMES_BINS = 6, 24, 4000


@dataclass(frozen=True)
class _Found:
    """Multipliers with the value that they give in floats."""

    value: float
    edges: Ints
    multipliers: OfflineMultipliers


def offline_bounds(
    data: Colocation,
    level: int,
    held_shortfall_s: float | None,
    time_limit_s: float,
    num_bins: int | None = None,
    groups: int | None = None,
) -> list[Bound]:
    """Return certified bounds of a level, best first: at level 1 with and without held shortfall.

    ``level`` 0 is shortfall, 1 energy. More bins, and more groups per type, take more time."""
    groups = finest_groups(data) if groups is None else groups
    fine = min(max(JOBS_TIMES_BINS // data.jobs.count, FEW_BINS), MOST_BINS)
    bins = [FEW_BINS, fine] if num_bins is None else [num_bins]
    alone = level == 0 or held_shortfall_s is None
    free = _search(data, level, None, bins, groups, time_limit_s / (1 if alone else 3))
    found = [_proved(data, level, None, groups, free)]
    if not alone:
        held = _search(data, level, held_shortfall_s, bins, groups, time_limit_s * 2 / 3)
        # Multipliers that do not price shortfall prove as much where it is held.
        best = max(free, held, key=lambda each: each.value)
        found.insert(0, _proved(data, level, held_shortfall_s, groups, best))
    return found


def finest_groups(data: Colocation) -> int:
    """Groups of jobs per type: as many as ``MOST_CLASSES`` allow, at best a class per job."""
    groups = 1
    while groups < data.jobs.count and job_classes(data, 2 * groups).count <= MOST_CLASSES:
        groups *= 2
    return groups


def _search(
    data: Colocation,
    level: int,
    held_shortfall_s: float | None,
    bins: list[int],
    groups: int,
    time_limit_s: float,
) -> _Found:
    """Return the best multipliers that the numbers of bins give in the time, one after another."""
    deadline = time.perf_counter() + time_limit_s
    counted = level == 0 or held_shortfall_s is not None
    found: list[_Found] = []
    for num_bins in sorted(set(bins)):
        left = max(deadline - time.perf_counter(), 0.0)
        if found and left <= 0:
            break
        edges = even_edges(data, num_bins)
        lp = relaxation(data, edges, groups, held_shortfall_s)
        value, multipliers = OfflineMaster(lp, level == 1, counted, left).multipliers()
        found.append(_Found(value, edges, multipliers))
    return max(found, key=lambda each: each.value)


def _proved(
    data: Colocation, level: int, held_shortfall_s: float | None, groups: int, found: _Found
) -> Bound:
    """Prove the value of multipliers."""
    given = OfflineCertificate(level, held_shortfall_s, groups, found.edges, found.multipliers)
    return prove_offline(data, level, held_shortfall_s, write_certificate(given))


def prove_offline(
    data: Colocation, level: int, held_shortfall_s: float | None, certificate: str
) -> Bound:
    """Prove a bound again from the instance and the multipliers of a certificate."""
    given = read_certificate(certificate, data)
    if given.level != level:
        raise OptbenchError(
            f"the certificate is of level {given.level}; the instance is at {level}"
        )
    if given.held_shortfall_s is not None and (
        held_shortfall_s is None or held_shortfall_s > given.held_shortfall_s
    ):
        raise OptbenchError(
            f"the certificate holds shortfall_s at {given.held_shortfall_s!r}; the instance "
            f"{'does not hold it' if held_shortfall_s is None else f'at {held_shortfall_s!r}'}"
        )
    whole = in_whole_numbers(relaxation(data, given.edges, given.groups, given.held_shortfall_s))
    proven = proven_sum(whole, given.multipliers, level == 1)
    source = FREE if given.held_shortfall_s is None else HELD
    value = _shortfall(data, proven) if level == 0 else _energy(data, proven)
    return Bound(value, source, "exact-lp", certificate=certificate)


def _shortfall(data: Colocation, beyond_waiting: Fraction) -> float:
    """Waiting for the first epoch, and what the LP proves beyond it, less its rounding."""
    waiting = total_wait_s(data)
    horizon_s = Fraction(data.horizon_epochs * data.epoch_s)
    terms = 4 * data.jobs.count * (data.horizon_epochs + 1)
    value = (Fraction(waiting) + beyond_waiting - terms * horizon_s / (1 << 52)) * (1 - EVALUATION)
    return max(waiting, outward(value, "min"))


def _energy(data: Colocation, busy_j: Fraction) -> float:
    """Sleep of all GPUs up to the horizon, and what the LP proves beyond it."""
    sleep, _, _ = data.watts()
    counts = [each.count for each in data.gpu_types]
    asleep_w = sum((Fraction(n) * Fraction(w) for n, w in zip(counts, sleep.tolist())), Fraction(0))
    asleep = asleep_w * data.horizon_epochs * Fraction(data.epoch_s)
    return outward((asleep + max(busy_j, Fraction(0))) * (1 - EVALUATION), "min")
