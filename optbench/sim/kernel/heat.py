"""Temperatures of cooled places: an upper bound that never passes a limit.

Per place, ``heat_c`` is what the running modes add to the temperature S at which the place settles,
``warm_c`` its temperature at time ``warm_at``, and ``warm_until`` the last end of what heats it. A
mode adds no less than its segments do, so that ``warm_c`` is no lower than the verifier's value.

A task may start at now in a mode that ends at e when, with S' the new steady temperature,

    S' ≤ limit    or    S' + (T(now) − S') exp(−(last − now) · rate) ≤ limit

with last = max(warm_until, e): up to ``last`` the power is at most that of now, since ends only
lower it and later starts are checked themselves; T then moves towards S' or below without passing
it, so that it is highest now or at ``last``. Afterwards the place cools towards its rest, which
lies within the limit.

No task waits for ever: T ≤ limit always holds, so that a mode with S' ≤ limit can start, and at a
place where nothing runs every mode of the plant has that, as the others have no room there
(``plant.mode_memory_gb``). Where a task is refused something runs, whose end is the next event.
"""

from __future__ import annotations

import math

from optbench.compiling.compiled import njit
from optbench.sim.kernel.plant import COOLED, Plant
from optbench.sim.kernel.remaining import ticks_left
from optbench.sim.kernel.state import NOW, State


@njit(cache=True)
def begin_heat(plant: Plant, state: State) -> None:
    """Set the temperatures of time 0."""
    for place in range(plant.size[COOLED]):
        state.heat_c[place], state.warm_at[place], state.warm_until[place] = 0.0, 0.0, 0.0
        state.warm_c[place] = plant.cool_start_c[place]


@njit(cache=True)
def temperature_c(plant: Plant, state: State, place: int) -> float:
    """Return the temperature of a cooled place now."""
    steady = plant.cool_rest_c[place] + state.heat_c[place]
    passed = (state.total[NOW] - state.warm_at[place]) * plant.cool_rate[place]
    return float(state.warm_c[place] - (steady - state.warm_c[place]) * math.expm1(-passed))


@njit(cache=True)
def change_heat(plant: Plant, state: State, mode: int, sign: int) -> None:
    """Count a mode that starts (1) or stops (-1) now."""
    places = plant.size[COOLED]
    for place in range(places):
        rise = plant.cool_rise_c[mode * places + place]
        if rise > 0.0:
            state.warm_c[place] = temperature_c(plant, state, place)
            state.warm_at[place] = state.total[NOW]
            state.heat_c[place] += sign * rise


@njit(cache=True)
def stay_warm(plant: Plant, state: State, mode: int, end: float) -> None:
    """Note until when a mode heats its places."""
    places = plant.size[COOLED]
    for place in range(places):
        if plant.cool_rise_c[mode * places + place] > 0.0:
            state.warm_until[place] = max(state.warm_until[place], end)


@njit(cache=True)
def stays_cool(plant: Plant, state: State, task: int, mode: int) -> bool:
    """Whether every place stays within its limit if a task starts in a mode now."""
    places, now, length = plant.size[COOLED], state.total[NOW], -1.0
    for place in range(places):
        rise, limit = plant.cool_rise_c[mode * places + place], plant.cool_limit_c[place]
        steady = plant.cool_rest_c[place] + (state.heat_c[place] + rise)
        if rise > 0.0 and steady > limit:
            if length < 0.0:
                length = ticks_left(plant, state, task, mode)
            left = max(state.warm_until[place] - now, length)
            warm = temperature_c(plant, state, place)
            if warm - (steady - warm) * math.expm1(-left * plant.cool_rate[place]) > limit:
                return False
    return True
