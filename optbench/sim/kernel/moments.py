"""Moments of decision: instants at which at least one ready task can begin in at least one mode,
one decision after another.

A moment lists every *option* (ready task, mode) that ``can_start`` allows. A decision takes one of
them, and the rest of the instant is the next moment; or it waits, and the next moment is the first
with an option after the next event. Ready tasks are listed in the order in which they became ready,
ties by ``plant.tie``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from optbench.compiling.compiled import njit
from optbench.model.instance import Ints
from optbench.sim.kernel.events import (
    advance,
    begin,
    can_start,
    close_accounts,
    has_room_for,
    next_time,
    pass_time,
    start,
    wake,
)
from optbench.sim.kernel.plant import POOLS, SENDS, TASKS, Plant, plant_at
from optbench.sim.kernel.pointers import table_at
from optbench.sim.kernel.queues import put, take
from optbench.sim.kernel.spans import arrival, fits
from optbench.sim.kernel.state import NONE, NOW, NUM_DONE, NUM_FRESH, NUM_TOUCHED, State, state_at

# Entries of ``held``.
LISTED, OPTIONS = range(2)
# The result of ``start_option`` when the pair cannot start.
REFUSED = -1


class DecisionTable(NamedTuple):
    """The ready tasks, and the options by task and mode, at a moment of decision."""

    held: Ints
    ready: Ints
    option_task: Ints
    option_mode: Ints


decisions_at = table_at(DecisionTable)


def new_decision_table(plant: Plant, options: bool = True) -> DecisionTable:
    """Allocate room for every ready task and, where options are listed, for the largest number of
    options at once.
    """
    n = int(plant.size[TASKS])
    most = int(np.diff(plant.kind_ptr)[plant.kind].sum()) if options else 0
    return DecisionTable(
        np.zeros(2, dtype=np.int64), *(np.zeros(room, dtype=np.int64) for room in (n, most, most))
    )


@njit(cache=True)
def first_moment(plant_row: Ints, state_row: Ints, decisions_row: Ints, until: float) -> int:
    """Start at time 0; return the number of options at the first moment, 0 where there is none up
    to ``until``.
    """
    plant, state, decisions = plant_at(plant_row), state_at(state_row), decisions_at(decisions_row)
    begin(plant, state)
    decisions.held[LISTED] = 0
    return int(next_moment(plant, state, decisions, until))


@njit(cache=True)
def start_option(
    plant_row: Ints, state_row: Ints, decisions_row: Ints, task: int, mode: int, until: float
) -> int:
    """Start a task in a mode and advance to the next moment; REFUSED, with nothing changed, where
    it cannot start.
    """
    plant, state, decisions = plant_at(plant_row), state_at(state_row), decisions_at(decisions_row)
    if not is_option(plant, state, task, mode):
        return REFUSED
    start_and_remove(plant, state, decisions, task, mode)
    return int(next_moment(plant, state, decisions, until))


@njit(cache=True)
def wait(plant_row: Ints, state_row: Ints, decisions_row: Ints, until: float) -> int:
    """Advance past the next event to the next moment."""
    plant, state, decisions = plant_at(plant_row), state_at(state_row), decisions_at(decisions_row)
    if not advance(plant, state, until):
        return 0
    return int(next_moment(plant, state, decisions, until))


@njit(cache=True)
def will_happen(plant_row: Ints, state_row: Ints) -> bool:
    """Whether any event remains if nothing is started: waiting for ever is not a decision."""
    return bool(next_time(plant_at(plant_row), state_at(state_row)) < math.inf)


@njit(cache=True)
def end_run(plant_row: Ints, state_row: Ints, until: float) -> None:
    """Charge rest up to the fixed horizon if everything has ended, otherwise up to ``until``."""
    plant, state = plant_at(plant_row), state_at(state_row)
    if state.tally[NUM_DONE] == plant.size[TASKS]:
        close_accounts(plant, state)
    elif until < math.inf:
        pass_time(plant, state, until)


@njit(cache=True)
def is_option(plant: Plant, state: State, task: int, mode: int) -> bool:
    """Whether any two numbers are a task and a mode for which ``can_start`` holds."""
    if not 0 <= task < plant.size[TASKS]:
        return False
    kind = plant.kind[task]
    return bool(
        plant.kind_ptr[kind] <= mode < plant.kind_ptr[kind + 1]
        and can_start(plant, state, task, mode)
    )


@njit(cache=True)
def next_moment(plant: Plant, state: State, decisions: DecisionTable, until: float) -> int:
    """Advance until there is an option; return their number, 0 where there is none up to
    ``until``.
    """
    while True:
        list_fresh(plant, state, decisions)
        options = list_options(plant, state, decisions)
        if options > 0 or not advance(plant, state, until):
            return options


@njit(cache=True)
def list_fresh(plant: Plant, state: State, decisions: DecisionTable) -> None:
    """Append the tasks that became ready; the queue of the whole plant, empty otherwise, sorts
    them.
    """
    whole, tally = plant.size[POOLS], state.tally
    for f in range(tally[NUM_FRESH]):
        put(plant, state, whole, state.fresh[f], 0.0)
    tally[NUM_FRESH] = 0
    while state.root[whole] != NONE:
        task = take(plant, state, whole)
        decisions.ready[decisions.held[LISTED]] = task
        decisions.held[LISTED] += 1
        state.queue[task] = whole  # so that the arrival of its data is an event
        if plant.size[SENDS]:
            wake(plant, state, task)
    for q in range(tally[NUM_TOUCHED]):
        state.is_touched[state.touched[q]] = 0
    tally[NUM_TOUCHED] = 0


@njit(cache=True)
def list_options(plant: Plant, state: State, decisions: DecisionTable) -> int:
    """List every option, by task in the order of the list, by mode; return their number."""
    options = 0
    for i in range(decisions.held[LISTED]):
        task = decisions.ready[i]
        kind, last, there = plant.kind[task], NONE - 1, 0.0
        for mode in range(plant.kind_ptr[kind], plant.kind_ptr[kind + 1]):
            if not (has_room_for(plant, state, task, mode) and fits(plant, task, mode)):
                continue
            if plant.size[SENDS] and plant.primary[mode] != last:
                last = plant.primary[mode]
                there = arrival(plant, state, task, last)
            if there <= state.total[NOW]:
                decisions.option_task[options], decisions.option_mode[options] = task, mode
                options += 1
    decisions.held[OPTIONS] = options
    return options


@njit(cache=True)
def any_option(plant: Plant, state: State, decisions: DecisionTable) -> bool:
    """Whether a ready task can start."""
    i, found = 0, False
    while i < decisions.held[LISTED] and not found:
        found = any_mode(plant, state, decisions.ready[i])
        i += 1
    return found


@njit(cache=True)
def any_mode(plant: Plant, state: State, task: int) -> bool:
    """Whether a ready task can start in some mode."""
    kind = plant.kind[task]
    for mode in range(plant.kind_ptr[kind], plant.kind_ptr[kind + 1]):
        room = has_room_for(plant, state, task, mode) and fits(plant, task, mode)
        if room and (
            not plant.size[SENDS]
            or arrival(plant, state, task, plant.primary[mode]) <= state.total[NOW]
        ):
            return True
    return False


@njit(cache=True)
def start_and_remove(
    plant: Plant, state: State, decisions: DecisionTable, task: int, mode: int
) -> None:
    """Start an option and remove its task from the list."""
    last = decisions.held[LISTED] - 1
    i = 0
    while decisions.ready[i] != task:
        i += 1
    while i < last:
        decisions.ready[i] = decisions.ready[i + 1]
        i += 1
    decisions.held[LISTED] = last
    start(plant, state, task, mode)
