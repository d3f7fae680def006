"""Statistics: values derived by hand, and intervals that hold what they promise in simulation."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from optbench.evaluate import stats

INF = math.inf


def test_an_interval_of_two_values_is_what_can_be_drawn() -> None:
    """Of a stratum of two one is drawn: the mean is either value, each in half the resamples."""
    assert stats.bootstrap_interval([1.0, 3.0]) == (1.0, 3.0)


def test_strata_of_different_sizes_keep_their_share() -> None:
    """Strata without spread leave the mean where it is, whatever is drawn: (3 · 1 + 2 · 6) / 5."""
    low, high = stats.bootstrap_interval([1.0, 6.0, 1.0, 6.0, 1.0], ["a", "b", "a", "b", "a"])
    assert low == pytest.approx(3.0) and high == pytest.approx(3.0)


def test_strata_of_one_value_are_one_stratum() -> None:
    values = [0.1, 0.5, 0.2, 0.9]
    assert stats.bootstrap_interval(values, ["a", "b", "c", "d"]) == stats.bootstrap_interval(
        values
    )


def test_too_few_values_leave_the_spread_unknown() -> None:
    assert stats.bootstrap_interval([]) == stats.bootstrap_interval([0.3]) == (-INF, INF)
    assert not stats.Estimate(0.3, -INF, INF, 1).known


def test_values_that_are_not_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="1 of 3 values are not finite"):
        stats.bootstrap_interval([0.1, math.nan, 0.2])


def test_the_same_seed_gives_the_same_interval() -> None:
    values = np.random.default_rng(0).random(20)
    assert stats.bootstrap_interval(values, seed=4) == stats.bootstrap_interval(values, seed=4)
    assert stats.bootstrap_interval(values, seed=4) != stats.bootstrap_interval(values, seed=5)


def test_an_interval_moves_and_scales_with_its_values() -> None:
    values = np.random.default_rng(1).random(12)
    low, high = stats.bootstrap_interval(values)
    assert stats.bootstrap_interval(10 * values + 3) == pytest.approx((10 * low + 3, 10 * high + 3))


def test_chunks_do_not_change_the_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(2).random(9)
    whole = stats.bootstrap_interval(values, resamples=100)
    monkeypatch.setattr(stats, "CHUNK", 50)
    assert stats.bootstrap_interval(values, resamples=100) == whole


# Shape (strata, values each), what is drawn and its mean, least share in which the interval held
# (1,000 studies; 0.95 promised). Skewed values and few of them fall short of it, and this is by how
# much.
Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


@pytest.mark.parametrize(
    ("shape", "draw", "centre", "least"),
    [
        ((1, 3), lambda rng, shape: rng.normal(size=shape), 0.0, 0.72),
        ((1, 10), lambda rng, shape: rng.normal(size=shape), 0.0, 0.93),
        ((4, 5), lambda rng, shape: rng.normal(size=shape), 0.0, 0.93),
        ((5, 10), lambda rng, shape: rng.random(size=shape), 0.5, 0.93),
        ((2, 30), lambda rng, shape: rng.exponential(size=shape), 1.0, 0.91),
    ],
)
def test_intervals_hold_as_often_as_they_say(
    shape: tuple[int, int], draw: Draw, centre: float, least: float
) -> None:
    """Strata far apart: between-strata differences must not widen the interval, nor is it narrower
    than it should be.
    """
    rng, studies = np.random.default_rng(3), 1000
    strata = np.repeat(np.arange(shape[0]), shape[1]).tolist()
    offset = 10.0 * np.arange(shape[0])[:, None]
    truth = centre + float(offset.mean())
    held = 0
    for k in range(studies):
        values = (draw(rng, shape) + offset).ravel()
        low, high = stats.bootstrap_interval(values, strata, resamples=500, seed=k)
        held += low <= truth <= high
    assert least <= held / studies <= 0.99


def test_a_paired_difference_sees_what_two_intervals_do_not() -> None:
    """Instances differ by hundreds, methods by one each: the difference is certain."""
    theirs = np.array([100.0, 300.0, 500.0, 700.0, 900.0])
    found = stats.paired_difference(theirs - 1.0, theirs)
    assert (found.value, found.low, found.high, found.count) == (-1.0, -1.0, -1.0, 5)
    assert found.apart_from_zero
    ours, others = stats.estimate(theirs - 1.0), stats.estimate(theirs)
    assert ours.high > others.low


def test_few_values_tell_nothing_apart() -> None:
    assert stats.estimate([1.0] * stats.FEWEST).apart_from_zero
    assert not stats.estimate([1.0] * (stats.FEWEST - 1)).apart_from_zero
    assert not stats.estimate([-1.0, 0.0, 1.0, 2.0, 3.0]).apart_from_zero


# Three solvers on three instances; the third solver failed on the last, the first two tie on the
# first.
COSTS = np.array([[10.0, 20.0, 4.0], [10.0, 30.0, 2.0], [20.0, 25.0, INF]])


def test_ratios_to_the_best() -> None:
    assert stats.ratios(COSTS).tolist() == [[1.0, 1.0, 2.0], [1.0, 1.5, 1.0], [2.0, 1.25, INF]]
    assert stats.ratios(np.array([[0.0], [0.0], [3.0]])).tolist() == [[1.0], [1.0], [INF]]


def test_performance_profile() -> None:
    first, second, third = stats.performance_profile(COSTS)
    assert (first[0].tolist(), first[1].tolist()) == ([1.0, 2.0], [2 / 3, 1.0])
    assert (second[0].tolist(), second[1].tolist()) == ([1.0, 1.5], [2 / 3, 1.0])
    assert (third[0].tolist(), third[1].tolist()) == ([1.0, 1.25, 2.0], [0.0, 1 / 3, 2 / 3])


def test_average_ranks_and_wins() -> None:
    # Ranks: instance 1: 1.5, 1.5, 3; instance 2: 1, 3, 2; instance 3: 2, 1, 3.
    assert stats.average_ranks(COSTS) == pytest.approx([4.5 / 3, 5.5 / 3, 8 / 3])
    assert stats.wins(COSTS).tolist() == [2, 2, 0]


def test_nobody_wins_where_nobody_has_a_result() -> None:
    costs = np.array([[INF], [INF]])
    assert stats.average_ranks(costs) == pytest.approx([1.5, 1.5])
    assert stats.wins(costs).tolist() == [0, 0]


def test_rounding_decides_no_rank() -> None:
    costs = np.array([[0.1 + 0.2], [0.3]])
    assert stats.average_ranks(costs) == pytest.approx([1.5, 1.5])
    assert stats.wins(costs).tolist() == [1, 1]
