"""A list rule's choice of mode where kinds have sets of alike modes (``model.classes``): a set is
scored once, at the earliest begin over the pools of its class.

The choice is that of ``kernel.mode_choice``, of the first mode with the least score: no score falls
when a task begins later, so that the least score of a set is that of its earliest begin, and among
modes of equal scores the first is looked for. Kinds whose alike modes a rule treats differently are
scored mode by mode.
"""

from __future__ import annotations

import math

from optbench.compiling.compiled import njit
from optbench.sim.kernel.data_arrivals import find_list_arrivals, is_everywhere
from optbench.sim.kernel.events import has_room
from optbench.sim.kernel.mode_choice import (
    BY_PAIR,
    END_WEIGHT,
    LATE_WEIGHT,
    PRICED,
    Rule,
    score,
)  # fmt: skip
from optbench.sim.kernel.plant import CAPS, KINDS, POOLS, SET_KINDS, Plant
from optbench.sim.kernel.remaining import ticks_left
from optbench.sim.kernel.spans import arrival, fits, whole_ticks
from optbench.sim.kernel.state import NONE, NOW, State

# The earliest begin of a list before it is computed: no time is negative.
UNKNOWN = -1.0


@njit(cache=True)
def mark_kinds(plant: Plant, state: State, rule: Rule) -> None:
    """Mark the kinds that this rule can choose for by sets."""
    if plant.size[SET_KINDS] == 0:
        return
    grows = rule.weight[END_WEIGHT] >= 0.0 and rule.weight[LATE_WEIGHT] >= 0.0
    grows = grows and rule.option[PRICED] != BY_PAIR
    for kind in range(plant.size[KINDS]):
        state.by_set[kind] = (
            1 if grows and plant.has_sets[kind] and is_uniform(plant, rule, kind) else 0
        )


@njit(cache=True)
def is_uniform(plant: Plant, rule: Rule, kind: int) -> bool:
    """Whether alike modes of a kind have equal costs and are allowed at the same loads."""
    for s in range(plant.kind_set_ptr[kind], plant.kind_set_ptr[kind + 1]):
        first = plant.set_mode[plant.set_ptr[s]]
        for k in range(plant.set_ptr[s] + 1, plant.set_ptr[s + 1]):
            mode = plant.set_mode[k]
            if (
                rule.mode_cost[mode] != rule.mode_cost[first]
                or rule.allowed[mode] != rule.allowed[first]
            ):
                return False
    for q in range(plant.kind_list_ptr[kind], plant.kind_list_ptr[kind + 1]):
        row = plant.kind_list[q]
        first, width = plant.list_ptr[row], plant.list_width[row]
        for k in range(first + width, plant.list_ptr[row + 1]):
            like = first + (k - first) % width
            if rule.pool_cost[plant.entry_pool[k]] != rule.pool_cost[plant.entry_pool[like]]:
                return False
    return True


@njit(cache=True, forceinline=True)
def is_by_set(plant: Plant, state: State, rule: Rule, task: int) -> bool:
    """Whether the mode of a task is chosen by sets: it is free, and no price falls with time."""
    if state.by_set[plant.kind[task]] == 0 or rule.fixed[task] >= 0:
        return False
    return bool(
        rule.option[PRICED] == 0 or (rule.end_price[task] >= 0.0 and rule.late_price[task] >= 0.0)
    )


@njit(cache=True)
def possible_by_set(plant: Plant, state: State, rule: Rule, task: int, load: int) -> int:
    """``mode_choice.possible_mode`` by sets."""
    best, least, kind, now = NONE, math.inf, plant.kind[task], state.total[NOW]
    begun = state.last_part[task] != NONE
    travels = not is_everywhere(plant, state, task)
    for q in range(plant.kind_list_ptr[kind], plant.kind_list_ptr[kind + 1]):
        row = plant.kind_list[q]
        state.list_first[row] = first_with_room(plant, state, task, row, travels)
    for s in range(plant.kind_set_ptr[kind], plant.kind_set_ptr[kind + 1]):
        member = state.list_first[plant.set_list[s]]
        if member == NONE:
            continue
        mode = plant.set_mode[plant.set_ptr[s] + member]
        if not (rule.allowed[mode] & load and fits(plant, task, mode)) or (
            plant.size[CAPS] and not has_room(plant, state, mode)
        ):
            continue
        if begun:
            length = ticks_left(plant, state, task, mode)
        else:
            length = whole_ticks(plant.units[task] * plant.ticks_per_unit[mode])
        value = score(plant, state, rule, task, mode, now, length)
        if value < least or (value == least and mode < best):
            best, least = mode, value
    return best


@njit(cache=True)
def first_with_room(plant: Plant, state: State, task: int, row: int, travels: bool) -> int:
    """Return the first place in a list whose devices are free and where the data are; or NONE."""
    width, now, found = plant.list_width[row], state.total[NOW], False
    first, last = plant.list_ptr[row], plant.list_ptr[row + 1]
    if width == 0:
        return 0 if not travels or arrival(plant, state, task, NONE) <= now else NONE
    for k in range(first, last, width):
        room = True
        for r in range(k, k + width):
            room = room and state.free[plant.entry_pool[r]] >= plant.entry_devices[r]
        if room and travels:
            if not found:
                find_list_arrivals(plant, state, task, row)
                found = True
            room = state.there[plant.entry_pool[k]] <= now
        if room:
            return (k - first) // width
    return NONE


