"""The kernel waits for data over busy links, and policies see how busy they are up to now."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.model.instance import Instance
from optbench.model.verify import verify
from optbench.sim.arrivals import TaskArrivals
from optbench.sim.kernel.plant import Fault
from optbench.testing.futures import STREAMS, other_future
from tests.model.test_congestion import sent
from tests.sim.event_runs import run


def graph(seed: int, preemptive: bool = False) -> Instance:
    """A random graph with data on three linked pools whose links are busy now and then."""
    rng = np.random.default_rng(seed)
    m = ob.Model(f"graph {seed}", preemptive=preemptive)
    pools = [m.pool(name, count=2) for name in "abc"]
    m.link(pools, pools, bandwidth_gbit_s=8.0, latency_ms=300.0)
    kind = m.kind(modes=[m.mode(pool, time_s=2.0 + k, energy_j=50) for k, pool in enumerate(pools)])
    tasks = [m.task(units=float(rng.uniform(0.5, 3.0)), kind=kind) for _ in range(15)]
    for _ in range(20):
        a, b = sorted(rng.choice(15, 2, replace=False).tolist())
        m.precede(tasks[a], tasks[b], float(rng.choice([0.0, 0.7, 2.0])))
    times = np.concatenate(([0.0], np.sort(rng.choice(np.arange(1, 40), 4, replace=False))))
    m.congestion(times.tolist(), {p: rng.uniform(1.0, 5.0, 5).tolist() for p in pools[:2]})
    m.minimize(makespan_s=1.0)
    return m.build()


@pytest.mark.parametrize("policy", ["fcfs", "heft", "random_rules", "lp_guided"])
@pytest.mark.parametrize("seed", range(3))
def test_schedules_of_policies_wait_for_their_data(policy: str, seed: int) -> None:
    instance = graph(seed)
    limit: Any = {"time_limit_s": 1.0} if policy in ("random_rules", "lp_guided") else {}
    found = ob.simulate(instance, policy, bound=False, **limit)
    assert found.schedule is not None and verify(instance, found.schedule).violations == ()


@pytest.mark.parametrize("seed", range(12))
def test_random_starts_and_interruptions_wait_too(seed: int) -> None:
    instance = graph(seed, preemptive=True)
    _, schedule = run(instance, seed, stops=6, faults=(Fault(9.0, 0, 1), Fault(20.0, 0, -1)))
    assert schedule is not None and verify(instance, schedule).violations == ()


def test_schedules_over_free_links_are_too_early() -> None:
    """So that the factors bind in the tests above."""
    broken = []
    for seed in range(3):
        free = ob.simulate(replace(graph(seed), congestion=None), "fcfs", bound=False)
        assert free.schedule is not None
        broken += [v.constraint for v in verify(graph(seed), free.schedule).violations]
    assert broken == ["transfer"] * 3


def test_a_transfer_by_hand() -> None:
    """The sender ends at 3: with a factor of 2 until 10 the data takes 7 s (``test_congestion``);
    the change to 9 during the transfer does not count.
    """
    for times, start in (((0, 10), 10), ((0, 4), 10)):
        found: Any = ob.simulate(sent(times, a=[2.0, 9.0]), "fcfs", bound=False)
        assert found.schedule.start.tolist() == [0, start]


def test_policies_see_how_busy_links_are_up_to_now() -> None:
    seen: list[tuple[float, list[float]]] = []

    def first(moment: ob.Moment) -> tuple[int, int]:
        assert moment.instance.congestion is not None
        seen.append((moment.now, moment.instance.congestion.factor[0].tolist()))
        return int(moment.task[0]), int(moment.mode[0])

    ob.simulate(sent((0, 4, 99), a=[2.0, 3.0, 9.0]), first, bound=False)
    assert seen == [(0.0, [2.0]), (10.0, [2.0, 3.0])]
    known = TaskArrivals.of(sent(a=[2.0, 9.0])).known(5.0)
    assert known.congestion is not None and known.congestion.times.tolist() == [0]


def test_futures_differ_in_what_comes_after_the_moment() -> None:
    (stream,) = (each for each in STREAMS if each.name == "graphs on busy links")
    moment = stream.moment(0.5)
    other = other_future(stream.instance, moment, "with other congestion")
    mine, theirs = stream.instance.congestion, other.congestion
    assert mine is not None and theirs is not None
    same = (mine.factor == theirs.factor).all(axis=0)
    assert same[mine.times <= moment].all() and not same.all()
