"""Metrics by hand on one small cluster."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from optbench.model.builder import Model
from optbench.model.instance import Instance
from optbench.model.metrics import power_trace, profile_of
from optbench.model.schedule import Schedule
from optbench.model.verify import verify


def cluster(horizon_s: float | None = None, price: tuple[float, ...] = (1.0,)) -> Instance:
    """Pools a (2 devices, 10 W at rest) and b (1, 4 W): x on both a for 3 s, then 5 s of transfer,
    then y on b for 2 s.
    """
    m = Model(horizon_s=horizon_s)
    a, b = m.pool("a", 2, idle_w=10), m.pool("b", 1, idle_w=4)
    m.link(a, b, bandwidth_gbit_s=8, energy_j_per_gb=7)
    x = m.task(
        "x", modes=[m.mode({a: 2}, time_s=3, energy_j=600)], deadline_s=2, hard=False, weight=2
    )
    m.task(
        "y", modes=[m.mode(b, time_s=2, energy_j=100)], data_gb={x: 5}, deadline_s=10, release_s=1
    )
    m.tariff(price_usd_per_kwh=price, carbon_g_per_kwh=100, every_s=4)
    m.minimize(energy_j=1, cost_usd=1)
    return m.build()


def test_energy_until_completion() -> None:
    instance = cluster()
    metrics = verify(instance, Schedule.of(instance, [0, 1], [0, 8])).metrics
    assert metrics["busy_energy_j"] == 700
    assert metrics["transfer_energy_j"] == 35
    # a rests 2 * 10 s - 2 * 3 s = 14 device-seconds at 10 W; b rests 10 - 2 = 8 s at 4 W.
    assert metrics["rest_energy_j"] == 140 + 32
    assert metrics["energy_j"] == 700 + 35 + 172


def test_less_than_a_gigabyte_is_sent_too() -> None:
    # 0.5 GB at 7 J, and half a second of transfer.
    instance = cluster()
    edges = replace(instance.edges, data_gb=np.array([0.5]))
    metrics = verify(replace(instance, edges=edges), Schedule.of(instance, [0, 1], [0, 4])).metrics
    assert metrics["transfer_energy_j"] == 3.5


def test_without_segments_nothing_is_drawn() -> None:
    none = np.zeros(0, dtype=np.int64)
    trace = power_trace(cluster(), Schedule(none, none, none, none))
    assert trace.t.tolist() == [0]
    assert trace.energy_j(1.0) == 0.0


def test_energy_over_a_fixed_horizon_counts_rest_to_its_end() -> None:
    instance = cluster(horizon_s=20)
    metrics = verify(instance, Schedule.of(instance, [0, 1], [0, 8])).metrics
    assert metrics["rest_energy_j"] == (2 * 20 - 6) * 10 + (20 - 2) * 4


def test_times_of_the_tasks() -> None:
    instance = cluster()
    metrics = verify(instance, Schedule.of(instance, [0, 1], [0, 9])).metrics
    assert metrics["makespan_s"] == 11
    assert metrics["flow_time_s"] == 2 * 3 + (11 - 1)
    # x is late by 1 s with weight 2; y is late too, but its deadline is hard: a violation, not
    # tardiness.
    assert (metrics["tardiness_s"], metrics["late_tasks"]) == (2, 2)


def test_cost_follows_the_price_while_power_is_drawn() -> None:
    instance = cluster(price=(1.0, 3.0))  # 1 until 4 s, then 3 for ever
    metrics = verify(instance, Schedule.of(instance, [0, 1], [2, 10])).metrics
    # x runs from 2 to 5 at 200 W: 2 s at price 1, 1 s at price 3; its transfer leaves at 5 at price
    # 3; y runs at price 3.
    busy = 200 * (2 * 1 + 1 * 3) + 35 * 3 + 100 * 3
    # Until 12: a rests from 0 to 2 and from 5 to 12 (2 devices), b from 0 to 10.
    rest = 10 * 2 * (2 * 1 + 7 * 3) + 4 * (4 * 1 + 6 * 3)
    assert metrics["cost_usd"] == pytest.approx((busy + rest) / 3.6e6, rel=1e-12)
    assert metrics["carbon_g"] == pytest.approx(metrics["energy_j"] * 100 / 3.6e6, rel=1e-12)


def test_peak_power_counts_devices_at_rest() -> None:
    instance = cluster()
    metrics = verify(instance, Schedule.of(instance, [0, 1], [0, 8])).metrics
    assert metrics["peak_power_w"] == 200 + 4  # x on both a's (200 W), b at rest


def test_a_profile_is_the_sum_of_demands_between_its_changes() -> None:
    # Demands of 2 from 0 to 4, 3 from 2 to 6 and 1 from 4 to 6: 2, 2 + 3, 3 + 1 and 0.
    start, end = np.array([0.0, 2.0, 4.0]), np.array([4.0, 6.0, 6.0])
    t, level = profile_of(start, end, np.array([2.0, 3.0, 1.0]))
    assert t.tolist() == [0.0, 2.0, 4.0, 6.0]
    assert level.tolist() == [2.0, 5.0, 4.0, 0.0]


def test_a_power_trace_by_hand() -> None:
    # x draws 600 J from 1 to 4 on both devices of a, y 100 J from 9 to 11 on b; the end is at 17.
    instance = cluster(17.0)
    trace = power_trace(instance, Schedule.of(instance, [0, 1], [1, 9]))
    assert trace.t.tolist() == [0, 1, 4, 9, 11, 17]
    assert trace.busy_w.tolist() == [[0, 200, 0, 0, 0], [0, 0, 0, 50, 0]]
    # At rest, the two devices of a draw 10 W each, that of b draws 4 W.
    assert trace.rest_w.tolist() == [[20, 0, 20, 20, 20], [4, 4, 4, 0, 4]]
    # x sends 5 GB at 7 J per GB when it ends.
    assert (trace.transfer_t.tolist(), trace.transfer_j.tolist()) == ([4], [35])


@pytest.mark.parametrize("horizon_s", [None, 17.0])
def test_power_over_time_integrates_to_the_energy(horizon_s: float | None) -> None:
    instance = cluster(horizon_s)
    schedule = Schedule.of(instance, [0, 1], [1, 9])
    energy = verify(instance, schedule).metrics["energy_j"]
    assert power_trace(instance, schedule).energy_j(instance.tick_s) == pytest.approx(
        energy, rel=1e-12
    )


def test_a_hand_over_is_exact_to_the_tick() -> None:
    """0.1 + 0.2 s, which floats make more than 0.3: one after the other, and no tick earlier."""
    m = Model(time="seconds")
    p = m.pool("p")
    m.tasks([0.1, 0.2, 0.7], modes=[m.mode(p, time_s=1.0)])
    m.minimize(makespan_s=1)
    instance = m.build()
    start = np.array([0, 10**8, 3 * 10**8])
    verdict = verify(instance, Schedule.of(instance, [0, 0, 0], start))
    assert verdict.feasible and verdict.objective == 1.0
    early = verify(instance, Schedule.of(instance, [0, 0, 0], start - [0, 0, 1]))
    assert [v.constraint for v in early.violations] == ["capacity"]


def test_ticks_are_exact_at_every_size() -> None:
    m = Model(tick_s=1e-6)
    p = m.pool("p", 2)
    m.tasks([1, 1], modes=[m.mode(p, time_s=2e-6, energy_j=2e-4)])
    m.limit(power_w=100)
    m.minimize(makespan=1)
    instance = m.build()
    late = 4_000_000_000  # a relative 1e-9 of it is 4 ticks
    verdict = verify(instance, Schedule.of(instance, [0, 0], [late, late + 1]))
    assert [v.constraint for v in verdict.violations] == ["power_cap"]


@pytest.mark.parametrize("units", [1.0000000015, 1_000_000.0015])
@pytest.mark.parametrize(("preemptive", "named"), [(False, "duration"), (True, "assignment")])
def test_a_little_work_too_much_for_the_ticks_needs_one_more(
    units: float, preemptive: bool, named: str
) -> None:
    """Fault 5 of issue 11: a million and 0.0015 units went into a million ticks."""
    m = Model(preemptive=preemptive)
    m.task(modes=[m.mode(m.pool("p"), time_s=1)], units=units)
    m.minimize(makespan=1)
    instance = m.build()
    whole = Schedule.of(instance, [0], [0])
    assert whole.end.tolist() == [int(units) + 1] and verify(instance, whole).feasible
    short = replace(whole, end=whole.end - 1)
    assert [v.constraint for v in verify(instance, short).violations] == [named]


def test_an_infeasible_schedule_has_no_objective() -> None:
    instance = cluster()
    verdict = verify(instance, Schedule.of(instance, [0, 1], [0, 7]))
    assert not verdict.feasible and verdict.objective is None and verdict.objectives == ()
    assert [v.constraint for v in verdict.violations] == ["transfer"]


def test_devices_that_never_rest_cost_nothing_for_it() -> None:
    """An hour of work in 1,000 pieces of no energy: the price of rest was once what rounding left
    of two large numbers.
    """
    rng = np.random.default_rng(1)
    m = Model(tick_s=1e-3, preemptive=True)
    m.tariff(price_usd_per_kwh=rng.random(60).tolist(), every_s=60.0)
    m.task(modes=[m.mode(m.pool("gpu", idle_w=123.4), time_s=3600.0)])
    m.minimize(cost_usd=1.0)
    m.limit(cost_usd=0.0)
    cuts = np.sort(rng.choice(np.arange(1, 3_600_000), 999, replace=False))
    zeros, start, end = (
        np.zeros(1000, dtype=np.int64),
        np.append(0, cuts),
        np.append(cuts, 3_600_000),
    )
    verdict = verify(m.build(), Schedule(zeros, zeros, start, end))
    assert verdict.feasible and verdict.objective == 0.0
