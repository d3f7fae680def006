"""The grid of whole ticks: the rule of rounding, the automatic tick, the compiled twin, and the one
tolerance of sums.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import optbench as ob
from optbench.errors import ModelError
from optbench.model.instance import Floats, Instance
from optbench.model.streams import with_stream
from optbench.model.timegrid import (
    AUTO_HORIZON_TICKS,
    HORIZON_TICKS,
    RELATIVE_TOLERANCE,
    automatic_tick_s,
    exceeds,
    grid_down,
    grid_up,
    is_on_grid,
    narrowed,
    rounded_sum,
    to_ints,
    ulp,
    widened,
)
from tests.sim import driver


def by_the_rule(x: float, up: bool) -> int:
    """The module's rule, in rationals."""
    exact = Fraction(x)
    whole = round(exact)
    if abs(exact - whole) <= min(8 * Fraction(math.ulp(x)), Fraction(1, 4)):
        return whole
    return math.ceil(exact) if up else math.floor(exact)


def awkward(size: int) -> Floats:
    """Values from 1e-9 to 2^52: of every magnitude, whole, halves, and up to 12 units of the last
    place beside either.
    """
    rng = np.random.default_rng(0)
    anything = np.exp(rng.uniform(math.log(1e-9), math.log(2.0**52), size))
    whole = np.rint(np.exp(rng.uniform(0.0, math.log(2.0**51), size)))
    near = whole + rng.integers(-12, 13, size) * ulp(whole)
    quarters = np.rint(2.0 ** rng.uniform(44, 50, size)) + rng.integers(0, 16, size) / 16
    return np.concatenate(
        (
            anything,
            whole,
            whole + 0.5,
            near,
            near + 0.5,
            quarters,
            [0.0, 1e-9, 0.25, 0.5, 0.75, 2.0**52, 2.0**52 - 0.5],
        )
    )


def test_the_rule_in_rationals() -> None:
    values = awkward(4000)
    assert grid_up(values).tolist() == [by_the_rule(x, up=True) for x in values.tolist()]
    assert grid_down(values).tolist() == [by_the_rule(x, up=False) for x in values.tolist()]


def test_the_compiled_twin_gives_the_same_integers() -> None:
    values = awkward(150_000)
    out = np.empty_like(values)
    driver.whole_ticks_of(values, out)
    np.testing.assert_array_equal(out, grid_up(values))


@pytest.mark.parametrize(
    ("x", "up", "down"),
    [
        (1.0 + 8 * 2.0**-52, 1, 1),
        (1.0 + 9 * 2.0**-52, 2, 1),
        # Below 1 a unit of the last place is half as much.
        (1.0 - 8 * 2.0**-53, 1, 1),
        (1.0 - 9 * 2.0**-53, 1, 0),
        # At 2^48 one is a sixteenth: a quarter of a tick is the limit, and 5 / 16 are beyond it.
        (2.0**48 + 0.25, 2**48, 2**48),
        (2.0**48 + 0.3125, 2**48 + 1, 2**48),
        (2.0**48 + 0.75, 2**48 + 1, 2**48 + 1),
        (2.0**51 + 0.5, 2**51 + 1, 2**51),
        (1e-9, 1, 0),
        (0.0, 0, 0),
        (2.0**52, 2**52, 2**52),
    ],
)
def test_eight_units_of_the_last_place_and_a_quarter_of_a_tick(
    x: float, up: int, down: int
) -> None:
    assert (float(grid_up(x)), float(grid_down(x))) == (up, down)


def test_what_is_not_finite_stays() -> None:
    assert grid_up([np.inf]).tolist() == grid_down([np.inf]).tolist() == [np.inf]
    assert is_on_grid([3.0, 3.5, 0.1 * 30, np.inf, np.nan]).tolist() == [
        True,
        False,
        True,
        False,
        False,
    ]
    assert to_ints([5.0, 2.0**52, 2.0**60, np.inf]).tolist() == [5, 2**52, 2**52 + 1, 2**52 + 1]


def one_task(**task: float) -> Instance:
    m = ob.Model(time="seconds")
    m.task(modes=[m.mode(m.pool("gpu"), time_s=task.pop("time_s", 0.1))], **task)  # type: ignore[arg-type]
    m.minimize(makespan_s=1.0)
    return m.build()


def test_three_tenths_of_a_second_are_whole_nanoseconds() -> None:
    instance = one_task(units=3.0)
    assert instance.tick_s == 1e-9 and instance.pairs.duration.tolist() == [300_000_000]
    assert instance.pairs.duration.dtype == np.int64


def test_time_in_seconds_is_the_automatic_tick() -> None:
    m = ob.Model(tick_s="auto")
    m.task(units=3.0, modes=[m.mode(m.pool("gpu"), time_s=0.1)])
    m.minimize(makespan_s=1.0)
    assert m.build().hash == one_task(units=3.0).hash


@pytest.mark.parametrize(
    ("horizon_s", "tick_s"),
    [
        (1e-6, 1e-9), (281_474.976710656, 1e-9), (281_474.98, 1e-8), (2_814_749.0, 1e-8),
        (2_814_750.0, 1e-7), (10 * 365 * 86_400.0, 1e-5), (1e30, 1e16),
    ],
)  # fmt: skip
def test_the_automatic_tick_is_the_finest_power_of_ten_that_holds_the_horizon(
    horizon_s: float, tick_s: float
) -> None:
    assert automatic_tick_s(horizon_s) == tick_s
    assert horizon_s / tick_s <= AUTO_HORIZON_TICKS
    assert tick_s == 1e-9 or horizon_s / (tick_s / 10) > AUTO_HORIZON_TICKS * (1 - 1e-15)


