"""Infeasibility at the edge: what just contradicts and what just does not."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import optbench as ob
from optbench.api import load_target
from optbench.bounds import infeasible as module
from optbench.bounds.combinatorial.combinatorial_bound import combinatorial_bounds, recomputed
from optbench.bounds.infeasible import (
    _infeasibility,
    _violations,
    certify_infeasible,
    farkas,
    recheck_farkas,
    refutation,
)
from optbench.bounds.lp.exact_check import Certificate
from optbench.bounds.lp.linear_program import LinearProgram, LpColumns, LpRows, assemble
from optbench.model.instance import Instance
from tests.bounds.shops import shop, without_tasks


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
    assert found.argument == "no link joins the pools of task first with those of its neighbours"


def argument_of(instance: Instance) -> tuple[str, str] | None:
    found = refutation(instance)
    return None if found is None else (found.source, found.argument)


def due(jobs: list[tuple[float, float | None]], count: int = 1) -> Instance:
    """Tasks of (length, hard deadline) on one pool."""
    m = ob.Model("due")
    gpu = m.pool("gpu", count=count)
    for k, (length, deadline) in enumerate(jobs):
        m.task(f"t{k}", modes=[m.mode(gpu, time_s=length)], deadline_s=deadline, release_s=k)
    m.minimize(makespan_s=1.0)
    return m.build()


def test_a_task_that_ends_too_late_is_named_with_its_times() -> None:
    # The second begins at 1 and takes 4, the third begins at 2 and takes 5; the first ends just in
    # time.
    late = due([(4, 4), (4, 4), (5, 6)], count=3)
    assert argument_of(late) == ("windows", "task t1 ends at 5 at the earliest and must end by 4")
    assert argument_of(due([(4, 4), (4, 5), (5, 7)], count=3)) is None
    # One task is enough.
    assert argument_of(due([(4, 3)])) == (
        "windows",
        "task t0 ends at 4 at the earliest and must end by 3",
    )


def test_nothing_is_refuted_of_nothing_of_open_and_of_interrupted_work() -> None:
    late = due([(4, 3)])
    assert refutation(replace(late, preemptive=True)) is None
    assert refutation(without_tasks(late)) is None
    stream = load_target("geo_dc:days=0.02")
    assert stream.is_open
    assert (
        refutation(replace(stream, limits=replace(stream.limits, metric_max={"energy_j": 0.0})))
        is None
    )
    for each in (replace(late, preemptive=True), without_tasks(late), stream):
        assert farkas(each, 5.0) is None and recheck_farkas(each, {}) is None


def test_tasks_that_overload_a_pool_are_those_with_latest_ends() -> None:
    # From 0 on 3 + 3 on one device, both due by 5. A third, due at 9 or never, changes nothing.
    said = "tasks that must end by {} or before keep gpu busy until {}"
    assert argument_of(due([(3, 5), (3, 5)])) == ("jackson:gpu", said.format(5, 6))
    assert argument_of(due([(3, 5), (3, 5), (30, None)])) == ("jackson:gpu", said.format(5, 6))
    # Of the two, 6 and the 4 between 5 and 9.
    assert argument_of(due([(3, 5), (3, 5), (1, 9)])) == ("jackson:gpu", said.format(9, 10))
    # Just in time: 6 by 6, and the 7 of all by 7.
    assert argument_of(due([(3, 6), (3, 6), (1, 7)])) is None
    assert argument_of(due([(3, None), (3, None)])) is None


def test_a_limit_is_compared_with_the_floor_at_the_largest_makespan() -> None:
    # Three tasks of 2 s on one device of 10 W, which rests at no time: 60 J at 6 s; the other
    # pool's device rests for 6 s, 30 J. The longest path is 2 s.
    m = ob.Model("limited")
    a = m.pool("a")
    m.pool("b", idle_w=5)
    for _ in range(3):
        m.task(modes=[m.mode(a, time_s=2, energy_j=20)])
    m.minimize(makespan_s=1.0)
    m.limit(energy_j=89, flow_time_s=1000)
    words = "energy_j is at least 90 and limited to 89"
    assert argument_of(m.build()) == ("cheapest:energy_j", words)
    assert argument_of(m.build().with_limits(energy_j=90)) == ("cheapest:energy_j", words)
    m.metric_max["energy_j"] = 90.0
    assert argument_of(m.build()) is None
    # Limits on the makespan are latest ends.
    assert argument_of(m.build().with_limits(makespan=6.0)) is None
    assert argument_of(m.build().with_limits(makespan=5.0)) == (
        "jackson:a", "tasks that must end by 5 or before keep a busy until 6",
    )  # fmt: skip


def between(budget_j: float) -> Instance:
    """2 s for 100 J or 10 s for 20 J, within 6 s: half of each takes just these, and 60 J."""
    m = ob.Model("between")
    gpu = m.pool("gpu")
    m.task(modes=[m.mode(gpu, time_s=2, energy_j=100), m.mode(gpu, time_s=10, energy_j=20)])
    m.limit(energy_j=budget_j, makespan_s=6)
    m.minimize(makespan_s=1.0)
    return m.build()


def test_rows_that_contradict_each_other_are_a_certified_proof() -> None:
    assert refutation(between(59)) is None
    found = certify_infeasible(between(59))
    assert found is not None and (found.source, found.proof) == ("fluid_lp:farkas", "exact-lp")
    assert "assign" in found.argument and "energy" in found.argument
    assert certify_infeasible(between(60)) is None
    # The combinatorial argument comes first where there is one.
    first = certify_infeasible(due([(4, 3)]))
    assert first is not None and first.source == "windows"


def test_too_many_rows_are_not_solved_but_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found = farkas(between(59), 5.0)
    assert found is not None and found.certificate is not None
    data = json.loads(found.certificate)
    for large, solved in ((2, True), (1, False)):
        monkeypatch.setattr(module, "LARGE", large)
        assert (farkas(between(59), 5.0) is not None) is solved
        again = recheck_farkas(between(59), data)
        assert again is not None and again.argument == found.argument
    # Of duals that prove nothing nothing follows.
    monkeypatch.setattr(module, "proven_bound", lambda *_: None)
    assert recheck_farkas(between(59), data) is None


def test_the_argument_names_the_families_that_it_needs() -> None:
    lp = at_least(4.25)
    both = _infeasibility(lp, Certificate((8, 1), 3))
    assert (
        both is not None
        and both.argument == "the rows least, tie of the fluid LP contradict each other"
    )
    assert farkas(shop([[(0, 2)]], [1]), 5.0) is None
