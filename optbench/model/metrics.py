"""All metrics of a schedule, and its power over time, from instance and schedule alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optbench.model.caps import (
    Peak,
    exact_added_w,
    exact_peak,
    exact_resting_w,
    exact_saved_w,
)
from optbench.model.features import provisioned
from optbench.model.instance import Floats, Instance, Ints
from optbench.model.schedule import Schedule
from optbench.model.sleeping import (
    SleepTotals,
    kept_awake,
    sleep_rows,
    sleep_totals,
    wake_energy_j,
)
from optbench.model.stream_metrics import stream_metrics
from optbench.model.task_progress import TaskProgress, progress, segment_energy_j
from optbench.model.timegrid import HALF_BITS, rounded_sum
from optbench.units import J_PER_KWH


def metrics_of(
    instance: Instance, schedule: Schedule, made: TaskProgress | None = None
) -> dict[str, float]:
    """All metrics of a schedule of valid form. Metrics that are sums have no negative terms."""
    tick_s, tasks = instance.tick_s, instance.tasks
    makespan = float(schedule.end.max(initial=0))
    made = made or progress(instance, schedule)
    finish = made.finish(instance)
    due = np.isfinite(tasks.deadline)
    late = np.where(due, np.maximum(0.0, finish - np.where(due, tasks.deadline, 0.0)), 0.0)
    horizon = int(makespan) if instance.horizon is None else int(instance.horizon)
    busy_j = rounded_sum(segment_energy_j(instance, schedule, made.part))
    transfer_j = rounded_sum(transfers(instance, schedule)[2])
    slept = sleep_totals(instance, schedule, instance.opens, horizon)
    rest_j = rounded_sum(_resting_terms(instance, schedule, horizon, slept)) * tick_s
    wake_j = rounded_sum(wake_energy_j(instance.pools) * np.array(slept.wakes, dtype=float))
    energy_j = busy_j + transfer_j + rest_j + wake_j
    cost, carbon = tariff_totals(instance, schedule, float(horizon))
    streamed = (
        {}
        if instance.stream is None
        else stream_metrics(instance, schedule, made, finish, energy_j)
    )
    return {
        "makespan": makespan,
        "makespan_s": makespan * tick_s,
        "energy_j": energy_j,
        "busy_energy_j": busy_j,
        "transfer_energy_j": transfer_j,
        "rest_energy_j": rest_j,
        "flow_time_s": rounded_sum(tasks.weight * (finish - tasks.release)) * tick_s,
        "tardiness_s": rounded_sum((tasks.weight * late)[~tasks.deadline_hard]) * tick_s,
        "late_tasks": float((late > 0).sum()),
        "cost_usd": cost,
        "carbon_g": carbon,
        "peak_power_w": peak_power(instance, schedule, 0).watts,
        **({"wake_energy_j": wake_j} if provisioned(instance.pools).any() else {}),
        **streamed,
    }


def requirements(instance: Instance, mode: Ints) -> tuple[Ints, Ints, Ints]:
    """Flattened requirements of segments in these modes: segment row, pool, devices."""
    modes = instance.modes
    size = np.diff(modes.req_ptr)[mode]
    row = np.repeat(np.arange(len(mode)), size)
    offset = np.arange(len(row)) - np.repeat(np.cumsum(size) - size, size)
    req = modes.req_ptr[mode[row]] + offset
    return row, modes.req_pool[req], modes.req_count[req]


def mode_uses(instance: Instance) -> Ints:
    """``uses[mode, pool]``: devices of the pool that the mode occupies."""
    modes = instance.modes
    uses = np.zeros((instance.num_modes, instance.num_pools), dtype=np.int64)
    np.add.at(
        uses,
        (np.repeat(np.arange(instance.num_modes), np.diff(modes.req_ptr)), modes.req_pool),
        modes.req_count,
    )
    return uses


def _resting_terms(
    instance: Instance, schedule: Schedule, horizon: int, slept: SleepTotals
) -> Floats:
    """Power times ticks of devices that are not busy, and of those asleep."""
    pools, asleep = instance.pools, np.array([float(ticks) for ticks in slept.ticks])
    awake = pools.rest_w * resting_ticks(instance, schedule, horizon, slept.ticks)
    return np.concatenate((awake, pools.sleep_w * asleep)) if asleep.any() else awake


def resting_ticks(
    instance: Instance, schedule: Schedule, horizon: int, asleep: Sequence[int] | None = None
) -> Floats:
    """Idle device-ticks of each pool within [opens, horizon], without those ``asleep``: an exact
    difference, rounded once.
    """
    pools = instance.num_pools
    whole = [int(devices) * (horizon - instance.opens) for devices in instance.pools.count.tolist()]
    busy = busy_ticks(instance, schedule, horizon)
    out = zip(whole, busy, asleep or [0] * pools, strict=True)
    return np.array([float(there - used - slept) for there, used, slept in out])


def busy_ticks(instance: Instance, schedule: Schedule, horizon: int) -> list[int]:
    """Device-ticks of each pool that segments occupy within [opens, horizon], exactly."""
    opens, pools = instance.opens, instance.num_pools
    row, pool, count = requirements(instance, schedule.mode)
    last = max(horizon, opens)
    length = (np.clip(schedule.end, opens, last) - np.clip(schedule.start, opens, last))[row]
    low = np.bincount(
        pool, weights=count * (length & ((1 << HALF_BITS) - 1)), minlength=pools
    ).tolist()
    high = np.bincount(pool, weights=count * (length >> HALF_BITS), minlength=pools).tolist()
    return [(int(h) << HALF_BITS) + int(l) for h, l in zip(high, low, strict=True)]


def transfers(instance: Instance, schedule: Schedule) -> tuple[Ints, Floats, Floats]:
    """Per edge with data: sender pool, time and energy, from last to first segment."""
    edges = instance.edges
    if not (edges.data_gb > 0).any() or schedule.num_segments == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)
    first, last = first_and_last(instance, schedule)
    heavy = np.flatnonzero(edges.data_gb > 0)
    primary = instance.modes.primary[schedule.mode]
    producer, consumer = last[edges.source[heavy]], first[edges.target[heavy]]
    sender = primary[producer]
    energy = np.asarray(
        instance.transfer_j(sender, primary[consumer], edges.data_gb[heavy]), dtype=float
    )
    return sender, np.maximum(schedule.end[producer], 0).astype(float), energy


def first_and_last(instance: Instance, schedule: Schedule) -> tuple[Ints, Ints]:
    """Rows of each task's first and last segment."""
    order = np.lexsort((schedule.end, schedule.start, schedule.task))
    task = schedule.task[order]
    begins = np.flatnonzero(np.concatenate(([True], task[1:] != task[:-1])))
    ends = np.concatenate((begins[1:], [len(task)])) - 1
    first, last = np.zeros((2, instance.num_tasks), dtype=np.int64)
    first[task[begins]], last[task[ends]] = order[begins], order[ends]
    return first, last


