"""The mode in which a job starts on the free devices of a pool.

It is looked up by (kind, pool, devices, clock) in ``mode_at``, where a clock that
has no mode stands for the next one that has; ``fit[kind, pool, free]`` is the largest number of
devices with a mode. A policy picks one by:

    TABLE    ``pick[kind, pool, free]``, NONE to wait
    STICKY   all free devices; a pool's clock becomes LOW with two or more of them free, else
             max(clock, LOW)   (default_policy)
    BANDIT   all free devices; the clock by UCB1 on −(energy per unit), one count of selections for
             all arms   (ucb1)
    WISHED   devices and clock that were decided when the job was sent; clock NONE: the cheapest for
             that number
"""

from __future__ import annotations

import math

from optbench.compiling.compiled import njit
from optbench.sim.kernel.plant import POOLS, Plant
from optbench.sim.kernel.sites.steering import (
    BANDIT,
    CLOCKS,
    PICK,
    SELECTIONS,
    STICKY,
    TABLE,
    WIDEST,
    WISHED,
    Steering,
)
from optbench.sim.kernel.state import NONE, State


@njit(cache=True)
def pick_mode(plant: Plant, state: State, steering: Steering, task: int, pool: int) -> int:
    """Return the mode for a start on the free devices of a pool, NONE where they are too few."""
    widest, pick = steering.shape[WIDEST], steering.shape[PICK]
    at, free = plant.kind[task] * plant.size[POOLS] + pool, min(state.free[pool], widest)
    if pick == TABLE:
        return int(steering.pick[at * (widest + 1) + free])
    wanted = min(free, steering.wish_devices[task]) if pick == WISHED else free
    devices = steering.fit[at * (widest + 1) + wanted]
    if devices == 0:
        return NONE
    if pick == STICKY:
        low = steering.low_clock[at]
        steering.clock_of[pool] = (
            low if state.free[pool] >= 2 else max(steering.clock_of[pool], low)
        )
        clock = steering.clock_of[pool]
    elif pick == BANDIT:
        clock = select(steering, at)
    else:
        clock = steering.wish_clock[task]
        if clock == NONE:
            clock = steering.best_clock[at * (widest + 1) + devices]
    return int(steering.mode_at[(at * widest + devices - 1) * steering.shape[CLOCKS] + clock])


@njit(cache=True)
def select(steering: Steering, at: int) -> int:
    """Return UCB1's clock: the lowest untried one, else the best mean plus √(2 ln t / N)."""
    steering.shape[SELECTIONS] += 1
    best, value, first = 0, -math.inf, at * steering.shape[CLOCKS]
    for clock in range(steering.levels[at]):
        count = steering.arm_count[first + clock]
        if count == 0.0:
            return clock
        score = steering.arm_mean[first + clock] + math.sqrt(
            2.0 * math.log(steering.shape[SELECTIONS]) / count
        )
        if score > value:
            best, value = clock, score
    return best


@njit(cache=True)
def learn(plant: Plant, steering: Steering, task: int, mode: int) -> None:
    """Update the reward of an arm: minus the energy per unit of the job that has ended."""
    at = plant.kind[task] * plant.size[POOLS] + plant.primary[mode]
    arm = at * steering.shape[CLOCKS] + steering.column[mode]
    steering.arm_count[arm] += 1.0
    steering.arm_mean[arm] += (-plant.energy_j[mode] - steering.arm_mean[arm]) / steering.arm_count[
        arm
    ]
