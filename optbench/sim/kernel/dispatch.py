"""List rules: one compiled dispatcher whose parameters give first come first served, backfilling,
earliest finish, and so on.

A ready task i gets the key ``base_i + ready_weight · now`` and waits in its queue, smallest key
first. Whenever a start can have become possible, the first ``depth`` tasks of the queue are tried
(``strict``: up to the first that cannot begin). A task takes the mode k, of those its load class
allows, with the least

    end_weight · end + late_weight · w_i · max(0, end − deadline_i)
      + energy_weight · (energy − rest of the same devices) + units · mode_cost_k
      + Σ_pools devices · length · pool_cost
      + end_price_i · end + late_price_i · max(0, end − due_i) + share left of i · pair_cost_ik

where the last line counts in rules that price tasks one by one (``PRICED``); pair_cost is given for
each mode of a task or for each set of alike ones. Alike modes are scored together
(``kernel.set_choice``), with the same choice.

Without ``lookahead`` only modes that can begin now count, so that no device waits for work (a
non-delay schedule). With it, a busy pool counts too, from the time its devices are expected; a task
for which waiting is better reserves them in this pass, and the next tasks are planned around it.

With ``patience`` a task enters its queue as soon as its last predecessor runs. A device that is
free is kept for such a *coming* task at the head, against a ready one of length d behind it, when
it comes within patience · d.

A run is abandoned once a task ends later than ``cutoff − after_i``, where ``after_i`` is the time
that is still needed then.
"""

from __future__ import annotations

import math

from optbench.compiling.compiled import njit
from optbench.model.instance import Floats, Ints
from optbench.sim.kernel.events import advance, begin, enter, has_room_for, start, touch, wake
from optbench.sim.kernel.expected_devices import (
    any_free,
    coming_at,
    expect,
    plan_start,
    plan_wait,
)  # fmt: skip
from optbench.sim.kernel.mode_choice import (
    BY_PAIR,
    BY_SET,
    BY_TASK,
    CALM,
    CUTOFF,
    DEPTH,
    END_WEIGHT,
    ENERGY_WEIGHT,
    LATE_WEIGHT,
    LOAD,
    LOOKAHEAD,
    NEEDLESS,
    PATIENCE,
    PRESSED,
    PRICED,
    READY_WEIGHT,
    STRICT,
    Rule,
    planned_mode,
    possible_mode,
    rule_at,
)
from optbench.sim.kernel.plant import COOLED, POOLS, SENDS, TASKS, Plant, plant_at
from optbench.sim.kernel.queues import put, take
from optbench.sim.kernel.remaining import ticks_left
from optbench.sim.kernel.set_choice import is_by_set, mark_kinds, planned_by_set, possible_by_set
from optbench.sim.kernel.spans import arrival
from optbench.sim.kernel.state import (
    NONE,
    NOW,
    NUM_FRESH,
    NUM_READY,
    NUM_TOUCHED,
    READY,
    State,
    state_at,
)  # fmt: skip

__all__ = [
    "BY_PAIR",
    "BY_SET",
    "BY_TASK",
    "CALM",
    "CUTOFF",
    "DEPTH",
    "ENERGY_WEIGHT",
    "END_WEIGHT",
    "LATE_WEIGHT",
    "LOAD",
    "LOOKAHEAD",
    "NEEDLESS",
    "PATIENCE",
    "PRESSED",
    "PRICED",
    "READY_WEIGHT",
    "STRICT",
    "Rule",
    "dispatch",
    "go_on",
    "make",
    "resume",
    "rule_at",
    "run",
    "serve",
]


@njit(cache=True)
def run(plant_row: Ints, state_row: Ints, rule_row: Ints, until: float) -> None:
    """Simulate from time 0 to the last event, or up to ``until``."""
    plant, state, rule = plant_at(plant_row), state_at(state_row), rule_at(rule_row)
    make(plant, state, rule, until)


