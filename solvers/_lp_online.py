"""lp_guided online: the LP of the known work, solved repeatedly on its remaining part, and its
milestones played by the best of some rules.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from optbench.bounds.milestones import find_milestones
from optbench.model.instance import Instance
from optbench.model.objective_prices import joule_price
from optbench.sim.kernel.dispatch import END_WEIGHT, Rule, resume, run
from optbench.sim.kernel.plant import FAULTS, TASKS, Fault, Plant, plant_of
from optbench.sim.kernel.pointers import addresses
from optbench.sim.kernel.state import (
    BROKEN,
    EVENTS,
    NONE,
    NOW,
    NUM_DONE,
    RELEASED,
    TROUBLE,
    State,
    last_moment,
    new_state,
    schedule_of,
)
from optbench.sim.rules import NoRoomError, Trace, list_rule

from ._lp_finder import LEAST_PRICE, Finder
from ._lp_guide import guide
from ._lp_milestones import MilestoneRules, guide_of, targets_of
from ._remaining_instance import remaining_instance

# Even if the known work is short, the time to the next solution grows with the time that has
# passed: a stretch of arrivals has few solutions, and none depends on when the last task arrives.
SHARE_OF_PAST = 0.5


def play(
    instance: Instance,
    rng: np.random.Generator,
    faults: Sequence[Fault],
    until: float,
    resolve_every: float,
    roundings: int,
    steps: int,
    milestones: bool,
    runs: int,
) -> Trace:
    """Run with a new solution after each ``resolve_every`` of the time that the known work
    takes.
    """
    plant = plant_of(instance, faults)
    state = new_state(plant)
    weights = dict(instance.objective.levels[0])
    rule = list_rule(
        instance,
        base=np.asarray(instance.tasks.release, dtype=float),
        depth=max(1, instance.num_tasks),
        end_weight=1.0,
        energy_weight=joule_price(instance),
        late_weight=weights.get("tardiness_s", 0.0) * instance.tick_s,
    )
    rows = addresses(plant), addresses(state), addresses(rule)
    until = last_moment(instance, until)
    run(*rows, -1.0)  # only creates the state at time 0
    while (
        state.tally[NUM_DONE] < instance.num_tasks
        and (soon := next_event(plant, state)) <= until
        and soon < math.inf
    ):
        length = plan(
            instance,
            plant,
            state,
            rule,
            int(rng.integers(2**31)),
            roundings,
            steps,
            milestones,
            runs,
        )
        step = resolve_every * max(length, float(state.total[NOW]) * SHARE_OF_PAST)
        resume(*rows, min(until, max(soon, float(state.total[NOW]) + step)))
    if state.tally[TROUBLE]:
        raise NoRoomError(
            f"{instance.name}: {len(faults)} faults interrupted more work than there was room to "
            "record"
        )
    return Trace(plant, state, schedule_of(instance, plant, state))


def plan(
    instance: Instance,
    plant: Plant,
    state: State,
    rule: Rule,
    seed: int,
    roundings: int,
    steps: int,
    milestones: bool,
    runs: int,
) -> float:
    """Give every known task a mode and a key, and the others prices; return how long the known work
    takes.
    """
    rest = remaining_instance(instance, plant, state)
    if len(rest.task) == 0:
        return 0.0
    found = find_milestones(rest.instance) if milestones else None
    known = guide(rest.instance, math.inf) if found is None else guide_of(rest.instance, found)
    finder = Finder(rest.instance, known, seed, running=rest.running)
    if found is None:
        finder.first(roundings, lambda: math.inf)
    else:
        rules = MilestoneRules(finder, targets_of(found), seed)
        rules.first(runs, lambda: math.inf)
        rules.keep_point()
    if steps > 0:
        finder.anneal(steps, 0.5, steps)
    best = finder.search
    free = np.ones(len(rest.task), dtype=bool)
    free[rest.running] = False
    task = rest.task[free]
    rule.fixed[:] = NONE
    if finder.found:
        rule.fixed[task] = best.best_mode[free]
        rule.base[task] = state.total[NOW] + best.best_key[free]
    rule.weight[END_WEIGHT] = max(LEAST_PRICE * instance.tick_s, float(known.end_price.mean()))
    rule.pool_cost[:] = known.pool_price
    return known.makespan


def next_event(plant: Plant, state: State) -> float:
    """Return the time of the next event, inf when there is none."""
    tally, soon = state.tally, math.inf
    if tally[EVENTS]:
        soon = float(state.event_time[0])
    if tally[RELEASED] < plant.size[TASKS]:
        soon = min(soon, float(plant.release[plant.release_order[tally[RELEASED]]]))
    if tally[BROKEN] < plant.size[FAULTS]:
        soon = min(soon, float(plant.fault_time[tally[BROKEN]]))
    return soon
