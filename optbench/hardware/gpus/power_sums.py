"""Sums over readings of power, block by block: the integral by trapezoids and its stated error.

The formulas are in energy_integral.py.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# An interval longer than this many periods is a gap.
GAP_PERIODS = 2.0
# The standard deviation of a normal number is this many times the median of its magnitude.
DEVIATION_PER_MEDIAN = 1.4826
# A change of more than this many deviations is no noise.
STEP_DEVIATIONS = 5.0
# Changes of a mean are taken within this share of its window.
LAG_SHARE = 0.2


class PowerSums:
    """Sums of the readings so far."""

    def __init__(self, period_s: float, window_s: float) -> None:
        self.period_s, self.window_s = period_s, window_s
        self._sum_j = self._variance = self._gap_s = self._swing_w = 0.0
        self._low_w, self._high_w = math.inf, -math.inf
        self._first: tuple[float, float] | None = None
        # Readings within which changes of a mean are taken; the last ones, as many.
        self._lag = max(1, round(LAG_SHARE * window_s / period_s))
        self._tail_s, self._tail_w = np.empty(0), np.empty(0)

    @property
    def span_s(self) -> float:
        return 0.0 if self._first is None else float(self._tail_s[-1]) - self._first[0]

    def add(self, t_s: Floats, power_w: Floats) -> None:
        """Add a block, without NaN."""
        if not len(t_s):
            return
        if self._first is None:
            self._first = (float(t_s[0]), float(power_w[0]))
        all_s, all_w = np.r_[self._tail_s, t_s], np.r_[self._tail_w, power_w]
        before = max(0, len(self._tail_s) - 1)
        h, change = np.diff(all_s[before:]), np.diff(all_w[before:])
        means = (all_w[before + 1 :] + all_w[before:-1]) / 2
        self._sum_j += float(np.sum(h * means))
        self._variance += float(np.sum(h**2 * variances(change)))
        self._gap_s += float(np.sum(h[h > GAP_PERIODS * self.period_s]))
        self._low_w = min(self._low_w, float(np.min(power_w)))
        self._high_w = max(self._high_w, float(np.max(power_w)))
        self._keep_tail(all_s, all_w)

    def _keep_tail(self, all_s: Floats, all_w: Floats) -> None:
        """Note the swing of the power, and keep what the next block needs of it."""
        lag = self._lag
        if self.window_s and len(all_w) > lag:
            slopes = np.abs(all_w[lag:] - all_w[:-lag]) / (all_s[lag:] - all_s[:-lag])
            self._swing_w = max(self._swing_w, self.window_s * float(np.max(slopes)))
        self._tail_s, self._tail_w = all_s[-lag:], all_w[-lag:]

    def integral_j(self) -> float | None:
        """Trapezoids, and what a mean over the window lags behind; None for a single reading."""
        if self._first is None or self.span_s <= 0:
            return None
        return self._sum_j + self.window_s * (float(self._tail_w[-1]) - self._first[1]) / 2

    def error_j(self) -> float | None:
        """The stated error of the integral."""
        if self._first is None or self.span_s <= 0:
            return None
        swing_w = self._swing_w
        if self.span_s < self.window_s:
            swing_w = max(swing_w, self._high_w)  # too short to know
        bound_j = self._gap_s * (self._high_w - self._low_w) / 2 + self.window_s * swing_w / 4
        return 2 * math.sqrt(self._variance) + bound_j


def variances(change: Floats) -> Floats:
    """What each change of power adds to the variance of the integral, for an interval of 1 s."""
    if not len(change):
        return change
    deviation = DEVIATION_PER_MEDIAN * float(np.median(np.abs(change)))
    large = np.where(np.abs(change) > STEP_DEVIATIONS * deviation, np.sign(change), 0.0)
    comes_back = large[1:] * large[:-1] < 0
    is_step = (large != 0) & ~np.r_[False, comes_back] & ~np.r_[comes_back, False]
    return np.where(is_step, change**2 / 12 + deviation**2 / 2, change**2 / 2)
