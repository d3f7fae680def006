"""Least cost under tariffs that vary: ranges of integrals by hand, and what rest costs."""

from __future__ import annotations

import numpy as np
import pytest

import optbench as ob
from optbench.bounds.combinatorial import tariff_floor as floors
from optbench.bounds.combinatorial.relaxation import relax
from optbench.bounds.combinatorial.tariff_floor import tariff_floor
from optbench.model.instance import Floats, Instance
from optbench.units import J_PER_KWH, TERM_MARGIN

# 3 until 10, 1 until 20, 2 from then on; their integrals are 30 and 10.
TIMES, RATES = np.array([0, 10, 20]), np.array([3.0, 1.0, 2.0])


def integral_range(low: float, high: float, length: float) -> tuple[float, float]:
    found = floors._integral_range(
        TIMES, RATES, *(np.array([float(each)]) for each in (low, high, length))
    )
    return float(found[0][0]), float(found[1][0])


def test_the_least_and_the_greatest_integral_of_a_window() -> None:
    # [2, 6) costs 12; [10, 14) to [15, 19) cost 4.
    assert integral_range(2, 15, 4) == (4.0, 12.0)
    # [5, 17) costs 15 + 7, [7, 19) costs 9 + 9: the sooner the dearer.
    assert integral_range(5, 7, 12) == (18.0, 22.0)
    # Within one period.
    assert integral_range(11, 13, 5) == (5.0, 5.0)
    # Nothing runs: the rate itself.
    assert integral_range(5, 12, 0) == (1.0, 3.0)
    # A window without an end: from the last change on nothing is new.
    assert integral_range(12, np.inf, 5) == (5.0, 10.0)
    # One tick.
    assert integral_range(9, 19, 1) == (1.0, 3.0)


def test_whole_periods_within_are_off_by_their_rounding() -> None:
    # [5, 23) costs 15 + 10 + 6. The 10 is a difference of 40 and 30: three roundings of 40.
    least, most = integral_range(5, 5, 18)
    error = 3 * np.finfo(float).eps * 40
    assert least < 31.0 < most
    assert [31.0 - least, most - 31.0] == pytest.approx([error, error], rel=0.2)


def test_the_range_of_rates_from_the_window_on() -> None:
    low, length = np.array([2.0, 12.0, 25.0, 10.0]), np.array([4.0, 0.0, 2.0, 3.0])
    least, most = floors._rate_range(TIMES, RATES, low, low + 1.0, length)
    assert least.tolist() == [4.0, 1.0, 4.0, 3.0]
    assert most.tolist() == [12.0, 2.0, 4.0, 6.0]


def hours(tick_s: float = 3600.0, **pool: float) -> Instance:
    """One task of two hours and 7.2 MJ in two hours of 0.2 and 0.4 $/kWh."""
    m = ob.Model(tick_s=tick_s, horizon_s=7200)
    gpu = m.pool("gpu", **pool)  # type: ignore[arg-type]
    m.task(modes=[m.mode(gpu, time_s=7200, energy_j=7.2e6)])
    m.tariff(price_usd_per_kwh=(0.2, 0.4), carbon_g_per_kwh=(100.0, 300.0))
    m.minimize(cost_usd=1.0)
    return m.build()


def net_cost(instance: Instance) -> Floats:
    assert instance.tariffs is not None
    return floors._net_cost(
        relax(instance), instance.tariffs.times, instance.tariffs.price_usd_per_kwh
    )


def test_terms_are_lowered_by_their_magnitudes() -> None:
    # 3.6 MJ per hour cost 0.6 times that wherever they run; the magnitudes are that twice, and 7.2
    # MJ at 0.4 at most.
    exact = 3.6e6 * (0.2 + 0.4)
    assert exact - net_cost(hours())[0] == pytest.approx(
        TERM_MARGIN * (2 * exact + 7.2e6 * 0.4), rel=1e-3
    )


def test_rest_is_paid_by_the_hour_and_replaced_by_what_runs() -> None:
    # A second device rests at 0.5 W: 1,800 J in each hour. What runs replaces its own device's
    # rest.
    for tick_s in (1.0, 3600.0):
        instance = hours(tick_s, count=2, idle_w=0.5)
        relaxation = relax(instance)
        assert tariff_floor(relaxation, "cost_usd", 0.0) == pytest.approx(
            0.6 + 1800 * 0.6 / 3.6e6, rel=1e-9
        )
        assert tariff_floor(relaxation, "carbon_g", 0.0) == pytest.approx(
            400.0 + 1800 * 400.0 / 3.6e6, rel=1e-9
        )


