"""Energies as intervals, where a log leaves open on which type of GPU its runs ran.

With y_gt the seconds that the pods of group g (n GPUs, or a share s of one) ran on type t, the log
says no more than

    Σ_t y_gt = D_g          t among the types that the group may use
    Σ_g s n y_gt ≤ count_t H

and the record used

    H Σ_t idle_t count_t + Σ_gt c_gt y_gt        with  s n (P_t − idle_t) ≤ c_gt ≤ n (P_t − idle_t)

since the log does not say either how much of a shared GPU's power is due to a pod. The ends of this
over all such y are linear programmes. Whatever y is, the work was u_g = Σ_t s y_gt / T_t, and no
scheduler does it, in S seconds in the system of all pods together, with less than

    min  Σ (P_w − rest) T_w x_gw + M Σ_t rest_t count_t        over x and y, Σ_w x_gw = u_g

and else the rows of ``least_energy``.

All ends are proved again in exact arithmetic. A placement in between has a least energy of its own:
it is given for the two ends.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from optbench.audit.least_energy import proved
from optbench.audit.log import AuditOptions
from optbench.audit.pods import PodGroup, Pods, read_pods
from optbench.bounds.lp.linear_program import LinearProgram, LpColumns, LpRows, assemble
from optbench.model.instance import Floats, Ints
from optbench.model.measures import check_bound
from optbench.units import SUM_MARGIN

# GPU-seconds and units are counted in this power of two, joules too: exact in floats, and of a size
# that HiGHS likes.
SHIFT = 20


@dataclass(frozen=True, eq=False)
class Ranges:
    """``least_j`` holds wherever the pods ran; ``at_low_j`` and ``at_high_j`` where the record used
    least and most.
    """

    pods: Pods
    options: AuditOptions
    recorded_low_j: float
    recorded_high_j: float
    least_j: float
    at_low_j: float
    at_high_j: float
    sojourn_s: float
    assumptions: tuple[str, ...]
    wall_s: float


@dataclass(frozen=True, eq=False)
class Spots:
    """Every (group, type) that the log allows."""

    group: Ints
    kind: Ints
    held: Floats
    whole: Floats
    seconds: Floats
    busy_w: Floats
    unit_s: Floats


def ranges(path: Path, options: AuditOptions) -> Ranges:
    began = time.perf_counter()
    pods = read_pods(path, options)
    spots = spots_of(pods)
    idle = np.asarray([p.idle_w for p in pods.profiles])
    base_j = float((idle * pods.counts).sum()) * pods.last_s
    above = spots.busy_w - idle[spots.kind]
    low, at_low = end_of(pods, spots, spots.held * above)
    high, at_high = end_of(pods, spots, -spots.whole * above)
    low_j, high_j = base_j + low, base_j - high
    least_j = least_over(pods, spots, options, None)
    # What holds wherever they ran holds there too.
    at_low_j = max(least_j, least_over(pods, spots, options, at_low))
    at_high_j = max(least_j, least_over(pods, spots, options, at_high))
    check_bound(low_j, least_j, "the least energy wherever the pods ran", pods.name)
    words, mean_s = assumptions_of(pods, options), pods.sojourn_s / pods.num_pods
    wall_s = time.perf_counter() - began
    recorded, least = (low_j, high_j), (least_j, at_low_j, at_high_j)
    return Ranges(pods, options, *recorded, *least, mean_s, words, wall_s)


def spots_of(pods: Pods) -> Spots:
    rows = [(g, t, group) for g, group in enumerate(pods.groups) for t in group.types]
    busy, unit = zip(*(spot(pods, group, t) for _, t, group in rows), strict=True)
    held = np.asarray([each.gpus * each.share for _, _, each in rows])
    whole = np.asarray([float(each.gpus) for _, _, each in rows])
    seconds = np.asarray([each.work_s for each in pods.groups])
    group, kind = np.asarray([(g, t) for g, t, _ in rows]).T
    return Spots(group, kind, held, whole, seconds, np.asarray(busy), np.asarray(unit))


def spot(pods: Pods, group: PodGroup, t: int) -> tuple[float, float]:
    """Power of one GPU at work, and the seconds that a unit took."""
    profile, clock = pods.profiles[t], float(pods.clock[t])
    seconds = profile.time_per_unit_s(pods.work, group.gpus, clock) / group.share
    return profile.power_w(pods.work, group.gpus, clock) / group.gpus, seconds


def placements(pods: Pods, spots: Spots, columns: LpColumns, rows: LpRows, cost: Floats) -> Ints:
    """Columns y, in 2^SHIFT seconds, and what the log says of them."""
    seconds = np.ldexp(spots.seconds, -SHIFT)
    y = columns.add(len(spots.group), 0.0, seconds[spots.group], cost)
    rows.add("seconds", seconds, (spots.group, y, 1.0), equal=True)
    room = pods.counts * np.ldexp(pods.last_s, -SHIFT) * (1 + SUM_MARGIN)
    rows.add("room", -room, (spots.kind, y, -spots.held))
    return y


def end_of(pods: Pods, spots: Spots, cost: Floats) -> tuple[float, Floats]:
    """Least of a cost per second over the placements that the log allows, proved; and one of least
    cost.
    """
    columns, rows = LpColumns(), LpRows()
    y = placements(pods, spots, columns, rows, np.nextafter(cost, -np.inf))
    value, point, _ = proved(assemble(columns, rows), np.arange(len(spots.seconds)))
    return float(np.ldexp(value, SHIFT)), np.maximum(point[y], 0.0)


def least_over(pods: Pods, spots: Spots, options: AuditOptions, at: Floats | None) -> float:
    """The certified least energy, over all placements or ``at`` one."""
    lp = least_program(pods, spots, options, at)
    value, _, _ = proved(lp, np.zeros(0, dtype=np.int64))
    return float(np.ldexp(value, SHIFT))


def least_program(
    pods: Pods, spots: Spots, options: AuditOptions, at: Floats | None
) -> LinearProgram:
    free = options.free
    rest = np.asarray([p.sleep_w if "idle" in free else p.idle_w for p in pods.profiles])
    columns, rows = LpColumns(), LpRows()
    if at is None:
        y = placements(pods, spots, columns, rows, np.zeros(len(spots.group)))
    else:
        y = columns.add(len(at), at * (1 - SUM_MARGIN), at, 0.0)
    source, use, time_s, net_j, kind = ways_of(pods, spots, options, rest)
    # No way is used for more than all that a group may have done.
    most = np.full(len(pods.groups), 0.0)
    np.maximum.at(most, spots.group, spots.seconds[spots.group] / spots.unit_s)
    group = spots.group[source] if "placement" not in free else source
    x = columns.add(len(source), 0.0, np.ldexp(most[group], -SHIFT), np.nextafter(net_j, -np.inf))
    soonest, latest = np.ldexp([pods.last_release_s, 4 * pods.last_s], -SHIFT)
    end = columns.add(1, float(soonest), float(latest), float(rest @ pods.counts))[0]
    done = np.nextafter(1.0 / spots.unit_s, 0.0)
    # Work is at least what the pods did: more is never cheaper than as much.
    sources = spots.group if "placement" in free else np.arange(len(y))
    rows.add("work", np.zeros(int(sources.max()) + 1), (source, x, 1.0), (sources, y, -done))
    sojourn = -np.ldexp(pods.sojourn_s, -SHIFT) * (1 + SUM_MARGIN)
    rows.add("sojourn", sojourn, (0, x, -np.nextafter(time_s, 0.0)))
    pools = np.arange(len(pods.counts))
    busy, ends = np.nextafter(use * time_s, 0.0), np.full(len(pools), end)
    there = (pools, ends, pods.counts.astype(float))
    rows.add("gpus", np.zeros(len(pools)), (kind, x, -busy), there)
    return assemble(columns, rows)


def ways_of(
    pods: Pods, spots: Spots, options: AuditOptions, rest: Floats
) -> tuple[Ints, Floats, Floats, Floats, Ints]:
    """Source (a group, or a spot where types are kept), GPUs, seconds and joules above rest per
    unit, type: of every way.
    """
    everywhere = range(len(pods.types))
    if "placement" in options.free:
        sources = [(g, group, everywhere) for g, group in enumerate(pods.groups)]
    else:
        allowed = zip(spots.group.tolist(), spots.kind.tolist(), strict=True)
        sources = [(s, pods.groups[g], range(t, t + 1)) for s, (g, t) in enumerate(allowed)]
    out = [
        (source, n * share, seconds / share, (power - n * rest[t]) * seconds, t)
        for source, group, kinds in sources
        for n, share in counts_of(pods, group, options)
        for t in kinds
        for seconds, power in points(pods, options, t, n)
    ]
    source_of, use, time_s, net_j, kind = (np.asarray(column) for column in zip(*out, strict=True))
    return source_of, use, time_s, net_j, kind


def counts_of(pods: Pods, group: PodGroup, options: AuditOptions) -> list[tuple[int, float]]:
    """(GPUs, share) that a pod of a group may hold: what it held, or any whole number."""
    most = max(each.gpus for each in pods.groups) if "count" in options.free else 0
    return sorted({(n, 1.0) for n in range(1, most + 1)} | {(group.gpus, group.share)})


def points(pods: Pods, options: AuditOptions, t: int, n: int) -> list[tuple[float, float]]:
    """(seconds per unit, watts) of a type by clock."""
    profile = pods.profiles[t]
    clocks = profile.clocks if "clock" in options.free else (float(pods.clock[t]),)
    return [
        (profile.time_per_unit_s(pods.work, n, f), profile.power_w(pods.work, n, f)) for f in clocks
    ]


def assumptions_of(pods: Pods, options: AuditOptions) -> tuple[str, ...]:
    named = ", ".join(
        f"{kind} = {p.name}" for kind, p in zip(pods.types, pods.profiles, strict=True)
    )
    return (
        (
            f"Energy is modelled by profiles ({named}) for {options.records.work} work; the log "
            "has "
            "none."
        ),
        (
            "The log does not say where a pod ran: every figure is an interval over all types of "
            "GPU "
            "that it may have used."
        ),
        "A share of a GPU draws from its share to all of what the GPU draws at work.",
        "Pods are taken as work to be done, not as services that must be up for a time.",
        (
            "Ends of intervals hold for sums over time; that pods fit at every moment may make the "
            "true range smaller."
        ),
        *(str(finding) for finding in pods.report.assumed),
    )
