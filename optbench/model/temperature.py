"""The temperature of cooled places, from the energy of a schedule alone.

The temperature of a place follows a first-order law of the power P at and below it,

    dT/dt = (ambient + c_per_w · P(t) − T) / time_constant,        T(0) = start,

so that a constant power settles at S = ambient + c_per_w · P. A segment heats evenly over its
length with its own energy, at the place of its primary pool; devices that are not busy heat with
their resting power. The integral of P is thus the energy of the schedule, apart from what is drawn
in an instant (transfers and segments of no length), which heats nothing. Between two events P is
constant and

    T(t + d) = T(t) + (S − T(t)) (1 − exp(−d / time_constant)),

which is monotone, so that the highest temperature is that of an event.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from optbench.errors import ModelError
from optbench.model.caps import resting_power_w
from optbench.model.cooling import Cooling
from optbench.model.instance import Bools, Floats, Instance, Ints
from optbench.model.metrics import requirements
from optbench.model.schedule import Schedule
from optbench.model.sleeping import kept_awake
from optbench.model.task_progress import segment_energy_j
from optbench.model.timegrid import TEMPERATURE_TOLERANCE


@dataclass(frozen=True)
class Hottest:
    """The highest temperature of a cooled place, and its first time in ticks."""

    celsius: float
    at: float


def hottest(instance: Instance, schedule: Schedule) -> list[Hottest]:
    """The highest temperature of each cooled place from time 0 to the end."""
    cooling = instance.cooling
    assert cooling is not None
    end = float(max(schedule.end.max(initial=0), instance.horizon or 0))
    long = schedule.end > schedule.start
    columns = (schedule.task, schedule.mode, schedule.start, schedule.end)
    rows = Schedule(*(column[long] for column in columns), sleep=schedule.sleep)
    watts = segment_energy_j(instance, rows) / ((rows.end - rows.start) * instance.tick_s)
    out = []
    for row in range(len(cooling.place)):
        t, power_w = _power(instance, rows, watts, int(cooling.place[row]), end)
        out.append(_hottest(instance, cooling, row, t, power_w))
    return out


def _power(
    instance: Instance, rows: Schedule, watts: Floats, place: int, end: float
) -> tuple[Floats, Floats]:
    """Times from 0 to ``end`` at which the power at a place changes, and the power from each on."""
    under, primary = instance.under[place], instance.modes.primary[rows.mode]
    own = np.where((primary >= 0) & under[np.maximum(primary, 0)], watts, 0.0)
    segment, pool, count = requirements(instance, rows.mode)
    rest_w = np.where(under, instance.pools.rest_w, 0.0)
    freed = np.bincount(segment, weights=rest_w[pool] * count, minlength=len(own))
    used = np.bincount(segment, weights=under[pool], minlength=len(own)) > 0
    start, until = np.clip(rows.start[used], 0, end), np.clip(rows.end[used], 0, end)
    change = (own - freed)[used]
    if (sleep := rows.sleep) is not None:
        saved_w = np.where(under, instance.pools.rest_w - instance.pools.sleep_w, 0.0)
        change = np.concatenate((change, -saved_w[sleep.pool] * sleep.devices))
        start = np.concatenate((start, np.clip(sleep.start, 0, end)))
        until = np.concatenate((until, np.clip(sleep.end, 0, end)))
    times = np.concatenate(([0.0, end], start, until)).astype(float)
    order = np.argsort(times, kind="stable")
    # Wide numbers: what a short segment of great power adds, it takes back without a trace.
    steps = np.concatenate(([0.0, 0.0], change, -change)).astype(np.longdouble)[order]
    times, level = times[order], np.cumsum(steps)
    last = np.concatenate((times[1:] != times[:-1], [True]))
    base_w = np.longdouble(resting_power_w(instance, place))
    return times[last], np.asarray(level[last] + base_w, dtype=float)


def _hottest(instance: Instance, cooling: Cooling, row: int, t: Floats, power_w: Floats) -> Hottest:
    steady = cooling.ambient_c[row] + cooling.c_per_w[row] * power_w
    taken = -np.expm1(-np.diff(t) * (instance.tick_s / cooling.time_constant_s[row]))
    now = top = float(cooling.start_c[row])
    at = 0.0
    for k, (towards, share) in enumerate(zip(steady[:-1].tolist(), taken.tolist(), strict=True)):
        now += (towards - now) * share
        # A temperature that is no number is the highest: the verifier must not overlook it.
        if not now <= top:
            top, at = now, float(t[k + 1])
    return Hottest(top, at)


def tolerance_c(cooling: Cooling) -> Floats:
    """By how much each limit may be exceeded: the rounding of the integration, amply."""
    size = np.abs(cooling.ambient_c) + np.abs(cooling.start_c) + np.abs(cooling.limit_c)
    return np.asarray(TEMPERATURE_TOLERANCE * size, dtype=float)


def resting_c(instance: Instance, cooling: Cooling) -> Floats:
    """Where the temperature of each place settles while nothing runs."""
    base_w = [resting_power_w(instance, place) for place in cooling.place.tolist()]
    return np.asarray(cooling.ambient_c + cooling.c_per_w * np.asarray(base_w), dtype=float)


@dataclass(frozen=True, eq=False)
class Rises:
    """By how much running modes raise the temperature at which places settle, at most: one entry
    per mode and cooled place that it heats, in the order of the modes.
    """

    mode: Ints
    row: Ints
    celsius: Floats


def rises_of(instance: Instance, cooling: Cooling) -> Rises:
    """A mode draws its mean power in place of its devices' rest, at their places and all above.

    A segment of D ≥ u · time_per_unit ticks draws no more than energy_per_unit / time_per_unit. A
    mode that draws less than its resting devices raises nothing; one that takes no time heats
    nothing. Only places of a mode's own pools are looked at: hundreds of nodes have short lists.
    """
    modes, pools, num_rows = instance.modes, instance.pools, len(cooling.place)
    row_at = np.full(len(instance.places.names), -1)
    row_at[cooling.place] = np.arange(num_rows)
    long = modes.time_per_unit_s > 0
    drawn_w = modes.energy_per_unit_j / np.where(long, modes.time_per_unit_s, 1.0)
    mode = np.repeat(np.arange(instance.num_modes), np.diff(modes.req_ptr))
    first = np.zeros(len(mode), dtype=bool)
    first[modes.req_ptr[:-1][np.diff(modes.req_ptr) > 0]] = True
    net_w = np.where(first, drawn_w[mode], 0.0) - pools.rest_w[modes.req_pool] * modes.req_count
    keys, watts, place = [], [], pools.place[modes.req_pool]
    while len(mode):
        here = (row_at[place] >= 0) & long[mode]
        keys.append(mode[here] * num_rows + row_at[place][here])
        watts.append(net_w[here])
        place = instance.places.parent[place]
        inside = place >= 0
        mode, net_w, place = mode[inside], net_w[inside], place[inside]
    key, which = np.unique(np.concatenate([*keys, np.zeros(0, int)]), return_inverse=True)
    total_w = np.bincount(which.reshape(-1), np.concatenate([*watts, np.zeros(0)]), len(key))
    row = key % num_rows
    rise = total_w * cooling.c_per_w[row]
    up = rise > 0
    return Rises((key // num_rows)[up], row[up], rise[up])


def can_run_alone(instance: Instance) -> Bools:
    """Modes that may run for ever while nothing else runs: every place settles within its limit."""
    out = np.ones(instance.num_modes, dtype=bool)
    if (cooling := instance.cooling) is not None:
        rises, rest = rises_of(instance, cooling), resting_c(instance, cooling)
        limit = cooling.limit_c + 0.5 * tolerance_c(cooling)
        out[rises.mode[rest[rises.row] + rises.celsius > limit[rises.row]]] = False
    return out


def check_cooling(instance: Instance, cooling: Cooling) -> None:
    """Raise a ModelError that names the first invalid value."""
    names, num_rows = instance.places.names, len(cooling.place)
    if num_rows == 0:
        raise ModelError("cooling has no row; give one per cooled place, or no cooling at all")
    for field in fields(Cooling):
        if len(getattr(cooling, field.name)) != num_rows:
            rows = f"has {len(getattr(cooling, field.name))} rows; it must have {num_rows}"
            raise ModelError(f"cooling.{field.name} {rows}")
    bad = np.flatnonzero((cooling.place < 0) | (cooling.place >= len(names)))
    if len(bad):
        known = f"it must be a known place, 0 to {len(names) - 1}"
        raise ModelError(f"cooling: place is {cooling.place[bad[0]]}; {known}")
    for row, place in enumerate(cooling.place.tolist()):
        where = f"cooling of {names[place]!r}"
        if place in cooling.place[:row]:
            raise ModelError(f"{where} is given twice; a place is cooled once")
        for column in ("ambient_c", "limit_c", "start_c", "c_per_w", "time_constant_s"):
            value, signed = float(getattr(cooling, column)[row]), column.endswith("_c")
            if not np.isfinite(value) or (value <= 0 and not signed):
                allowed = "a finite number" if signed else "a positive finite number"
                raise ModelError(f"{where}: {column} is {value!r}; it must be {allowed}")
    _check_rest(names, cooling, resting_c(kept_awake(instance), cooling))


def _check_rest(names: Any, cooling: Cooling, rest: Floats) -> None:
    """Check that every place stays within its limit while nothing runs."""
    columns = (cooling.place, cooling.start_c, rest, cooling.limit_c)
    for place, start, settles, limit in zip(*(c.tolist() for c in columns), strict=True):
        where = f"cooling of {names[place]!r}"
        if start > limit:
            at_most = f"it must be at most limit_c, {limit:g}"
            raise ModelError(f"{where}: start_c is {start:g}; {at_most}")
        if settles > limit:
            rest_alone = f"resting devices alone settle at {settles:g} °C, above {limit:g} °C"
            raise ModelError(f"{where}: {rest_alone}; raise limit_c, or let devices sleep")
