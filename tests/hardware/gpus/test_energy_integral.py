"""Energy of columns whose integral, error and counter are worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from optbench.hardware.gpus.energy_integral import EnergyAccount, EnergyIntegral, energy_of
from optbench.hardware.gpus.energy_words import energy_words

NONE = np.full(3, math.nan)
T_S, POWER_W = np.array([0.0, 1.0, 3.0]), np.array([10.0, 20.0, 20.0])


def account(
    power_w: object = POWER_W, energy_j: object = NONE, period_s: float = 1.0, **more: object
) -> EnergyAccount:
    columns = (T_S, np.asarray(power_w, float), np.asarray(energy_j, float))
    return energy_of(*columns, period_s, **more)  # type: ignore[arg-type]


def test_trapezoids_and_their_stated_error() -> None:
    # 1 s x (10 + 20)/2 W + 2 s x 20 W = 55 J; of the two changes, 10 W and 0 W, the first in 1 s:
    # 2 sqrt(10^2 / 2) J.
    found = account()
    assert found.integral_j == pytest.approx(55.0)
    assert found.integral_error_j == pytest.approx(2 * math.sqrt(50))
    assert (found.source, found.energy_j, found.span_s) == ("integral", 55.0, 3.0)


@pytest.mark.parametrize(
    ("period_s", "window_s", "bound_j"),
    [
        (0.5, 0.0, 10.0),  # the interval of 2 s is a gap: 2 s x (20 - 10)/2 W
        (1.0, 1.0, 5.0),  # the window of 1 s: 1 s x (20 - 10)/2 W
    ],
)
def test_gaps_and_windows_add_what_a_bound_covers(
    period_s: float, window_s: float, bound_j: float
) -> None:
    found = account(period_s=period_s, power_window_s=window_s)
    assert found.integral_error_j == pytest.approx(2 * math.sqrt(50) + bound_j)


def test_the_counter_is_the_figure_and_the_difference_is_shown() -> None:
    # The integral of 55 J is 10 % more than the counter's 150 - 100 = 50 J.
    found = account(energy_j=[100.0, 120.0, 150.0])
    assert (found.source, found.energy_j, found.error_j) == ("counter", 50.0, 0.0)
    assert found.difference == pytest.approx(0.1) and found.agrees is False
    assert "10 % more" in energy_words(found)[1]
    near = account(energy_j=[100.0, 120.0, 155.2])
    assert near.agrees is True and "they agree" in energy_words(near)[1]


def test_a_counter_that_moves_now_and_then_is_late_by_a_step() -> None:
    # It moved once in three readings: both ends may be late by the whole step of 40 J.
    assert account(energy_j=[100.0, 100.0, 140.0]).counter_error_j == 40.0


def test_a_counter_that_goes_backwards_is_none() -> None:
    found = account(energy_j=[100.0, 3.0, 40.0])
    assert found.source == "integral" and "backwards" in str(found.without_counter)


def test_the_reason_for_no_counter_is_told() -> None:
    found = account(without_counter="the driver is too old")
    figure, more = energy_words(found)
    assert figure == "55.000 ± 14.142 J by integration"
    assert "the driver is too old" in more and "shorter than the period of 1 s" in more


def test_readings_that_are_missing_are_left_out() -> None:
    # Without the middle one: 3 s x 15 W.
    found = account(power_w=[10.0, math.nan, 20.0])
    assert found.integral_j == pytest.approx(45.0) and found.num_readings == 3


def test_one_reading_or_none_has_no_energy() -> None:
    nothing = EnergyIntegral(1.0)
    assert nothing.account().source == "none"
    nothing.add(T_S[:1], POWER_W[:1], np.array([5.0]))
    assert nothing.account().energy_j is None
    assert "that takes two readings" in energy_words(nothing.account())[0]
    assert account(power_w=NONE).source == "none"
    assert "neither power nor energy" in energy_words(account(power_w=NONE))[0]


def test_pieces_add_up_to_the_whole() -> None:
    generator = np.random.default_rng(3)
    t_s = np.cumsum(generator.uniform(0.5, 2.5, 50))
    power_w, energy_j = generator.uniform(50, 300, 50), np.cumsum(generator.uniform(0, 9, 50))
    whole = energy_of(t_s, power_w, energy_j, 1.0, 0.5)
    pieces = EnergyIntegral(1.0, 0.5)
    for part in (slice(0, 1), slice(1, 20), slice(20, 20), slice(20, 50)):
        pieces.add(t_s[part], power_w[part], energy_j[part])
    found = pieces.account()
    assert found.integral_j == pytest.approx(whole.integral_j, rel=1e-12)
    assert found.integral_error_j == pytest.approx(whole.integral_error_j, rel=1e-12)
    assert found.counter_j == pytest.approx(energy_j[-1] - energy_j[0], rel=1e-12)
    assert (found.span_s, found.num_readings) == (whole.span_s, 50)


def test_noise_stays_within_the_stated_error_as_often_as_stated() -> None:
    # 400 recordings of a constant 200 W with 1 % noise: the true energy is 200 W x span; about 95 %
    # of the integrals lie within the error.
    generator = np.random.default_rng(11)
    t_s, inside = np.linspace(0, 10, 201), 0
    for _ in range(400):
        power_w = 200 * (1 + 0.01 * generator.standard_normal(201))
        found = energy_of(t_s, power_w, np.full(201, math.nan), 0.05)
        assert found.integral_j is not None and found.integral_error_j is not None
        inside += abs(found.integral_j - 2000) <= found.integral_error_j
    assert 0.92 <= inside / 400 <= 0.98
