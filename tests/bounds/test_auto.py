"""Which kernels a bounding method runs, and the makespan that a bound stands for."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

import optbench as ob
from optbench.api import load_target
from optbench.bounds import auto as module
from optbench.bounds.auto import bound_kernels, lower_bounds, makespan_of
from optbench.bounds.combinatorial.combinatorial_bound import combinatorial_bounds
from optbench.bounds.proving import num_pairs
from optbench.bounds.streams import stream_bound
from optbench.compiling.kernel_table import BOUNDING
from optbench.errors import UnknownNameError
from optbench.model.instance import Instance
from optbench.model.objective import Objective
from optbench.model.result import Bound
from tests.bounds.shops import shop


def in_minutes(weight: float = 2.5) -> Instance:
    """One task of 120 s, which is two ticks."""
    m = ob.Model("minutes", tick_s=60)
    m.task(modes=[m.mode(m.pool("gpu"), time_s=120, energy_j=1)])
    m.minimize(makespan_s=weight)
    return m.build()


def test_only_destructive_bounds_need_kernels() -> None:
    instance = shop([[(0, 2)], [(0, 3)]], [1])
    assert bound_kernels(instance) == bound_kernels(instance, "combinatorial") == BOUNDING
    assert bound_kernels(instance, "fluid") == frozenset()
    # Of an energy "auto" makes no destructive bound.
    assert bound_kernels(shop([[(0, 2)]], [1], flow_time_s=1.0)) == frozenset()


def test_nothing_is_deduced_of_interrupted_tasks_nor_by_the_stream() -> None:
    instance = shop([[(0, 2)], [(0, 3)]], [1])
    assert bound_kernels(replace(instance, preemptive=True)) == frozenset()
    assert bound_kernels(instance, "stream") == frozenset()


def test_cheap_bounds_need_no_programme_of_the_stream() -> None:
    stream = replace(load_target("geo_dc:days=0.02,drain=yes"), preemptive=True)
    found = lower_bounds(stream, "cheap")
    assert found == combinatorial_bounds(stream) != []


def test_a_bound_on_a_weighted_makespan_stands_for_whole_ticks() -> None:
    # 2.5 · 120 s = 300 is two ticks of 60 s; a little more can only be kept by three.
    assert makespan_of(in_minutes(), 300.0) == 2
    assert makespan_of(in_minutes(), 301.0) == 3
    # In ticks, of weight 2: 7 / 2 = 3.5 needs 4.
    assert makespan_of(shop([[(0, 2)]], [1], makespan=2.0), 7.0) == 4
    assert makespan_of(shop([[(0, 2)]], [1], flow_time_s=1.0), 7.0) == 0


class Watched:
    """Which bounds a method computes, in this order, with which time; each reading of the clock
    is ``step`` later.
    """

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, step: float = 1.0, fluid: float | None = 7.0
    ) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.kinds = ["critical_path"]
        clock = itertools.count(100.0, step)
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
        monkeypatch.setattr(module, "remember", lambda *_: None)

        def combinatorial(instance: Instance, *args: float) -> list[Bound]:
            self.calls.append(("combinatorial", *args))
            kinds = [*self.kinds, *["destructive"][: len(args)]]
            return [Bound(5.0 + len(kind), kind, "combinatorial") for kind in kinds]

        def fluid_bound(instance: Instance, time_limit_s: float) -> Any:
            self.calls.append(("fluid", time_limit_s))
            return (
                None
                if fluid is None
                else SimpleNamespace(bound=Bound(fluid, "fluid_lp", "exact-lp"))
            )

        def stream(instance: Instance, time_limit_s: float) -> list[Bound]:
            self.calls.append(("stream", time_limit_s))
            return [Bound(3.0, "stream_lp", "exact-lp")]

        monkeypatch.setattr(module, "combinatorial_bounds", combinatorial)
        monkeypatch.setattr(module, "fluid_bound", fluid_bound)
        monkeypatch.setattr(stream_bound, "stream_bounds", stream)

    def sources(self, instance: Instance, *args: Any) -> list[str]:
        self.calls.clear()
        return [bound.source for bound in lower_bounds(instance, *args)]


def test_each_method_computes_its_own_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)
    plain = shop([[(0, 2)], [(0, 3)]], [1])
    # Sorted: 5 + 13, 5 + 11, 7. One reading at the beginning, one before the destructive bound,
    # whose makespans are those above the 18 that is known, up to 30.
    assert watched.sources(plain, "auto", 10.0, 30.0) == [
        "critical_path",
        "destructive",
        "fluid_lp",
    ]
    assert watched.calls == [
        ("combinatorial",),
        ("fluid", 10.0),
        ("combinatorial", 9.0, 18.0, 30.0),
    ]
    assert watched.sources(plain, "combinatorial", 10.0, 30.0) == ["critical_path", "destructive"]
    assert watched.calls == [("combinatorial",), ("combinatorial", 9.0, 18.0, 30.0)]
    assert watched.sources(plain, "fluid", 10.0) == ["fluid_lp"]
    assert watched.calls == [("fluid", 10.0)]
    assert watched.sources(plain, "cheap") == ["critical_path"]
    assert watched.sources(plain, "stream") == ["stream_lp"] and watched.calls == [("stream", 10.0)]
    with pytest.raises(UnknownNameError, match="bounding method"):
        lower_bounds(plain, "best")


def test_without_a_fluid_bound_the_others_remain(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch, fluid=None)
    plain = shop([[(0, 2)], [(0, 3)]], [1])
    assert watched.sources(plain, "auto", 10.0) == ["critical_path", "destructive"]
    assert watched.sources(plain, "fluid", 10.0) == []


def test_without_any_bound_the_search_begins_at_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch, fluid=None)
    watched.kinds = []
    assert watched.sources(shop([[(0, 2)], [(0, 3)]], [1]), "auto", 10.0, 30.0) == ["destructive"]
    assert watched.calls[-1] == ("combinatorial", 9.0, 0.0, 30.0)


def test_destructive_bounds_need_more_than_half_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = shop([[(0, 2)], [(0, 3)]], [1])
    for step, searched in ((0.5, False), (0.25, True)):
        watched = Watched(monkeypatch, step)
        assert ("destructive" in watched.sources(plain, "combinatorial", 1.0)) is searched


def test_destructive_bounds_are_for_makespans_alone_unless_they_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watched = Watched(monkeypatch)
    mixed = shop([[(0, 2)], [(0, 3)]], [1], makespan=1.0, flow_time_s=1.0)
    assert watched.sources(mixed, "auto") == ["critical_path", "fluid_lp"]
    # Both spellings of the makespan are nothing else.
    both = shop([[(0, 2)], [(0, 3)]], [1], makespan=1.0, makespan_s=1.0)
    assert "destructive" in watched.sources(both, "auto")
    # Of a mixed objective no makespan is known.
    assert "destructive" in watched.sources(mixed, "combinatorial", 10.0)
    assert watched.calls[-1][1:3] == (9.0, 0.0)


def test_kernels_are_those_of_any_level() -> None:
    plain = shop([[(0, 2)], [(0, 3)]], [1])
    for names, needed in (
        (("flow_time_s", "makespan"), True),
        (("makespan", "flow_time_s"), True),
        (("flow_time_s",), False),
    ):
        levels = plain.with_objective(Objective.in_order(*names))
        assert (bound_kernels(levels) == BOUNDING) is needed


def test_streams_have_both_programmes_or_only_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)
    drained = load_target("geo_dc:days=0.02,drain=yes")
    assert drained.stream is not None and not drained.is_open
    assert "stream_lp" in watched.sources(drained, "auto", 10.0)
    # The stream's programme has what the fluid one has left: a reading later.
    assert watched.calls[:3] == [("combinatorial",), ("fluid", 10.0), ("stream", 9.0)]
    watched.sources(drained, "fluid", 10.0)
    assert watched.calls == [("fluid", 10.0), ("stream", 9.0)]
    pairs = num_pairs(drained)
    for most, alone in ((pairs, False), (pairs - 1, True)):
        monkeypatch.setattr(module, "MAX_PAIRS", most)
        watched.sources(drained, "auto", 10.0)
        assert (watched.calls == [("stream", 10.0)]) is alone
    for only in (load_target("geo_dc:days=0.02"), replace(drained, preemptive=True)):
        assert watched.sources(only, "auto", 10.0) == ["stream_lp"] and watched.calls == [
            ("stream", 10.0)
        ]
        assert watched.sources(only, "combinatorial") == watched.sources(only, "fluid") == []