def test_without_a_horizon_the_latest_time_and_the_longest_task_choose_the_tick() -> None:
    assert one_task(time_s=280_000.0).tick_s == 1e-9
    assert one_task(time_s=280_000.0, release_s=2_000.0).tick_s == 1e-8
    assert one_task(time_s=1.0, deadline_s=282_000.0).tick_s == 1e-8


def test_the_sum_of_durations_chooses_no_tick_and_refuses_nothing() -> None:
    """97,000 jobs of a day each: 8.4e18 ns one after the other, beyond the horizon of every
    instance.
    """
    m = ob.Model(time="seconds")
    m.tasks(
        np.full(97_000, 86_400.0), kind=m.kind(modes=[m.mode(m.pool("gpu", count=100), time_s=1.0)])
    )
    m.minimize(makespan_s=1.0)
    assert m.build().tick_s == 1e-9


def test_each_kind_of_time_is_rounded_its_own_way() -> None:
    """Ticks of 2 s: durations, releases, lags and ways in go up, deadlines and the horizon down."""
    m = ob.Model(tick_s=2.0, horizon_s=99.0)
    a, b = m.pool("a"), m.pool("b")
    m.link(a, b, bandwidth_gbit_s=8, latency_ms=1)
    first = m.task(modes=[m.mode(a, time_s=3)], release_s=5.0, deadline_s=21.0)
    m.task(modes=[m.mode(b, time_s=4)], data_gb={first: 2.0})
    m.minimize(makespan=1.0)
    instance = with_stream(m.build(), latency_s=[[0.1, 4.0]])
    assert instance.pairs.duration.tolist() == [2, 2]
    assert (instance.tasks.release[0], instance.tasks.deadline[0], instance.horizon) == (3, 10, 49)
    assert float(instance.lag(0, 1, 2.0)) == 2 and instance.access([0, 0], [0, 1]).tolist() == [
        1,
        2,
    ]
    assert instance.pairs.ready.tolist() == [3 + 1, 0 + 2]


def test_tariffs_lie_on_the_grid() -> None:
    def built(every_s: float) -> Instance:
        m = ob.Model(tick_s=0.1)
        m.task(modes=[m.mode(m.pool("gpu"), time_s=1)])
        m.tariff(price_usd_per_kwh=[0.1, 0.2], times_s=[0.0, every_s])
        m.minimize(cost_usd=1.0)
        return m.build()

    tariffs = built(0.1 * 3).tariffs
    assert tariffs is not None and tariffs.times.tolist() == [0, 3]
    with pytest.raises(ModelError, match=r"tariff times must be whole ticks of 0\.1 s"):
        built(0.25)


def test_no_horizon_is_beyond_that_of_every_instance() -> None:
    m = ob.Model(horizon_s=1e17)
    m.task(modes=[m.mode(m.pool("gpu"), time_s=1)])
    m.minimize(makespan=1.0)
    instance = m.build()
    assert instance.horizon == HORIZON_TICKS == instance.end_of_time
    assert one_task().horizon is None and one_task().end_of_time == HORIZON_TICKS


def test_sums_under_a_limit() -> None:
    """A sum exceeds a limit by more than 2^-40 of itself; what models and bounds widen or narrow
    lies on its own side.
    """
    rng = np.random.default_rng(1)
    for limit in (10.0 ** rng.uniform(-12, 12, 2000)).tolist():
        edge = limit / (1 - RELATIVE_TOLERANCE)
        assert not exceeds(edge * (1 - 2e-15), limit) and exceeds(edge * (1 + 2e-15), limit)
        assert not exceeds(narrowed(limit), limit) and exceeds(widened(limit), limit)
        assert (
            limit < narrowed(limit) < edge < widened(limit) < limit * (1 + 3 * RELATIVE_TOLERANCE)
        )
    assert (
        exceeds(np.inf, 1e308)
        and exceeds(np.nan, 1.0)
        and not exceeds(0.0, 0.0)
        and exceeds(5e-324, 0.0)
    )


def test_sums_are_rounded_once() -> None:
    assert rounded_sum([0.1] * 10) == 1.0 and rounded_sum([]) == 0.0
    assert rounded_sum([1e308] * 3) == np.inf == rounded_sum([np.inf, 1.0])
    assert np.isnan(rounded_sum([np.inf, -np.inf]))


@pytest.mark.parametrize(
    ("terms", "total"),
    [
        ([], 0.0),
        ([0.0, 0.0], 0.0),
        ([3.0, -5.0], -2.0),
        ([0.1] * 10, 1.0),
        ([2.0, 0.5], 2.5),
        # Low halves that carry: 2^24 − 1 and 1 and 2^24.
        ([2.0**24 - 1, 1.0, 2.0**24], 2.0**25),
        # 4096 times 2^52 is 2^64, and the ones beside it are lost by rounding once, not 4096 times.
        ([2.0**52] * 4096 + [1.0], 2.0**64),
        ([2.0**52] * 2 + [1.0, 1.0], 2.0**53 + 2),
        # Whole, but beyond 64 bits.
        ([1.0, 1e300], 1e300),
        ([1e308] * 3, np.inf),
        ([np.inf, 1.0], np.inf),
    ],
)
def test_columns_are_summed_like_lists(terms: list[float], total: float) -> None:
    assert rounded_sum(np.array(terms)) == total == rounded_sum(terms)


def test_the_difference_of_two_sums_beyond_every_float_is_no_number() -> None:
    assert np.isnan(rounded_sum(np.array([np.inf, -np.inf])))