@njit(cache=True)
def planned_by_set(
    plant: Plant, state: State, rule: Rule, task: int, load: int, soon: float
) -> tuple[int, float, float]:
    """``mode_choice.planned_mode`` by sets.

    The score of a begin at ``soon`` is the least that a set can have: the set where it is smallest
    comes first, and pools are searched only for sets whose least score can still win.
    """
    best, least, best_length, best_set, kind = NONE, math.inf, 0.0, NONE, plant.kind[task]
    begun, travels = state.last_part[task] != NONE, not is_everywhere(plant, state, task)
    first, last = plant.kind_set_ptr[kind], plant.kind_set_ptr[kind + 1]
    for q in range(plant.kind_list_ptr[kind], plant.kind_list_ptr[kind + 1]):
        state.list_begin[plant.kind_list[q]] = UNKNOWN
    ahead, lowest = first, math.inf
    for s in range(first, last):
        mode = plant.set_mode[plant.set_ptr[s]]
        if not (rule.allowed[mode] & load and fits(plant, task, mode)):
            state.set_least[s] = math.inf
            continue
        if begun:
            length = ticks_left(plant, state, task, mode)
        else:
            length = whole_ticks(plant.units[task] * plant.ticks_per_unit[mode])
        state.set_length[s] = length
        state.set_least[s] = score(plant, state, rule, task, mode, soon, length)
        if state.set_least[s] < lowest:
            ahead, lowest = s, state.set_least[s]
    for turn in range(first - 1, last):
        s = ahead if turn < first else turn
        if not state.set_least[s] <= least or state.set_least[s] == math.inf or turn == ahead:
            continue
        row, length, value = plant.set_list[s], state.set_length[s], state.set_least[s]
        if state.list_begin[row] == UNKNOWN:
            if travels:
                find_list_arrivals(plant, state, task, row)
            state.list_begin[row] = earliest(plant, state, row, travels, soon)
        begins = state.list_begin[row]
        if begins == math.inf:
            continue
        if begins > soon:
            mode = plant.set_mode[plant.set_ptr[s]]
            value = score(plant, state, rule, task, mode, begins, length)
        if value < least:
            best, least, best_length, best_set = NONE, value, length, s
        elif value == least and best_set != NONE:
            if best == NONE:
                best = first_of(plant, state, rule, task, best_set, travels, soon, least)
            other = first_of(plant, state, rule, task, s, travels, soon, least)
            if other < best:
                best, best_length, best_set = other, length, s
    if best_set == NONE:
        return NONE, 0.0, 0.0
    if best == NONE:
        best = first_of(plant, state, rule, task, best_set, travels, soon, least)
    row, member = plant.set_list[best_set], 0
    while plant.set_mode[plant.set_ptr[best_set] + member] != best:
        member += 1
    return best, begin_at(plant, state, row, member, travels, soon), best_length


@njit(cache=True)
def earliest(plant: Plant, state: State, row: int, travels: bool, soon: float) -> float:
    """Return the earliest begin over the places of a list, inf where there is none."""
    width, free_at = plant.list_width[row], state.free_at
    first, last = plant.list_ptr[row], plant.list_ptr[row + 1]
    if width != 1:
        out, members = math.inf, (last - first) // width if width else 1
        for member in range(members):
            out = min(out, begin_at(plant, state, row, member, travels, soon))
        return out
    out = math.inf
    if travels:
        for k in range(first, last):
            begins = max(free_at[plant.entry_slot[k]], state.there[plant.entry_pool[k]])
            if begins < out:
                out = begins
                if out <= soon:
                    return soon
    else:
        for k in range(first, last):
            if free_at[plant.entry_slot[k]] < out:
                out = free_at[plant.entry_slot[k]]
                if out <= soon:
                    return soon
    return out


@njit(cache=True, forceinline=True)
def begin_at(
    plant: Plant, state: State, row: int, member: int, travels: bool, soon: float
) -> float:
    """Return when a task can begin at one place of a list."""
    width, begins = plant.list_width[row], soon
    first = plant.list_ptr[row] + member * width
    if travels:
        begins = max(begins, state.there[plant.entry_pool[first] if width else plant.size[POOLS]])
    for k in range(first, first + width):
        begins = max(begins, state.free_at[plant.entry_slot[k]])
    return begins


@njit(cache=True)
def first_of(
    plant: Plant,
    state: State,
    rule: Rule,
    task: int,
    s: int,
    travels: bool,
    soon: float,
    least: float,
) -> int:
    """Return the first mode of a set whose score is the least one, which that of the earliest
    begin has; later begins can have it too.
    """
    row, member, above = plant.set_list[s], 0, math.inf
    while True:
        mode = plant.set_mode[plant.set_ptr[s] + member]
        begins = begin_at(plant, state, row, member, travels, soon)
        if begins == state.list_begin[row]:
            return mode
        if begins < above:
            if state.last_part[task] != NONE:
                length = ticks_left(plant, state, task, mode)
            else:
                length = whole_ticks(plant.units[task] * plant.ticks_per_unit[mode])
            if score(plant, state, rule, task, mode, begins, length) == least:
                return mode
            above = begins
        member += 1
