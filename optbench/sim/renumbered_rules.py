"""Run a list rule whose numbers are computed again at each arrival, from what has arrived.

The run stops just before each arrival; the rule is made from the instance as it is known then, and
tasks that are queued get new keys where their numbers have changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy

import numpy as np

from optbench.model.instance import Floats, Instance, Ints
from optbench.sim.arrivals import TaskArrivals
from optbench.sim.kernel.dispatch import (
    BY_PAIR,
    BY_SET,
    PRICED,
    READY_WEIGHT,
    Rule,
    go_on,
    run,
)  # fmt: skip
from optbench.sim.kernel.plant import Fault, plant_of
from optbench.sim.kernel.pointers import addresses
from optbench.sim.kernel.state import NONE, State, last_moment, new_state, schedule_of
from optbench.sim.rule_prices import pair_cost_rows, set_cost_rows
from optbench.sim.rules import Trace, list_rule, refuse_trouble

PER_TASK = ("base", "after", "home", "fixed", "end_price", "due", "late_price")
# Costs by (task, mode) or (task, set): the rows of a task lie together.
BY_ROW = ("pair_ptr", "pair_cost")
# Times are whole ticks: nothing happens within this much before an arrival.
BEFORE = 0.5


def run_as_known(
    arrivals: TaskArrivals,
    make: Callable[[Instance], Rule],
    faults: Sequence[Fault] = (),
    until: float = math.inf,
) -> Trace:
    """Run from time 0; ``make`` is given the instance as it is known."""
    instance = arrivals.instance
    plant = plant_of(instance, faults)
    state, rule = new_state(plant), list_rule(instance, end_price=0.0)
    rows, last = (addresses(plant), addresses(state), addresses(rule)), last_moment(instance, until)
    run(*rows, -1.0)  # only creates the state at time 0
    moments = [moment for moment in arrivals.moments() if moment <= last]
    for moment, following in zip(moments, [*moments[1:], math.inf], strict=True):
        keys = np.zeros(0)
        made, tasks = make(arrivals.known(moment)), arrivals.tasks(arrivals.count(moment))
        if rule.option[PRICED] != made.option[PRICED]:
            rule = with_rows(instance, rule, int(made.option[PRICED]))
            rows = (*rows[:2], addresses(rule))
        before = deepcopy(rule)
        install(rule, made, tasks)
        if any((a != b).any() for a, b in zip(before, rule, strict=True)):
            keys = new_keys(instance, state, before, rule)
        go_on(*rows, keys, min(last, following - BEFORE))
    refuse_trouble(instance, state, faults)
    return Trace(plant, state, schedule_of(instance, plant, state))


def with_rows(instance: Instance, rule: Rule, priced: int) -> Rule:
    """Return the rule with room for costs by (task, mode) or (task, set) where it has them."""
    ptr = np.zeros(0, dtype=np.int64)
    if priced >= BY_PAIR:
        ptr = set_cost_rows(instance) if priced == BY_SET else pair_cost_rows(instance)
    costs = np.zeros(int(ptr[-1]) if len(ptr) else 0)
    return rule._replace(pair_ptr=ptr, pair_cost=costs)


def install(rule: Rule, made: Rule, tasks: Ints) -> None:
    """Write the numbers of known tasks, and all others, into the rule that runs."""
    for name, column in zip(Rule._fields, made, strict=True):
        if name in PER_TASK:
            # Prices are empty in a rule without them.
            if len(column) == len(tasks):
                getattr(rule, name)[tasks] = column
        elif name not in BY_ROW:
            getattr(rule, name)[:] = column
    if len(made.pair_ptr):
        size = np.diff(made.pair_ptr)
        to = np.repeat(rule.pair_ptr[tasks] - made.pair_ptr[:-1], size) + np.arange(size.sum())
        rule.pair_cost[to] = made.pair_cost


def new_keys(instance: Instance, state: State, before: Rule, rule: Rule) -> Floats:
    """Return the key of every task: of queued ones base + ready_weight · ready, where that has
    changed.
    """
    old, new = before.weight[READY_WEIGHT], rule.weight[READY_WEIGHT]
    queued = np.flatnonzero(state.queue != NONE)
    changed = queued[(before.base[queued] != rule.base[queued]) | (old != new)]
    keys: Floats = state.key.copy()
    keys[changed] = rule.base[changed] + new * ready_at(instance, state)[changed]
    return keys


def ready_at(instance: Instance, state: State) -> Floats:
    """Return when each task became ready, or will when the tasks before it have ended: at its
    release, the end of the last one, or the end of its own interrupted part.
    """
    ready = np.array(instance.tasks.release, dtype=float)
    np.maximum.at(ready, instance.edges.target, state.end[instance.edges.source])
    cut = np.flatnonzero(state.last_part != NONE)
    ready[cut] = np.maximum(ready[cut], state.part_end[state.last_part[cut]])
    return ready