def tariff_totals(instance: Instance, schedule: Schedule, horizon: float) -> tuple[float, float]:
    """Cost in USD and carbon in g; zero without tariffs."""
    tariffs = instance.tariffs
    if tariffs is None:
        return 0.0, 0.0
    cost = _tariff_total(instance, schedule, horizon, tariffs.price_usd_per_kwh)
    return cost, _tariff_total(instance, schedule, horizon, tariffs.carbon_g_per_kwh)


def _tariff_total(instance: Instance, schedule: Schedule, horizon: float, rates: Floats) -> float:
    assert instance.tariffs is not None
    times = instance.tariffs.times
    # A start before time 0 is a violation; it must not be an index of a period.
    start, end = (np.maximum(t, 0).astype(float) for t in (schedule.start, schedule.end))
    primary = instance.modes.primary[schedule.mode]
    energy = segment_energy_j(instance, schedule)
    sender, sent_at, sent_j = transfers(instance, schedule)
    total = _resting_total(instance, schedule, int(horizon), rates)
    woken, woken_at, woken_j = wakes(instance, schedule, int(horizon))
    for p in range(instance.num_pools):
        here = primary == p
        total += float((energy[here] * mean_rate(times, rates[p], start[here], end[here])).sum())
        at = sender == p
        total += float((sent_j[at] * rate_at(times, rates[p], sent_at[at])).sum())
        up = woken == p
        total += float((woken_j[up] * rate_at(times, rates[p], woken_at[up])).sum())
    return total / J_PER_KWH


