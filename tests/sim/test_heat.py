"""The kernel keeps places cool: its schedules verify, and no task waits for ever."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.model.instance import Instance
from optbench.model.verify import verify
from optbench.sim.kernel.plant import Fault
from tests.model.test_temperature import warm
from tests.sim.event_runs import run

POLICIES = ("fcfs", "heft", "sjf_backfill", "random_rules", "tuned_rule")


def nodes(seed: int, preemptive: bool = False) -> Instance:
    """Two cooled nodes in a cooled room with two kinds of devices, clocks and some edges; some
    modes overheat their node by themselves.
    """
    rng = np.random.default_rng(seed)
    m = ob.Model(f"nodes {seed}", preemptive=preemptive)
    pools = []
    for name in "ab":
        node = m.place(name)
        pools.append(m.pool(f"g{name}", count=3, idle_w=20, at=node))
        m.cool(
            node,
            ambient_c=25.0,
            c_per_w=float(rng.uniform(0.05, 0.08)),
            time_constant_s=float(rng.uniform(5.0, 60.0)),
            limit_c=60.0,
            start_c=float(rng.uniform(25.0, 60.0)),
        )
    m.cool(ambient_c=18.0, c_per_w=0.02, time_constant_s=300.0, limit_c=48.0)
    kinds = [
        m.kind(
            modes=[
                m.mode({pool: n}, time_s=t / clock, energy_j=t / clock * n * 400.0 * clock**2)
                for pool in pools
                for n in (1, 2)
                for clock in (0.5, 0.8, 1.3)
            ]
        )
        for t in (4.0, 9.0)
    ]
    tasks = [
        m.task(
            units=float(rng.uniform(0.5, 4.0)),
            kind=kinds[int(rng.integers(2))],
            release_s=float(rng.integers(0, 20)),
        )
        for _ in range(20)
    ]
    for _ in range(8):
        a, b = sorted(rng.choice(20, 2, replace=False).tolist())
        m.precede(tasks[a], tasks[b])
    m.minimize(energy_j=1.0, makespan_s=1e5)
    return m.build()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(3))
def test_schedules_of_policies_stay_cool(policy: str, seed: int) -> None:
    instance = nodes(seed)
    limit = {"time_limit_s": 1.0} if policy in ("random_rules", "tuned_rule") else {}
    found = ob.simulate(instance, policy, bound=False, **limit)
    assert found.schedule is not None
    verdict = verify(instance, found.schedule)
    assert verdict.violations == ()
    # Without the limits the same policy is too hot, so that they bind.
    free = ob.simulate(replace(instance, cooling=None), policy, bound=False, **limit)
    assert free.schedule is not None
    assert [v.constraint for v in verify(instance, free.schedule).violations] == ["temperature"]


@pytest.mark.parametrize("seed", range(12))
def test_random_starts_and_interruptions_stay_cool(seed: int) -> None:
    """A fault takes two devices of a node and gives them back."""
    instance = nodes(seed, preemptive=True)
    faults = (Fault(15.0, 0, 2), Fault(40.0, 0, -2))
    _, schedule = run(instance, seed, stops=6, faults=faults)
    assert schedule is not None and verify(instance, schedule).violations == ()


def test_a_start_waits_for_the_end_of_another() -> None:
    """Two at a time would be 97.7 °C after 30 s (``test_temperature``)."""
    found: Any = ob.simulate(warm(), "fcfs", bound=False)
    assert sorted(found.schedule.start.tolist()) == [0, 30]
    short: Any = ob.simulate(warm(time_constant_s=60.0), "fcfs", bound=False)
    assert sorted(short.schedule.start.tolist()) == [0, 0]


def test_a_mode_that_overheats_its_place_alone_is_never_used() -> None:
    """It would be the faster one, and a burst of it is allowed: 1 s towards 520 °C from 20 °C, with
    100 s, are 25 °C.
    """
    m = ob.Model("burst")
    gpu = m.pool("gpu")
    slow, fast = m.mode(gpu, time_s=5, energy_j=500), m.mode(gpu, time_s=1, energy_j=1000)
    m.task(modes=[fast, slow])
    m.minimize(makespan_s=1.0)
    m.cool(ambient_c=20.0, c_per_w=0.5, time_constant_s=100.0, limit_c=80.0)
    instance = m.build()
    found: Any = ob.simulate(instance, "heft", bound=False)
    assert found.schedule.mode.tolist() == [1]
    assert verify(instance, ob.Schedule.of(instance, [0], [0])).feasible


def test_policies_in_python_are_offered_what_stays_cool() -> None:
    seen: list[tuple[float, int]] = []

    def first(moment: ob.Moment) -> tuple[int, int]:
        seen.append((moment.now, moment.num_options))
        return int(moment.task[0]), int(moment.mode[0])

    found = ob.simulate(warm(), first, bound=False)
    assert found.schedule is not None and verify(warm(), found.schedule).feasible
    assert seen == [(0.0, 2), (30.0, 1)]
