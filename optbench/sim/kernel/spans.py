"""How long things take, as the instance says, bit for bit: durations, transfers, when data is there."""

from __future__ import annotations

import math

from optbench.sim.compiled import njit
from optbench.sim.kernel.plant import POOLS, TICK_S, TICKS, WAYS, Plant
from optbench.sim.kernel.state import State

ROUNDING_GUARD = 1e-9


@njit(cache=True)
def whole_ticks(value: float) -> float:
    """``instance.round_up`` of one number, as a float."""
    whole = math.floor(value + 0.5) if abs(value) < 4503599627370496.0 else value
    if whole - value == 0.5:  # halves go to the even side, as in numpy
        whole = 2.0 * math.floor(0.5 * whole)
    if abs(value - whole) <= ROUNDING_GUARD * max(1.0, abs(value)):
        return whole
    return math.ceil(value)


@njit(cache=True)
def duration(plant: Plant, mode: int, units: float) -> float:
    """``Instance.duration``."""
    seconds = units * plant.time_s[mode]
    return whole_ticks(seconds / plant.scalar[TICK_S]) if plant.size[TICKS] else seconds


@njit(cache=True)
def lag(plant: Plant, sender: int, receiver: int, data_gb: float) -> float:
    """``Instance.lag``: inf without a link."""
    if sender == receiver or sender < 0 or receiver < 0 or data_gb <= 0:
        return 0.0
    link = sender * plant.size[POOLS] + receiver
    seconds = plant.latency_s[link] + data_gb * plant.s_per_gb[link]
    if not math.isfinite(seconds):
        return math.inf
    return whole_ticks(seconds / plant.scalar[TICK_S]) if plant.size[TICKS] else seconds


@njit(cache=True)
def arrival(plant: Plant, state: State, task: int, pool: int) -> float:
    """When a ready task and its data are at a pool; now or earlier where nothing is missing, inf where there is no way.

    What has begun already takes its data along: moving interrupted work costs nothing.
    """
    there = plant.release[task]
    if state.remaining[task] < plant.units[task]:
        return there
    if plant.size[WAYS] and pool >= 0:
        there += plant.way[plant.ingress[task] * plant.size[POOLS] + pool]
    for e in range(plant.pred_ptr[task], plant.pred_ptr[task + 1]):
        source = plant.pred[e]
        there = max(there, state.end[source] + lag(plant, plant.primary[state.mode[source]], pool, plant.pred_gb[e]))
    return there


@njit(cache=True)
def fits(plant: Plant, task: int, mode: int) -> bool:
    """``Instance.fits``, for a mode of the task's own kind."""
    return plant.memory_gb[task] <= plant.mode_memory_gb[mode]
