"""Heads, tails and horizons by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from optbench.model.builder import Model
from optbench.model.instance import Instance
from optbench.model.streams import with_stream
from optbench.model.windows import (
    different_links,
    earliest_ready,
    latest_ends,
    longest_lags,
    makespan_limit,
    task_pools,
    time_horizon,
    windows,
)


def chain() -> Model:
    """x (2 s on a, or 4 s on b) sends 3 GB (3 s between the pools) to y (5 s on b, memory for b
    only), released at 1.
    """
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
    m.limit(
        makespan_s=37 * 0.1
    )  # 3.7 / 0.1 = 37.00000000000001, and 0.3 / 0.1 = 2.9999999999999996
    m.minimize(makespan_s=1)
    assert time_horizon(m.build()) == 37


def test_with_tariffs_the_horizon_waits_for_the_last_change() -> None:
    m = Model()
    m.task(modes=[m.mode(m.pool("p"), 2, energy_j=1)])
    m.tariff(price_usd_per_kwh=[3, 1], every_s=50)
    m.minimize(cost_usd=1)
    assert time_horizon(m.build()) == 52


def test_the_way_in_delays_the_head_and_the_horizon() -> None:
    # The way to a takes 4 s, to b 2 s: x can begin on b at 1 + 2, and y 2 s later. The serial
    # horizon starts when x has come to a, at 5: 4 + 5 s of work and 3 s of transfer follow.
    instance = with_stream(chain().build(), latency_s=[[4.0, 2.0]])
    assert earliest_ready(instance).tolist() == [3, 2]
    assert windows(instance).head.tolist() == [3, 5]
    assert time_horizon(instance) == 5 + 4 + 5 + 3


def test_paths_take_the_longest_of_several_ways() -> None:
    """x (1 s) precedes y (5 s) and z (2 s), which precede w (3 s): the longest path is x, y, w."""
    m = Model()
    pool = m.pool("p", 4)
    x, y, z = (m.task(modes=[m.mode(pool, length)]) for length in (1, 5, 2))
    m.task("w", modes=[m.mode(pool, 3)], after=[y, z])
    m.precede(x, y)
    m.precede(x, z)
    m.minimize(makespan_s=1)
    w = windows(m.build())
    assert w.head.tolist() == [0, 1, 1, 6]
    assert w.tail.tolist() == [8, 3, 3, 0]
    assert w.critical_path == 9


@pytest.mark.parametrize(
    ("deadlines", "hard", "horizon"),
    [
        # The serial horizon is 2 + 5 s; deadlines end it where each task has a hard one.
        ((6.0, 4.0), True, 6),
        ((6.0, 4.0), False, 7),
        ((6.0, None), True, 7),
        ((None, None), False, 7),
    ],
)
def test_hard_deadlines_of_all_tasks_end_the_time(
    deadlines: tuple[float | None, float | None], hard: bool, horizon: int
) -> None:
    m = Model()
    pool = m.pool("p", 2)
    for deadline_s, length in zip(deadlines, (5, 2), strict=True):
        m.task(modes=[m.mode(pool, length)], deadline_s=deadline_s, hard=hard)
    m.minimize(makespan_s=1)
    assert time_horizon(m.build()) == horizon


@pytest.mark.parametrize(
    ("limits", "ticks"),
    [
        ({}, np.inf),
        ({"makespan": 8.7}, 8),
        ({"makespan_s": 11.0}, 5),
        ({"makespan": 8.7, "makespan_s": 11.0}, 5),
        ({"makespan": 4.0, "makespan_s": 11.0}, 4),
        ({"energy_j": 3.0}, np.inf),
    ],
)
def test_the_least_limit_on_the_makespan_in_ticks_of_two_seconds(
    limits: dict[str, float], ticks: float
) -> None:
    m = Model(tick_s=2.0)
    m.task(modes=[m.mode(m.pool("p"), 2)])
    m.minimize(makespan_s=1)
    assert makespan_limit(m.build().with_limits(**limits)) == ticks


def test_latest_ends_come_from_the_end_the_deadlines_and_what_follows() -> None:
    # y takes 5 s on b, and x on b needs no transfer: x ends 5 s before y does.
    instance = chain().build()
    known = windows(instance)
    assert latest_ends(instance, known).tolist() == [np.inf, np.inf]
    assert latest_ends(instance, known, 12.5).tolist() == [7, 12]
    assert latest_ends(replace(instance, horizon=20), known).tolist() == [15, 20]
    assert latest_ends(instance.with_limits(makespan=11.0), known, 12.5).tolist() == [6, 11]
    soft = replace(instance, tasks=replace(instance.tasks, deadline=np.array([9.0, 13.0])))
    hard = replace(soft, tasks=replace(soft.tasks, deadline_hard=np.array([False, True])))
    assert latest_ends(soft, known).tolist() == [np.inf, np.inf]
    assert latest_ends(hard, known).tolist() == [8, 13]


def three_pools() -> Instance:
    """x (on a) sends 2 GB to y (on b or c) and 4 GB to z (on c), y sends 1 GB to z, v follows x.

    A GB takes 1 s from a to b, 3 s from a to c, and 2 s from b to c after a latency of 1 s.
    """
    m = Model()
    a, b, c = (m.pool(name) for name in "abc")
    m.link(a, b, bandwidth_gbit_s=8)
    m.link(a, c, bandwidth_gbit_s=8 / 3)
    m.link(b, c, bandwidth_gbit_s=4, latency_ms=1000)
    x = m.task("x", modes=[m.mode(a, 1)])
    y = m.task("y", modes=[m.mode(b, 1), m.mode(c, 1)], data_gb={x: 2})
    m.task("z", modes=[m.mode(c, 1)], data_gb={x: 4, y: 1})
    m.task("v", modes=[m.mode(c, 1)], after=x)
    m.minimize(makespan_s=1)
    return m.build()


def test_the_shortest_and_longest_lag_of_each_edge() -> None:
    # x to y takes 2 s (to b) or 6 s (to c), x to z 12 s, y to z 0 s (within c) or 1 + 2 s (from b).
    instance = three_pools()
    edges = list(zip(instance.edges.source.tolist(), instance.edges.target.tolist(), strict=True))
    assert dict(zip(edges, windows(instance).edge_lag.tolist(), strict=True)) == {
        (0, 1): 2, (0, 2): 12, (1, 2): 0, (0, 3): 0,
    }  # fmt: skip
    assert dict(zip(edges, longest_lags(instance).tolist(), strict=True)) == {
        (0, 1): 6, (0, 2): 12, (1, 2): 3, (0, 3): 0,
    }  # fmt: skip
    assert [pools.tolist() for pools in task_pools(instance)] == [[0], [1, 2], [2], [2]]


def test_a_lag_over_no_link_is_not_the_longest() -> None:
    # Without a link from a to c, y gets its data on b alone, in 2 s.
    instance = three_pools()
    latency_s = instance.links.latency_s.copy()
    latency_s[0, 2] = np.inf
    cut = replace(instance, links=replace(instance.links, latency_s=latency_s))
    assert longest_lags(cut)[0] == 2


def test_one_pair_of_pools_stands_for_all_with_its_latency_and_speed() -> None:
    """From a and b to a, b, c, d, e: transfers within a pool, some of 1 s per GB without latency,
    one of 2 s (a to d), and one of 1 s with a latency of 5 ms (b to e).
    """
    m = Model()
    a, b, c, d, e = (m.pool(name) for name in "abcde")
    m.link(a, [b, c], bandwidth_gbit_s=8)
    m.link(a, d, bandwidth_gbit_s=4)
    m.link(a, e, bandwidth_gbit_s=8)
    m.link(b, [c, d], bandwidth_gbit_s=8)
    m.link(b, e, bandwidth_gbit_s=8, latency_ms=5)
    m.task(modes=[m.mode(a, 1)])
    m.minimize(makespan_s=1)
    instance = m.build()
    senders, receivers = different_links(instance, np.array([0, 1]), np.arange(5))
    latency_s, s_per_gb = instance.links.latency_s, instance.links.s_per_gb
    kinds = [
        (0.0, 0.0) if one == other else (latency_s[one, other], s_per_gb[one, other])
        for one, other in zip(senders.tolist(), receivers.tolist(), strict=True)
    ]
    assert sorted(kinds) == [(0.0, 0.0), (0.0, 1.0), (0.0, 2.0), (0.005, 1.0)]


def test_a_soft_deadline_does_not_end_the_time_horizon() -> None:
    # One device: 4 and then 8 s, whatever the due date of the second task says.
    m = Model()
    mode = {length: m.mode(pool, length) for pool in [m.pool("a")] for length in (4, 8)}
    m.task("x", modes=[mode[4]], deadline_s=5, hard=True)
    m.task("y", modes=[mode[8]], deadline_s=6, hard=False)
    m.minimize(tardiness_s=1)
    assert time_horizon(m.build()) == 12
