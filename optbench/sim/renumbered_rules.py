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
from optbench.sim.kernel.dispatch import READY_WEIGHT, Rule, go_on, run
from optbench.sim.kernel.plant import Fault, plant_of
from optbench.sim.kernel.pointers import addresses
from optbench.sim.kernel.state import NONE, State, last_moment, new_state, schedule_of
from optbench.sim.rules import Trace, list_rule, refuse_trouble

PER_TASK = ("base", "after", "home", "fixed")
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
    state, rule = new_state(plant), list_rule(instance)
    rows, last = (addresses(plant), addresses(state), addresses(rule)), last_moment(instance, until)
    run(*rows, -1.0)  # only creates the state at time 0
    moments = [moment for moment in arrivals.moments() if moment <= last]
    for moment, following in zip(moments, [*moments[1:], math.inf], strict=True):
        keys = np.zeros(0)
        made, tasks = make(arrivals.known(moment)), arrivals.tasks(arrivals.count(moment))
        before = deepcopy(rule)
        install(rule, made, tasks)
        if any((a != b).any() for a, b in zip(before, rule, strict=True)):
            keys = new_keys(instance, state, before, rule)
        go_on(*rows, keys, min(last, following - BEFORE))
    refuse_trouble(instance, state, faults)
    return Trace(plant, state, schedule_of(instance, plant, state))


def install(rule: Rule, made: Rule, tasks: Ints) -> None:
    """Write the numbers of known tasks, and all others, into the rule that runs."""
    for name, column in zip(Rule._fields, made, strict=True):
        if name in PER_TASK:
            getattr(rule, name)[tasks] = column
        else:
            getattr(rule, name)[:] = column


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
