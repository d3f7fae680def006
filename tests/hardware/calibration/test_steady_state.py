"""The steady part of a run: after the window, without drift, from readings or from a counter."""

from __future__ import annotations

import numpy as np
import pytest

from optbench.hardware.calibration.steady_state import (
    Floats,
    SteadyPart,
    by_counter,
    by_readings,
    steady_part,
)

TIMES = np.arange(0.0, 10.0, 0.02)


def steady(watts: Floats, window_s: float = 0.0, least_s: float = 3.0) -> SteadyPart | str:
    return steady_part(by_readings(TIMES, watts, window_s), 0.0, 10.0, window_s, least_s)


def test_a_constant_power_is_steady_from_one_window_on() -> None:
    """A mean over 1 s climbs from idle to load in the first second: those readings are left out."""
    watts = np.where(TIMES < 1.0, 40 + 160 * TIMES, 200.0)
    found = steady(watts, window_s=1.0)
    assert isinstance(found, SteadyPart)
    assert (found.begin_s, found.watts) == pytest.approx((0.0, 200.0))
    # Readings at the moment, of the same values, are not steady at once: a tenth is left out,
    # up to 1.0 s, where the first interval within the rest begins just too early.
    found = steady(watts)
    assert isinstance(found, SteadyPart)
    assert (found.begin_s, found.watts) == pytest.approx((1.02, 200.0), abs=1e-5)
    # A load that says late that it has ended: idle for the last half second.
    found = steady(np.where(TIMES > 9.5, 40.0, 200.0))
    assert isinstance(found, SteadyPart)
    assert (found.begin_s, found.watts) == pytest.approx((0.02, 200.0), abs=1e-5)
    assert found.end_s == pytest.approx(9.0, abs=0.03)


def test_a_beginning_that_drifts_is_left_out() -> None:
    """200 W · (1 − 0.2 exp(−t)): within 0.5 % only once a part of the rise is left out."""
    found = steady(200 * (1 - 0.2 * np.exp(-TIMES)))
    assert isinstance(found, SteadyPart)
    assert found.begin_s >= 2.0 and found.watts == pytest.approx(200, rel=0.005)


def test_a_lasting_drift_is_named() -> None:
    """A climb from 200 to 240 W: the halves of the last four tenths differ by 8 W of 232, 3.4 %."""
    found = steady(200 + 4 * TIMES)
    assert isinstance(found, str) and "drifts by +3." in found and "within 4.0 s" in found


def test_noise_is_no_drift_and_is_measured() -> None:
    noise = np.random.default_rng(3).standard_normal(len(TIMES))
    found = steady(200 * (1 + 0.01 * noise))
    assert isinstance(found, SteadyPart)
    # 500 readings in 12 blocks: the mean of 42 readings scatters by 1 % / sqrt(42) = 0.15 %.
    assert found.scatter == pytest.approx(0.0015, rel=0.6)
    assert found.watts == pytest.approx(200, rel=0.002)


def test_a_counter_that_changes_rarely_has_no_error_at_its_ends() -> None:
    """Updated every 0.1 s and read every 0.02 s: between two changes 150 W · 0.1 s."""
    series = by_counter(TIMES, 150 * np.floor(TIMES * 10 + 1e-9) / 10)
    assert len(series.watts) == 98 and series.mean_w == pytest.approx(150.0)
    found = steady_part(series, 0.0, 10.0, 0.0, 3.0)
    assert isinstance(found, SteadyPart) and found.watts == pytest.approx(150.0)


@pytest.mark.parametrize(("seconds", "window_s"), [(0.1, 0.0), (2.0, 1.0)])
def test_too_short_a_run_says_so(seconds: float, window_s: float) -> None:
    times = np.arange(0.0, seconds, 0.02)
    series = by_readings(times, np.full(len(times), 100.0), window_s)
    found = steady_part(series, 0.0, seconds, window_s, 3.0)
    assert isinstance(found, str) and f"took {seconds:.2f} s, too short for 3 s" in found