@njit(cache=True)
def make(plant: Plant, state: State, rule: Rule, until: float) -> bool:
    """``run`` for compiled callers; False when the run was abandoned."""
    begin(plant, state)
    mark_kinds(plant, state, rule)
    return bool(carry_on(plant, state, rule, until))


@njit(cache=True)
def resume(plant_row: Ints, state_row: Ints, rule_row: Ints, until: float) -> None:
    """Continue where ``run`` stopped, by another rule; queued tasks get that rule's keys."""
    plant, state, rule = plant_at(plant_row), state_at(state_row), rule_at(rule_row)
    mark_kinds(plant, state, rule)
    for queue in range(plant.size[POOLS] + 1):
        requeue(plant, state, rule, queue)
    dispatch(plant, state, rule)
    carry_on(plant, state, rule, until)


@njit(cache=True)
def go_on(plant_row: Ints, state_row: Ints, rule_row: Ints, keys: Floats, until: float) -> None:
    """Continue where ``run`` stopped, by a rule whose numbers have changed. ``keys`` are those of
    all tasks, of which queued ones get theirs; none where every key stays.
    """
    plant, state, rule = plant_at(plant_row), state_at(state_row), rule_at(rule_row)
    mark_kinds(plant, state, rule)
    if len(keys):
        for queue in range(plant.size[POOLS] + 1):
            exchange_keys(plant, state, rule, queue, keys)
    carry_on(plant, state, rule, until)


@njit(cache=True)
def exchange_keys(plant: Plant, state: State, rule: Rule, queue: int, keys: Floats) -> None:
    """Give the tasks of a queue their new keys, and those that are on their way to it; the queue is
    served at the next event.
    """
    taken = 0
    while state.root[queue] != NONE:
        state.fresh[taken] = take(plant, state, queue)
        taken += 1
    for task in range(plant.size[TASKS]):
        if state.queue[task] == queue:
            state.key[task] = keys[task]
    for f in range(taken):
        put(plant, state, queue, state.fresh[f], keys[state.fresh[f]])
    if taken:
        touch(state, queue)


@njit(cache=True)
def requeue(plant: Plant, state: State, rule: Rule, queue: int) -> None:
    """Give the tasks of a queue new keys; the array of fresh tasks, empty between instants, holds
    them meanwhile.
    """
    taken = 0
    while state.root[queue] != NONE:
        state.fresh[taken] = take(plant, state, queue)
        taken += 1
    for f in range(taken):
        task = state.fresh[f]
        put(
            plant,
            state,
            queue,
            task,
            rule.base[task] + rule.weight[READY_WEIGHT] * state.total[NOW],
        )
    if taken:
        touch(state, queue)


@njit(cache=True)
def carry_on(plant: Plant, state: State, rule: Rule, until: float) -> bool:
    while advance(plant, state, until):
        if not dispatch(plant, state, rule):
            return False
    return True


@njit(cache=True)
def dispatch(plant: Plant, state: State, rule: Rule) -> bool:
    """Queue the tasks that became ready, then serve every touched queue; False when the run is
    abandoned.
    """
    tally = state.tally
    for f in range(tally[NUM_FRESH]):
        task = state.fresh[f]
        key, home = rule.base[task] + rule.weight[READY_WEIGHT] * state.total[NOW], rule.home[task]
        if state.queue[task] != NONE:  # it was announced and is already queued
            touch(state, home)
            if plant.size[SENDS]:
                wake(plant, state, task)
        elif home < plant.size[POOLS]:
            enter(
                plant,
                state,
                task,
                home,
                key,
                arrival(plant, state, task, home) if plant.size[SENDS] else state.total[NOW],
            )
        else:
            put(plant, state, home, task, key)
            touch(state, home)
            if plant.size[SENDS]:
                wake(plant, state, task)
    tally[NUM_FRESH] = 0
    touched = tally[NUM_TOUCHED]
    for q in range(touched):
        queue = state.touched[q]
        state.is_touched[queue] = 0
        if state.root[queue] != NONE and not serve(plant, state, rule, queue):
            return False
    tally[NUM_TOUCHED] = 0
    return True


