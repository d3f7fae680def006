"""When readings are due: near a grid, in step with nothing that repeats with its period."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from optbench.hardware.gpus.energy_integral import energy_of
from optbench.hardware.gpus.sampling_loop import SHIFT_STEP, tick_shift

SHIFTS = np.array([tick_shift(k) for k in range(10_001)])
SPIKE_W, SPIKE_S, SPIKE_EVERY_S = 400.0, 0.005, 0.2


def test_the_mean_period_is_the_period() -> None:
    # The first shift is 0, no other is more than half a period, and each step is at most 2 a.
    assert SHIFTS[0] == 0 and np.abs(SHIFTS).max() <= 0.5
    assert abs(SHIFTS.mean()) < 1e-3
    steps = np.abs(np.diff(SHIFTS))
    assert steps.max() == pytest.approx(2 * SHIFT_STEP) and SHIFT_STEP < 0.075


@pytest.mark.parametrize("every", [1, 2, 3, 4, 10, 12])
def test_every_phase_is_met_equally_often(every: int) -> None:
    """Of the ticks first, first + every, ..., a tenth lies in each tenth of the period."""
    for first in range(every):
        shares = np.histogram(SHIFTS[first::every], bins=10, range=(-0.5, 0.5))[0] / len(
            SHIFTS[first::every]
        )
        assert shares == pytest.approx(0.1, abs=0.015)


@pytest.mark.parametrize("period_s", [0.02, 0.05, 0.1])
def test_the_stated_error_covers_spikes_in_step_with_the_period(period_s: float) -> None:
    """250 W and 400 W more for 5 ms of every 200 ms is 260 W in the mean; 60 s, at 20 phases."""
    t_s = np.arange(60 / period_s + 1) * period_s
    shifted_s = t_s + period_s * SHIFTS[: len(t_s)]
    shifted_s[-1] = t_s[-1]
    for phase_s in np.arange(20) * 0.01 + 0.0013:
        off, stated = integral_beside_truth(shifted_s, phase_s, period_s)
        assert abs(off) <= stated, phase_s
        # Without shifts all spikes are met or none: 250 W, or 5, 12 or 25 ms of them too much.
        off, stated = integral_beside_truth(t_s, phase_s, period_s)
        assert abs(off) > 1.2 * stated, phase_s


def integral_beside_truth(
    t_s: NDArray[np.float64], phase_s: float, period_s: float
) -> tuple[float, float]:
    """How far the integral is off, and its stated error, in joules; 60 s hold 300 spikes."""
    meets = (t_s + phase_s) % SPIKE_EVERY_S < SPIKE_S
    power_w = np.where(meets, 250.0 + SPIKE_W, 250.0)
    found = energy_of(t_s, power_w, np.full(len(t_s), np.nan), period_s)
    assert found.integral_j is not None and found.integral_error_j is not None
    return found.integral_j - 260 * 60, found.integral_error_j
