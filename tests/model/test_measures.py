"""Measures of a result and scales of metrics, by hand: sums of absolute terms, and what differs by
rounding alone.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import optbench as ob
from optbench.errors import ContradictionError
from optbench.model.builder import Model
from optbench.model.instance import Instance
from optbench.model.measures import (
    check_bound,
    contradicts,
    gap,
    is_closed,
    level_tolerance,
    metric_scale,
    metric_tolerance,
    primal_integral,
    relative_distance,
    rpd,
    shifted_geomean,
)


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [
        (4.0, 3.0, 0.25),
        (3.0, 4.0, 0.25),
        (-3.0, -4.0, 0.25),
        (0.5, 2.0, 0.75),
        (2.0, 0.5, 0.75),
        (1e-300, 2e-300, 0.5),
        (0.0, 0.0, 0.0),
        (-7.0, -7.0, 0.0),
        # Of different signs, or one of them 0, no share of the larger one says more.
        (-1.0, 3.0, 1.0),
        (3.0, -1.0, 1.0),
        (0.0, 3.0, 1.0),
        (0.0, -3.0, 1.0),
    ],
)
def test_the_distance_is_a_share_of_the_larger_number(a: float, b: float, distance: float) -> None:
    assert relative_distance(a, b) == distance == gap(a, b)


def test_without_a_bound_or_an_objective_there_is_no_gap() -> None:
    assert gap(None, 1.0) is None
    assert gap(1.0, None) is None
    assert gap(None, None) is None


def resting(energy: bool) -> Instance:
    """One task of 4 s on a device that draws 2^20 W at rest; the horizon is 4 s."""
    m = ob.Model(horizon_s=4)
    m.task(modes=[m.mode(m.pool("gpu", idle_w=2.0**20), time_s=4)])
    if energy:
        m.minimize(energy_j=1.0)
    else:
        m.minimize(makespan=1.0)
    return m.build()


def test_a_gap_of_a_millionth_is_closed() -> None:
    # One tick of a million is a gap of a millionth, two are more.
    instance = resting(energy=False)
    assert is_closed(instance, 1e6, 999_999.0)
    assert not is_closed(instance, 1e6, 999_998.0)


def test_what_the_rounding_of_the_terms_leaves_is_closed() -> None:
    # The scale of the energy is 2 · 2^20 W · 4 s = 2^23 J, of which 2^-48 is 2^-25 J. An objective
    # of 0 J has a gap of 1 to any other number.
    instance = resting(energy=True)
    assert is_closed(instance, 0.0, -(2.0**-25))
    assert not is_closed(instance, 0.0, -(2.0**-24))


def test_nothing_is_closed_without_both_numbers() -> None:
    instance = resting(energy=False)
    assert is_closed(instance, None, 1.0) is False
    assert is_closed(instance, 1.0, None) is False


def test_the_deviation_is_a_share_of_the_best_known() -> None:
    assert rpd(12.0, 10.0) == 0.2
    assert rpd(5.0, 10.0) == -0.5


def test_the_shifted_mean() -> None:
    # sqrt((0 + 10) · (30 + 10)) − 10 = 20 − 10.
    assert shifted_geomean([0.0, 30.0], 10.0) == pytest.approx(10.0, rel=1e-14)
    # The cube root of 1 · 8 · 27.
    assert shifted_geomean([1.0, 8.0, 27.0], 0.0) == pytest.approx(6.0, rel=1e-14)


@pytest.mark.parametrize(
    ("trajectory", "area"),
    [
        # 1 s of a gap of 1, 2 s of 10/20, 2 s of 0.
        ([(1.0, 20.0), (3.0, 10.0)], 1.0 + 2.0 * 0.5),
        # 0.5 s of 1, 1.5 s of 30/40, 3 s of 10/20.
        ([(0.5, 40.0), (2.0, 20.0)], 0.5 + 1.5 * 0.75 + 3.0 * 0.5),
        # What comes after the end does not count: 1 s of 1, 4 s of 10/20.
        ([(1.0, 20.0), (7.0, 10.0)], 1.0 + 4.0 * 0.5),
        ([], 5.0),
    ],
)
def test_the_primal_integral_over_five_seconds(
    trajectory: list[tuple[float, float]], area: float
) -> None:
    assert primal_integral(trajectory, 10.0, 5.0) == pytest.approx(area, rel=1e-14)


@pytest.mark.parametrize("objective", [2.0**40, -(2.0**40)])
def test_a_bound_contradicts_beyond_the_rounding(objective: float) -> None:
    # 2^-40 of the objective is 1, whatever its sign.
    assert not contradicts(objective, objective - 5.0)
    assert not contradicts(objective, objective + 1.0)
    assert contradicts(objective, objective + 2.0)


def test_a_bound_above_a_verified_objective_is_an_error() -> None:
    check_bound(3.0, 3.0, "cpsat", "cell 7")
    message = r"cell 7: bound 3\.5 from cpsat exceeds the verified objective 3\.0"
    with pytest.raises(ContradictionError, match=message):
        check_bound(3.0, 3.5, "cpsat", "cell 7")


J_PER_KWH = 3.6e6


def cluster() -> Instance:
    """40 ticks of 0.5 s; pools a (2 devices, 10 W at rest, at the site) and b (1, 4 W); 7 J per GB.

    x: 3 units of 50 J on both devices of a, or of 80 J on b; soft deadline 2 s, weight 2.
    y: one unit of 100 J on b; hard deadline 10 s, release 1 s; x sends it 5 GB.
    z: 2 units of 100 J on b; soft deadline and release after the horizon of 20 s, weight 4.
    """
    m = Model(tick_s=0.5, horizon_s=20)
    site = m.place("site")
    a, b = m.pool("a", 2, idle_w=10, at=site), m.pool("b", 1, idle_w=4)
    m.link(a, b, bandwidth_gbit_s=8, energy_j_per_gb=7)
    on_x = [m.mode({a: 2}, time_s=1, energy_j=50), m.mode(b, time_s=1, energy_j=80)]
    on_b = m.kind(modes=[m.mode(b, time_s=1, energy_j=100)])
    x = m.task("x", units=3, modes=on_x, deadline_s=2, hard=False, weight=2)
    m.task("y", kind=on_b, data_gb={x: 5}, deadline_s=10, hard=True, release_s=1)
    m.task("z", units=2, kind=on_b, deadline_s=30, hard=False, release_s=25, weight=4)
    m.tariff(price_usd_per_kwh=[1, 3, 2], carbon_g_per_kwh=[100, 50, 20], times_s=[0, 5, 10])
    m.tariff(price_usd_per_kwh=[0.5, 0.25], carbon_g_per_kwh=[200, 400], times_s=[0, 5], at=site)
    m.minimize(energy_j=3, makespan_s=1, cost_usd=2)
    return m.build()


# Twice the rest over 20 s, 800 J in a and 160 J in b; the dearest modes; 5 GB.
ENERGY_J = 2 * 20 * (2 * 10) + 2 * 20 * 4 + 3 * 80 + 100 + 2 * 100 + 7 * 5


@pytest.mark.parametrize(
    ("metric", "scale"),
    [
        ("makespan", 40.0),
        ("makespan_s", 20.0),
        # x with weight 2 from 0 on, y from 1 s on; z is not even there.
        ("flow_time_s", 2 * 20.0 + 19.0),
        # x alone: y's deadline is hard, z's after the horizon.
        ("tardiness_s", 2 * 18.0),
        ("energy_j", ENERGY_J),
        ("j_per_unit", ENERGY_J / 6),
        # The dearest prices are 0.5 at a and 3 at b: x costs most on b, 3 units of 80 J.
        ("cost_usd", (800 * 0.5 + 160 * 3 + 3 * 80 * 3 + 300 * 3 + 35 * 3) / J_PER_KWH),
        # The dearest carbon is 400 at a and 100 at b: x costs most on a, 3 units of 50 J.
        ("carbon_g", (800 * 400 + 160 * 100 + 3 * 50 * 400 + 300 * 100 + 35 * 400) / J_PER_KWH),
    ],
)
def test_scales_by_hand(metric: str, scale: float) -> None:
    assert metric_scale(cluster(), metric) == pytest.approx(scale, rel=1e-13)


def test_without_tariffs_there_is_no_cost() -> None:
    instance = replace(cluster(), tariffs=None)
    assert metric_scale(instance, "cost_usd") == metric_scale(instance, "carbon_g") == 0.0
    assert metric_scale(instance, "energy_j") == pytest.approx(ENERGY_J, rel=1e-13)


def test_without_units_there_is_no_energy_per_unit() -> None:
    instance = cluster()
    idle = replace(instance, tasks=replace(instance.tasks, units=np.zeros(3)))
    assert metric_scale(idle, "j_per_unit") == 0.0
    # Half a unit of x: 960 J of rest, 40 J of work and 35 J of transfers.
    half = replace(instance, tasks=replace(instance.tasks, units=np.array([0.5, 0.0, 0.0])))
    assert metric_scale(half, "j_per_unit") == pytest.approx(1035 / 0.5, rel=1e-13)


def test_without_a_horizon_everything_runs_one_after_the_other() -> None:
    # z comes at tick 50; then 6, 2 and 4 ticks of work and 10 of transfer: 72 ticks.
    instance = replace(cluster(), tariffs=None, horizon=None)
    soft = np.zeros(3, dtype=bool)
    instance = replace(instance, tasks=replace(instance.tasks, deadline_hard=soft))
    assert metric_scale(instance, "makespan") == 72.0
    assert metric_scale(instance, "makespan_s") == 36.0


def test_the_rounding_of_one_metric() -> None:
    instance = cluster()
    # Times have no terms that cancel.
    assert metric_tolerance(instance, "makespan", 2.0**40) == 1.0
    assert metric_tolerance(instance, "tardiness_s", -(2.0**41)) == 2.0
    cancelled = ENERGY_J * 2.0**-48
    assert metric_tolerance(instance, "energy_j", 0.0) == pytest.approx(cancelled, rel=1e-13)
    expected = 2.0**-30 + cancelled
    assert metric_tolerance(instance, "energy_j", -1024.0) == pytest.approx(expected, rel=1e-13)


def test_the_rounding_of_the_first_level() -> None:
    # 3 · energy + 2 · cost; the makespan of the same sum has nothing that cancels.
    instance = cluster()
    terms = (3 * ENERGY_J + 2 * metric_scale(instance, "cost_usd")) * 2.0**-48
    assert level_tolerance(instance, 0.0) == pytest.approx(terms, rel=1e-13)
    assert level_tolerance(instance, -1024.0) == pytest.approx(2.0**-30 + terms, rel=1e-13)
