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
    # 1 s x (10 + 20)/2 W + 2 s x 20 W = 55 J; the changes are 10 W in 1 s and 0 W. Their median is
    # 5 W, so that none is a step: 2 sqrt(10^2 / 2) J.
    found = account()
    assert found.integral_j == pytest.approx(55.0)
    assert found.integral_error_j == pytest.approx(2 * math.sqrt(50))
    assert (found.source, found.energy_j, found.span_s) == ("integral", 55.0, 3.0)


def test_a_step_weighs_less_than_a_spike() -> None:
    # Changes of 0, 0, 12, 0, 0 W in a second each: a step at any moment, 12^2 / 12. There and back,
    # 0, 12, -12, 0 W: as if noisy, twice 12^2 / 2.
    none = np.full(6, math.nan)
    step = energy_of(np.arange(6.0), np.array([1, 1, 1, 13, 13, 13.0]), none, 1.0)
    assert step.integral_error_j == pytest.approx(2 * math.sqrt(12))
    spike = energy_of(np.arange(5.0), np.array([1, 1, 13, 1, 1.0]), none[:5], 1.0)
    assert spike.integral_error_j == pytest.approx(2 * math.sqrt(144))


def test_a_gap_adds_what_a_bound_covers() -> None:
    # At a period of 0.5 s the interval of 2 s is a gap: 2 s x (20 - 10)/2 W.
    found = account(period_s=0.5)
    assert found.integral_error_j == pytest.approx(2 * math.sqrt(50) + 10.0)


def test_a_mean_over_a_window_lags() -> None:
    # A step from 0 to 100 W at t = 4 s, whose mean over W = 2 s rises from 4 to 6 s: trapezoids of
    # the mean give 100 x (10 - 5) = 500 J, half a window more is 100 J, and 600 J is the truth. The
    # mean changes by 50 W in a second, a swing of W x 50 = 100 W: W x 100 / 4 = 50 J. Of the
    # changes, which are 0 or 50 W, two are steps: 2 sqrt(2 x 50^2 / 12).
    mean_w = np.array([0, 0, 0, 0, 0, 50, 100, 100, 100, 100, 100.0])
    found = energy_of(np.arange(11.0), mean_w, np.full(11, math.nan), 1.0, 2.0)
    assert found.integral_j == pytest.approx(600.0)
    assert found.integral_error_j == pytest.approx(2 * math.sqrt(2 * 2500 / 12) + 50)
    short = energy_of(np.arange(2.0), np.array([70.0, 70.0]), np.full(2, math.nan), 1.0, 4.0)
    assert short.integral_error_j == pytest.approx(4 * 70 / 4)  # too short to know the swing


def test_the_counter_is_the_figure_and_the_difference_is_shown() -> None:
    # The integral of 55 J is 10 % more than the counter's 150 - 100 = 50 J.
    found = account(energy_j=[100.0, 120.0, 150.0])
    assert (found.source, found.energy_j, found.error_j) == ("counter", 50.0, 0.0)
    assert found.difference == pytest.approx(0.1) and found.agrees is False
    assert "10 % more" in energy_words(found)[1]
    assert "within its stated error" in energy_words(found)[1]  # of 14.1 J
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
    t_s = np.cumsum(generator.uniform(0.5, 2.5, 3000))
    power_w, energy_j = generator.uniform(50, 300, 3000), np.cumsum(generator.uniform(0, 9, 3000))
    whole = energy_of(t_s, power_w, energy_j, 1.0, 20.0)
    pieces = EnergyIntegral(1.0, 20.0)
    for part in (slice(0, 1), slice(1, 20), slice(20, 20), slice(20, 1700), slice(1700, 3000)):
        pieces.add(t_s[part], power_w[part], energy_j[part])
        pieces.account()
    found = pieces.account()
    assert found.integral_j == pytest.approx(whole.integral_j, rel=1e-12)
    assert found.integral_error_j == pytest.approx(whole.integral_error_j, rel=1e-12)
    assert found.counter_j == pytest.approx(energy_j[-1] - energy_j[0], rel=1e-12)
    assert (found.span_s, found.num_readings) == (whole.span_s, 3000)


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


def test_steps_stay_within_the_stated_error_as_often_as_stated() -> None:
    # A power of 50 or 250 W that changes at 20 random moments of 60 s, read every 0.1 s: the truth
    # is the sum over the parts between the changes.
    generator, inside = np.random.default_rng(5), 0
    t_s = np.linspace(0, 60, 601)
    for _ in range(300):
        edges = np.r_[0.0, np.sort(generator.uniform(0, 60, 20)), 60.0]
        levels = np.where(np.arange(21) % 2, 250.0, 50.0)
        power_w = levels[np.clip(np.searchsorted(edges, t_s, side="right") - 1, 0, 20)]
        found = energy_of(t_s, power_w, np.full(601, math.nan), 0.1)
        assert found.integral_j is not None and found.integral_error_j is not None
        true_j = float(np.sum(np.diff(edges) * levels))
        inside += abs(found.integral_j - true_j) <= found.integral_error_j
    assert 0.92 <= inside / 300 <= 0.98
