"""How a list rule scores the modes of a task, and its choice among all of them one by one; the
formula is in ``kernel.dispatch``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from optbench.compiling.compiled import njit
from optbench.model.instance import Floats, Ints
from optbench.sim.kernel.data_arrivals import find_arrivals, is_everywhere
from optbench.sim.kernel.events import has_room_for
from optbench.sim.kernel.plant import POOLS, TICK_S, Plant
from optbench.sim.kernel.pointers import table_at
from optbench.sim.kernel.remaining import ticks_left
from optbench.sim.kernel.spans import arrival, fits, whole_ticks
from optbench.sim.kernel.state import NONE, NOW, State

# Entries of ``weight`` and ``option``.
READY_WEIGHT, END_WEIGHT, LATE_WEIGHT, ENERGY_WEIGHT, LOAD, PATIENCE, CUTOFF = range(7)
DEPTH, STRICT, LOOKAHEAD, NEEDLESS, PRICED = range(5)
# Values of ``option[PRICED]``: no prices by task (0), prices by task, and besides costs of pairs of
# a task and a mode, or of a task and a set of alike modes.
BY_TASK, BY_PAIR, BY_SET = 1, 2, 3
# Bits of ``allowed``: the mode may be used while the load is low, while it is high.
CALM, PRESSED = 1, 2


class Rule(NamedTuple):
    """The parameters of a list rule. ``home`` is the queue of each task; ``allowed`` the loads in
    which each mode may be used; ``fixed`` the only mode of a task, NONE where it may choose.
    ``end_price``, ``due`` and ``late_price`` are per task, ``pair_cost`` per (task, mode of its
    kind) or per (task, set of its kind) from ``pair_ptr`` of the task on; they are empty in rules
    without such prices.
    """

    base: Floats
    after: Floats
    home: Ints
    weight: Floats
    option: Ints
    mode_cost: Floats
    pool_cost: Floats
    allowed: Ints
    fixed: Ints
    end_price: Floats
    due: Floats
    late_price: Floats
    pair_ptr: Ints
    pair_cost: Floats


rule_at = table_at(Rule)


@njit(cache=True, forceinline=True)
def score(
    plant: Plant, state: State, rule: Rule, task: int, mode: int, begins: float, length: float
) -> float:
    """What the rule minimises over the modes of a task."""
    weight, units = rule.weight, state.remaining[task]
    end = begins + length
    out = weight[END_WEIGHT] * end + units * rule.mode_cost[mode]
    if weight[ENERGY_WEIGHT] != 0.0:
        net_j = (
            units * plant.energy_j[mode] - plant.mode_rest_w[mode] * length * plant.scalar[TICK_S]
        )
        out += weight[ENERGY_WEIGHT] * net_j
    if weight[LATE_WEIGHT] != 0.0 and end > plant.deadline[task]:
        out += weight[LATE_WEIGHT] * plant.weight[task] * (end - plant.deadline[task])
    for r in range(plant.req_ptr[mode], plant.req_ptr[mode + 1]):
        out += plant.req_count[r] * length * rule.pool_cost[plant.req_pool[r]]
    if rule.option[PRICED]:
        out += priced(plant, state, rule, task, mode, end)
    return out


@njit(cache=True, forceinline=True)
def priced(plant: Plant, state: State, rule: Rule, task: int, mode: int, end: float) -> float:
    """Return what this task's own prices add to the score of a mode."""
    out = rule.end_price[task] * end
    if end > rule.due[task]:
        out += rule.late_price[task] * (end - rule.due[task])
    if rule.option[PRICED] >= BY_PAIR:
        kind = plant.kind[task]
        if rule.option[PRICED] == BY_PAIR:
            entry = mode - plant.kind_ptr[kind]
        else:
            entry = plant.mode_set[mode] - plant.kind_set_ptr[kind]
        cost = rule.pair_cost[rule.pair_ptr[task] + entry]
        if state.last_part[task] != NONE and plant.units[task] > 0.0:
            cost *= state.remaining[task] / plant.units[task]
        out += cost
    return out


@njit(cache=True, forceinline=True)
def choices(plant: Plant, rule: Rule, task: int) -> tuple[int, int]:
    """Return the range of modes that a task may use, the end excluded."""
    fixed, kind = rule.fixed[task], plant.kind[task]
    if fixed >= 0:
        return fixed, fixed + 1
    return plant.kind_ptr[kind], plant.kind_ptr[kind + 1]


@njit(cache=True)
def possible_mode(plant: Plant, state: State, rule: Rule, task: int, load: int) -> int:
    """Return the best mode that can begin now, or NONE."""
    best, least = NONE, math.inf
    # Calls that pass whole tables cost more than their work: ``ticks_left`` is called only for
    # interrupted tasks.
    begun = state.last_part[task] != NONE
    first, last = choices(plant, rule, task)
    travels, found = not is_everywhere(plant, state, task), False
    for mode in range(first, last):
        if not (
            rule.allowed[mode] & load
            and has_room_for(plant, state, task, mode)
            and fits(plant, task, mode)
        ):
            continue
        if travels:
            pool = plant.primary[mode]
            if last == first + 1:
                there = arrival(plant, state, task, pool)
            else:
                if not found:
                    find_arrivals(plant, state, task)
                    found = True
                there = state.there[pool if pool >= 0 else plant.size[POOLS]]
            if there > state.total[NOW]:
                continue
        if begun:
            length = ticks_left(plant, state, task, mode)
        else:
            length = whole_ticks(plant.units[task] * plant.ticks_per_unit[mode])
        value = score(plant, state, rule, task, mode, state.total[NOW], length)
        if value < least:
            best, least = mode, value
    return best


@njit(cache=True)
def planned_mode(
    plant: Plant, state: State, rule: Rule, task: int, load: int, soon: float
) -> tuple[int, float, float]:
    """Return the best mode of a task that is ready at ``soon``, with its begin and its length; NONE
    where no mode can ever begin.
    """
    best, least, best_begin, best_length = NONE, math.inf, 0.0, 0.0
    begun = state.last_part[task] != NONE
    first, behind = choices(plant, rule, task)
    travels, last, there = not is_everywhere(plant, state, task), NONE - 1, soon
    if travels and behind > first + 1:
        find_arrivals(plant, state, task)
    for mode in range(first, behind):
        if not (rule.allowed[mode] & load and fits(plant, task, mode)):
            continue
        if travels and plant.primary[mode] != last:
            last = plant.primary[mode]
            if behind == first + 1:
                there = arrival(plant, state, task, last)
            else:
                there = state.there[last if last >= 0 else plant.size[POOLS]]
        begins = max(soon, there)
        for r in range(plant.req_ptr[mode], plant.req_ptr[mode + 1]):
            begins = max(
                begins, state.free_at[plant.device_ptr[plant.req_pool[r]] + plant.req_count[r] - 1]
            )
        if begun:
            length = ticks_left(plant, state, task, mode)
        else:
            length = whole_ticks(plant.units[task] * plant.ticks_per_unit[mode])
        value = score(plant, state, rule, task, mode, begins, length)
        if value < least:
            best, least, best_begin, best_length = mode, value, begins, length
    return best, best_begin, best_length
