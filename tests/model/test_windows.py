"""Heads, tails and horizons by hand."""

from __future__ import annotations

from optbench.model.builder import Model
from optbench.model.windows import time_horizon, windows


def chain() -> Model:
    """x (2 s on a, or 4 s on b) sends 3 GB (3 s between the pools) to y (5 s on b, memory for b only), released at 1."""
    m = Model()
    a, b = m.pool("a", memory_gb=8), m.pool("b", memory_gb=80)
    m.link(a, b, bandwidth_gbit_s=8)
    x = m.task("x", modes=[m.mode(a, 2), m.mode(b, 4)], release_s=1)
    m.task("y", modes=[m.mode(a, 1), m.mode(b, 5)], memory_gb=40, data_gb={x: 3})
    m.minimize(makespan_s=1)
    return m


def test_heads_and_tails_use_fastest_modes_and_cheapest_transfers() -> None:
    w = windows(chain().build())
    assert w.shortest.tolist() == [2, 5] and w.longest.tolist() == [4, 5]  # y does not fit a
    assert w.edge_lag.tolist() == [0]  # both on b
    assert w.head.tolist() == [1, 3] and w.tail.tolist() == [5, 0]
    assert w.critical_path == 8


def test_a_lag_is_certain_when_no_common_pool_is_left() -> None:
    m = Model()
    a, b = m.pool("a"), m.pool("b")
    m.link(a, b, bandwidth_gbit_s=8)
    x = m.task("x", modes=[m.mode(a, 2)])
    m.task("y", modes=[m.mode(b, 5)], data_gb={x: 3})
    m.minimize(makespan_s=1)
    assert windows(m.build()).critical_path == 2 + 3 + 5


def test_the_time_horizon_is_serial_and_respects_limits() -> None:
    m = chain()
    assert time_horizon(m.build()) == 1 + 4 + 5 + 3
    m.limit(makespan_s=9)
    assert time_horizon(m.build()) == 9


def test_a_limit_that_is_a_float_multiple_of_the_tick_is_not_rounded_below_itself() -> None:
    m = Model(tick_s=0.1)
    m.task(modes=[m.mode(m.pool("p"), 10)])
    m.limit(makespan_s=37 * 0.1)  # 3.7 / 0.1 = 37.00000000000001, and 0.3 / 0.1 = 2.9999999999999996
    m.minimize(makespan_s=1)
    assert time_horizon(m.build()) == 37


def test_with_tariffs_the_horizon_waits_for_the_last_change() -> None:
    m = Model()
    m.task(modes=[m.mode(m.pool("p"), 2, energy_j=1)])
    m.tariff(price_usd_per_kwh=[3, 1], every_s=50)
    m.minimize(cost_usd=1)
    assert time_horizon(m.build()) == 52
