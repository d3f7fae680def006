"""Measures of a result, by hand."""

from __future__ import annotations

import pytest

import optbench as ob
from optbench.errors import ContradictionError
from optbench.model.instance import Instance
from optbench.model.measures import (
    check_bound,
    contradicts,
    gap,
    is_closed,
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
