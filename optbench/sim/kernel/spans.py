"""Durations, transfers and arrival times in whole ticks, equal to the instance's bit for bit."""

from __future__ import annotations

import math

from optbench.compiling.compiled import njit
from optbench.sim.kernel.plant import HAS_INGRESS, POOLS, TICK_S, Plant
from optbench.sim.kernel.state import NONE, State
from optbench.units import GUARD_TICKS, GUARD_ULPS, LARGEST_ULP

# Floats from here on are whole, and adding this number to a smaller one rounds that to a whole
# number; an ulp as a share of its value.
HALF_BEYOND = 2.0**52


@njit(cache=True, forceinline=True)
def whole_ticks(value: float) -> float:
    """``timegrid.grid_up`` of one finite non-negative number."""
    if value >= HALF_BEYOND:
        return value
    whole = (value + HALF_BEYOND) - HALF_BEYOND  # rounds halves to even, as numpy does
    above = value - whole
    # An ulp is at most 2^-52 of the value: mostly that decides, and the exact one is not needed.
    if abs(above) <= GUARD_ULPS * LARGEST_ULP * value and is_within_guard(value, abs(above)):
        return whole
    return whole + 1.0 if above > 0.0 else whole


@njit(cache=True)
def is_within_guard(value: float, off: float) -> bool:
    """Whether a product this far from a whole number counts as that number."""
    if off == 0.0:
        return True
    return off <= GUARD_TICKS and off <= GUARD_ULPS * math.ldexp(
        1.0, max(math.frexp(value)[1] - 53, -1074)
    )


@njit(cache=True)
def duration(plant: Plant, task: int, mode: int) -> float:
    """D: ticks that the whole task takes in a mode."""
    return whole_ticks(plant.units[task] * plant.ticks_per_unit[mode])


@njit(cache=True)
def lag(plant: Plant, sender: int, receiver: int, data_gb: float) -> float:
    """``Instance.lag``: inf without a link."""
    if sender == receiver or sender < 0 or receiver < 0 or data_gb <= 0:
        return 0.0
    link = sender * plant.size[POOLS] + receiver
    seconds = plant.latency_s[link] + data_gb * plant.s_per_gb[link]
    if not math.isfinite(seconds):
        return math.inf
    return whole_ticks(seconds / plant.scalar[TICK_S])


@njit(cache=True)
def arrival(plant: Plant, state: State, task: int, pool: int) -> float:
    """Return when a ready task and its data are at a pool; now or earlier where nothing is missing,
    inf where it cannot be reached.

    A task that has begun moves with its data, unless the data came from elsewhere or other tasks
    wait for it: then it keeps its pool.
    """
    there = plant.release[task]
    if plant.size[HAS_INGRESS] and pool >= 0:
        there += plant.ingress_ticks[plant.ingress[task] * plant.size[POOLS] + pool]
    part = state.last_part[task]
    if part != NONE:
        return (
            math.inf
            if plant.keeps_pool[task] and plant.primary[state.part_mode[part]] != pool
            else there
        )
    for e in range(plant.pred_ptr[task], plant.pred_ptr[task + 1]):
        source = plant.pred[e]
        there = max(
            there,
            state.end[source]
            + lag(plant, plant.primary[state.mode[source]], pool, plant.pred_gb[e]),
        )
    return there


@njit(cache=True, forceinline=True)
def fits(plant: Plant, task: int, mode: int) -> bool:
    """``Instance.fits``, for a mode of the task's own kind."""
    return plant.memory_gb[task] <= plant.mode_memory_gb[mode]


@njit(cache=True)
def uses(plant: Plant, mode: int, pool: int) -> bool:
    """Whether a mode occupies devices of a pool."""
    found = False
    for r in range(plant.req_ptr[mode], plant.req_ptr[mode + 1]):
        found = found or plant.req_pool[r] == pool
    return found