def _resting_total(instance: Instance, schedule: Schedule, horizon: int, rates: Floats) -> float:
    """The cost of idle energy, by period, so that it is exactly 0 where no device is idle."""
    assert instance.tariffs is not None
    times, pools = instance.tariffs.times, instance.pools
    row, pool, count = requirements(instance, schedule.mode)
    edges = [*(int(time) for time in times.tolist()), math.inf]
    last = max(horizon, instance.opens)
    terms, slept = [], [list[tuple[int, int, int]]() for _ in range(instance.num_pools)]
    for p, *sleep in sleep_rows(schedule):
        slept[p].append((sleep[0], sleep[1], sleep[2]))
    for p in range(instance.num_pools):
        mine = pool == p
        start, end, devices = schedule.start[row[mine]], schedule.end[row[mine]], count[mine]
        for period in np.flatnonzero(rates[p] * pools.rest_w[p] > 0).tolist():
            low, high = max(edges[period], instance.opens), min(edges[period + 1], last)
            if low >= high:
                continue
            length = np.minimum(end, high) - np.maximum(start, low)
            asleep = sum(
                n * max(0, min(until, high) - max(since, low)) for n, since, until in slept[p]
            )
            idle = int(pools.count[p]) * (high - low) - asleep
            idle -= _device_ticks(devices, np.maximum(length, 0))
            terms.append(float(rates[p, period]) * float(pools.rest_w[p]) * float(idle))
            terms.append(float(rates[p, period]) * float(pools.sleep_w[p]) * float(asleep))
    return rounded_sum(terms) * instance.tick_s


def wakes(instance: Instance, schedule: Schedule, horizon: int) -> tuple[Ints, Floats, Floats]:
    """Pool, time and energy of the devices of each row that wake before the horizon."""
    rows = schedule.sleep
    if rows is None:
        return np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)
    wake = rows.end < horizon
    energy = wake_energy_j(instance.pools)[rows.pool] * rows.devices
    return rows.pool[wake], np.maximum(rows.end, 0)[wake].astype(float), energy[wake]


def _device_ticks(devices: Ints, length: Ints) -> int:
    """Σ devices · length, exactly."""
    high, low = devices @ (length >> HALF_BITS), devices @ (length & ((1 << HALF_BITS) - 1))
    return (int(high) << HALF_BITS) + int(low)


def rate_at(times: Any, rates: Floats, t: Floats) -> Floats:
    """The piecewise-constant rate at times t (a change counts from its own instant on)."""
    return np.asarray(rates[np.searchsorted(times, t, side="right") - 1], dtype=float)


def integral(times: Any, rates: Floats, t: Floats) -> Floats:
    """∫ of the rate over [0, t]."""
    period = np.searchsorted(times, t, side="right") - 1
    return np.asarray(
        cumulated(times, rates)[period] + (t - times[period]) * rates[period], dtype=float
    )


def cumulated(times: Any, rates: Floats) -> Floats:
    """∫ of the rate from 0 to the begin of each period."""
    return np.concatenate(([0.0], np.cumsum(np.diff(times) * rates[:-1])))


def mean_rate(times: Any, rates: Floats, start: Floats, end: Floats) -> Floats:
    """Mean rate over [start, end]; the rate at the start where that is empty."""
    length = end - start
    mean = between(times, rates, start, end) / np.where(length > 0, length, 1.0)
    return np.where(length > 0, mean, rate_at(times, rates, start))


def between(times: Any, rates: Floats, start: Floats, end: Floats) -> Floats:
    """∫ of the rate over each [start, end], by period: long integrals would lose digits."""
    total = np.zeros(len(start))
    if len(start) == 0:
        return total
    edges = np.append(np.asarray(times, dtype=float), np.inf)
    first, last = np.searchsorted(edges, (start.min(), end.max()), side="right") - 1
    for period in range(max(0, int(first)), min(int(last), len(rates) - 1) + 1):
        if rates[period] != 0.0:
            inside = np.minimum(end, edges[period + 1]) - np.maximum(start, edges[period])
            total += np.maximum(inside, 0.0) * rates[period]
    return total


