"""When the data of a task are at each pool that its kind can use, and the next of these times."""

from __future__ import annotations

import math

from optbench.compiling.compiled import njit
from optbench.model.instance import Ints
from optbench.sim.kernel.plant import HAS_INGRESS, POOLS, SENDS, Plant
from optbench.sim.kernel.spans import arrival, lag
from optbench.sim.kernel.state import NONE, NOW, READY, State


@njit(cache=True, forceinline=True)
def is_everywhere(plant: Plant, state: State, task: int) -> bool:
    """Whether it is known that nothing of this task travels any more."""
    if plant.size[SENDS] == 0:
        return True
    return bool(state.status[task] == READY and state.data_at[task] <= state.total[NOW])


@njit(cache=True)
def find_arrivals(plant: Plant, state: State, task: int) -> None:
    """Write ``spans.arrival`` of the task into ``there`` for each primary pool of its kind, and
    when its data are everywhere; the last entry of ``there`` is for modes without pools.
    """
    there, kind = state.there, plant.kind[task]
    first, last = plant.kind_pool_ptr[kind], plant.kind_pool_ptr[kind + 1]
    arrivals_at(plant, state, task, plant.kind_pool, first, last, 1)
    if state.status[task] == READY:
        latest = 0.0
        for k in range(first, last):
            latest = max(latest, there[plant.kind_pool[k]])
        state.data_at[task] = latest


@njit(cache=True)
def find_list_arrivals(plant: Plant, state: State, task: int, row: int) -> None:
    """Write the arrivals at the primary pools of one list of ``model.classes``."""
    first, last, width = plant.list_ptr[row], plant.list_ptr[row + 1], plant.list_width[row]
    if width:
        arrivals_at(plant, state, task, plant.entry_pool, first, last, width)
    else:
        state.there[plant.size[POOLS]] = arrival(plant, state, task, NONE)


@njit(cache=True)
def arrivals_at(
    plant: Plant, state: State, task: int, pool_at: Ints, first: int, last: int, step: int
) -> None:
    """Write the arrivals at every ``step``-th of some pools.

    Consecutive pools mostly have equal links to a sender: their latency is computed once.
    """
    pools, there, release = plant.size[POOLS], state.there, plant.release[task]
    part = state.last_part[task]
    for k in range(first, last, step):
        pool = pool_at[k]
        there[pool] = release
        if plant.size[HAS_INGRESS] and pool < pools:
            there[pool] += plant.ingress_ticks[plant.ingress[task] * pools + pool]
        if part != NONE and plant.keeps_pool[task]:
            kept = plant.primary[state.part_mode[part]]
            if pool != (kept if kept >= 0 else pools):
                there[pool] = math.inf
    if part != NONE:
        return
    for e in range(plant.pred_ptr[task], plant.pred_ptr[task + 1]):
        source, data_gb = plant.pred[e], plant.pred_gb[e]
        sent, sender = state.end[source], plant.primary[state.mode[source]]
        latency_s, s_per_gb, wait = -1.0, -1.0, 0.0
        for k in range(first, last, step):
            pool, arrives = pool_at[k], sent
            if data_gb > 0.0 and sender >= 0 and pool != sender and pool < pools:
                link = sender * pools + pool
                if plant.latency_s[link] != latency_s or plant.s_per_gb[link] != s_per_gb:
                    latency_s, s_per_gb = plant.latency_s[link], plant.s_per_gb[link]
                    wait = lag(plant, sender, pool, data_gb)
                arrives += wait
            if arrives > there[pool]:
                there[pool] = arrives


@njit(cache=True)
def next_arrival(plant: Plant, state: State, task: int) -> float:
    """Return when the data of a ready task next arrive at a pool where it could run, after now; inf
    where they do not.
    """
    now, soon = state.total[NOW], math.inf
    if is_everywhere(plant, state, task):
        return soon
    find_arrivals(plant, state, task)
    kind = plant.kind[task]
    for k in range(plant.kind_pool_ptr[kind], plant.kind_pool_ptr[kind + 1]):
        there = state.there[plant.kind_pool[k]]
        if now < there < soon:
            soon = there
    return soon
