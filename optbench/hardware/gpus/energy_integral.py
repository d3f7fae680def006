"""Energy of a recording: by integration of power, by the device's counter, and both compared.

Readings P_k at t_k, intervals h_k = t_(k+1) − t_k. The integral by trapezoids is

    E_I = Σ h_k (P_k + P_(k+1)) / 2

and its stated error, at about 95 % (two standard errors), plus what a bound covers:

    error = 2 √(Σ (h_k ΔP_k)² / 2)  +  (W + g) (P_max − P_min) / 2

A reading with independent noise σ adds σ² h² to the variance of E_I, and E[ΔP²] = 2 σ²; a step of
ΔP at an unknown moment of the interval adds (h ΔP)² / 12, which the same term covers. W is the
averaging window of the readings: the ends of E_I are blurred by it. g is the length of gaps, which
are intervals longer than twice the period. Energy of spikes that fall between two readings is not
in E_I, nor does its error know of it. The error of the sensor itself comes on top of both figures.

The counter's energy E_C is the difference of its last and first reading. It counts every spike and
is the figure where there is a counter. It moves at most every h_c = span / (number of changes), and
is read up to that late at both ends: its stated error is h_c times the mean power.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# The integral and the counter agree within this share of the counter's energy.
AGREE = 0.005
# An interval longer than this many periods is a gap.
GAP_PERIODS = 2.0
# A counter that changes with this share of the readings or more moves as often as it is read.
ALWAYS_MOVES = 0.9


@dataclass(frozen=True)
class EnergyAccount:
    """The energy of a device over a recording; None where it cannot be known."""

    span_s: float
    num_readings: int
    period_s: float
    power_window_s: float
    integral_j: float | None
    integral_error_j: float | None
    counter_j: float | None
    counter_error_j: float | None
    # Why there is no energy by the counter.
    without_counter: str | None

    @property
    def source(self) -> Literal["counter", "integral", "none"]:
        """Where the figure is from: the counter, wherever there is one."""
        if self.counter_j is not None:
            return "counter"
        return "none" if self.integral_j is None else "integral"

    @property
    def energy_j(self) -> float | None:
        """The figure."""
        return self.integral_j if self.counter_j is None else self.counter_j

    @property
    def error_j(self) -> float | None:
        """The stated error of the figure."""
        return self.integral_error_j if self.counter_j is None else self.counter_error_j

    @property
    def difference(self) -> float | None:
        """(integral − counter) / counter."""
        if self.integral_j is None or not self.counter_j:
            return None
        return self.integral_j / self.counter_j - 1.0

    @property
    def agrees(self) -> bool | None:
        """Whether integral and counter agree within half a percent."""
        return None if self.difference is None else abs(self.difference) <= AGREE


@dataclass
class EnergyIntegral:
    """Adds up a recording in pieces, so that its length takes no memory."""

    period_s: float
    power_window_s: float = 0.0
    without_counter: str | None = None
    num_readings: int = 0
    _sum_j: float = 0.0
    _squares: float = 0.0
    _gap_s: float = 0.0
    _low_w: float = math.inf
    _high_w: float = -math.inf
    _power_span_s: list[float] = field(default_factory=list)
    _counter: list[tuple[float, float]] = field(default_factory=list)
    _changes: int = 0
    _last: tuple[float, float] | None = None

    def add(self, t_s: Floats, power_w: Floats, energy_j: Floats) -> None:
        """Add readings that follow those before; NaN where there is none."""
        self.num_readings += len(t_s)
        known = ~np.isnan(power_w)
        self._add_power(t_s[known], power_w[known])
        known = ~np.isnan(energy_j)
        self._add_counter(t_s[known], energy_j[known])

    def _add_power(self, t_s: Floats, power_w: Floats) -> None:
        if not len(t_s):
            return
        if self._last is not None:
            t_s, power_w = np.r_[self._last[0], t_s], np.r_[self._last[1], power_w]
        self._last = (float(t_s[-1]), float(power_w[-1]))
        h, change = np.diff(t_s), np.diff(power_w)
        self._sum_j += float(np.sum(h * (power_w[1:] + power_w[:-1]))) / 2
        self._squares += float(np.sum((h * change) ** 2)) / 2
        self._gap_s += float(np.sum(h[h > GAP_PERIODS * self.period_s]))
        self._low_w = min(self._low_w, float(np.min(power_w)))
        self._high_w = max(self._high_w, float(np.max(power_w)))
        self._power_span_s = [*(self._power_span_s[:1] or [float(t_s[0])]), float(t_s[-1])]

    def _add_counter(self, t_s: Floats, energy_j: Floats) -> None:
        if not len(t_s):
            return
        joined = np.r_[self._counter[-1][1], energy_j] if self._counter else energy_j
        steps = np.diff(joined)
        if np.any(steps < 0):
            self.without_counter = "the counter went backwards: the driver was loaded anew"
        self._changes += int(np.count_nonzero(steps))
        last = (float(t_s[-1]), float(energy_j[-1]))
        first = self._counter[0] if self._counter else (float(t_s[0]), float(energy_j[0]))
        self._counter = [first, last]

    def account(self) -> EnergyAccount:
        """The energy so far."""
        integral_j = error_j = counter_j = counter_error_j = None
        span_s = 0.0
        if len(self._power_span_s) == 2 and self._power_span_s[1] > self._power_span_s[0]:
            span_s = self._power_span_s[1] - self._power_span_s[0]
            blurred_s = self.power_window_s + self._gap_s
            integral_j = self._sum_j
            error_j = 2 * math.sqrt(self._squares) + blurred_s * (self._high_w - self._low_w) / 2
        reason = self.without_counter
        if reason is None and len(self._counter) == 2 and self._counter[1][0] > self._counter[0][0]:
            (begin_s, begin_j), (end_s, end_j) = self._counter
            span_s = max(span_s, end_s - begin_s)
            counter_j, counter_error_j = end_j - begin_j, self._late_j(end_j - begin_j)
        elif reason is None:
            reason = "fewer than two readings of the counter"
        return EnergyAccount(
            span_s,
            self.num_readings,
            self.period_s,
            self.power_window_s,
            integral_j,
            error_j,
            counter_j,
            counter_error_j,
            None if counter_j is not None else reason,
        )

    def _late_j(self, energy_j: float) -> float:
        """What a counter that moves now and then may not have counted yet."""
        if not self._changes or self._changes >= ALWAYS_MOVES * (self.num_readings - 1):
            return 0.0
        return energy_j / self._changes


def energy_of(
    t_s: Floats,
    power_w: Floats,
    energy_j: Floats,
    period_s: float,
    power_window_s: float = 0.0,
    without_counter: str | None = None,
) -> EnergyAccount:
    """The energy of whole columns of a recording."""
    total = EnergyIntegral(period_s, power_window_s, without_counter)
    total.add(t_s, power_w, energy_j)
    return total.account()