def peak_power(instance: Instance, schedule: Schedule, place: int) -> Peak:
    """The highest power at a place and its first time: running modes plus idle devices of its
    pools.

    A mode's power counts at the place of its primary pool; none of its devices is idle meanwhile.
    """
    busy = schedule.end > schedule.start
    start, end, mode = schedule.start[busy], schedule.end[busy], schedule.mode[busy]
    used = np.flatnonzero(np.bincount(mode, minlength=instance.num_modes))
    added = [exact_added_w(instance, place, k) for k in used.tolist()]
    number = np.zeros(instance.num_modes, dtype=np.int64)
    number[used] = np.arange(len(used))
    which = number[mode]
    if (rows := schedule.sleep) is not None:
        # A device that sleeps takes back what it would draw at rest.
        saved = exact_saved_w(instance, place)
        which = np.concatenate((which, len(added) + np.arange(len(rows.pool))))
        devices = zip(rows.pool.tolist(), rows.devices.tolist(), strict=True)
        added += [-saved[pool] * count for pool, count in devices]
        start, end = np.concatenate((start, rows.start)), np.concatenate((end, rows.end))
    return exact_peak(start, end, which, added, exact_resting_w(instance, place))


def profile_of(start: Floats, end: Floats, demand: Floats) -> tuple[Floats, Floats]:
    """Change points and the sum of demands from each change point to the next."""
    t = np.concatenate((start, end))
    change = np.concatenate((demand, -demand))
    order = np.argsort(t, kind="stable")
    t, level = t[order], np.cumsum(change[order])
    last = np.concatenate((t[1:] != t[:-1], [True]))
    return t[last], level[last]


@dataclass(frozen=True, eq=False)
class PowerTrace:
    """Mean power per pool: ``busy_w[p, q]`` and ``rest_w[p, q]`` hold from ``t[q]`` to ``t[q + 1]``
    (ticks).

    Its integral plus the transfers' energy (drawn in an instant, listed beside it) is the energy of
    the schedule.
    """

    t: Floats
    busy_w: Floats
    rest_w: Floats
    transfer_t: Floats
    transfer_j: Floats

    def energy_j(self, tick_s: float) -> float:
        """Integral of the power, and the transfers."""
        width = np.diff(self.t) * tick_s
        return float(((self.busy_w + self.rest_w) * width).sum() + self.transfer_j.sum())


def power_trace(instance: Instance, schedule: Schedule) -> PowerTrace:
    """Power over time: segments draw evenly; one of zero length counts as a transfer, as do
    wakes.
    """
    instance, rows = kept_awake(instance), schedule.sleep
    start, end = schedule.start.astype(float), schedule.end.astype(float)
    horizon = float(end.max(initial=0.0)) if instance.horizon is None else float(instance.horizon)
    t = np.unique(np.concatenate(([instance.opens, horizon], start, end)))
    if rows is not None:
        since, until = (
            np.clip(column, 0, horizon).astype(float) for column in (rows.start, rows.end)
        )
        t = np.unique(np.concatenate((t, since, until)))
    watched = (t[:-1] >= instance.opens) & (t[1:] <= horizon)
    energy = segment_energy_j(instance, schedule)
    long = end > start
    power = np.where(long, energy / np.where(long, (end - start) * instance.tick_s, 1.0), 0.0)
    primary = np.maximum(instance.modes.primary[schedule.mode], 0)
    busy_w = _accumulate(t, primary[long], start[long], end[long], power[long], instance.num_pools)
    row, pool, count = requirements(instance, schedule.mode)
    busy = _accumulate(t, pool, start[row], end[row], count.astype(float), instance.num_pools)
    rest_w = np.where(
        watched, instance.pools.rest_w[:, None] * (instance.pools.count[:, None] - busy), 0.0
    )
    if rows is not None:
        less = _accumulate(t, rows.pool, since, until, rows.devices.astype(float), len(rest_w))
        saved_w = (instance.pools.rest_w - instance.pools.sleep_w)[:, None]
        rest_w = np.where(watched, rest_w - saved_w * less, 0.0)
    (_, sent_at, sent_j), (_, woken_at, woken_j) = (
        transfers(instance, schedule),
        wakes(instance, schedule, int(horizon)),
    )
    at = np.concatenate((sent_at, woken_at, start[~long]))
    return PowerTrace(t, busy_w, rest_w, at, np.concatenate((sent_j, woken_j, energy[~long])))


def _accumulate(
    t: Floats, pool: Ints, start: Floats, end: Floats, value: Any, num_pools: int
) -> Floats:
    """Sum of values per pool and interval of t."""
    change = np.zeros((num_pools, len(t)))
    np.add.at(change, (pool, np.searchsorted(t, start)), value)
    np.add.at(change, (pool, np.searchsorted(t, end)), -value)
    return np.asarray(np.cumsum(change, axis=1)[:, :-1], dtype=float)
