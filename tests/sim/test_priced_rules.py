"""List rules with prices by task and costs by (task, mode) pair: the choices, by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.model.classes import class_view
from optbench.model.instance import Instance
from optbench.sim.arrivals import TaskArrivals
from optbench.sim.kernel.dispatch import Rule
from optbench.sim.kernel.plant import Fault
from optbench.sim.renumbered_rules import run_as_known
from optbench.sim.rule_prices import costs_by_kind, set_cost_rows
from optbench.sim.rules import list_rule, run_rule
from tests.sim.test_set_choice import cluster


def two_speeds(tasks: int = 2) -> Instance:
    """Equal tasks, each 2 s and 100 J on fast, or 10 s and 20 J on slow; a device for everyone."""
    m = ob.Model("two speeds")
    fast, slow = m.pool("fast", count=tasks), m.pool("slow", count=tasks)
    kind = m.kind(modes=[m.mode(fast, 2, 100.0), m.mode(slow, 10, 20.0)])
    for _ in range(tasks):
        m.task(units=1.0, kind=kind)
    m.minimize(energy_j=1.0, makespan_s=1.0)
    return m.build()


def chosen(instance: Instance, **prices: Any) -> list[int]:
    trace = run_rule(instance, list_rule(instance, energy_weight=1.0, **prices))
    assert trace.schedule is not None
    return [int(mode) for mode in trace.schedule.mode]


def test_a_price_of_time_is_that_of_its_task() -> None:
    """8 s saved for 80 J: worth it from 10 J per second on."""
    instance = two_speeds()
    assert chosen(instance, end_price=np.array([9.0, 11.0])) == [1, 0]
    assert chosen(instance, end_price=np.array([11.0, 9.0])) == [0, 1]
    assert chosen(instance, end_price=0.0) == [1, 1]


def test_lateness_is_counted_from_the_date_of_the_rule_and_not_from_a_deadline() -> None:
    """Due at 8 s the slow mode is 2 s late: 80 J are worth it from 40 J per second on."""
    instance = two_speeds()
    due = np.array([8.0, 8.0])
    assert chosen(instance, due=due, late_price=np.array([39.0, 41.0])) == [1, 0]
    # Due at 12 s it is in time whatever lateness costs; without a date nothing is late.
    assert chosen(instance, due=np.array([12.0, 8.0]), late_price=1e6) == [1, 0]
    assert chosen(instance, late_price=1e6) == [1, 1]


def test_a_cost_of_a_pair_is_that_of_its_task_and_mode() -> None:
    instance = two_speeds()
    assert instance.pairs.mode.tolist() == [0, 1, 0, 1]
    assert chosen(instance, pair_cost=np.array([0.0, 81.0, 0.0, 79.0])) == [0, 1]
    assert chosen(instance, pair_cost=np.array([0.0, 79.0, -1.0, 79.5])) == [1, 0]


def test_a_cost_of_a_set_is_that_of_all_its_modes() -> None:
    """Two fast devices in pools of their own are one set, the slow ones another: a row of two costs
    per task. The slow mode saves 80 J: it is taken while it costs less than that beyond the fast.
    """
    m = ob.Model("two fast pools")
    fast, slow = [m.pool(f"fast {k}") for k in range(2)], m.pool("slow", count=2)
    kind = m.kind(modes=[*(m.mode(p, 2, 100.0) for p in fast), m.mode(slow, 10, 20.0)])
    for _ in range(2):
        m.task(units=1.0, kind=kind)
    m.minimize(energy_j=1.0, makespan_s=1.0)
    instance = m.build()
    assert set_cost_rows(instance).tolist() == [0, 2, 4]
    assert chosen(instance, set_cost=[0.0, 81.0, 0.0, 81.0]) == [0, 1]
    assert chosen(instance, set_cost=[0.0, 79.0, 0.0, 81.0]) == [2, 0]
    assert chosen(instance, set_cost=[[-2.0, 79.0], [0.0, 79.0]]) == [0, 2]


def test_costs_of_sets_are_refused_where_they_do_not_match() -> None:
    instance = two_speeds()
    with pytest.raises(ob.ParameterError, match="set_cost has 3 entries; it must have 4"):
        list_rule(instance, set_cost=np.zeros(3))
    with pytest.raises(ob.ParameterError, match="pair_cost and set_cost are both given"):
        list_rule(instance, set_cost=np.zeros(4), pair_cost=np.zeros(4))


def test_costs_of_modes_that_do_not_fit_are_left_out() -> None:
    """The first task needs 4 GB, which the slow devices do not have: three rows in all."""
    m = ob.Model("memories")
    fast, slow = m.pool("fast", memory_gb=8.0), m.pool("slow", memory_gb=2.0)
    kind = m.kind(modes=[m.mode(fast, 2, 100.0), m.mode(slow, 10, 20.0)])
    m.task(units=1.0, kind=kind, memory_gb=4.0)
    m.task(units=1.0, kind=kind)
    m.minimize(energy_j=1.0)
    instance = m.build()
    assert instance.pairs.mode.tolist() == [0, 0, 1]
    ptr, costs = costs_by_kind(instance, np.array([1.0, 2.0, 3.0]))
    assert ptr.tolist() == [0, 2, 4]
    assert costs.tolist() == [1.0, 0.0, 2.0, 3.0]


def test_an_interrupted_task_pays_for_the_share_that_is_left() -> None:
    """At 10 per second of its end the first mode costs 20, the second 20 + 60, the third 100. The
    first device fails after 1 of 2 s. The second then ends at 2 s, 20 and half of the 60, the third
    at 6 s, 60. With all of the 60 the third would be cheaper.
    """
    m = ob.Model("interrupted", preemptive=True)
    times = {"a": 2, "b": 2, "c": 10}
    m.task(units=1.0, kind=m.kind(modes=[m.mode(m.pool(p), t) for p, t in times.items()]))
    m.minimize(makespan_s=1.0)
    instance = m.build()
    rule = list_rule(instance, end_price=10.0, pair_cost=np.array([0.0, 60.0, 0.0]))
    assert int(run_rule(instance, rule).state.mode[0]) == 0
    trace = run_rule(instance, rule, [Fault(1.0, 0, 1)])
    assert int(trace.state.mode[0]) == 1
    assert float(trace.state.end[0]) == 2.0


@pytest.mark.parametrize("lookahead", [False, True])
def test_rules_without_prices_have_none(lookahead: bool) -> None:
    instance = two_speeds()
    rule = list_rule(instance, energy_weight=1.0, lookahead=lookahead)
    assert [len(part) for part in rule[-5:]] == [0, 0, 0, 0, 0]
    same = list_rule(instance, energy_weight=1.0, lookahead=lookahead, end_price=0.0)
    assert same.due.tolist() == [math.inf, math.inf]
    one, other = run_rule(instance, rule), run_rule(instance, same)
    assert one.state.end.tolist() == other.state.end.tolist()
    assert one.state.mode.tolist() == other.state.mode.tolist()


def own_costs(instance: Instance, by_set: bool) -> Rule:
    """A rule whose numbers of a task depend on that task alone."""
    tasks, ptr = instance.tasks, class_view(instance).kind_ptr
    size = np.diff(ptr)[tasks.kind]
    number = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
    costs: dict[str, Any] = {"set_cost": np.repeat(tasks.units, size) * (number % 5)}
    if not by_set:
        costs = {"pair_cost": (instance.pairs.mode % 5) * tasks.units[instance.pairs.task]}
    return list_rule(
        instance,
        base=tasks.units,
        lookahead=True,
        end_price=1.0 + tasks.units % 2,
        due=np.asarray(tasks.release) + 5.0,
        late_price=tasks.units,
        **costs,
    )


@pytest.mark.parametrize("by_set", [True, False])
def test_costs_that_are_made_again_at_each_arrival_are_those_of_all_tasks(by_set: bool) -> None:
    for seed in range(20):
        instance = cluster(seed)
        whole = run_rule(instance, own_costs(instance, by_set))
        part = run_as_known(TaskArrivals.of(instance), lambda known: own_costs(known, by_set))
        for name in ("mode", "start", "end"):
            assert (getattr(whole.state, name) == getattr(part.state, name)).all(), seed
