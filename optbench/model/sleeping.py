"""Devices that sleep and wake: what rows of a schedule change in the power and energy of pools.

A pool is *provisioned* where waking takes its devices time (``wake_s``) or energy (``wake_j``). Its
devices are awake and draw ``idle_w`` while they are not busy. A row (pool p, d devices, a, b) of
``schedule.sleep`` says that d of them sleep over [a, b): they draw ``sleep_w``. Over [b, b + W_p),
W_p = up(wake_s / tick), they wake: they draw ``idle_w`` and cannot work. In the instant b they draw
d · wake_j, unless b is the end H or later. With A_p and S_p the device-ticks of a pool that are
awake but not busy, and asleep, within [O, H],

    E_rest = tick Σ_p (idle_w A_p + sleep_w S_p)        E_wake = Σ_rows d wake_j [b < H]

Such a pool is ``gated``, so that ``pools.rest_w`` is the power of a device asleep: the least that a
device can draw. Bounds and models that know of no rows count as if every device slept whenever it
is not busy and woke in no time. Every feasible schedule remains feasible there and costs no more,
so that their bounds hold. The verifier and the event kernel, which let no device sleep by
themselves, read ``kept_awake(instance)``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from optbench.errors import ParameterError
from optbench.model.features import provisioned
from optbench.model.instance import Floats, Instance, Ints, Pools
from optbench.model.schedule import Schedule, Sleep
from optbench.model.timegrid import grid_up, to_ints


def wake_ticks(instance: Instance) -> Ints:
    """Ticks that a device of each pool takes to wake."""
    seconds = instance.pools.wake_s
    if seconds is None:
        return np.zeros(instance.num_pools, dtype=np.int64)
    return to_ints(grid_up(seconds / instance.tick_s))


def wake_energy_j(pools: Pools) -> Floats:
    """Energy that a device of each pool takes to wake."""
    return np.zeros(len(pools.names)) if pools.wake_j is None else pools.wake_j


def kept_awake(instance: Instance) -> Instance:
    """The instance in which devices of provisioned pools that are not busy idle."""
    pools = instance.pools
    if pools.wake_s is None and pools.wake_j is None:
        return instance
    gated = pools.gated & ~provisioned(pools)
    if (gated == pools.gated).all():
        return instance
    return replace(instance, pools=replace(pools, gated=gated))


@dataclass(frozen=True, eq=False)
class SleepTotals:
    """Per pool, device-ticks asleep within a span, as whole numbers of any size; wakes before its
    end.
    """

    ticks: tuple[int, ...]
    wakes: tuple[int, ...]


def sleep_totals(instance: Instance, schedule: Schedule, low: int, high: int) -> SleepTotals:
    """What of the rows lies within [low, high]."""
    ticks, wakes = [0] * instance.num_pools, [0] * instance.num_pools
    for pool, devices, start, end in sleep_rows(schedule):
        ticks[pool] += devices * max(0, min(end, high) - max(start, low))
        wakes[pool] += devices * (end < high)
    return SleepTotals(tuple(ticks), tuple(wakes))


def sleep_rows(schedule: Schedule) -> Iterator[tuple[int, int, int, int]]:
    """Pool, devices, start and end of each row."""
    rows = schedule.sleep
    if rows is not None:
        columns = (rows.pool, rows.devices, rows.start, rows.end)
        yield from zip(*(column.tolist() for column in columns), strict=True)


def with_sleep(instance: Instance, schedule: Schedule) -> Schedule:
    """The schedule with the rows that save the most energy and change no segment.

    Devices that are not busy are stacked: of two, the one that was busy last is busy first. Level k
    of the stack then rests over the maximal spans in which at least k devices are not busy. As what
    a span [a, b) saves,

        max(0, (idle_w − sleep_w) (b − a − W) tick − wake_j),

    is convex in its length (and without W and wake_j where it lasts to the end), no other way to
    give the segments to the devices saves more.
    """
    pools, wake, rows = instance.pools, wake_ticks(instance), Counter[tuple[int, int, int]]()
    end = int(schedule.end.max(initial=0)) if instance.horizon is None else int(instance.horizon)
    joule, saved_w = wake_energy_j(pools), (pools.idle_w - pools.sleep_w) * instance.tick_s
    for pool in np.flatnonzero(provisioned(pools)).tolist():
        for start, until in rest_spans(instance, schedule, pool, end):
            stops = until if until >= end else until - int(wake[pool])
            cost_j = 0.0 if until >= end else float(joule[pool])
            counted = min(stops, end) - max(start, instance.opens)
            if stops > start and float(saved_w[pool]) * counted > cost_j:
                rows[pool, start, stops] += 1
    return replace(schedule, sleep=sleep_of(rows))


def sleep_of(rows: Counter[tuple[int, int, int]]) -> Sleep:
    """The table of numbers of devices by (pool, start, end)."""
    table = [(pool, count, start, end) for (pool, start, end), count in sorted(rows.items())]
    pool, devices, start, end = np.array(table, dtype=np.int64).reshape(-1, 4).T
    return Sleep(pool, devices, start, end)


def rest_spans(
    instance: Instance, schedule: Schedule, pool: int, end: int
) -> Iterator[tuple[int, int]]:
    """The spans from 0 to ``end`` in which each level of a pool's stack is not busy."""
    stack = [0] * int(instance.pools.count[pool])
    for time, change in changes_of_use(instance, schedule, pool):
        if time >= end:
            break
        if change > len(stack):
            raise ParameterError(
                f"pool {instance.pools.names[pool]} has more busy devices than it has at "
                f"{time * instance.tick_s:g} s; rows of sleep are for schedules that keep capacity"
            )
        for _ in range(change):
            began = stack.pop()
            if time > began:
                yield began, time
        stack += [time] * -change
    yield from ((began, end) for began in stack if began < end)


def changes_of_use(instance: Instance, schedule: Schedule, pool: int) -> Iterator[tuple[int, int]]:
    """Times at which the number of a pool's devices that are busy or gone changes, and by how
    much.
    """
    modes, changes = instance.modes, list[tuple[int, int]]()
    needed = np.zeros(instance.num_modes, dtype=np.int64)
    here = modes.req_pool == pool
    needed[np.repeat(np.arange(instance.num_modes), np.diff(modes.req_ptr))[here]] = (
        modes.req_count[here]
    )
    count = needed[schedule.mode]
    for row in np.flatnonzero((count > 0) & (schedule.end > schedule.start)).tolist():
        changes.append((int(schedule.start[row]), int(count[row])))
        changes.append((int(schedule.end[row]), -int(count[row])))
    changes += lost_devices(instance, pool)
    for time, together in groupby(sorted(changes), key=lambda change: change[0]):
        total = sum(change for _, change in together)
        if total:
            yield time, total


def lost_devices(instance: Instance, pool: int) -> Sequence[tuple[int, int]]:
    """Times at which outages take devices of a pool, or give them back, and how many."""
    if instance.stream is None:
        return []
    outages = instance.stream.outages
    here = outages.pool == pool
    return list(zip(outages.time[here].tolist(), outages.devices[here].tolist(), strict=True))
