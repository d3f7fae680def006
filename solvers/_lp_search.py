"""A compiled search around the fluid LP's answer: one mode and one key per task, decoded by the
event kernel.

A point is (mode_i, key_i) for every task i; the list-rule dispatcher starts ready tasks by key,
each in its mode, and the kernel's accounts give its value. Each step changes a few tasks: modes
drawn from the LP's distribution or next to the old one, keys moved by an amount of random scale,
swaps, neighbours brought together; simulated annealing decides whether to stay. Only freed tasks
change, at first all. All random numbers come from the seed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from optbench.compiling.compiled import inner, njit
from optbench.model.instance import Floats, Instance, Ints
from optbench.model.objective import METRICS
from optbench.sim.kernel.accounts import NUM_METRICS, accrue, metrics_by
from optbench.sim.kernel.dispatch import STRICT, Rule, make, rule_at
from optbench.sim.kernel.plant import CAPS, HORIZON, POOLS, TASKS, Plant, plant_at
from optbench.sim.kernel.pointers import table_at
from optbench.sim.kernel.spans import fits
from optbench.sim.kernel.state import (
    MAKESPAN,
    NUM_DONE,
    State,
    state_at,
)  # fmt: skip
from optbench.sim.primal.chance import MODULUS, RANDOM, pick, seeded

# Entries of ``number`` after the generator, and of ``value``.
CHANGED, NUM_FREED = 1, 2
NOW_VALUE, BEST_VALUE, TEMPERATURE, SPREAD, SCALE = range(5)
# The cost of exceeding a limit or a hard deadline by all of itself, in values of the first point.
PENALTY = 10.0
# A step continues while it has changed fewer tasks than this, and each change concerns at most two.
MOST_CHANGES = 4
# Cumulative shares of 100 changes: a mode drawn again, a key, both, two tasks' keys or modes
# swapped, a task moved to another pool with some of its neighbours; the others take the next mode.
# After each, this many in 100 are followed by another.
MODE_STEPS, KEY_STEPS, BOTH_STEPS, SWAP_STEPS, NEAR_STEPS, AGAIN = 20, 40, 46, 60, 80, 45


class Search(NamedTuple):
    """The state of a search. ``chance`` holds, per entry of ``mode``, the cumulative weights of a
    task's modes up to it. The first entries of ``freed`` are the tasks that may change, which
    ``is_freed`` marks.
    """

    number: Ints
    value: Floats
    weight: Floats
    limit: Floats
    ptr: Ints
    mode: Ints
    chance: Floats
    old_task: Ints
    old_mode: Ints
    old_key: Floats
    best_mode: Ints
    best_key: Floats
    freed: Ints
    is_freed: Ints


search_at = table_at(Search)


def new_search(instance: Instance, ptr: Ints, mode: Ints, chance: Floats, seed: int) -> Search:
    """Return a new search; ``chance`` are the weights of each task's modes, at least one of them
    positive.
    """
    n = instance.num_tasks
    weights, limits = dict(instance.objective.levels[0]), instance.limits.metric_max
    task = np.repeat(np.arange(n), np.diff(ptr))
    before = np.concatenate(([0.0], np.cumsum(chance)))
    summed = (before[1:] - before[ptr[task]]) / np.maximum(
        1e-300, before[ptr[task + 1]] - before[ptr[task]]
    )
    number = np.zeros(3, dtype=np.int64)
    number[RANDOM], number[NUM_FREED] = seeded(seed), n
    value = np.zeros(5)
    value[[NOW_VALUE, BEST_VALUE]] = np.inf
    return Search(
        number=number,
        value=value,
        weight=np.array([weights.get(name, 0.0) for name in METRICS]),
        limit=np.array([limits.get(name, np.inf) for name in METRICS]),
        ptr=np.ascontiguousarray(ptr),
        mode=np.ascontiguousarray(mode),
        chance=np.ascontiguousarray(summed),
        old_task=np.zeros(2 * MOST_CHANGES, dtype=np.int64),
        old_mode=np.zeros(2 * MOST_CHANGES, dtype=np.int64),
        old_key=np.zeros(2 * MOST_CHANGES),
        best_mode=np.zeros(n, dtype=np.int64),
        best_key=np.zeros(n),
        freed=np.arange(n),
        is_freed=np.ones(n, dtype=np.int64),
    )


def free_tasks(search: Search, task: Ints) -> None:
    """Let these tasks alone change from now on."""
    search.number[NUM_FREED] = len(task)
    search.freed[: len(task)] = task
    search.is_freed[:] = 0
    search.is_freed[task] = 1


@inner()
def drawn_task(search: Search) -> int:
    """Draw a freed task."""
    return int(search.freed[pick(search.number, search.number[NUM_FREED])])


@inner()
def fraction(number: Ints) -> float:
    """Return a random number in [0, 1)."""
    return float(pick(number, MODULUS - 1)) / (MODULUS - 1)


@njit(cache=True)
def evaluate(plant: Plant, state: State, rule: Rule, search: Search) -> float:
    """Return the value of a rule's schedule: the objective's first level, with penalties for limits
    and hard deadlines; inf if unfinished.
    """
    if not make(plant, state, rule, math.inf) or state.tally[NUM_DONE] < plant.size[TASKS]:
        return math.inf
    total, horizon = state.total, plant.scalar[HORIZON]
    late = 0.0
    if horizon < math.inf:
        late = max(0.0, total[MAKESPAN] - horizon) / max(1.0, horizon)
        accrue(plant, state, max(horizon, total[MAKESPAN]))
    for task in range(plant.size[TASKS]):
        if not plant.soft[task] and state.end[task] > plant.deadline[task]:
            late += (state.end[task] - plant.deadline[task]) / max(1.0, plant.deadline[task])
    metrics = metrics_by(plant, state, total[MAKESPAN])
    out = 0.0
    for m in range(NUM_METRICS):
        out += search.weight[m] * metrics[m]
        if metrics[m] > search.limit[m]:
            late += (metrics[m] - search.limit[m]) / max(1e-9, search.limit[m])
    if search.value[SCALE] == 0.0:
        search.value[SCALE] = out
    return out + PENALTY * search.value[SCALE] * late


@njit(cache=True)
def sampled_mode(search: Search, task: int) -> int:
    """Draw a mode of a task by its weights."""
    low, high, at = search.ptr[task], search.ptr[task + 1] - 1, fraction(search.number)
    while low < high:
        middle = (low + high) // 2
        if search.chance[middle] > at:
            high = middle
        else:
            low = middle + 1
    return search.mode[low]


@njit(cache=True)
def settle(plant: Plant, rule: Rule, task: int, mode: int) -> None:
    """Fix a task's mode and its queue: that of its pool, unless several pools or a cap
    affect it, or the rule starts all tasks strictly by key.
    """
    rule.fixed[task] = mode
    alone = plant.size[CAPS] == 0 and plant.req_ptr[mode + 1] - plant.req_ptr[mode] == 1
    alone = alone and rule.option[STRICT] == 0
    rule.home[task] = plant.primary[mode] if alone else plant.size[POOLS]


@njit(cache=True)
def remember(rule: Rule, search: Search, task: int) -> None:
    """Save a task's mode and key before they change."""
    c = search.number[CHANGED]
    search.old_task[c], search.old_mode[c], search.old_key[c] = (
        task,
        rule.fixed[task],
        rule.base[task],
    )
    search.number[CHANGED] = c + 1


