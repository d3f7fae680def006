"""Fits of the laws: exact on exact values, within their intervals on noisy ones, never negative."""

from __future__ import annotations

import numpy as np
import pytest

from optbench.errors import ParameterError
from optbench.hardware.calibration.coefficient_fit import (
    LawFit,
    constant_power,
    constant_time,
    fit_power,
    fit_time,
)
from optbench.power.dvfs import Law

LAW = Law(alpha_t=0.002, beta_t=0.008, gamma_t=0.0005, alpha_p=150.0, beta_p=50.0, gamma_p=50.0)
CLOCKS = np.linspace(0.15, 1.0, 8)


def test_exact_values_give_the_coefficients() -> None:
    power = fit_power(CLOCKS, [LAW.power_w(1, f) for f in CLOCKS])
    assert power.values == pytest.approx({"alpha_p": 150.0, "beta_p": 50.0, "gamma_p": 50.0})
    # At the top clock P = 150 + 50 + 50 W, of which alpha has 150 / 250.
    assert [each.share for each in power.coefficients] == pytest.approx([0.6, 0.2, 0.2])
    counts = [1] * 8 + [2] * 8
    seconds = [LAW.time_per_unit_s(n, f) for n, f in zip(counts, [*CLOCKS, *CLOCKS], strict=True)]
    time = fit_time(counts, [*CLOCKS, *CLOCKS], seconds)
    assert time.values == pytest.approx({"alpha_t": 0.002, "beta_t": 0.008, "gamma_t": 0.0005})
    # n T(2, 1) = 0.002 + 0.008 + 2 · 0.0005 = 0.011
    assert time.coefficients[2].share == pytest.approx(1 / 11)
    # A coefficient of 0 is judged against 2 % of the whole: no division by 0.
    flat = fit_power(CLOCKS, np.full(8, 100.0))
    assert flat.values["alpha_p"] == pytest.approx(0.0, abs=1e-9) and flat.half_width < 1e-6
    assert power.worst < 1e-9 and time.worst < 1e-9 and not power.misfits


def test_without_several_devices_their_cost_is_0_and_nothing_else_changes() -> None:
    found = fit_time([1] * 8, CLOCKS, [LAW.time_per_unit_s(1, f) for f in CLOCKS])
    assert found.values == pytest.approx({"alpha_t": 0.002, "beta_t": 0.008, "gamma_t": 0.0})


def test_a_coefficient_is_never_negative() -> None:
    """P = 100 + 50 f³ − 10 f: without the constraint beta would be −10."""
    found = fit_power(CLOCKS, 100 + 50 * CLOCKS**3 - 10 * CLOCKS)
    assert found.values["beta_p"] == 0.0
    beta = found.coefficients[1]
    # The unconstrained estimate, −10 exactly, has its interval below 0: cut there, only 0 is left.
    assert (beta.low, beta.high) == (0.0, 0.0)
    assert found.values["gamma_p"] == pytest.approx(97, abs=3)


def noisy_fits(seed: int, times: int) -> list[LawFit]:
    rng = np.random.default_rng(seed)
    clocks = np.tile(CLOCKS, 3)
    exact = np.array([LAW.power_w(1, f) for f in clocks])
    return [
        fit_power(clocks, exact * (1 + 0.001 * rng.standard_normal(len(clocks))))
        for _ in range(times)
    ]


def test_intervals_cover_the_coefficients_as_often_as_they_say() -> None:
    """Of 3 · 300 intervals 95 % are 855; the three of a fit depend on each other, which leaves at
    least 300 independent ones: 95 % ± 3 · sqrt(0.95 · 0.05 / 300) = 95 % ± 3.8 %."""
    true = {"alpha_p": 150.0, "beta_p": 50.0, "gamma_p": 50.0}
    hits = [
        each.low <= true[each.name] <= each.high
        for fit in noisy_fits(1, 300)
        for each in fit.coefficients
    ]
    assert 0.912 <= np.mean(hits) <= 0.988


def test_points_off_the_law_widen_the_intervals() -> None:
    """A law with f² in it does not lie on the cubic; its repeats agree to 0.01 %."""
    rng = np.random.default_rng(2)
    clocks = np.tile(CLOCKS, 2)
    watts = (100 + 100 * clocks**2) * (1 + 1e-4 * rng.standard_normal(len(clocks)))
    found = fit_power(clocks, watts)
    assert found.misfits and found.degrees == 8 - 3
    assert found.scatter == pytest.approx(1e-4, rel=0.6)
    # (0.01 %)² of the repeats would give intervals far narrower than those of the deviations.
    assert found.worst > 20 * found.scatter and found.half_width > 0.02
    # More runs would not narrow them: a sweep ends.
    assert found.is_settled(0.005)
    noisy = noisy_fits(1, 1)[0]
    assert not noisy.misfits and not noisy.is_settled(noisy.half_width / 2)
    assert noisy.is_settled(noisy.half_width)


def test_one_clock_is_a_constant() -> None:
    power = constant_power([100.0, 102.0, 98.0])
    assert power.values == pytest.approx({"alpha_p": 0, "beta_p": 0, "gamma_p": 100}, rel=1e-3)
    # t(0.975, 2) = 4.303, s = 2, and the mean of three: 100 ± 4.303 · 2 / sqrt(3) = 4.97.
    gamma = power.coefficients[2]
    assert (gamma.low, gamma.high) == pytest.approx((95.03, 104.97), abs=0.1)
    time = constant_time([0.5, 0.5])
    assert time.values == pytest.approx({"alpha_t": 0.5, "beta_t": 0.0, "gamma_t": 0.0})


@pytest.mark.parametrize(
    ("clocks", "watts", "said"),
    [
        ([0.5, 0.5, 1.0, 1.0], [60, 60, 100, 100], "2 points cannot determine alpha_p"),
        ([0.4, 0.7, 1.0], [60, 80, 100], "3 observations of 3 points"),
        ([0.4, 0.6, 0.8, 1.0], [60, 80, float("nan"), 100], "nan"),
        ([0.4, 0.6, 0.8, 1.0], [60, 80, 0.0, 100], r"0\.0"),
    ],
)
def test_what_cannot_be_fitted_is_refused(
    clocks: list[float], watts: list[float], said: str
) -> None:
    with pytest.raises(ParameterError, match=said):
        fit_power(clocks, watts)
