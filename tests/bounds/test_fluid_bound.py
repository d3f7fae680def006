"""Which of two fluid LPs is kept, and what time each has."""

from __future__ import annotations

import itertools
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.bounds.fluid import fluid_bound as module
from optbench.bounds.fluid.fluid_bound import choices, fluid_bound, value_of
from optbench.bounds.fluid.fluid_program import fluid_model
from optbench.model.instance import Instance
from tests.bounds.shops import shop


def in_minutes(**objective: float) -> Instance:
    """One task of 120 s, which is two ticks."""
    m = ob.Model("minutes", tick_s=60)
    m.task(modes=[m.mode(m.pool("gpu"), time_s=120, energy_j=1)])
    m.minimize(**objective)
    return m.build()


def test_with_edges_only_what_is_better_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGE", 0)
    # Without edges both say the same, and the first remains.
    loose = shop([[(0, 2)], [(0, 3)]], [1])
    proof = fluid_bound(loose)
    assert proof is not None and (proof.bound.value, proof.bound.source) == (5, "fluid_lp:no_edges")
    # 100 J in 2 s or 20 J in 10 s, twice, one after the other, and 6 J a second. With the edge
    # 2 · (20 + 60) = 160; without it the slow modes take 10 s from any start: less.
    m = ob.Model()
    first = None
    for k in range(2):
        pool = m.pool(f"gpu{k}")
        modes = [m.mode(pool, time_s=2, energy_j=100), m.mode(pool, time_s=10, energy_j=20)]
        first = m.task(modes=modes, after=() if first is None else first)
    m.minimize(energy_j=1.0, makespan_s=6.0)
    better = fluid_bound(m.build())
    assert better is not None and better.bound.source == "fluid_lp"
    assert better.bound.value == pytest.approx(160)


def test_what_pricing_leaves_of_the_time_is_for_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    # The clock shows 100 s, and 3 s more whenever it is read: of 10 s 7 are left.
    clock = itertools.count(100, 3)
    given: list[float] = []

    def solved(fluid: Any, program: Any, time_limit_s: float) -> SimpleNamespace:
        given.append(time_limit_s)
        return SimpleNamespace(dual=None)

    monkeypatch.setattr(module, "LARGE", 0)
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    monkeypatch.setattr(module, "solve_by_pricing", lambda *_: None)
    monkeypatch.setattr(module, "solve_program", solved)
    fluid = fluid_model(shop([[(0, 2)]], [1]))
    assert module.solution_of(fluid, fluid.program(), 10.0).dual is None
    assert given == [7]


def test_a_proven_makespan_is_raised_to_whole_ticks_and_other_values_are_not() -> None:
    half = Fraction(1, 2)
    for instance, proven, value in (
        # Three ticks, of weight 2; and half a tick more.
        (shop([[(0, 2)]], [1], makespan=2.0), Fraction(6), 6.0),
        (shop([[(0, 2)]], [1], makespan=2.0), Fraction(7), 8.0),
        # Ticks of 60 s at 2.5 a second are worth 150 each.
        (in_minutes(makespan_s=2.5), Fraction(299), 300.0),
        (in_minutes(makespan_s=2.5), Fraction(301), 450.0),
        (in_minutes(energy_j=1.0), 3 + half, 3.5),
        (in_minutes(energy_j=1.0, makespan_s=1.0), 3 + half, 3.5),
    ):
        fluid = fluid_model(instance)
        assert value_of(fluid, fluid.program(), proven) == value


def test_the_rows_that_give_each_task_one_mode() -> None:
    program = fluid_model(shop([[[(0, 2), (1, 3)]], [(0, 3)]], [1, 1])).program()
    here = choices(program)
    # One row per task: 1 each, over two columns and over one.
    assert program.right[here].tolist() == [1, 1] and program.equal[here].all()
    assert sorted(np.diff(program.row_ptr)[here].tolist()) == [1, 2]
