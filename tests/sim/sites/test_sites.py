"""The site kernel against a plain Python simulation, on random small instances with ties, gaps,
outages, classes and ways.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import optbench as ob
from optbench.errors import ParameterError
from optbench.model.instance import Instance
from optbench.model.streams import Outages, with_stream
from optbench.sim.kernel.plant import Fault
from optbench.sim.kernel.sites.steering import BANDIT, STICKY, TABLE, WISHED
from optbench.sim.kernel.state import NONE, State, partial_schedule
from optbench.sim.sites.sites import SiteRun, grid_of, play_sites, steering_of
from tests.reference.site_simulation import Sites
from tests.sim.sites.random_sites import (
    STEP,
    Bandit,
    Modes,
    random_outages,
    random_pools,
    reference_of,
    same,
    seeds,
    small_instance,
    sticky,
    table_policy,
)


@given(seeds)
@settings(max_examples=150)
def test_a_table_of_modes(seed: int) -> None:
    instance, rng = small_instance(seed), np.random.default_rng(seed)
    pools = random_pools(instance, rng)
    pick, reference = table_policy(instance, rng)
    sites = reference_of(instance, reference)
    sites.go(pools.tolist(), None)
    same(
        instance,
        play_sites(instance, steering_of(grid_of(instance), pick_by=TABLE, pick=pick, pools=pools)),
        sites,
    )


@given(seeds)
@settings(max_examples=100)
def test_clocks_that_stick(seed: int) -> None:
    instance, rng = small_instance(seed), np.random.default_rng(seed)
    pools, grid, modes = random_pools(instance, rng), grid_of(instance), Modes(instance)
    shape = (len(instance.modes.kind_names), instance.num_pools)
    low = np.array(
        [
            [rng.integers(0, len(modes.clocks(k, p)) or 1) for p in range(shape[1])]
            for k in range(shape[0])
        ]
    )
    sites = reference_of(instance, sticky(instance, low))
    sites.go(pools.tolist(), None)
    same(
        instance,
        play_sites(instance, steering_of(grid, pick_by=STICKY, low_clock=low, pools=pools)),
        sites,
    )


@given(seeds)
@settings(max_examples=100)
def test_clocks_by_a_bandit(seed: int) -> None:
    instance, rng = small_instance(seed), np.random.default_rng(seed)
    pools, bandit = random_pools(instance, rng), Bandit(instance)
    sites = reference_of(instance, bandit.pick, bandit.learn)
    sites.go(pools.tolist(), None)
    steering = steering_of(grid_of(instance), pick_by=BANDIT, pools=pools)
    same(instance, play_sites(instance, steering), sites)
    # What it has learnt is forgotten before the next run.
    same(instance, play_sites(instance, steering), sites)


@given(seeds)
@settings(max_examples=100)
def test_one_class_before_the_other(seed: int) -> None:
    instance, rng = small_instance(seed), np.random.default_rng(seed)
    kinds = len(instance.modes.kind_names)
    classes = rng.permutation(kinds).tolist()
    pools = random_pools(instance, rng)
    pick, reference = table_policy(instance, rng)
    sites = reference_of(instance, reference, classes=classes)
    sites.go(pools.tolist(), None)
    steering = steering_of(
        grid_of(instance), pick_by=TABLE, pick=pick, pools=pools, class_of=classes
    )
    same(instance, play_sites(instance, steering), sites)


@given(seeds, st.booleans())
@settings(max_examples=150)
def test_jobs_that_are_asked_about_sent_and_held(seed: int, cheapest: bool) -> None:
    """Where each goes, on how many devices, at which clock, after how many times of waiting: the
    same answers to both.
    """
    instance, modes = small_instance(seed), Modes(small_instance(seed))
    grid, widest = grid_of(instance), int(instance.modes.devices.max())

    def decide(task: int, asked: int, now: int) -> tuple[int, int, int] | int:
        rng = np.random.default_rng([seed, task, asked])
        if asked < 2 and rng.random() < 0.3:
            return now + int(rng.integers(1, 4)) * STEP
        kind = int(instance.tasks.kind[task])
        pool = int(rng.choice([p for p in range(instance.num_pools) if modes.clocks(kind, p)]))
        devices = int(rng.integers(1, widest + 1))
        devices = max(devices, min(n for q, p, n, _ in modes.at if (q, p) == (kind, pool)))
        return (
            pool,
            devices,
            NONE if cheapest else int(rng.integers(0, len(modes.clocks(kind, pool)))),
        )

    def pick(sites: Sites, task: int, pool: int, free: int) -> int | None:
        kind, (wanted, column) = int(instance.tasks.kind[task]), sites.wishes[task]
        devices = modes.most(kind, pool, min(free, wanted))
        if devices == 0:
            return None
        clocks = modes.clocks(kind, pool)
        if column != NONE:
            return modes.mode(kind, pool, devices, clocks[column])
        there = [
            modes.at[kind, pool, devices, c] for c in clocks if (kind, pool, devices, c) in modes.at
        ]
        return min(there, key=lambda mode: float(instance.modes.energy_per_unit_j[mode]))

    sites = reference_of(instance, pick)
    sites.go(None, decide)
    run, asked = (
        SiteRun(instance, steering_of(grid, pick_by=WISHED)),
        np.zeros(instance.num_tasks, dtype=int),
    )
    while (task := run.asked()) is not None:
        answer = decide(task, int(asked[task]), int(run.now))
        asked[task] += 1
        if isinstance(answer, tuple):
            run.send(task, answer[0], answer[1], None if answer[2] == NONE else answer[2])
        else:
            run.hold(task, answer)
    same(instance, run.trace(), sites)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (
            lambda run, task: run.send(task, 1),
            "task 't0' is sent to pool 1; it must be one that it reaches and that runs it",
        ),
        (lambda run, task: run.send(task, 2), "task 't0' is sent to pool 2"),
        (lambda run, task: run.send(task, -1), "task 't0' is sent to pool -1"),
        (
            lambda run, task: run.send(task, 0, 1, 1),
            "is sent with clock 1; it must be None, or 0 to 0",
        ),
        (
            lambda run, task: run.hold(task, 2.0),
            "task 't0' is held until 2.0; it must be a whole number of ticks after 2",
        ),
        (
            lambda run, task: run.hold(task, 3.5),
            "task 't0' is held until 3.5; it must be a whole number of ticks",
        ),
        (lambda run, task: run.hold(task, np.inf), "task 't0' is held until inf"),
    ],
)
def test_a_job_that_would_be_lost_is_not_sent(
    act: Callable[[SiteRun, int], None], message: str
) -> None:
    """Pool 1 is out of reach, pool 2 does not run it, pool -1 does not exist."""
    m = ob.Model("lost")
    near, far, other = (m.pool(name) for name in ("near", "far", "other"))
    m.tasks([1.0], modes=[m.mode(near, 1.0), m.mode(far, 1.0)], release_s=[2.0])
    m.tasks([1.0], modes=[m.mode(other, 1.0)], release_s=[3.0])
    m.minimize(energy_j=1.0)
    instance = with_stream(m.build(), latency_s=[[0.0, np.inf, 0.0]])
    run = SiteRun(instance, steering_of(grid_of(instance), pick_by=WISHED))
    task = run.asked()
    assert task == 0
    with pytest.raises(ParameterError, match=message):
        act(run, task)
    run.send(task, 0)  # nothing has happened to it
    assert run.asked() == 1
    run.send(1, 2)
    assert run.asked() is None and run.trace().schedule is not None


@given(seeds)
@settings(max_examples=100)
def test_faults_of_a_scenario_where_work_is_lost(seed: int) -> None:
    """No outage of the instance's own, and work that cannot be kept: it begins again from
    nothing.
    """
    instance, rng = small_instance(seed, clean=True, drained=True), np.random.default_rng(seed)
    outages = random_outages(instance, rng)
    faults = [
        Fault(*row)
        for row in zip(
            outages.time.tolist(), outages.pool.tolist(), outages.devices.tolist(), strict=True
        )
    ]
    pools = random_pools(instance, rng)
    pick, reference = table_policy(instance, rng)
    sites = reference_of(instance, reference, faults=faults)
    sites.go(pools.tolist(), None)
    same(
        instance,
        play_sites(instance, steering_of(grid_of(instance), pick=pick, pools=pools), faults),
        sites,
    )


def two_sites(**options: Any) -> Instance:
    """One device each at x (1 s away) and y (2 s away); 4 s of work at either, released at
    0 and 1.
    """
    m = ob.Model("two sites", **options)
    x, y = m.pool("x"), m.pool("y")
    kind = m.kind(
        modes=[
            m.mode(x, time_s=1, energy_j=1, clock=1.0),
            m.mode(y, time_s=1, energy_j=1, clock=1.0),
        ]
    )
    m.tasks([4.0, 4.0], kind=kind, release_s=[0.0, 1.0])
    m.minimize(energy_j=1.0)
    return with_stream(m.build(), latency_s=[[1.0, 2.0]], ingress_names=("door",))


def test_a_second_run_of_one_steering_is_the_first_again() -> None:
    instance = two_sites()
    steering = steering_of(grid_of(instance), pick_by=STICKY, pools=np.array([0, 0]))
    for _ in range(2):
        schedule = play_sites(instance, steering).schedule
        assert schedule is not None
        assert schedule.start.tolist() == [1, 5] and schedule.end.tolist() == [5, 9]


def test_a_run_cut_in_the_middle_keeps_what_has_ended() -> None:
    instance = two_sites()
    trace = play_sites(instance, steering_of(grid_of(instance), pools=np.array([0, 1])), until=6.0)
    state: State = trace.state
    assert trace.schedule is None and partial_schedule(
        instance, trace.plant, state
    ).end.tolist() == [5.0]


def test_a_site_that_never_comes_back_leaves_its_work_undone_and_nothing_else() -> None:
    instance = replace(two_sites(), preemptive=True)
    assert instance.stream is not None
    away = Outages(np.array([2]), np.array([0]), np.array([1]), np.array([False]))
    lost = with_stream(
        replace(instance, stream=None), latency_s=instance.stream.latency_s, outages=away
    )
    trace = play_sites(lost, steering_of(grid_of(lost), pools=np.array([0, 1])))
    made = partial_schedule(lost, trace.plant, trace.state)
    assert trace.schedule is None
    assert sorted(zip(made.task.tolist(), made.start.tolist(), made.end.tolist(), strict=True)) == [
        (0, 1, 2),
        (1, 3, 7),
    ]


@pytest.mark.parametrize(
    ("declare", "why"),
    [
        ("precedence", "tasks wait for each other"),
        ("several pools", "modes take devices of several pools"),
        ("memory", "tasks of one kind fit the memory of different pools"),
        ("cap", "this policy does not keep power caps"),
    ],
)
def test_what_a_grid_cannot_say_is_refused_by_name(declare: str, why: str) -> None:
    m = ob.Model("no grid")
    x, y = m.pool("x", memory_gb=8), m.pool("y", memory_gb=16)
    modes = [
        m.mode({x: 1, y: 1} if declare == "several pools" else x, time_s=1),
        m.mode(y, time_s=1),
    ]
    kind = m.kind(modes=modes)
    first = m.task("a", kind=kind, memory_gb=12 if declare == "memory" else 0)
    m.task("b", kind=kind, after=first if declare == "precedence" else ())
    if declare == "cap":
        m.limit(power_w=100)
    m.minimize(makespan=1.0)
    with pytest.raises(ob.errors.UnsupportedError, match=f"no grid: {why}"):
        grid_of(m.build())
