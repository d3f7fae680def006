"""Bounds of streams: derived by hand, never above brute force or any verified run, and proved again
from their duals.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import optbench as ob
from optbench.bounds.auto import lower_bounds
from optbench.bounds.lp.exact_check import proven_bound
from optbench.bounds.streams.stream_bound import (
    path_bound,
    path_metrics,
    slotted_bound,
    stream_bound,
)
from optbench.bounds.streams.stream_duals import repaired, solve_scaled
from optbench.bounds.streams.stream_program import Demand, stream_program, undominated
from optbench.bounds.streams.stream_slots import slots_of
from optbench.bounds.streams.stream_traffic import traffic
from optbench.errors import ParameterError
from optbench.model.instance import Instance
from optbench.model.objective import Objective
from optbench.model.streams import with_stream
from optbench.plugins.problems.geo_dc import GeoDc
from tests.bounds.stream_farms import (
    HOUR,
    J_PER_KWH,
    POLICIES,
    PRICES,
    farm,
    priced,
    small,
    waste_could_pay,
    worth,
)
from tests.reference.brute_force import brute_force
from tests.reference.random_instances import tiny_with_ways

# Three tasks of 5 units in 1,000 s on two devices: rest costs 2 W x 1,000 s = 2,000 J whatever
# happens. Above rest a unit costs 40 - 10 = 30 J at the high clock, 45 - 20 = 25 J at the low one:
# 15 units cost 2,000 + 375 J at least, running 300 s.


def test_the_cheapest_modes_where_time_does_not_matter() -> None:
    found = path_bound(farm([5, 5, 5], [0, 0, 100], 1000.0))
    assert found is not None
    assert found.energy_j == pytest.approx(2375.0, rel=1e-6)
    assert found.j_per_unit == pytest.approx(2375.0 / 15, rel=1e-6)


def test_a_budget_of_time_buys_the_high_clock() -> None:
    # 3 x 80 s of running time leave room for 9 units at the low clock (180 s) and 6 at the high one
    # (60 s): 225 + 180 J.
    found = path_bound(farm([5, 5, 5], [0, 0, 100], 1000.0), sojourn_s=80.0)
    assert found is not None
    assert found.energy_j == pytest.approx(2405.0, rel=1e-6)
    # One second more of each of 3 tasks moves 0.3 units, 5 J each.
    assert found.sojourn_value_j_per_s == pytest.approx(1.5, rel=1e-6)


def test_the_way_in_takes_its_time_of_the_budget() -> None:
    near, far = (
        farm([5, 5, 5], [0, 0, 100], 1000.0),
        farm([5, 5, 5], [0, 0, 100], 1000.0, way_s=10.0),
    )
    a, b = path_bound(near, sojourn_s=80.0), path_bound(far, sojourn_s=90.0)
    assert a is not None and b is not None
    assert a.energy_j == pytest.approx(b.energy_j, rel=1e-9)


def test_what_nobody_can_do_has_no_bound() -> None:
    instance = farm([5, 5, 5], [0, 0, 100], 1000.0)
    assert (
        path_bound(instance, sojourn_s=49.0) is None
    )  # 15 units take 150 s at the high clock, 50 a task
    assert (
        path_bound(farm([500, 5, 5], [0, 0, 100], 1000.0)) is None
    )  # 510 units of 10 s on 2,000 s of devices


def test_fewer_units_cost_more_each() -> None:
    instance = farm([5, 5, 5], [0, 0, 100], 1000.0)
    some, every = path_bound(instance, units=5.0), path_bound(instance)
    assert some is not None and every is not None
    assert some.j_per_unit == pytest.approx(2125.0 / 5, rel=1e-6)
    bound = stream_bound(instance)
    assert bound is not None
    assert bound.value == pytest.approx(every.j_per_unit, rel=1e-6)
    assert bound.value <= every.j_per_unit


def test_too_much_work_is_bounded_over_all_amounts() -> None:
    # 2,000 s of devices do 100 units at the low clock (25 J above rest), or more at the high one
    # (30 J): with x low and y high units, 20 x + 10 y <= 2,000, (2,000 + 25 x + 30 y) / (x + y) is
    # least at y = 200.
    instance = farm([1000], [0], 1000.0)
    bound = stream_bound(instance)
    assert bound is not None
    assert bound.value == pytest.approx(40.0, rel=1e-6)
    done = ob.simulate(instance, "default_policy")
    assert path_metrics(instance, done.metrics)["floor_offered_j_per_unit"] == pytest.approx(
        40.0, rel=1e-6
    )


def test_one_more_device_saves_no_more_than_its_value() -> None:
    # 150 units on 2 x 1,000 s: 2,000 s less the last 1,000 s; devices are short, so that the low
    # clock has its price.
    tight = farm([150], [0], 1000.0)
    more = farm([150], [0], 1000.0, count=3)
    a, b = path_bound(tight), path_bound(more)
    assert a is not None and b is not None
    value = a.device_value_j["site"]
    assert value == pytest.approx(1000.0 * 0.5, rel=1e-4)  # a device-second moves 0.1 units by 5 J
    assert b.energy_j - 1000.0 >= a.energy_j - value - 1e-3  # its own rest is 1,000 J


def test_a_device_that_is_never_away_is_worth_all_of_the_time() -> None:
    # One of two devices is away for 500 s: 1,500 s do 75 units at the low clock; a device-second
    # more moves 0.1 units by 5 J.
    found = path_bound(
        farm([50, 50], [0, 0], 1000.0, preemptive=True, away=([200.0, 700.0], 0, [1, -1]))
    )
    assert found is not None
    assert found.device_value_j["site"] == pytest.approx(1000.0 * 0.5, rel=1e-4)


def test_of_drained_work_one_more_device_ends_the_rest_sooner() -> None:
    # 100 units on n devices: 1,000 / n s at the high clock, in which nothing rests: 40 J each. One
    # more device would rest for as long if it did nothing, and saves just that: 1 W over 500 s.
    found = path_bound(farm([1] * 100, [0] * 100, None))
    assert found is not None
    assert found.energy_j == pytest.approx(100 * 40.0, rel=1e-6)
    assert found.device_value_j["site"] == pytest.approx(500.0, rel=1e-4)


def test_drained_rest_is_paid_until_the_last_end() -> None:
    # One task of 10 units, one device: 100 s at the high clock cost 400 J, 200 s at the low one 450
    # J; nothing rests beside it.
    instance = farm([10], [0], None, count=1)
    bound = lower_bounds(instance)
    assert max(each.value for each in bound) == pytest.approx(400.0, rel=1e-6)
    # With a second device the fast way pays 100 J of rest for it. The programme may split the task
    # over both, so that the slow way takes 100 s too: 10 x 25 J above the rest of two devices.
    two = stream_bound(farm([10], [0], None, count=2))
    assert two is not None
    assert two.value == pytest.approx(250.0 + 200.0, rel=1e-6)


def test_work_waits_for_the_cheap_hour() -> None:
    # Rest over the first hour, then 101 units in 1,010 s of 4 W.
    bound = slotted_bound(priced())
    assert bound is not None
    assert bound.value == pytest.approx((3600.0 + 0.1 * 4040.0) / J_PER_KWH, rel=1e-6)


def test_a_limit_on_times_keeps_it_from_waiting() -> None:
    # 1,010 s in the system for both: they have to begin at once. The bound sees most of that.
    loose = slotted_bound(priced(), 100.0)
    tight = slotted_bound(priced().with_limits(flow_time_s=1010.0), 100.0)
    truth = (3600.0 + 100 * 30.0 + 0.1 * 40.0) / J_PER_KWH
    assert loose is not None and tight is not None
    assert loose.value < tight.value <= truth
    assert tight.value == pytest.approx(truth, rel=0.02)


def test_deadlines_count_where_they_are_due() -> None:
    instance = priced()
    soon = replace(instance, tasks=replace(instance.tasks, deadline=np.array([3599e9, math.inf])))
    may, due = slotted_bound(soon), slotted_bound(soon, due=True)
    assert may is not None and due is not None
    assert may.value == pytest.approx((3600.0 + 0.1 * 4040.0) / J_PER_KWH, rel=1e-6)
    assert due.value == pytest.approx((3600.0 + 100 * 30.0 + 0.1 * 40.0) / J_PER_KWH, rel=1e-6)


def test_an_outage_takes_its_devices() -> None:
    # 2 devices for 1,000 s, one of them away for 500 s: 1,500 s do 75 units at the low clock; 100
    # units need 50 at the high one.
    instance = farm([50, 50], [0, 0], 1000.0, preemptive=True, away=([200.0, 700.0], 0, [1, -1]))
    found = path_bound(instance)
    assert found is not None
    assert found.energy_j == pytest.approx(2000.0 + 50 * 25 + 50 * 30, rel=1e-4)


def two_sites(cap_w: float) -> Instance:
    """A unit takes 10 s at both sites, 40 J at the first and 70 J at the second; the first has a
    power cap, nothing rests.
    """
    m = ob.Model("two sites", time="seconds", horizon_s=1000.0)
    near, far = m.place("near"), m.place("far")
    modes = [
        m.mode(m.pool(n, count=2, at=p), 10.0, energy_j=e)
        for n, p, e in (("a", near, 40.0), ("b", far, 70.0))
    ]
    m.tasks(np.full(3, 5.0), kind=m.kind(modes=modes))
    m.limit(power_w=cap_w, at=near)
    m.minimize(energy_j=1.0)
    return with_stream(m.build(), opens=0).with_objective(Objective.weighted({"j_per_unit": 1.0}))


def test_a_power_cap_and_what_a_watt_is_worth() -> None:
    # 0.2 W over 1,000 s are 200 J: 5 units at the first site, 10 at the second. Of each joule more
    # 1/40 unit saves 30 J.
    found = path_bound(two_sites(0.2))
    assert found is not None
    assert found.energy_j == pytest.approx(5 * 40 + 10 * 70, rel=1e-6)
    assert found.watt_value_j["near"] == pytest.approx(1000.0 * 30 / 40, rel=1e-6)
    free = path_bound(two_sites(100.0))
    assert free is not None
    assert free.energy_j == pytest.approx(15 * 40, rel=1e-6)
    assert free.watt_value_j["near"] == pytest.approx(0.0, abs=1e-9)


def test_nothing_comes_before_the_horizon() -> None:
    instance = farm([5], [0], 1000.0)
    late = replace(instance, tasks=replace(instance.tasks, release=instance.to_ticks([1000.0])))
    assert path_bound(late) is None
    assert lower_bounds(late) == []
    assert path_metrics(late, ob.simulate(late, "joint_nf").metrics) == {}


@pytest.mark.parametrize("minimize", ["energy_j", "cost_usd"])
def test_twice_the_power_twice_the_bound(minimize: str) -> None:
    instance = farm([30, 20, 40], [0, 500, 900], None, price=PRICES, minimize=minimize)
    pools, modes = instance.pools, instance.modes
    double = replace(
        instance,
        pools=replace(pools, sleep_w=2 * pools.sleep_w),
        modes=replace(modes, energy_per_unit_j=2 * modes.energy_per_unit_j),
    )
    a, b = slotted_bound(instance, 600.0), slotted_bound(double, 600.0)
    assert a is not None and b is not None
    assert b.value == pytest.approx(2 * a.value, rel=1e-9)


def test_more_time_never_costs_more_and_finer_slots_never_less() -> None:
    instance = GeoDc(days=0.25, drain=True, minimize="cost").instance(1)
    values = []
    for sojourn_s in (700.0, 1000.0, 2000.0, 10_000.0):
        bound = slotted_bound(instance, HOUR, sojourn_s=sojourn_s)
        assert bound is not None
        values.append(bound.value)
    assert values == sorted(values, reverse=True)
    one = stream_bound(instance)
    assert one is not None
    assert one.value <= values[-1] * (1 + 1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1_000_000))
def test_no_floor_is_above_a_verified_run(seed: int) -> None:
    instance = small(seed)
    for policy in POLICIES:
        # simulate checks the floors and bounds against what it has verified, and raises a
        # contradiction.
        done = ob.simulate(instance, policy, seed=seed % 100)
        assert done.verified, done.violations
        if not done.units_done > 0:
            continue
        if waste_could_pay(instance):
            assert (
                slotted_bound(instance, 1.3) is None and "floor_own_j_per_unit" not in done.metrics
            )
            continue
        reached, sojourn_s = done.metrics["j_per_unit"], done.metrics["sojourn_censored_s"]
        assert done.metrics["floor_own_j_per_unit"] <= done.metrics["floor_frontier_j_per_unit"] * (
            1 + 1e-9
        )
        for slot_s in (0.5, 1.3, 4.0):
            found = slotted_bound(instance, slot_s, sojourn_s)
            assert found is not None
            assert found.value <= reached * (1 + 2.0**-40)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 1_000_000), st.sampled_from(["energy_j", "flow_time_s", "makespan_s"]))
def test_no_bound_is_above_a_drained_run(seed: int, metric: str) -> None:
    instance = small(seed, drained=True).with_objective(
        Objective.weighted({metric: 1.0, "energy_j": 0.5})
    )
    for policy in POLICIES:
        done = ob.simulate(instance, policy, seed=seed % 100)
        assert done.verified and isinstance(done.objective, float)
        tight = instance.with_limits(flow_time_s=done.metrics["flow_time_s"])
        for found in (slotted_bound(tight, 0.7), slotted_bound(tight, 3.0), stream_bound(tight)):
            assert (found is None) == waste_could_pay(instance)
            assert found is None or found.value <= done.objective * (1 + 2.0**-40)


@pytest.mark.parametrize("seed", range(40))
def test_never_above_brute_force(seed: int) -> None:
    """Any objective, limits, tariffs, precedence, caps: what the programme does not know it leaves
    out.
    """
    instance = tiny_with_ways(seed)
    best = brute_force(instance)
    if best is None:
        return
    slots = (None, instance.tick_s, 2.5 * instance.tick_s)
    for found in (
        stream_bound(instance) if slot_s is None else slotted_bound(instance, slot_s)
        for slot_s in slots
    ):
        assert found is None or found.value <= best.objectives[0] + 1e-9 * max(
            1.0, abs(best.objectives[0])
        )


@pytest.mark.parametrize(
    "spec",
    [
        GeoDc(days=0.3, drain=True, minimize="cost", sojourn_s=1500.0),
        GeoDc(days=0.3, inference=0.05),
    ],
)
def test_repaired_duals_prove_what_the_solver_says_and_rough_ones_no_more(spec: GeoDc) -> None:
    instance = spec.instance(0)
    work = traffic(instance)
    program = stream_program(
        instance, work, slots_of(instance, work, HOUR), Demand(1e6 if spec.inference else None)
    )
    answer = solve_scaled(program.lp, 60.0)
    assert answer.status == "Optimal" and answer.dual is not None
    width = program.slots.width
    best = worth(
        program, repaired(program.lp, answer.dual, len(program.cls), program.classes, width)
    )
    scale = abs(answer.value)
    assert best == pytest.approx(answer.value, abs=1e-6 * scale)
    rng = np.random.default_rng(0)
    for _ in range(5):
        rough = answer.dual * rng.uniform(0.9, 1.1, len(answer.dual))
        assert (
            worth(program, repaired(program.lp, rough, len(program.cls), program.classes, width))
            <= best + 1e-6 * scale
        )


def test_the_certificate_proves_the_bound_again() -> None:
    found = path_bound(farm([5, 5, 5], [0, 0, 100], 1000.0), sojourn_s=80.0)
    assert found is not None and found.program is not None and found.certificate is not None
    again = proven_bound(found.program, found.certificate)
    assert again is not None
    assert float(again) + found.constant_j == pytest.approx(found.energy_j, rel=1e-15)


def test_tasks_that_fit_the_same_devices_are_one_class() -> None:
    m = ob.Model("memory", time="seconds")
    modes = [m.mode(m.pool(f"{gb:g}", memory_gb=gb), 1.0) for gb in (8.0, 16.0)]
    m.tasks(np.ones(5), modes=modes, memory_gb=[0.0, 3.0, 8.0, 8.5, 16.0])
    m.minimize(energy_j=1.0)
    found = traffic(with_stream(m.build()))
    assert found.of.tolist() in ([0, 0, 0, 1, 1], [1, 1, 1, 0, 0])
    assert found.allowed[found.of].tolist() == [[True, True]] * 3 + [[False, True]] * 2


def test_beaten_modes_are_left_out() -> None:
    instance = farm(
        [5], [0], 1000.0, slow_j=80.0
    )  # 60 J above rest in 20 s: the high clock is better in everything
    assert undominated(instance, np.arange(2), times=True).tolist() == [0]
    assert undominated(farm([5], [0], 1000.0), np.arange(2), times=False).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("call", "value"),
    [
        (lambda i: path_bound(i, units=-3.0), "-3.0"),
        (lambda i: path_bound(i, sojourn_s=0.0), "0.0"),
        (lambda i: slotted_bound(i, 0.0), "0.0"),
        (lambda i: slotted_bound(i, 60.0, sojourn_s=-1.0), "-1.0"),
    ],
)
def test_what_cannot_be_asked(call: Any, value: str) -> None:
    with pytest.raises(ParameterError, match=value):
        call(farm([5], [0], 1000.0))
