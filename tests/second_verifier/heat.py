"""Temperatures of cooled places ("Temperature" in docs/formats.md).

With pieces [a_i, b_i) of constant power P_i, the temperature at time t is the sum of what is left
of each piece,

    T(t) = ambient + (start − ambient) e^(−t/τ) + c_per_w Σ_i P_i (e^(−(t−b_i)/τ) − e^(−(t−a_i)/τ)),

powers being rational numbers and pieces after t being left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from tests.second_verifier.problem import Json, Nap, Problem, Segment

TOLERANCE = Fraction(1, 2**30)


def too_hot(problem: Problem, segments: list[Segment], naps: Sequence[Nap] = ()) -> bool:
    """Whether a cooled place passes its limit."""
    return any(
        peak - row["limit_c"] > float(TOLERANCE) * size_of(row)
        for row, peak in peaks(problem, segments, naps)
    )


def size_of(row: Json) -> float:
    return sum(abs(float(row[key])) for key in ("ambient_c", "start_c", "limit_c"))


def peaks(
    problem: Problem, segments: list[Segment], naps: Sequence[Nap] = ()
) -> list[tuple[Json, float]]:
    """Each cooled place and its highest temperature."""
    table = problem.data.get("cooling")
    if table is None:
        return []
    rows = [dict(zip(table, row)) for row in zip(*table.values())]
    return [(row, peak(problem, segments, naps, row)) for row in rows]


def peak(problem: Problem, segments: list[Segment], naps: Sequence[Nap], row: Json) -> float:
    end = max([problem.horizon or 0, *(s.end for s in segments)])
    moments = {0, end}
    moments |= {t for s in segments if s.length > 0 for t in (s.start, s.end) if 0 <= t <= end}
    moments |= {t for nap in naps for t in (nap.start, nap.end) if 0 <= t <= end}
    times = sorted(moments)
    pieces = [(a, b, power(problem, segments, naps, row["place"], a)) for a, b in pairwise(times)]
    return max(temperature(problem, row, pieces, t) for t in times)


def power(
    problem: Problem, segments: list[Segment], naps: Sequence[Nap], place: int, t: int
) -> Fraction:
    """The power at and below a place from time t to the next event."""
    below, total = problem.below[place], Fraction(0)
    busy = [0] * problem.num_pools
    for s in segments:
        if s.start <= t < s.end:
            if problem.primary[s.mode] in below:
                total += problem.energy_j(s) / (s.length * problem.tick)
            for pool, n in problem.needs[s.mode].items():
                busy[pool] += n
    for pool in below:
        total += problem.rest_w[pool] * (problem.pools["count"][pool] - busy[pool])
    for nap in naps:
        if nap.pool in below and nap.start <= t < nap.end:
            total -= problem.saved_w(nap)
    return total


def temperature(
    problem: Problem, row: Json, pieces: list[tuple[int, int, Fraction]], t: int
) -> float:
    def left(since: int) -> float:
        """Share that remains at t of what was there at a time."""
        return math.exp(-float((t - since) * problem.tick) / float(row["time_constant_s"]))

    terms = [row["ambient_c"] * (1.0 - left(0)), row["start_c"] * left(0)]
    for a, b, watt in pieces:
        if b <= t:
            # left(b) − left(a), without the loss of digits that a difference has
            gone = -math.expm1(-float((b - a) * problem.tick) / row["time_constant_s"])
            terms.append(float(Fraction(row["c_per_w"]) * watt) * left(b) * gone)
    return math.fsum(terms)