def test_without_a_horizon_rest_is_paid_until_the_least_makespan() -> None:
    m = ob.Model(tick_s=3600)
    m.pool("idle", idle_w=1000.0)
    m.task(modes=[m.mode(m.pool("gpu"), time_s=3600)])
    m.tariff(price_usd_per_kwh=(0.2, 0.4))
    m.minimize(cost_usd=1.0)
    # 1 kWh in the first hour, and another in the second.
    assert tariff_floor(relax(m.build()), "cost_usd", 1.0) == pytest.approx(0.2, rel=1e-9)
    assert tariff_floor(relax(m.build()), "cost_usd", 2.0) == pytest.approx(0.6, rel=1e-9)


def test_below_rest_the_dearest_time_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    # 1 MJ in an hour replaces 3.6 MJ of rest: that saves most at 0.4. Rest itself costs 0.6 · 3.6
    # MJ.
    m = ob.Model(tick_s=3600, horizon_s=7200)
    gpu = m.pool("gpu", idle_w=1000.0)
    m.task(modes=[m.mode(gpu, time_s=3600, energy_j=1e6)])
    m.tariff(price_usd_per_kwh=(0.2, 0.4))
    m.minimize(cost_usd=1.0)
    expected = 0.6 - 0.4 * 2.6 / 3.6
    assert tariff_floor(relax(m.build()), "cost_usd", 1.0) == pytest.approx(expected, rel=1e-9)
    monkeypatch.setattr(floors, "MAX_CANDIDATES", 0)
    assert tariff_floor(relax(m.build()), "cost_usd", 1.0) == pytest.approx(expected, rel=1e-9)


def test_what_takes_no_time_pays_the_rate_of_its_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    m = ob.Model(tick_s=3600, horizon_s=7200)
    m.task(
        modes=[m.mode(m.pool("gpu", idle_w=100.0), time_s=0, energy_j=3.6e6)],
        deadline_s=3600,
        hard=True,
    )
    m.tariff(price_usd_per_kwh=(0.3, 0.2, 0.1))
    m.minimize(cost_usd=1.0)
    rest = 0.1 * (0.3 + 0.2)
    # Until 3,600 s, and then 0.2 counts already. By rates alone it might be the 0.1 after the
    # horizon.
    assert tariff_floor(relax(m.build()), "cost_usd", 0.0) == pytest.approx(0.2 + rest, rel=1e-9)
    monkeypatch.setattr(floors, "MAX_CANDIDATES", 0)
    assert tariff_floor(relax(m.build()), "cost_usd", 0.0) == pytest.approx(0.1 + rest, rel=1e-9)


def test_the_sum_of_terms_is_lowered_too() -> None:
    # In J times $/kWh; the one term is lowered by its own share, which its margin does not hold.
    instance = hours()
    term, floor = net_cost(instance)[0], tariff_floor(relax(instance), "cost_usd", 0.0)
    assert term - floor * J_PER_KWH == pytest.approx(TERM_MARGIN * term, rel=1e-2)


def test_a_pool_without_power_at_rest_costs_nothing_by_resting() -> None:
    m = ob.Model(tick_s=1.0, horizon_s=10)
    m.task(modes=[m.mode(m.pool("gpu"), time_s=4, energy_j=1.0)])
    m.tariff(price_usd_per_kwh=1.0)
    m.minimize(cost_usd=1.0)
    # One joule at a dollar per kWh, and nothing else.
    assert tariff_floor(relax(m.build()), "cost_usd", 4.0) == pytest.approx(
        1.0 / J_PER_KWH, rel=1e-6
    )


def test_without_tariffs_energy_is_free() -> None:
    m = ob.Model()
    m.task(modes=[m.mode(m.pool("gpu", idle_w=1.0), time_s=4, energy_j=100.0)])
    m.minimize(energy_j=1.0)
    assert tariff_floor(relax(m.build()), "cost_usd", 4.0) == 0.0
