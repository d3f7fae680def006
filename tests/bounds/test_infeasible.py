"""Infeasibility at the edge: what just contradicts and what just does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import optbench as ob
from optbench.bounds.combinatorial.combinatorial_bound import combinatorial_bounds, recomputed
from optbench.bounds.infeasible import _infeasibility, _violations, refutation
from optbench.bounds.lp.exact_check import Certificate
from optbench.bounds.lp.linear_program import LinearProgram, LpColumns, LpRows, assemble
from optbench.model.instance import Instance


def at_least(right: float) -> LinearProgram:
    """4 x ≥ right and x = y, for x and y between 0 and 1."""
    columns, rows = LpColumns(), LpRows()
    x, y = columns.add(2, 0.0, 1.0)
    rows.add("least", right, (0, x, 4.0))
    rows.add("tie", 0.0, (0, x, 0.5), (0, y, -0.5), equal=True)
    return assemble(columns, rows)


def test_a_contradiction_of_any_size_is_one() -> None:
    # With dual 1: 4.25 − 4 · 1 = 0.25 above 0; 4 − 4 · 1 = 0 is none.
    found = _infeasibility(at_least(4.25), Certificate((1, 0), 0))
    assert found is not None
    assert found.argument == "the rows least of the fluid LP contradict each other"
    assert _infeasibility(at_least(4.0), Certificate((1, 0), 0)) is None


def test_violations_are_priced_by_the_largest_entry_of_their_row() -> None:
    lp = _violations(at_least(4.25))
    # x and y; missing the first row costs 1 / 4 per unit; the second, whose entries are below 1,
    # costs 1 either way.
    assert lp.cost.tolist() == [0.0, 0.0, 0.25, 1.0, 1.0]
    assert lp.row_ptr.tolist() == [0, 2, 6]
    assert lp.column.tolist() == [0, 2, 0, 1, 3, 4]
    assert lp.value.tolist() == [4.0, 1.0, 0.5, -0.5, 1.0, -1.0]
    assert np.isinf(lp.upper[2:]).all() and not lp.lower.any()


def free_of_charge(most_j: float) -> Instance:
    m = ob.Model("free")
    m.task(modes=[m.mode(m.pool("gpu"), time_s=2, energy_j=0)])
    m.minimize(makespan_s=1.0)
    m.limit(energy_j=most_j)
    return m.build()


def test_a_floor_at_its_limit_is_no_contradiction() -> None:
    # 0 J are needed and 0 J are allowed.
    assert refutation(free_of_charge(0.0)) is None


def apart() -> Instance:
    """A chain over two pools whose link is gone, and a task on a third."""
    m = ob.Model("apart")
    a, b = m.pool("a"), m.pool("b")
    m.link(a, b, bandwidth_gbit_s=8)
    first = m.task("first", modes=[m.mode(a, time_s=2)])
    m.task("second", modes=[m.mode(b, time_s=2)], data_gb={first: 1})
    m.task("third", modes=[m.mode(m.pool("c"), time_s=2)])
    m.minimize(makespan_s=1.0)
    instance = m.build()
    unlinked = np.where(np.eye(3, dtype=bool), instance.links.latency_s, np.inf)
    return replace(instance, links=replace(instance.links, latency_s=unlinked))


def test_tasks_that_no_link_joins_are_named_and_have_no_bound() -> None:
    found = refutation(apart())
    assert found is not None and found.source == "windows"
    assert found.argument.startswith("no link joins the pools of task ")
    # The load of the third pool is 2, but nothing finite holds of what is impossible.
    assert combinatorial_bounds(apart()) == []
    assert recomputed(apart(), "jackson:c", None, 1.0) is None
