"""Floors of single metrics, each by hand."""

from __future__ import annotations

import numpy as np
import pytest

import optbench as ob
from optbench.bounds.combinatorial.metric_floors import (
    busy_time_floor,
    flow_floor,
    interrupted_floors,
    low_sum,
    metric_floors,
    tardiness_floor,
    transfer_floor,
)
from optbench.bounds.combinatorial.relaxation import PoolSet, relax
from tests.bounds.shops import shop


def test_a_low_sum_is_just_below_the_sum() -> None:
    assert 3.0 - 1e-11 < low_sum([1.0, 2.0]) < 3.0
    # The margin is one of magnitudes: 1e6 − 1e6 may be off by more than 0.
    assert -3e-6 < low_sum([1e6, -1e6]) < -1e-6


def test_mean_busy_times_on_two_devices() -> None:
    # Works 2 and 4 of weights 1 and 4, heads 3 and 1: Smith's order is the second first. It is busy
    # around 1 + (0 + 2) / 2 and ends 4 / 2 later, at 4; the first around 1 + (4 + 1) / 2 and ends 2
    # / 2 later, at 4.5. In all 4 · 4 + 4.5.
    pools = PoolSet(
        "x",
        (0,),
        2,
        np.arange(2),
        np.array([2.0, 4.0]),
        np.array([3.0, 1.0]),
        np.zeros(2),
        np.array([2.0, 4.0]),
    )
    assert busy_time_floor(pools, np.array([1.0, 4.0])) == pytest.approx(20.5, rel=1e-9)


def test_flow_time_takes_the_better_order_of_pool_sets() -> None:
    # Three of 2 on the first machine alone and one on either: 2 + 4 + 6 there, and 2. Together on
    # two devices it would be 12.
    several = relax(shop([[(0, 2)]] * 3 + [[[(0, 2), (1, 2)]]], [1, 1]))
    assert flow_floor(several) == pytest.approx(14.0, rel=1e-9)
    # One on the first machine alone and four on either: together 1.5 + 2.5 + 3.5 + 4.5 + 5.5.
    # Apart, each by itself, 10.
    several = relax(shop([[(0, 2)]] + [[[(0, 2), (1, 2)]]] * 4, [1, 1]))
    assert flow_floor(several) == pytest.approx(17.5, rel=1e-9)


def test_flow_time_counts_from_the_release() -> None:
    m = ob.Model(tick_s=0.5)
    gpu = m.pool("gpu", count=2)
    m.task(modes=[m.mode(gpu, time_s=3)], release_s=4, weight=2)
    m.minimize(flow_time_s=1.0)
    assert flow_floor(relax(m.build())) == pytest.approx(6.0, rel=1e-9)


def test_only_soft_deadlines_are_late() -> None:
    # Soft: 5 s by 3 s, twice; hard: 5 s by 4 s, which is impossible and no tardiness; without a
    # deadline: nothing.
    m = ob.Model(tick_s=0.5)
    gpu = m.pool("gpu", count=3)
    mode = m.mode(gpu, time_s=5)
    m.task(modes=[mode], deadline_s=3, hard=False, weight=2)
    m.task(modes=[mode], deadline_s=4, hard=True, weight=8)
    m.task(modes=[mode], weight=16)
    m.task(modes=[mode], deadline_s=9, hard=False, weight=32)
    m.minimize(tardiness_s=1.0)
    assert tardiness_floor(relax(m.build())) == pytest.approx(4.0, rel=1e-9)


def test_a_transfer_costs_its_cheapest_link() -> None:
    # 2 GB from a to b or c at 5 or 3 J per GB; d is not linked. Nothing where the two can share a
    # pool.
    m = ob.Model()
    a, b, c, d = (m.pool(name) for name in "abcd")
    m.link(a, b, energy_j_per_gb=5.0)
    m.link(a, c, energy_j_per_gb=3.0)
    first = m.task(modes=[m.mode(a, 1)])
    for receivers in ([b, c, d], [b], [a, b], []):
        m.task(
            modes=[m.mode(pool, 1) for pool in receivers] or [m.mode(None, 1)], data_gb={first: 2.0}
        )
    m.task(modes=[m.mode(b, 1)], after=first)
    m.task(modes=[m.mode(b, 1), m.mode(None, 3)], data_gb={first: 2.0})
    m.minimize(energy_j=1.0)
    assert transfer_floor(m.build()).tolist() == [6.0, 10.0, 0.0, 0.0, 0.0, 0.0]


def interrupted(energy_j: float, makespan: float = 5.0) -> dict[str, float]:
    """One task of 4 s on a device that rests at 10 W, one of 2 s that uses no pool; 0.3 then 0.1
    $/kWh from 100 s on.
    """
    m = ob.Model(preemptive=True)
    gpu = m.pool("gpu", idle_w=10)
    m.task(
        modes=[
            m.mode(gpu, time_s=4, energy_j=energy_j),
            m.mode(gpu, time_s=8, energy_j=2 * energy_j),
        ],
        release_s=1,
        weight=2,
    )
    m.task(modes=[m.mode(None, time_s=2)])
    m.tariff(price_usd_per_kwh=(0.3, 0.1), times_s=(0, 100))
    m.minimize(energy_j=1.0, cost_usd=1.0, flow_time_s=1.0)
    return metric_floors(relax(m.build()), makespan)


def test_interrupted_tasks_cost_their_cheapest_mode() -> None:
    # 400 J are 360 J above the rest that they replace: with 10 W over 5 s 410 J.
    found = interrupted(400.0)
    assert found["energy_j"] == pytest.approx(410.0, rel=1e-9)
    assert found["cost_usd"] == pytest.approx(400.0 * 0.1 / 3.6e6, rel=1e-9)
    assert found["carbon_g"] == pytest.approx(0.0, abs=1e-12)
    assert found["flow_time_s"] == pytest.approx(2 * 4 + 2, rel=1e-9)
    assert (found["makespan"], found["makespan_s"]) == (5.0, 5.0)


def test_below_rest_interrupted_tasks_cost_no_more_than_their_own_energy() -> None:
    # 30 J in 4 s replace 40 J of rest: running on would replace more. 30 J are sure.
    assert interrupted(30.0, 50.0)["energy_j"] == pytest.approx(30.0, rel=1e-9)


def test_metrics_that_nobody_asks_for_have_no_floor() -> None:
    instance = shop([[(0, 2)]], [1])
    assert set(metric_floors(relax(instance), 2.0)) == {"makespan", "makespan_s"}
    with_limit = instance.with_limits(energy_j=5.0)
    assert set(metric_floors(relax(with_limit), 2.0)) == {"makespan", "makespan_s", "energy_j"}
    assert "tardiness_s" in interrupted_floors(relax(instance), 2.0)


def test_floors_of_interrupted_work_are_in_seconds() -> None:
    # Ticks of half a second: released at 4 s, 3 s of work, weight 2.
    m = ob.Model(tick_s=0.5, preemptive=True)
    m.task(modes=[m.mode(m.pool("gpu"), time_s=3)], release_s=4, weight=2)
    m.minimize(flow_time_s=1.0)
    found = interrupted_floors(relax(m.build()), 14.0)
    assert found["flow_time_s"] == pytest.approx(2 * 3.0, rel=1e-9)
    assert found["makespan_s"] == 7.0