@njit(cache=True)
def serve(plant: Plant, state: State, rule: Rule, queue: int) -> bool:
    """Start tasks that can start, in the order of the queue; the array of fresh tasks, empty now,
    holds the skipped ones.
    """
    look_ahead, patience, now = rule.option[LOOKAHEAD] != 0, rule.weight[PATIENCE], state.total[NOW]
    soon = math.inf
    if look_ahead:
        expect(plant, state)
    load = PRESSED if is_pressed(plant, state, rule) else CALM
    passed = 0
    while (
        state.root[queue] != NONE
        and passed < rule.option[DEPTH]
        and (rule.option[NEEDLESS] or any_free(plant, state, queue))
    ):
        task = take(plant, state, queue)
        if state.status[task] != READY and coming_at(plant, state, task) == math.inf:
            continue  # the predecessor was interrupted; it announces the task again when it runs
        if look_ahead:
            mode = planned(plant, state, rule, task, load)
        elif state.status[task] == READY:
            mode = possible(plant, state, rule, task, load)
            if mode >= 0 and soon < now + patience * ticks_left(plant, state, task, mode):
                state.fresh[passed] = task
                passed += 1
                break
        else:
            mode, soon = NONE, min(soon, coming_at(plant, state, task))
        if mode >= 0:
            start(plant, state, task, mode)
            if state.end[task] + rule.after[task] > rule.weight[CUTOFF]:
                return False
            if patience > 0.0:
                announce(plant, state, rule, task)
            continue
        state.fresh[passed] = task
        passed += 1
        if rule.option[STRICT]:
            break
    for f in range(passed):
        put(plant, state, queue, state.fresh[f], state.key[state.fresh[f]])
    return True


@njit(cache=True)
def announce(plant: Plant, state: State, rule: Rule, task: int) -> None:
    """Queue tasks that wait only for this running task, where their start can be planned."""
    for e in range(plant.succ_ptr[task], plant.succ_ptr[task + 1]):
        coming = plant.succ[e]
        home = rule.home[coming]
        planned_for = (
            rule.option[LOOKAHEAD] != 0 if home == plant.size[POOLS] else plant.size[SENDS] == 0
        )
        # If the running task was interrupted before, they may already be queued.
        if state.waiting[coming] == 1 and planned_for and state.queue[coming] == NONE:
            put(
                plant,
                state,
                home,
                coming,
                rule.base[coming] + rule.weight[READY_WEIGHT] * state.end[task],
            )


@njit(cache=True)
def is_pressed(plant: Plant, state: State, rule: Rule) -> bool:
    """Whether more tasks are ready per free device than the rule's load."""
    if rule.weight[LOAD] == math.inf:
        return False
    free = 0
    for pool in range(plant.size[POOLS]):
        free += state.free[pool]
    return bool(state.tally[NUM_READY] > rule.weight[LOAD] * free)


@njit(cache=True)
def possible(plant: Plant, state: State, rule: Rule, task: int, load: int) -> int:
    """Return the best mode that can begin now, or NONE."""
    if plant.size[COOLED] == 0 and is_by_set(plant, state, rule, task):
        return possible_by_set(plant, state, rule, task, load)
    return possible_mode(plant, state, rule, task, load)


@njit(cache=True)
def planned(plant: Plant, state: State, rule: Rule, task: int, load: int) -> int:
    """Return the best mode if it can begin now; NONE, with its devices reserved in the plan, if it
    has to wait.
    """
    now, ready = state.total[NOW], state.status[task] == READY
    soon = now if ready else coming_at(plant, state, task)
    if is_by_set(plant, state, rule, task):
        best, begins, length = planned_by_set(plant, state, rule, task, load, soon)
    else:
        best, begins, length = planned_mode(plant, state, rule, task, load, soon)
    if best == NONE or (not ready and begins > now + rule.weight[PATIENCE] * length):
        return NONE
    if ready and begins <= now and has_room_for(plant, state, task, best):
        plan_start(plant, state, best, begins + length)
        return best
    plan_wait(plant, state, best, begins + length)
    return NONE
