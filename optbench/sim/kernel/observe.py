"""The observation at a moment of decision as one row of numbers: slots of ready tasks, their
options, pools, the cluster.

Tasks that can start fill the slots first, then those that cannot yet, both in the order in which
they became ready; tasks beyond the slots are not part of it. Lengths are relative to the mean
shortest duration, times ahead to the span (a lower estimate of the makespan), energies to the mean
least energy of a task, weights to their mean; all are clipped to ±LIMIT. Action ``slot · modes +
k`` starts the task of a slot in the k-th mode of its kind; the last action waits for the next
event.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from optbench.compiling.compiled import njit
from optbench.model.instance import Floats, Ints
from optbench.sim.kernel.accounts import period_of
from optbench.sim.kernel.events import has_room_for, next_time
from optbench.sim.kernel.moments import LISTED, DecisionTable, any_mode
from optbench.sim.kernel.plant import CAPS, PERIODS, POOLS, SENDS, TASKS, TICK_S, Plant
from optbench.sim.kernel.pointers import table_at
from optbench.sim.kernel.remaining import ticks_left
from optbench.sim.kernel.spans import arrival, fits
from optbench.sim.kernel.state import (
    EVENTS,
    NONE,
    NOW,
    NUM_DONE,
    NUM_READY,
    NUM_RUNNING,
    RELEASED,
    RUNNING,
    State,
)

LIMIT = 20.0
TASK_FEATURES = (
    "present",
    "startable",
    "shortest",
    "tail",
    "due",
    "slack",
    "hard",
    "weight",
    "waiting",
    "left",
    "successors",
)
OPTION_FEATURES = (
    "exists",
    "legal",
    "length",
    "energy",
    "net_energy",
    "clock",
    "share",
    "data_wait",
)
POOL_FEATURES = ("present", "free", "gone", "rest", "size", "next_end", "price", "carbon")
OVERALL_FEATURES = ("now", "done", "ready", "running", "next_event", "headroom")

# Entries of ``shape`` and ``scale``.
SLOTS, MODES, WIDE = range(3)
SPAN, LENGTH, ENERGY, WEIGHT, POWER, PRICE, CARBON_RATE = range(7)
# Entries of ``book``.
WORTH, COSTS = range(2)

_T, _O, _P = len(TASK_FEATURES), len(OPTION_FEATURES), len(POOL_FEATURES)


class View(NamedTuple):
    """Sizes, scales and prices of the observation; ``book`` holds the objective and the costs that
    were already returned as rewards.
    """

    shape: Ints
    scale: Floats
    tail: Floats
    shortest: Floats
    worth: Floats
    limit: Floats
    slot: Ints
    later: Ints
    book: Floats


view_at = table_at(View)


@njit(cache=True)
def observe(
    plant: Plant, state: State, decisions: DecisionTable, view: View, row: Floats, mask: Ints
) -> None:
    """Fill a row of features and the mask of legal actions."""
    row[:] = 0.0
    mask[:] = False
    slots, modes, wide = view.shape[SLOTS], view.shape[MODES], view.shape[WIDE]
    filled = fill_slots(plant, state, decisions, view)
    for s in range(filled):
        startable = write_option_features(
            plant, state, view, view.slot[s], row, slots * _T + s * modes * _O, mask, s * modes
        )
        write_task_features(plant, state, view, view.slot[s], startable, row, s * _T)
    pools = slots * _T + slots * modes * _O
    write_pool_features(plant, state, view, row, pools)
    write_overall_features(plant, state, view, row, pools + wide * _P)
    mask[slots * modes] = next_time(plant, state) < math.inf


@njit(cache=True)
def fill_slots(plant: Plant, state: State, decisions: DecisionTable, view: View) -> int:
    """Assign tasks to slots; return how many slots are filled."""
    slots, filled, waiting = view.shape[SLOTS], 0, 0
    for i in range(decisions.held[LISTED]):
        task = decisions.ready[i]
        if any_mode(plant, state, task):
            view.slot[filled] = task
            filled += 1
            if filled == slots:
                break
        elif waiting < slots:
            view.later[waiting] = task
            waiting += 1
    for i in range(min(waiting, slots - filled)):
        view.slot[filled + i] = view.later[i]
    filled += min(waiting, slots - filled)
    for s in range(filled, slots):
        view.slot[s] = NONE
    return filled


@njit(cache=True)
def clipped(value: float) -> float:
    return min(max(value, -LIMIT), LIMIT)


@njit(cache=True)
def write_task_features(
    plant: Plant, state: State, view: View, task: int, startable: bool, row: Floats, at: int
) -> None:
    """Write TASK_FEATURES of one task into ``row`` from ``at`` on; the row holds zeros before."""
    now, scale, deadline = state.total[NOW], view.scale, plant.deadline[task]
    left = state.remaining[task] / plant.units[task]
    row[at] = 1.0
    row[at + 1] = startable
    row[at + 2] = clipped(left * view.shortest[task] / scale[LENGTH])
    row[at + 3] = clipped(view.tail[task] / scale[SPAN])
    if deadline < math.inf:
        row[at + 4] = 1.0
        row[at + 5] = clipped((deadline - now - left * view.shortest[task]) / scale[SPAN])
        row[at + 6] = 1.0 - plant.soft[task]
    row[at + 7] = clipped(plant.weight[task] / scale[WEIGHT])
    row[at + 8] = clipped((now - plant.release[task]) / scale[SPAN])
    row[at + 9] = left
    row[at + 10] = clipped(math.log1p(plant.succ_ptr[task + 1] - plant.succ_ptr[task]))


@njit(cache=True)
def write_option_features(
    plant: Plant, state: State, view: View, task: int, row: Floats, at: int, mask: Ints, action: int
) -> bool:
    """Write OPTION_FEATURES of each mode of a task and which can start now; return whether
    any can.
    """
    now, scale, kind, any_legal = state.total[NOW], view.scale, plant.kind[task], False
    last, there = NONE - 1, now
    for mode in range(plant.kind_ptr[kind], plant.kind_ptr[kind + 1]):
        if fits(plant, task, mode):
            primary = plant.primary[mode]
            if plant.size[SENDS] and primary != last:
                last = primary
                there = arrival(plant, state, task, primary)
            legal = there <= now and has_room_for(plant, state, task, mode)
            any_legal = any_legal or legal
            length = ticks_left(plant, state, task, mode)
            energy_j = state.remaining[task] * plant.energy_j[mode]
            net_j = energy_j - plant.mode_rest_w[mode] * length * plant.scalar[TICK_S]
            row[at] = 1.0
            row[at + 1] = legal
            row[at + 2] = clipped(length / scale[LENGTH])
            row[at + 3] = clipped(energy_j / scale[ENERGY])
            row[at + 4] = clipped(net_j / scale[ENERGY])
            row[at + 5] = plant.clock[mode] if plant.clock[mode] == plant.clock[mode] else 1.0
            row[at + 6] = plant.devices[mode] / plant.pool_count[primary] if primary >= 0 else 0.0
            row[at + 7] = clipped(max(0.0, there - now) / scale[SPAN])
            mask[action] = legal
        at += _O
        action += 1
    return any_legal


@njit(cache=True)
def write_pool_features(plant: Plant, state: State, view: View, row: Floats, first: int) -> None:
    """Write POOL_FEATURES of each pool."""
    scale, now, periods = view.scale, state.total[NOW], plant.size[PERIODS]
    period = period_of(plant, now) if periods > 0 else 0
    for pool in range(plant.size[POOLS]):
        at, count = first + pool * _P, plant.pool_count[pool]
        row[at] = 1.0
        row[at + 1] = state.free[pool] / count
        row[at + 2] = state.gone[pool] / count
        row[at + 3] = clipped(plant.pool_rest_w[pool] / scale[POWER])
        row[at + 4] = clipped(math.log1p(count))
        if periods > 0:
            row[at + 6] = clipped(plant.price[pool * periods + period] / scale[PRICE])
            row[at + 7] = clipped(plant.carbon[pool * periods + period] / scale[CARBON_RATE])
    for e in range(state.tally[EVENTS]):
        task, end = state.event_code[e], state.event_time[e]
        if task < plant.size[TASKS] and state.status[task] == RUNNING and state.end[task] == end:
            pool = plant.primary[state.mode[task]]
            if pool >= 0:
                at = first + pool * _P + 5
                ahead = clipped(max(1e-6, (end - now) / scale[SPAN]))
                row[at] = ahead if row[at] == 0.0 else min(row[at], ahead)


@njit(cache=True)
def write_overall_features(plant: Plant, state: State, view: View, row: Floats, at: int) -> None:
    """OVERALL_FEATURES: shares of the tasks that are released, and the next end or arrival of data;
    how many are to come, and when, is the future.
    """
    tally, span = state.tally, view.scale[SPAN]
    n, room = max(1, tally[RELEASED]), 1.0
    soon = state.event_time[0] if tally[EVENTS] else math.inf
    for cap in range(plant.size[CAPS]):
        if plant.cap_room_w[cap] > 0:
            room = min(room, 1.0 - state.draw_w[cap] / plant.cap_room_w[cap])
    row[at] = clipped(state.total[NOW] / span)
    row[at + 1] = tally[NUM_DONE] / n
    row[at + 2] = tally[NUM_READY] / n
    row[at + 3] = tally[NUM_RUNNING] / n
    row[at + 4] = clipped((soon - state.total[NOW]) / span) if soon < math.inf else LIMIT
    row[at + 5] = clipped(room)
