"""Energy of a recording: by integration of power, by the device's counter, and both compared.

Readings P_k at t_k, intervals h_k = t_(k+1) − t_k, changes Δ_k = P_(k+1) − P_k. The integral by
trapezoids is

    E_I = Σ h_k (P_k + P_(k+1)) / 2  +  W (P_last − P_first) / 2

where W is the averaging window: a mean over W lags by W / 2. Its stated error, at about 95 %:

    error = 2 √(Σ v_k)  +  W R / 4  +  g (P_max − P_min) / 2

    v_k = h_k² Δ_k² / 2                 noise σ adds σ² h² to the variance of E_I, and E[Δ²] = 2 σ²;
                                        a reading that meets a spike by chance is as if noisy
    v_k = h_k² (Δ_k² / 12 + s² / 2)     where Δ_k is a step: more than 5 s, and the power does not
                                        come back with the next reading or from the one before.
                                        It happened at any moment of the interval

s is the usual size of Δ: 1.4826 times the median of |Δ|, block by block. R is the swing of the
power: a mean changes by (P(t) − P(t − W)) / W a second, so that R is W / τ times its largest change
within τ = W / 5. Of a power between c and c + R the lag is W / 2 only on average, and the energy is
off by at most W R / 8 at each end. g is the length of gaps, which are intervals longer than twice
the period. Spikes meet readings by chance, also where they repeat with a multiple of the period
(sampling_loop.py); of those so rare or so short that no reading has met one, neither E_I nor its
error knows. The error of the sensor itself comes on top of both figures.

The counter's energy E_C is the difference of its last and first reading. It counts every spike and
is the figure where there is a counter. It moves at most every h_c = span / (number of changes), and
is read up to that late at both ends: its stated error is h_c times the mean power.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from optbench.hardware.gpus.power_sums import PowerSums

Floats = NDArray[np.float64]
Columns = tuple[Floats, Floats, Floats]
# The integral and the counter agree within this share of the counter's energy.
AGREE = 0.005
# Readings that are added up at once, at least; the usual size of a change is that of a block.
BLOCK = 512
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

    @property
    def within_error(self) -> bool | None:
        """Whether the stated error of the integral explains its difference from the counter."""
        if self.integral_j is None or self.integral_error_j is None or self.counter_j is None:
            return None
        error_j = self.integral_error_j + (self.counter_error_j or 0.0)
        return abs(self.integral_j - self.counter_j) <= error_j


class EnergyIntegral:
    """Adds up a recording in pieces, so that its length takes no memory."""

    def __init__(
        self, period_s: float, power_window_s: float = 0.0, without_counter: str | None = None
    ) -> None:
        self.period_s, self.power_window_s = period_s, power_window_s
        self.without_counter = without_counter
        self.num_readings = 0
        self._pending: list[Columns] = []
        self._num_pending = 0
        self._power = PowerSums(period_s, power_window_s)
        # Moment and joules of the counter's first and last reading.
        self._counter: list[tuple[float, float]] = []
        self._changes = 0

    def add(self, t_s: Floats, power_w: Floats, energy_j: Floats) -> None:
        """Add readings that follow those before; NaN where there is none."""
        self.num_readings += len(t_s)
        self._pending.append((t_s, power_w, energy_j))
        self._num_pending += len(t_s)
        if self._num_pending >= 2 * BLOCK:
            self._take_blocks()

    def _take_blocks(self, whole: bool = False) -> None:
        """Add up what is pending, in blocks that do not depend on the pieces; the rest stays."""
        columns = [np.concatenate(parts) for parts in zip(*self._pending, strict=True)]
        while len(columns[0]) >= (1 if whole else BLOCK):
            block, columns = [c[:BLOCK] for c in columns], [c[BLOCK:] for c in columns]
            t_s, power_w, energy_j = block
            self._power.add(t_s[~np.isnan(power_w)], power_w[~np.isnan(power_w)])
            self._add_counter(t_s[~np.isnan(energy_j)], energy_j[~np.isnan(energy_j)])
        t_s, power_w, energy_j = columns
        self._pending, self._num_pending = [(t_s, power_w, energy_j)], len(t_s)

    def _add_counter(self, t_s: Floats, energy_j: Floats) -> None:
        if not len(t_s):
            return
        joined = np.r_[self._counter[-1][1], energy_j] if self._counter else energy_j
        steps = np.diff(joined)
        if np.any(steps < 0):
            self.without_counter = "the counter went backwards: the driver was loaded anew"
        self._changes += int(np.count_nonzero(steps))
        first = self._counter[0] if self._counter else (float(t_s[0]), float(energy_j[0]))
        self._counter = [first, (float(t_s[-1]), float(energy_j[-1]))]

    def account(self) -> EnergyAccount:
        """The energy so far; more can be added afterwards."""
        total = copy.deepcopy(self)
        if total._num_pending:
            total._take_blocks(whole=True)
        return total._account()

    def _account(self) -> EnergyAccount:
        power, reason = self._power, self.without_counter
        integral_j, error_j, span_s = power.integral_j(), power.error_j(), power.span_s
        counter_j = counter_error_j = None
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
