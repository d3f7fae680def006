"""When the data of a task are at each pool that its kind can use, and the next of these times."""

from __future__ import annotations

import math

from optbench.compiling.compiled import njit
from optbench.sim.kernel.plant import HAS_INGRESS, POOLS, SENDS, TICK_S, Plant
from optbench.sim.kernel.spans import whole_ticks
from optbench.sim.kernel.state import NONE, NOW, READY, State


@njit(cache=True, forceinline=True)
def is_everywhere(plant: Plant, state: State, task: int) -> bool:
    """Whether it is known that nothing of this task travels any more."""
    if plant.size[SENDS] == 0:
        return True
    return bool(state.status[task] == READY and state.data_at[task] <= state.total[NOW])


@njit(cache=True)
def find_arrivals(plant: Plant, state: State, task: int) -> None:
    """Write ``spans.arrival`` of the task into ``there`` for each primary pool of its kind; the
    last entry is for modes without pools.

    Consecutive pools mostly have equal links to a sender: their latency is computed once.
    """
    pools, there, kind = plant.size[POOLS], state.there, plant.kind[task]
    first, last = plant.kind_pool_ptr[kind], plant.kind_pool_ptr[kind + 1]
    release, part = plant.release[task], state.last_part[task]
    for k in range(first, last):
        pool = plant.kind_pool[k]
        there[pool] = release
        if plant.size[HAS_INGRESS] and pool < pools:
            there[pool] += plant.ingress_ticks[plant.ingress[task] * pools + pool]
        if part != NONE and plant.keeps_pool[task]:
            kept = plant.primary[state.part_mode[part]]
            if pool != (kept if kept >= 0 else pools):
                there[pool] = math.inf
    if part == NONE:
        for e in range(plant.pred_ptr[task], plant.pred_ptr[task + 1]):
            add_transfer(plant, state, plant.pred[e], plant.pred_gb[e], first, last)
    if state.status[task] == READY:
        latest = 0.0
        for k in range(first, last):
            latest = max(latest, there[plant.kind_pool[k]])
        state.data_at[task] = latest


@njit(cache=True)
def add_transfer(
    plant: Plant, state: State, source: int, data_gb: float, first: int, last: int
) -> None:
    """Delay the arrivals at pools ``first`` to ``last`` by the data of one predecessor."""
    pools, there, sent = plant.size[POOLS], state.there, state.end[source]
    sender = plant.primary[state.mode[source]]
    latency_s, s_per_gb, wait = -1.0, -1.0, 0.0
    for k in range(first, last):
        pool, arrives = plant.kind_pool[k], sent
        if data_gb > 0.0 and sender >= 0 and pool != sender and pool < pools:
            link = sender * pools + pool
            if plant.latency_s[link] != latency_s or plant.s_per_gb[link] != s_per_gb:
                latency_s, s_per_gb = plant.latency_s[link], plant.s_per_gb[link]
                seconds = latency_s + data_gb * s_per_gb
                if math.isfinite(seconds):
                    wait = whole_ticks(seconds / plant.scalar[TICK_S])
                else:
                    wait = math.inf
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