@njit(cache=True)
def change(plant: Plant, rule: Rule, search: Search) -> None:
    """Make one change, often more than one, and save the previous values."""
    number = search.number
    number[CHANGED] = 0
    while number[CHANGED] < MOST_CHANGES:
        kind, task = pick(number, 100), drawn_task(search)
        remember(rule, search, task)
        if kind < MODE_STEPS:
            settle(plant, rule, task, sampled_mode(search, task))
        elif kind < KEY_STEPS:
            shift(rule, search, task)
        elif kind < BOTH_STEPS:
            shift(rule, search, task)
            settle(plant, rule, task, sampled_mode(search, task))
        elif kind < SWAP_STEPS:
            swap(plant, rule, search, task, drawn_task(search))
        elif kind < NEAR_STEPS:
            mode = sampled_mode(search, task)
            settle(plant, rule, task, mode)
            move_near(plant, rule, search, task, plant.primary[mode])
        else:
            step_mode(plant, rule, search, task)
        if pick(number, 100) >= AGAIN:
            return


@njit(cache=True)
def shift(rule: Rule, search: Search, task: int) -> None:
    """Move a key by a random amount of a random order of magnitude."""
    reach = search.value[SPREAD] * 0.5 ** pick(search.number, 8)
    rule.base[task] += reach * (2.0 * fraction(search.number) - 1.0)


