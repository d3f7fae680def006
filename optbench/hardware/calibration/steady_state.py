"""The steady part of a run: where power no longer drifts, and its mean there.

A reading of power is the mean over the window before it, so that readings count only from one
window after the work began. From an energy counter, power is the energy between two changes of the
counter over the time between them.

The part that is left is divided into blocks no shorter than the window. It is steady if the means
of its two halves differ by no more than 0.5 %, or than three standard errors by the scatter of the
blocks; while it is not, more tenths of the work are left out, up to six of its beginning and two of
its end (a load may say late that it has ended). That scatter is the median of |b_k+1 − b_k| over
0.6745 √2 (of normal errors their standard deviation), which neither a slow drift nor a step
enlarges. What is reported is sqrt(mean((b_k+1 − b_k)²) / 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Values = Sequence[float] | NDArray[Any]

DRIFT = 0.005
ERRORS = 3.0
MOST_BLOCKS, LEAST_BLOCKS = 12, 4
# Shares of the work that are left out at its beginning and its end, the least first.
CUTS = sorted(((a / 10, b / 10) for a in range(7) for b in range(3)), key=lambda cut: sum(cut))
# Median of |x − y| for normal x and y over their standard deviation.
NORMAL = 0.6745 * 2**0.5


@dataclass(frozen=True)
class PowerSeries:
    """Mean watts over the intervals (begin, end], in order of time."""

    begin_s: Floats
    end_s: Floats
    watts: Floats

    def within(self, begin_s: float, end_s: float) -> PowerSeries:
        kept = (self.begin_s >= begin_s) & (self.end_s <= end_s)
        return PowerSeries(self.begin_s[kept], self.end_s[kept], self.watts[kept])

    @property
    def mean_w(self) -> float:
        """Weighted by the lengths of the intervals: of a counter, all its energy over all its
        time."""
        return float(np.average(self.watts, weights=self.end_s - self.begin_s))


@dataclass(frozen=True)
class SteadyPart:
    """Where a run is steady, its mean power, and the relative scatter of its blocks."""

    begin_s: float
    end_s: float
    watts: float
    scatter: float
    block_s: float


def by_counter(times_s: Values, energy_j: Values) -> PowerSeries:
    """Power between changes of an energy counter, which may change less often than it is read."""
    t, energy = np.asarray(times_s, dtype=float), np.asarray(energy_j, dtype=float)
    changed = np.flatnonzero(np.diff(energy) > 0) + 1
    t, energy = t[changed], energy[changed]
    return PowerSeries(t[:-1], t[1:], np.diff(energy) / np.diff(t))


def by_readings(times_s: Values, watts: Values, window_s: float) -> PowerSeries:
    """Readings, each of which is a mean over the window before it.

    A reading without a window counts for a microsecond: all have the same weight."""
    t = np.asarray(times_s, dtype=float)
    return PowerSeries(t - max(window_s, 1e-6), t, np.asarray(watts, dtype=float))


def steady_part(
    series: PowerSeries, begin_s: float, end_s: float, window_s: float, least_s: float
) -> SteadyPart | str:
    """The steady part of the work from ``begin_s`` to ``end_s``, at least ``least_s`` long, or the
    reason why there is none."""
    drifts = ""
    for first, last in CUTS:
        begin, end = (begin_s + share * (end_s - begin_s) for share in (first, 1 - last))
        part = series.within(begin, end)
        if len(part.watts) < 2 * LEAST_BLOCKS:
            continue
        blocks, length = _blocks(part, window_s)
        measured_s = float(part.end_s[-1] - part.begin_s[0])
        if len(blocks) < LEAST_BLOCKS or measured_s < least_s:
            continue
        half, mean, steps = len(blocks) // 2, part.mean_w, np.abs(np.diff(blocks))
        scatter, robust = float(np.sqrt(np.mean(steps**2) / 2)), float(np.median(steps)) / NORMAL
        drift = (float(blocks[-half:].mean()) - float(blocks[:half].mean())) / mean
        if abs(drift) <= max(DRIFT, ERRORS * robust / mean * (2 / half) ** 0.5):
            return SteadyPart(
                float(part.begin_s[0]), float(part.end_s[-1]), mean, scatter / mean, length
            )
        drifts = f"the power drifts by {100 * drift:+.1f} % within {measured_s:.1f} s"
    return drifts or (
        f"the work took {end_s - begin_s:.2f} s, too short for {least_s:.2g} s of steady power "
        f"with readings that average {window_s:g} s"
    )


def _blocks(part: PowerSeries, window_s: float) -> tuple[Floats, float]:
    """Means of blocks of equal length, and the length."""
    begin, end = float(part.begin_s[0]), float(part.end_s[-1])
    count = MOST_BLOCKS if window_s <= 0 else min(MOST_BLOCKS, int((end - begin) / window_s))
    count = min(count, len(part.watts) // 2)
    if count < 1:
        return np.zeros(0), 0.0
    place = np.minimum(((part.end_s - begin) / (end - begin) * count).astype(int), count - 1)
    lengths = part.end_s - part.begin_s
    joules = np.bincount(place, weights=part.watts * lengths, minlength=count)
    seconds = np.bincount(place, weights=lengths, minlength=count)
    return (joules / np.maximum(seconds, 1e-12))[seconds > 0], (end - begin) / count
