"""The compiled search for projects: the serial scheme against a plain one, forward-backward
improvement, and whole searches judged by the verifier.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import optbench as ob
from optbench.api import load_target
from optbench.compiling.compiled import njit
from optbench.model.instance import Instance, Ints
from optbench.model.schedule import Schedule
from optbench.model.verify import verify
from optbench.plugins.protocol import Run
from optbench.sim.primal import Improver
from optbench.sim.primal.chance import TaskGraph
from optbench.sim.primal.project import ProjectSearch, is_project
from optbench.sim.primal.serial_schedules import (
    decode,
    decoding_memory,
    justify,
    packed_demands,
)


@cache
def forward_backward() -> Any:
    """Decode a list and justify it three times; return the makespans and write the starts."""

    @njit(cache=False)
    def run(graph, rows, order, row, start, first, horizon):  # type: ignore[no-untyped-def]
        memory = decoding_memory(rows, len(order), horizon)
        out = np.zeros(4, np.int64)
        out[0] = decode(
            graph.pred_ptr, graph.pred, graph.release, rows, order, row, start, memory, 0
        )
        first[:] = start
        for k in range(1, 4):
            out[k] = justify(graph, rows, order, row, start, memory, out[k - 1])
        return out

    return run


def plain_serial_scheme(
    pairs: list[tuple[int, int]], release: Ints, duration: Ints, demand: Ints, room: Ints
) -> Ints:
    """Start each task, in numerical order, at the first time that releases, predecessors and pools
    allow.
    """
    start = np.zeros(len(duration), np.int64)
    used = np.zeros((int(release.max() + duration.sum()) + 1, len(room)), np.int64)
    for i in range(len(duration)):
        t = max([int(release[i]), *(int(start[p] + duration[p]) for p, q in pairs if q == i)])
        while (used[t : t + duration[i]] + demand[i] > room).any():
            t += 1
        start[i] = t
        used[t : t + duration[i]] += demand[i]
    return start


def random_project(seed: int) -> tuple[list[tuple[int, int]], Ints, Ints, Ints, Ints]:
    """Arcs, releases, durations, demands and rooms: durations and demands of zero, demands as large
    as the room, one task, no pool, and so many or such large pools that they need several words.
    """
    rng = np.random.default_rng(seed)
    n, pools = int(rng.choice([1, 2, 5, 12, 25])), int(rng.choice([0, 1, 4, 30]))
    room = rng.integers(1, int(rng.choice([2, 12, 1 << 40])), pools).astype(np.int64)
    share = rng.choice([0.0, 0.0, 0.3, 0.7, 1.0], (n, pools))
    demand = np.floor(share * room).astype(np.int64)
    pairs = [(i, j) for j in range(n) for i in range(j) if rng.random() < 0.15]
    release = rng.integers(0, 8, n) * rng.integers(0, 2)
    return pairs, release.astype(np.int64), rng.integers(0, 7, n).astype(np.int64), demand, room


def graph_of(pairs: list[tuple[int, int]], release: Ints) -> TaskGraph:
    n = len(release)
    before = [[i for i, j in pairs if j == k] for k in range(n)]
    after = [[j for i, j in pairs if i == k] for k in range(n)]
    return TaskGraph(*compressed(before), *compressed(after), release)


def compressed(lists: list[list[int]]) -> tuple[Ints, Ints]:
    ptr = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return ptr, np.array([i for each in lists for i in each], np.int64)


def is_feasible(
    pairs: list[tuple[int, int]],
    release: Ints,
    duration: Ints,
    demand: Ints,
    room: Ints,
    start: Ints,
) -> bool:
    end = start + duration
    running = [(start <= t) & (t < end) for t in range(int(end.max(initial=0)))]
    return (
        bool((start >= release).all())
        and all(end[i] <= start[j] for i, j in pairs)
        and all((demand[now].sum(axis=0) <= room).all() for now in running)
    )


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_forward_backward_never_lengthens_and_stays_feasible(seed: int) -> None:
    pairs, release, duration, demand, room = random_project(seed)
    n = len(duration)
    rows = packed_demands(duration, demand, room)
    order, row = np.arange(n), np.arange(n)
    start, first = np.zeros((2, n), np.int64)
    horizon = int(release.max() + duration.sum()) + 1
    graph = graph_of(pairs, release)
    lengths = forward_backward()(graph, rows, order, row, start, first, horizon).tolist()
    # The serial scheme itself is the same as a plain one, tick by tick.
    expected = plain_serial_scheme(pairs, release, duration, demand, room)
    assert first.tolist() == expected.tolist()
    assert lengths[0] == (expected + duration).max()
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[3] == (start + duration).max()
    assert sorted(order.tolist()) == list(range(n))
    assert is_feasible(pairs, release, duration, demand, room, start)


def test_pools_share_words_until_62_bits() -> None:
    # Fields of 2 bits (one device and the guard): 31 to a word; a pool nobody uses takes none.
    demand = np.ones((3, 40), np.int64)
    demand[:, 5] = 0
    rows = packed_demands(np.ones(3, np.int64), demand, np.ones(40, np.int64))
    assert rows.need.shape == (3, 2)
    assert rows.need[0].tolist() == [sum(1 << 2 * k for k in range(m)) for m in (31, 8)]
    assert (rows.guard + rows.need[0]).tolist() == rows.empty.tolist()


def project_with_modes() -> Instance:
    """Five tasks in two modes on two pools, one without a duration, one without a pool, released
    one after the other.
    """
    m = ob.Model("modes")
    crew, crane = m.pool("crew", 3), m.pool("crane", 2)
    for k in range(5):
        m.task(modes=[m.mode({crew: 3, crane: 1}, 2), m.mode({crew: 1}, 4)], release_s=float(k))
    last = m.task(modes=[m.mode({crane: 2}, 0)])
    m.task(modes=[m.mode(None, 3)], after=last)
    m.minimize(makespan_s=1.0)
    return m.build()


def one_activity() -> Instance:
    m = ob.Model("one")
    crew = m.pool("crew", 3)
    m.task(modes=[m.mode({crew: 3}, 4)])
    m.minimize(makespan_s=1.0)
    return m.build()


def searched(instance: Instance, seed: int) -> Schedule:
    search = ProjectSearch(instance, seed)
    search.step(3000)
    return search.schedule()


@pytest.mark.parametrize("seed", [0, 1])
def test_the_same_seed_finds_the_same_verified_schedule(seed: int) -> None:
    project = load_target("rcpsp:activities=40,strength=0.2", seed)
    for instance in (project, project_with_modes(), one_activity()):
        assert is_project(instance)
        first, second = searched(instance, seed), searched(instance, seed)
        assert not verify(instance, first).violations
        assert np.array_equal(first.start, second.start)
        assert np.array_equal(first.mode, second.mode)


def test_optima_by_hand() -> None:
    """One activity of 4 ticks ends at 4.

    With modes, 8: two tasks by the whole crew (0 to 2, 2 to 4), then three tasks by one each (4 to
    8). Not 7: if all five took 4 ticks, the one released at 4 would end at 8; and else they take at
    least 6 + 4 * 4 = 22 ticks of the crew, which has 3 * 7 = 21.
    """
    assert searched(one_activity(), 0).end.max() == 4
    assert searched(project_with_modes(), 0).end.max() == 8


def test_the_incumbent_is_in_the_population() -> None:
    """A search from an incumbent starts with it, and reports only what is better."""
    instance = load_target("rcpsp:activities=30,strength=0.2", 3)
    found = Run(instance)
    Improver(instance, None, seed=1).run(lambda: 0, found.report, lambda: False, 60, chunks=5)
    assert found.best is not None and found.objective is not None
    later = Run(instance)
    improver = Improver(instance, found.best, seed=2)
    improver.run(lambda: 0, later.report, lambda: False, 60, chunks=2)
    assert not later.rejected
    assert improver.best <= found.objective
    search = improver.searches[0]
    assert isinstance(search, ProjectSearch) and search.fitness.min() <= found.objective
