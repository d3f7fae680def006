"""The pieces of destructive bounds: what is searched from where, the arrays of a trial, and
cliques.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.bounds.combinatorial import destructive
from optbench.bounds.combinatorial.destructive import (
    STAGES,
    TrialArrays,
    destructive_bound,
    is_deducible,
    is_refuted,
    trial_of,
)
from optbench.bounds.combinatorial.relaxation import Relaxation, relax
from optbench.model.instance import Instance
from optbench.model.metrics import mode_uses
from tests.bounds.shops import shop


@pytest.fixture
def small() -> Relaxation:
    """2 and then 3 ticks, and 4 ticks beside them: one after the other, after a head of 2 and
    before a tail of 3, 14.
    """
    return relax(shop([[(0, 2), (1, 3)], [(0, 4)]], [1, 1]))


def test_everything_can_have_been_done_after_its_longest_lengths(small: Relaxation) -> None:
    assert destructive._last(small) == 14


def test_device_time_is_limited_to_what_integers_hold(
    small: Relaxation, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Both pools together have two devices: 14 · (2 + 1), or 15 · 3 where that makespan is asked
    # about.
    for most, makespan, fits in (
        (42, 0, True),
        (41, 0, False),
        (45, 15, True),
        (44, 15, False),
        (42, 14, True),
    ):
        monkeypatch.setattr(destructive, "MOST_DEVICE_TIME", float(most))
        assert destructive._fits_integers(small, makespan) is fits
    for most, fits in ((28, True), (27, False)):
        monkeypatch.setattr(destructive, "MOST_DEVICE_TIME", float(most))
        assert destructive._fits_integers(replace(small, sets=()), 0) is fits
    assert not is_refuted(small, 3, 5.0) and destructive_bound(small, 3.0, 5.0) == 3.0


def test_only_uninterrupted_tasks_up_to_a_number_are_deduced_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    instance = shop([[(0, 2), (1, 3)], [(0, 4)]], [1, 1])
    assert not is_deducible(replace(instance, preemptive=True))
    for most, deduced in ((3, True), (2, False)):
        monkeypatch.setattr(destructive, "MAX_TASKS", most)
        assert is_deducible(instance) is deduced
    assert destructive_bound(relax(instance), 5.0, 9.0) == 5.0 and not is_refuted(
        relax(instance), 1, 9.0
    )


def test_each_stage_goes_on_from_what_the_last_has_proved(
    small: Relaxation, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[tuple[int, int, float]] = []
    stages: list[tuple[Any, ...]] = []

    def search(refutes: Callable[[int], bool], low: int, top: int, deadline: float) -> int:
        searched.append((low, top, deadline))
        refutes(low)
        return low + 1

    monkeypatch.setattr(destructive, "_search", search)
    monkeypatch.setattr(destructive, "_refutes", lambda trial, *args: stages.append(args))
    monkeypatch.setattr(destructive, "time", SimpleNamespace(perf_counter=lambda: 100.0))
    # Everything can end by 14: the makespan 15 need not be refuted.
    assert destructive_bound(small, 6.0, 0.5) == 10.0
    assert searched == [(low, 15, 100.5) for low in (6, 7, 8, 9)]
    assert stages == [(low, *stage, 100.5) for low, stage in zip((6, 7, 8, 9), STAGES, strict=True)]
    # No makespan from that of a known schedule on is tried.
    searched.clear()
    assert destructive_bound(small, 6.0, 0.5, 12.0) == 10.0
    assert [top for _, top, _ in searched] == [12] * 4
    # With less time nothing is tried.
    searched.clear()
    assert destructive_bound(small, 6.5, 0.49) == 6.5 and searched == []
    # A bound between two ticks remains where nothing is refuted.
    monkeypatch.setattr(destructive, "_search", lambda refutes, low, top, deadline: low)
    assert destructive_bound(small, 6.5, 0.5) == 6.5


def test_one_stage_that_refutes_is_enough(
    small: Relaxation, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Any, ...]] = []
    monkeypatch.setattr(destructive, "time", SimpleNamespace(perf_counter=lambda: 100.0))
    for stage in (*STAGES, None):
        asked.clear()

        def refutes(trial: TrialArrays, *args: Any, stage: Any = stage) -> bool:
            asked.append(args)
            return bool(args[1:3] == stage)

        monkeypatch.setattr(destructive, "_refutes", refutes)
        assert is_refuted(small, 7, 2.0) is (stage is not None)
        number = 4 if stage is None else STAGES.index(stage) + 1
        assert asked == [(7, *each, 102.0) for each in STAGES[:number]]


def test_the_search_ends_when_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(0.0)
    monkeypatch.setattr(destructive, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    # Readings 0, 1 and 2 leave time for two questions: 10 and 12 are refuted.
    assert destructive._search(lambda makespan: True, 10, 99, 2.0) == 13


def test_a_trial_in_arrays() -> None:
    m = ob.Model("trial")
    a, b = m.pool("a"), m.pool("b")
    m.link(a, b, bandwidth_gbit_s=4)
    first = m.task(modes=[m.mode(a, time_s=2), m.mode(b, time_s=3)], release_s=1)
    m.task(modes=[m.mode(b, time_s=4)], after=first, deadline_s=12)
    last = m.task(modes=[m.mode(a, time_s=5)])
    m.task(modes=[m.mode(b, time_s=1)], data_gb={last: 3})
    m.minimize(makespan=1.0)
    trial = trial_of(relax(m.build()))
    # 3 GB at 2 s a GB; the first must end by 12 − 4, what has no deadline far beyond everything.
    assert trial.head.tolist() == [1, 3, 0, 11]
    assert trial.tail.tolist() == [4, 0, 7, 0]
    assert trial.latest.tolist() == [8, 12, 2**61, 2**61]
    assert trial.num_pairs == 5
    assert [part.tolist() for part in trial.pairs] == [[0, 2, 3, 4, 5], [2, 3, 4, 5, 1]]
    assert sorted(zip(*(part.tolist() for part in trial.edges), strict=True)) == [
        (0, 1, 0),
        (2, 3, 6),
    ]
    start, end, alive = trial.state(20)
    assert start.tolist() == [1, 3, 0, 11] and start is not trial.head
    assert end.tolist() == [8, 12, 13, 20] and alive.tolist() == [True] * 5
    assert trial.state(10)[1].tolist() == [6, 10, 3, 10]


def on(counts: dict[str, int], tasks: Sequence[tuple[dict[str, int], float]]) -> Instance:
    """Tasks of one mode each, which takes devices of named pools for a time."""
    m = ob.Model("cliques")
    pools = {name: m.pool(name, count=count) for name, count in counts.items()}
    for needs, time_s in tasks:
        m.task(modes=[m.mode({pools[name]: n for name, n in needs.items()}, time_s=time_s)])
    m.minimize(makespan=1.0)
    return m.build()


def cliques(instance: Instance) -> list[list[int]]:
    return [clique.tolist() for clique in destructive._cliques(instance, mode_uses(instance))]


def test_cliques_grow_by_the_task_that_excludes_most() -> None:
    # Of four devices: 4, 3, 3 and 1. The first excludes all; the last, which takes long, only the
    # first.
    tasks: list[tuple[dict[str, int], float]] = [
        ({"a": 4}, 1),
        ({"a": 3}, 1),
        ({"a": 3}, 1),
        ({"a": 1}, 10),
    ]
    assert cliques(on({"a": 4}, tasks)) == [[0, 1, 2], [0, 3]]
    # Two pairs on two pools and one task on both: with the pair of longer tasks first.
    tasks = [({"a": 2}, 2), ({"a": 2}, 2), ({"b": 2}, 5), ({"b": 2}, 5), ({"a": 2, "b": 2}, 1)]
    assert cliques(on({"a": 2, "b": 2}, tasks)) == [[2, 3, 4], [0, 1, 4]]


def test_what_fits_side_by_side_or_takes_no_time_is_in_no_clique() -> None:
    assert cliques(on({"a": 4}, [({"a": 2}, 3), ({"a": 2}, 3)])) == []
    assert cliques(on({"a": 4}, [({"a": 3}, 3), ({"a": 2}, 3)])) == [[0, 1]]
    assert cliques(on({"a": 4}, [({"a": 4}, 3), ({"a": 4}, 0), ({"a": 4}, 1)])) == [[0, 2]]
    # On single devices Jackson's bound and edge finding do as much.
    assert cliques(on({"a": 1}, [({"a": 1}, 3), ({"a": 1}, 3)])) == []
    # A task with a mode of one device excludes none of two.
    m = ob.Model("modes")
    a = m.pool("a", count=2)
    for _ in range(2):
        m.task(modes=[m.mode({a: 2}, time_s=1), m.mode(a, time_s=3)])
    m.minimize(makespan=1.0)
    assert cliques(m.build()) == []


def test_cliques_are_few_and_of_few_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    two = {"a": 2, "b": 2, "c": 2}
    three_and_two = on(two, [({"a": 2}, 9)] * 3 + [({"b": 2}, 1)] * 2)
    assert cliques(three_and_two) == [[0, 1, 2], [3, 4]]
    for most, found in ((5, 2), (4, 0)):
        monkeypatch.setattr(destructive, "MAX_CLIQUE_TASKS", most)
        assert len(cliques(three_and_two)) == found
    monkeypatch.setattr(destructive, "MAX_CLIQUE_TASKS", 400)
    # Four seeds for two cliques: the fourth finds the pair, but not behind a clique of four.
    monkeypatch.setattr(destructive, "MAX_CLIQUES", 2)
    assert len(cliques(three_and_two)) == 2
    assert cliques(on(two, [({"a": 2}, 9)] * 4 + [({"b": 2}, 1)] * 2)) == [[0, 1, 2, 3]]
    assert (
        len(
            cliques(
                on(
                    two,
                    [({"a": 2}, 9)] * 2
                    + [({"b": 2}, 5), ({"b": 2}, 5), ({"c": 2}, 1), ({"c": 2}, 1)],
                )
            )
        )
        == 2
    )
    monkeypatch.setattr(destructive, "MAX_CLIQUES", 1)
    assert cliques(on(two, [({"a": 2}, 9), ({"a": 2}, 1), ({"b": 2}, 8), ({"b": 2}, 8)])) == [
        [0, 1]
    ]


def test_a_clique_is_a_resource_of_one() -> None:
    instance = on({"a": 2}, [({"a": 2}, 4), ({"a": 2}, 4), ({"a": 1}, 4)])
    capacity, ptr, task, pair, use, of_ptr, of = (
        part.tolist() for part in destructive._resources(relax(instance))
    )
    assert (capacity, ptr) == ([2, 1], [0, 3, 6])
    assert (task, pair, use) == ([0, 1, 2] * 2, [0, 1, 2] * 2, [2, 2, 1, 1, 1, 1])
    assert (of_ptr, of) == ([0, 2, 4, 6], [0, 1, 0, 1, 0, 1])


def test_tasks_on_nothing_are_on_no_resource() -> None:
    m = ob.Model("free")
    a = m.pool("a")
    m.task(modes=[m.mode(None, time_s=3)])
    m.task(modes=[m.mode(a, time_s=3), m.mode(None, time_s=4)])
    m.task(modes=[m.mode(a, time_s=3)])
    m.minimize(makespan=1.0)
    capacity, ptr, task, pair, use, of_ptr, of = (
        part.tolist() for part in destructive._resources(relax(m.build()))
    )
    assert (capacity, ptr) == ([1], [0, 2])
    assert (task, pair, use) == ([1, 2], [1, 3], [1, 1])
    assert (of_ptr, of) == ([0, 0, 1, 2], [0, 0])


def test_narrow_windows_are_shaved_first_and_all_again_after_a_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Heads of 0, 4 and 0 and tails of 5, 0 and 2 under a makespan of 10: windows of 5, 6 and 8.
    heads, tails, one = np.array([0, 4, 0]), np.array([5, 0, 2]), np.ones(3, np.int64)
    latest, pairs, edges = np.full(3, 2**61), (np.arange(4), one), (one[:0],) * 3
    trial = TrialArrays(heads, tails, latest, 3, pairs, edges, (one[:1],))
    shaved: list[int] = []
    cuts = iter([0, 1, 0, 0, 0, 0])

    def propagate(
        a: Any, b: Any, alive: Any, dirty: Any, partial: bool, left: Any, *_: Any
    ) -> bool:
        """Work is left after each portion: nothing is contradicted."""
        assert left[0] == destructive.CHUNK and dirty.all() and partial
        return True

    def shave(a: Any, b: Any, alive: Any, i: int, partial: bool, left: Any, *_: Any) -> int:
        assert left[0] == destructive.CHUNK and partial
        left[0] = 1
        shaved.append(i)
        return next(cuts)

    monkeypatch.setattr("optbench.bounds.combinatorial.propagate.propagate", propagate)
    monkeypatch.setattr("optbench.bounds.combinatorial.propagate.shave", shave)
    monkeypatch.setattr(destructive, "time", SimpleNamespace(perf_counter=lambda: 100.0))
    assert destructive._refutes(trial, 10, True, True, 100.0) is False
    assert shaved == [0, 1, 2, 0, 1, 2]
    # Without shaving nothing is cut; and none is begun when time is up.
    shaved.clear()
    assert destructive._refutes(trial, 10, True, False, math.inf) is False
    assert destructive._refutes(trial, 10, True, True, 99.0) is False
    assert shaved == []


def test_a_propagation_that_is_cut_off_goes_on_while_there_is_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trial = trial_of(relax(shop([[(0, 4)]] * 3, [1])))
    portions = iter([0, 0, 1])
    number = itertools.count()

    def propagate(
        a: Any, b: Any, alive: Any, dirty: Any, partial: bool, left: Any, *_: Any
    ) -> bool:
        assert left[0] == destructive.CHUNK
        left[0] = next(portions)
        next(number)
        return True

    monkeypatch.setattr("optbench.bounds.combinatorial.propagate.propagate", propagate)
    monkeypatch.setattr(destructive, "time", SimpleNamespace(perf_counter=lambda: 100.0))
    # Two portions are used up, of the third a unit is left: a fixed point, and no contradiction.
    assert destructive._refutes(trial, 12, True, False, 100.0) is False
    assert next(number) == 3
    # When time is up a portion that is used up is the last.
    portions = iter([0, 0, 1])
    assert destructive._refutes(trial, 12, True, False, 99.0) is False
    assert next(number) == 5
