"""Which part of a gap each term goes to: transfers, their time, budgets, and what several alike
tasks share.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import optbench as ob
from optbench.bounds import anatomy as module
from optbench.bounds.anatomy import (
    PARTS,
    Anatomy,
    Decision,
    anatomy,
    first_least,
    least_by,
    mode_classes,
)
from optbench.bounds.fluid.fluid_bound import solve_fluid
from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from tests.bounds.test_anatomy import explained, only


def nothing(found: Anatomy) -> None:
    """No part of a gap that is only what floats lose."""
    assert found.excess == pytest.approx(0, abs=1e-6)
    assert all(abs(part) < 1e-6 for part in found.parts.values())


def chain(horizon_s: float | None = None, first_s: float = 5.0, near_s: float = 1.0) -> Instance:
    """4 GB from the second of three tasks to the last, on b at 5 J a GB, or on c at 3 s and 9 J.

    The first task takes 2 s at 1,000 J or 5 s at 100 J, so that no task begins when it might.
    """
    m = ob.Model("chain", horizon_s=horizon_s)
    a, b, c = (m.pool(name, count=2, idle_w=10) for name in "abc")
    m.link(a, b, bandwidth_gbit_s=8 / near_s if near_s else np.inf, energy_j_per_gb=5)
    m.link(a, c, bandwidth_gbit_s=8 / 3, energy_j_per_gb=9)
    first = m.task(modes=[m.mode(a, time_s=2, energy_j=1000), m.mode(a, time_s=5, energy_j=100)])
    sender = m.task(modes=[m.mode(a, time_s=first_s, energy_j=100)], after=first)
    modes = [m.mode(pool, time_s=5, energy_j=100) for pool in (b, c)]
    m.task(modes=modes, data_gb={sender: 4})
    m.minimize(energy_j=1.0)
    return m.build()


@pytest.mark.parametrize("keep_edges", [True, False])
def test_energy_sent_beyond_the_least_is_placement(keep_edges: bool) -> None:
    # Over a fixed horizon time is free: 36 J are sent to c where 20 J would reach b.
    instance = chain(horizon_s=100)
    proof = solve_fluid(instance, 10.0, keep_edges)
    assert proof is not None
    only(anatomy(instance, Schedule.of(instance, [1, 2, 4], [0, 5, 50]), proof), placement=16)
    nothing(anatomy(instance, Schedule.of(instance, [1, 2, 3], [0, 5, 50]), proof))


def test_time_that_data_takes_longer_is_placement_and_the_rest_waiting() -> None:
    # Six devices at 10 W. To b 5 + 5 + 4 + 5 = 19 s; to c 8 s later, 16 J more, and 1 s of pause.
    instance = chain()
    nothing(explained(instance, [1, 2, 3], [0, 5, 14]))
    found = explained(instance, [1, 2, 4], [0, 5, 23])
    only(found, placement=16 + 8 * 60, waiting=60)
    # The longer way is the sender's decision, the pause the receiver's.
    sender, receiver = found.decisions
    assert (sender.task, receiver.task) == (1, 2)
    assert (sender.mode, sender.instead, receiver.mode, receiver.instead) == (2, 2, 4, 4)
    assert sender.placement == pytest.approx(480) == pytest.approx(sender.total)
    assert receiver.waiting == pytest.approx(60) == pytest.approx(receiver.total)
    assert receiver.placement == pytest.approx(0, abs=1e-6)


def test_data_of_a_task_without_length_over_a_link_without_time() -> None:
    # Neither the sender nor the way to b takes time, so that the row has no term for its share:
    # all of the 12 s to c are placement.
    instance = chain(first_s=0.0, near_s=0.0)
    only(explained(instance, [1, 2, 4], [0, 5, 17]), placement=16 + 12 * 60)


def test_energy_sent_is_paid_at_the_senders_rate_when_it_is_sent() -> None:
    # 36 MJ, 10 kWh, sent at the end of the first hour: 0.3 USD a kWh on a, where b would pay 0.9.
    m = ob.Model(tick_s=1800, horizon_s=4 * 3600)
    west, east = m.place("west"), m.place("east")
    a, b = m.pool("a", at=west), m.pool("b", at=east)
    m.link(a, b, bandwidth_gbit_s=np.inf, energy_j_per_gb=3.6e7)
    first = m.task(modes=[m.mode(a, time_s=3600, energy_j=3.6e6)])
    m.task(
        modes=[m.mode(a, time_s=1800, energy_j=0), m.mode(b, time_s=1800, energy_j=0)],
        data_gb={first: 1},
    )
    m.tariff(price_usd_per_kwh=(0.1, 0.3, 0.5, 0.7), carbon_g_per_kwh=(10, 20, 30, 40), at=west)
    m.tariff(price_usd_per_kwh=0.9, carbon_g_per_kwh=90, at=east)
    for objective, value in (("cost_usd", 3.0), ("carbon_g", 200.0)):
        m.minimize(**{objective: 1.0})
        only(explained(m.build(), [0, 2], [0, 2]), placement=value)
        nothing(explained(m.build(), [0, 1], [0, 2]))


def two_clocks(tasks: int = 2) -> Instance:
    """Tasks of 50 J, or fast for 100 J; of different weights, so that none is like another."""
    m = ob.Model("clocks")
    gpu = m.pool("gpu")
    for k in range(tasks):
        modes = [
            m.mode(gpu, time_s=2, energy_j=100 + 10 * k, clock=1.0),
            m.mode(gpu, time_s=4, energy_j=50, clock=0.5),
        ]
        m.task(modes=modes)
    m.minimize(energy_j=1.0)
    return m.build()


def test_decisions_that_cost_most_come_first_and_no_more_than_are_named() -> None:
    instance = two_clocks(3)
    proof = solve_fluid(instance, 10.0, True)
    assert proof is not None
    schedule = Schedule.of(instance, [0, 3, 4], [0, 2, 6])
    # The first costs 50 more, the second nothing, the third 70.
    assert [(d.task, round(d.total, 6)) for d in anatomy(instance, schedule, proof).decisions] == [
        (2, 70),
        (0, 50),
    ]
    assert [d.task for d in anatomy(instance, schedule, proof, top=1).decisions] == [2]
    assert anatomy(instance, schedule, proof, top=0).decisions == ()


def test_many_decisions_are_cut_at_ten() -> None:
    instance = two_clocks(12)
    proof = solve_fluid(instance, 10.0, True)
    assert proof is not None
    schedule = Schedule.of(instance, list(range(0, 24, 2)), list(range(0, 24, 2)))
    assert [d.task for d in anatomy(instance, schedule, proof).decisions] == list(range(11, 1, -1))


def test_a_decision_names_the_mode_that_it_should_take_whatever_its_steps() -> None:
    # 15 J of clock and 25 J of count: the one without the other is no reason to stay.
    m = ob.Model()
    gpu, other = m.pool("gpu", count=2), m.pool("other", count=2)
    rows = [
        (gpu, 2, 6, 60, 1.0),
        (gpu, 2, 8, 45, 0.5),
        (gpu, 1, 10, 20, 1.0),
        (other, 1, 10, 12, 1.0),
    ]
    m.task(modes=[m.mode({pool: n}, time_s=t, energy_j=e, clock=c) for pool, n, t, e, c in rows])
    m.minimize(energy_j=1.0)
    for mode, parts, instead in ((0, (15, 25, 8), 3), (1, (0, 25, 8), 3), (2, (0, 0, 8), 3)):
        (decision,) = explained(m.build(), [mode], [0]).decisions
        assert (decision.clock, decision.count, decision.placement) == pytest.approx(
            parts, abs=1e-6
        )
        assert decision.instead == instead and decision.total == pytest.approx(sum(parts))
    assert explained(m.build(), [3], [0]).decisions == ()


def test_the_steps_of_one_task_do_not_depend_on_other_tasks() -> None:
    # On two devices 40 J, 100 J and 7 J more than on one, and on the other pool 3 J less than that.
    m = ob.Model()
    a, b = m.pool("a", count=2), m.pool("b", count=2)
    for two, one in ((60, 20), (600, 500), (16, 9)):
        rows = [(a, 2, two), (a, 1, one), (b, 1, one - 3)]
        m.task(modes=[m.mode({pool: n}, time_s=2, energy_j=energy) for pool, n, energy in rows])
    m.minimize(energy_j=1.0)
    found = explained(m.build(), [0, 3, 6], [0, 2, 4])
    only(found, count=147, placement=9)
    assert [(d.task, round(d.count), round(d.placement)) for d in found.decisions] == [
        (1, 100, 3),
        (0, 40, 3),
        (2, 7, 3),
    ]


def test_what_is_rounding_is_no_decision() -> None:
    # Named is what costs more than 1e-9 of the objective, and of 1 where that is less.
    for joules, more, named in (
        (0.5, 1.5e-9, True), (0.5, 0.7e-9, False), (1.5, 1.7e-9, True), (1.5, 1.3e-9, False),
        (1e6, 2e-3, True), (1e6, 5e-4, False),
    ):  # fmt: skip
        m = ob.Model()
        gpu = m.pool("gpu")
        m.task(
            modes=[
                m.mode(gpu, time_s=1, energy_j=joules),
                m.mode(gpu, time_s=1, energy_j=joules + more),
            ]
        )
        m.minimize(energy_j=1.0)
        instance = m.build()
        proof = solve_fluid(instance, 10.0, True)
        assert proof is not None
        assert bool(anatomy(instance, Schedule.of(instance, [1], [0]), proof).decisions) is named, (
            joules,
            more,
        )


def test_a_mode_that_costs_nothing_more_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WORTH_NAMING", 0.0)
    m = ob.Model()
    gpu = m.pool("gpu")
    m.task(modes=[m.mode(gpu, time_s=2, clock=1.0), m.mode(gpu, time_s=2, clock=0.5)])
    m.minimize(flow_time_s=1.0)
    (decision,) = explained(m.build(), [1], [3]).decisions
    assert decision.instead == 1 and decision.waiting == pytest.approx(3)
    # What costs nothing at all is none.
    assert explained(m.build(), [1], [0]).decisions == ()


def test_the_total_of_a_decision_is_the_sum_of_its_parts() -> None:
    assert Decision(0, 0, 0, 1.0, 20.0, 300.0, 4000.0).total == 4321.0


def test_alike_tasks_share_their_waiting() -> None:
    # Two alike tasks of weight 3 on two devices begin 1 s and 4 s late: 15 in all, 7.5 each.
    m = ob.Model()
    gpu = m.pool("gpu", count=2)
    for _ in range(2):
        m.task(modes=[m.mode(gpu, time_s=2)], weight=3)
    m.minimize(flow_time_s=1.0)
    found = explained(m.build(), [0, 0], [1, 4])
    only(found, waiting=15)
    assert [d.waiting for d in found.decisions] == pytest.approx([7.5, 7.5])


def test_lateness_beyond_what_must_be_is_waiting() -> None:
    # Due at 3, 2 s long, of weight 5: begun at 4 it is 3 s late.
    m = ob.Model()
    gpu = m.pool("gpu")
    m.task(modes=[m.mode(gpu, time_s=2)], weight=5, deadline_s=3, hard=False)
    m.minimize(tardiness_s=1.0)
    found = explained(m.build(), [0], [4])
    only(found, waiting=15)
    assert [d.waiting for d in found.decisions] == pytest.approx([15])


def test_a_cap_that_is_not_used_up_is_unused() -> None:
    # 2 s at 100 W or 5 s at 40 W under 50 W of mean power until the end, which alone costs: 100 W
    # are never allowed, and 40 W take the cap's 4 s and more: five.
    m = ob.Model()
    gpu = m.pool("gpu", count=4)
    for _ in range(4):
        m.task(modes=[m.mode(gpu, time_s=10, energy_j=1000)])
    m.limit(power_w=250)
    m.minimize(makespan_s=1.0, energy_j=0.001)
    # 4,000 J at 250 W take 16 s, two by two 20 s.
    found = explained(m.build(), [0] * 4, [0, 0, 10, 10])
    only(found, unused=4)


def test_a_deadline_that_is_not_used_up_is_unused() -> None:
    # 100 J in 2 s or 20 J in 10 s, due after 6 s: half of each is 60 J. The fast mode ends 4 s
    # early.
    m = ob.Model()
    gpu = m.pool("gpu")
    m.task(
        modes=[m.mode(gpu, time_s=2, energy_j=100), m.mode(gpu, time_s=10, energy_j=20)],
        deadline_s=6,
    )
    m.minimize(energy_j=1.0)
    found = explained(m.build(), [0], [0])
    assert found.excess == pytest.approx(40)
    # Each second is worth 10 J: 4 s unused.
    only(found, unused=40)


def test_energy_below_its_budget_is_unused() -> None:
    # The same under a budget of 60 J, for the makespan: half of each is 6 s, 10 J a second. The
    # slow mode keeps 40 J of it.
    m = ob.Model()
    gpu = m.pool("gpu")
    m.task(modes=[m.mode(gpu, time_s=2, energy_j=100), m.mode(gpu, time_s=10, energy_j=20)])
    m.limit(energy_j=60)
    m.minimize(makespan_s=1.0, flow_time_s=1e-6)
    found = explained(m.build(), [1], [0])
    assert found.parts["unused"] == pytest.approx(4, rel=1e-4)
    assert found.parts["relaxation"] == pytest.approx(0, abs=1e-4)


def test_an_anatomy_is_the_exact_difference_of_its_two_numbers() -> None:
    exact = dict.fromkeys(PARTS, Fraction(0)) | {"idle": Fraction(3)}
    found = Anatomy(5.0, 2.0, "fluid_lp", exact, {}, ())
    assert found.excess == 3.0 and found.exact_excess == 3 and found.parts["idle"] == 3.0


def test_rounding_goes_to_the_proof_and_then_to_the_largest_part() -> None:
    # 2^60 and −2^60 cancel: what is left of 1 in floats is in the proof's part.
    exact = dict.fromkeys(PARTS, Fraction(0)) | {"idle": Fraction(1, 3), "clock": Fraction(2, 3)}
    parts = Anatomy(1.0, 0.0, "fluid_lp", exact, {}, ()).parts
    assert parts["idle"] == 1 / 3 and parts["clock"] == 2 / 3
    assert parts["proof"] == float(1 - Fraction(1 / 3) - Fraction(2 / 3))


def test_rounding_that_the_proof_cannot_take_goes_to_a_part_that_is_there() -> None:
    none = dict.fromkeys(PARTS, Fraction(0))
    # 0.1 and −0.1 take no 2e-18: the part of that size does, and not a part of nothing.
    exact = none | {"unused": Fraction(1, 10), "placement": Fraction(2, 10**18)}
    exact["proof"] = -sum(exact.values(), Fraction(0))
    parts = Anatomy(5.0, 5.0, "fluid_lp", exact, {}, ()).parts
    assert parts == dict.fromkeys(PARTS, 0.0) | {"unused": 0.1, "proof": -0.1}
    # 2^60 and −2^60 take no 0.5: the part of 1 does.
    exact = none | {"idle": Fraction(2**60), "unused": Fraction(1)}
    exact["proof"] = Fraction(1, 2) - sum(exact.values())
    parts = Anatomy(5.5, 5.0, "fluid_lp", exact, {}, ()).parts
    assert parts == dict.fromkeys(PARTS, 0.0) | {
        "idle": 2.0**60, "unused": 0.5, "proof": -(2.0**60),
    }  # fmt: skip


def test_modes_by_their_pools_and_by_their_counts() -> None:
    m = ob.Model()
    a, b = m.pool("a", count=4), m.pool("b", count=4)
    needs = [{a: 1}, {a: 2}, {b: 1}, {a: 1, b: 2}, {b: 2, a: 1}, {a: 2, b: 1}, {a: 1}, None]
    m.task(modes=[m.mode(need, time_s=k + 1) for k, need in enumerate(needs)])
    m.minimize(makespan=1.0)
    place, count = mode_classes(m.build())
    assert place.tolist() == [0, 0, 1, 2, 2, 2, 0, 3]
    assert count.tolist() == [0, 1, 2, 3, 3, 4, 0, 5]


def test_the_least_of_each_key_and_where_it_stands_first() -> None:
    key = np.array([4, 1, 4, 1, 1, 0])
    values = np.array([5, 3, 2, 7, 3, 9], dtype=object)
    assert least_by(key, values).tolist() == [2, 3, 2, 3, 3, 9]
    assert first_least(np.array([2, 1, 2, 1, 1, 0]), values).tolist() == [5, 1, 2]
    empty = np.zeros(0, dtype=np.int64)
    assert (
        len(least_by(empty, empty.astype(object)))
        == len(first_least(empty, empty.astype(object)))
        == 0
    )
