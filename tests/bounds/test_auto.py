"""Which kernels a bounding method runs, and the makespan that a bound stands for."""

from __future__ import annotations

from dataclasses import replace

import optbench as ob
from optbench.api import load_target
from optbench.bounds.auto import bound_kernels, lower_bounds, makespan_of
from optbench.bounds.combinatorial.combinatorial_bound import combinatorial_bounds
from optbench.compiling.kernel_table import BOUNDING
from optbench.model.instance import Instance
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
