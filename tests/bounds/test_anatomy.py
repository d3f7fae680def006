"""The anatomy of a gap: cases by hand, and parts that sum to the excess exactly on random instances
with every feature.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import optbench as ob
from optbench.bounds.anatomy import PARTS, Anatomy, anatomy
from optbench.bounds.fluid.fluid_bound import FluidProof, fluid_bound, solve_fluid
from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from tests.bounds.test_fluid import in_nanoseconds, schedules
from tests.reference.random_instances import tiny_instance


def explained(instance: Instance, mode: list[int], start: list[float]) -> Anatomy:
    proof = fluid_bound(instance)
    assert proof is not None
    return anatomy(instance, Schedule.of(instance, mode, start), proof)


def only(found: Anatomy, **expected: float) -> None:
    """These parts and no others, up to the rounding of duals."""
    assert found.excess == pytest.approx(sum(expected.values()), rel=1e-9)
    for name in PARTS:
        assert found.parts[name] == pytest.approx(expected.get(name, 0.0), rel=1e-9, abs=1e-6), name


def test_a_clock_too_high() -> None:
    # 100 J in 2 s or 20 J in 10 s, and 5 J per second: 110 where 70 would do.
    m = ob.Model()
    gpu = m.pool("gpu")
    m.task(
        modes=[
            m.mode(gpu, time_s=2, energy_j=100, clock=1.0),
            m.mode(gpu, time_s=10, energy_j=20, clock=0.5),
        ]
    )
    m.minimize(energy_j=1.0, makespan_s=5.0)
    found = explained(m.build(), [0], [0])
    only(found, clock=40)
    (decision,) = found.decisions
    assert (decision.task, decision.mode, decision.instead) == (0, 0, 1)
    assert decision.total == pytest.approx(40)


def test_too_many_gpus_at_too_high_a_clock() -> None:
    # On two GPUs 60 or 45 J, on one 20 J: 15 J of clock, 25 J of count.
    m = ob.Model()
    gpu = m.pool("gpu", count=2)
    rows = [(2, 6, 60, 1.0), (2, 8, 45, 0.5), (1, 10, 20, 1.0)]
    m.task(modes=[m.mode({gpu: n}, time_s=t, energy_j=e, clock=c) for n, t, e, c in rows])
    m.minimize(energy_j=1.0)
    only(explained(m.build(), [0], [0]), clock=15, count=25)


def test_the_wrong_pool() -> None:
    # 30 J on a at its best clock, 20 J on b.
    m = ob.Model()
    a, b = m.pool("a"), m.pool("b")
    m.task(modes=[m.mode(a, time_s=5, energy_j=30), m.mode(b, time_s=5, energy_j=20)])
    m.minimize(energy_j=1.0)
    found = explained(m.build(), [0], [0])
    only(found, placement=10)
    assert found.decisions[0].instead == 1


def test_a_transfer_that_need_not_be() -> None:
    # The second task can run beside the first for nothing; on b it costs no more, but 4 GB at 5 J
    # are sent.
    m = ob.Model()
    a, b = m.pool("a"), m.pool("b")
    m.link(a, b, bandwidth_gbit_s=8, energy_j_per_gb=5)
    first = m.task("first", modes=[m.mode(a, time_s=5, energy_j=10)])
    m.task(
        "second",
        modes=[m.mode(a, time_s=5, energy_j=10), m.mode(b, time_s=5, energy_j=10)],
        data_gb={first: 4},
    )
    m.minimize(energy_j=1.0)
    only(explained(m.build(), [0, 2], [0, 9]), placement=20)


def test_devices_at_rest() -> None:
    # Three tasks of 2 s on two devices: the programme fills 3 s, the schedule ends at 4, and two
    # devices draw 10 W each.
    m = ob.Model()
    gpu = m.pool("gpu", count=2, idle_w=10)
    for _ in range(3):
        m.task(modes=[m.mode(gpu, time_s=2, energy_j=100)])
    m.minimize(energy_j=1.0)
    found = explained(m.build(), [0, 0, 0], [0, 0, 2])
    only(found, idle=20)
    assert found.idle_by_pool == {"gpu": pytest.approx(20)}


def test_a_pause_on_the_critical_path() -> None:
    # One after the other 5 s, with a pause of 2 s: four devices rest for 2 s more. With one device
    # each, the load of the first (2 s, and 3 s behind it) would say 5 s as well as the path does.
    m = ob.Model()
    a, b = m.pool("a", count=2, idle_w=10), m.pool("b", count=2, idle_w=10)
    first = m.task(modes=[m.mode(a, time_s=2, energy_j=100)])
    m.task(modes=[m.mode(b, time_s=3, energy_j=100)], after=first)
    m.minimize(energy_j=1.0)
    found = explained(m.build(), [0, 1], [0, 4])
    only(found, waiting=80)
    (decision,) = found.decisions
    assert decision.task == 1 and decision.waiting == pytest.approx(80)


def test_a_dear_hour() -> None:
    # One kWh at 0.3 where it could be had at 0.1.
    m = ob.Model(tick_s=60, horizon_s=2 * 3600)
    gpu = m.pool("gpu")
    m.task(modes=[m.mode(gpu, time_s=3600, energy_j=3.6e6)])
    m.tariff(price_usd_per_kwh=(0.1, 0.3))
    m.minimize(cost_usd=1.0)
    only(explained(m.build(), [0], [60]), tariff=0.2)


def check_sum(found: Anatomy) -> None:
    assert (
        sum(found.exact.values())
        == found.exact_excess
        == Fraction(found.objective) - Fraction(found.bound)
    )
    assert math.fsum(found.parts.values()) == found.excess == found.objective - found.bound
    for name in PARTS[:3]:
        assert found.exact[name] >= 0


def test_parts_sum_to_the_excess_exactly_and_none_is_negative() -> None:
    used: Counter[str] = Counter()
    for seed in range(160):
        ticks = tiny_instance(seed)
        rng = np.random.default_rng(seed)
        for instance in (ticks, in_nanoseconds(ticks)):
            for schedule, proof in explainable(instance, rng):
                found = anatomy(instance, schedule, proof)
                check_sum(found)
                size = max(1.0, abs(found.objective))
                for name in PARTS:
                    rounded = name == "proof" and instance.objective.metrics <= {
                        "makespan",
                        "makespan_s",
                    }
                    assert found.parts[name] >= -1e-6 * size or rounded, (seed, name)
                    used[name] += found.parts[name] > 1e-6 * size
                # What is proved in floats is lost by roundings alone; bounds on the makespan are
                # rounded up to whole ticks.
                if not instance.objective.metrics <= {"makespan", "makespan_s"}:
                    assert abs(found.parts["proof"]) <= 1e-6 * size
    assert min(used[name] for name in PARTS if name != "proof") > 5


def test_parts_that_cancel_sum_to_the_excess() -> None:
    # 0.1, a part far below its last place and less than their sum: no float of the proof's part
    # brings the three to 0.
    exact = dict.fromkeys(PARTS, Fraction(0)) | {
        "unused": Fraction(1, 10),
        "placement": Fraction(2, 10**18),
    }
    exact["proof"] = -exact["unused"] - exact["placement"]
    check_sum(Anatomy(5.0, 5.0, "fluid_lp", exact, {}, ()))


def explainable(instance: Instance, rng: np.random.Generator) -> list[tuple[Schedule, FluidProof]]:
    proof = solve_fluid(instance, 10.0, bool(rng.random() < 0.8))
    return (
        []
        if proof is None
        else [(schedule, proof) for schedule in list(schedules(instance, rng))[:3]]
    )