@njit(cache=True)
def swap(plant: Plant, rule: Rule, search: Search, task: int, other: int) -> None:
    """Swap the keys of two tasks, or their modes where each fits the other's."""
    one, two = rule.fixed[task], rule.fixed[other]
    remember(rule, search, other)
    if pick(search.number, 2) == 0:
        rule.base[task], rule.base[other] = rule.base[other], rule.base[task]
    elif (
        plant.kind[other] == plant.kind[task] and fits(plant, task, two) and fits(plant, other, one)
    ):
        settle(plant, rule, task, two)
        settle(plant, rule, other, one)


@njit(cache=True)
def step_mode(plant: Plant, rule: Rule, search: Search, task: int) -> None:
    """Change to a mode next to a task's own: mostly the next clock."""
    mode, kind = rule.fixed[task] + 1 - 2 * pick(search.number, 2), plant.kind[task]
    if plant.kind_ptr[kind] <= mode < plant.kind_ptr[kind + 1] and fits(plant, task, mode):
        settle(plant, rule, task, mode)


@njit(cache=True)
def move_near(plant: Plant, rule: Rule, search: Search, task: int, pool: int) -> None:
    """Move a neighbour to the pool, if a few draws give it a mode there; perhaps its
    neighbour too.
    """
    while search.number[CHANGED] < MOST_CHANGES:
        before, after = plant.pred_ptr[task], plant.succ_ptr[task]
        many, more = plant.pred_ptr[task + 1] - before, plant.succ_ptr[task + 1] - after
        if many + more == 0:
            return
        k = pick(search.number, many + more)
        task = plant.pred[before + k] if k < many else plant.succ[after + k - many]
        if not search.is_freed[task]:
            return
        for _ in range(6):
            mode = sampled_mode(search, task)
            if plant.primary[mode] == pool:
                remember(rule, search, task)
                settle(plant, rule, task, mode)
                break
        if pick(search.number, 2) == 0:
            return


@njit(cache=True)
def undo(plant: Plant, rule: Rule, search: Search) -> None:
    for c in range(search.number[CHANGED] - 1, -1, -1):
        task = search.old_task[c]
        settle(plant, rule, task, search.old_mode[c])
        rule.base[task] = search.old_key[c]


@njit(cache=True)
def keep_best(plant: Plant, rule: Rule, search: Search) -> None:
    search.value[BEST_VALUE] = search.value[NOW_VALUE]
    for task in range(plant.size[TASKS]):
        search.best_mode[task], search.best_key[task] = rule.fixed[task], rule.base[task]


@njit(cache=True)
def value_now(plant_row: Ints, state_row: Ints, rule_row: Ints, search_row: Ints) -> float:
    """Return the value of a rule's schedule, which is left in the state."""
    plant, state, rule = plant_at(plant_row), state_at(state_row), rule_at(rule_row)
    search = search_at(search_row)
    return float(evaluate(plant, state, rule, search))


@njit(cache=True)
def settle_all(plant_row: Ints, rule_row: Ints) -> None:
    """Put every task into the queue of its fixed mode."""
    plant, rule = plant_at(plant_row), rule_at(rule_row)
    for task in range(plant.size[TASKS]):
        settle(plant, rule, task, rule.fixed[task])


@njit(cache=True)
def consider(plant_row: Ints, state_row: Ints, rule_row: Ints, search_row: Ints) -> float:
    """Return the value of the rule's point, which the search keeps when it is the best."""
    plant, state, rule = plant_at(plant_row), state_at(state_row), rule_at(rule_row)
    search = search_at(search_row)
    for task in range(plant.size[TASKS]):
        settle(plant, rule, task, rule.fixed[task])
    value = evaluate(plant, state, rule, search)
    if value < search.value[BEST_VALUE]:
        search.value[NOW_VALUE] = value
        keep_best(plant, rule, search)
    return float(value)


@njit(cache=True, nogil=True)
def anneal(plant_row: Ints, state_row: Ints, rule_row: Ints, search_row: Ints, steps: int) -> None:
    """Take ``steps`` steps from the rule's point, whose value the search holds."""
    plant, state, rule = plant_at(plant_row), state_at(state_row), rule_at(rule_row)
    search = search_at(search_row)
    value = search.value
    for _ in range(steps):
        change(plant, rule, search)
        new = evaluate(plant, state, rule, search)
        if new <= value[NOW_VALUE] - value[TEMPERATURE] * math.log(
            max(1e-12, fraction(search.number))
        ):
            value[NOW_VALUE] = new
            if new < value[BEST_VALUE]:
                keep_best(plant, rule, search)
        else:
            undo(plant, rule, search)
