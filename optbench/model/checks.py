"""Feasibility, one function per constraint; each is named in CONSTRAINTS and says where and by how much it is broken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from optbench.model.instance import MAX_TIME, TOLERANCE, Bools, Floats, Instance, Ints
from optbench.model.metrics import first_and_last, peak_power, requirements, slack
from optbench.model.schedule import Schedule

CONSTRAINTS = {
    "form": "columns of equal length, known tasks and modes, finite times and units, integers where time is ticks",
    "assignment": "every task's units are processed exactly (of an open instance: what has begun runs on to the horizon)",
    "single_segment": "one segment per task unless the instance is preemptive",
    "mode": "a task runs in a mode of its own kind",
    "memory": "the task fits the memory of the devices",
    "duration": "end - start is the duration of the segment's units in its mode",
    "release": "no task starts before its release",
    "access": "a task starts after its way from where it comes in to the pool",
    "deadline": "hard deadlines hold",
    "horizon": "everything ends within a fixed horizon",
    "precedence": "a task starts after its predecessors end",
    "transfer": "a task starts after its predecessors' data has arrived",
    "link": "data moves only between linked pools",
    "capacity": "a pool never has more busy devices than it has",
    "self_overlap": "segments of one task do not overlap",
    "power_cap": "power at a place stays within its cap",
    "limit": "an upper limit on a metric holds (named limit:<metric>)",
}

# Rows described one by one in a violation's message.
SHOWN = 3
# A task cut into more segments than this is forgiven no more in all.
SEGMENTS = 16


@dataclass(frozen=True)
class Violation:
    """One broken constraint: how often, by how much at worst, and where first."""

    constraint: str
    message: str
    amount: float = 0.0
    count: int = 1

    def __str__(self) -> str:
        return f"{self.constraint}: {self.message}"


def check(instance: Instance, schedule: Schedule) -> list[Violation]:
    """All violations but those of metric limits; a schedule of bad form is checked no further."""
    bad_form = _form(instance, schedule)
    if bad_form:
        return [Violation("form", bad_form)]
    found: list[Violation] = []
    _per_segment(instance, schedule, found)
    _access(instance, schedule, found)
    complete = _assignment(instance, schedule, found)
    if complete:
        _edges(instance, schedule, found)
    _capacity(instance, schedule, found)
    _power(instance, schedule, found)
    return found


def _form(instance: Instance, s: Schedule) -> str | None:
    columns = {"task": s.task, "mode": s.mode, "start": s.start, "end": s.end, "units": s.units}
    n = len(s.task)
    for name, column in columns.items():
        if column.ndim != 1 or len(column) != n:
            return f"column {name!r} has shape {column.shape}, expected ({n},)"
    for name, column, top in (("task", s.task, instance.num_tasks), ("mode", s.mode, instance.num_modes)):
        if column.dtype.kind not in "iu":
            return f"column {name!r} holds {column.dtype}, expected integers"
        bad = np.flatnonzero((column < 0) | (column >= top))
        if len(bad):
            return f"{name}[{bad[0]}] is {column[bad[0]]}, expected 0 to {top - 1}"
    for name in ("start", "end", "units"):
        bad = np.flatnonzero(~np.isfinite(columns[name].astype(float)))
        if len(bad):
            return f"{name}[{bad[0]}] is {columns[name][bad[0]]}, expected a finite number"
    for name in ("start", "end"):
        bad = np.flatnonzero(np.abs(columns[name].astype(float)) > MAX_TIME)
        if len(bad):
            return f"{name}[{bad[0]}] is {columns[name][bad[0]]}, expected at most {MAX_TIME:.3g}"
    if instance.domain == "ticks":
        for name in ("start", "end"):
            bad = np.flatnonzero(columns[name] != np.floor(columns[name]))
            if len(bad):
                return f"{name}[{bad[0]}] is {columns[name][bad[0]]}, expected a whole number of ticks"
    return None


def _tolerance(instance: Instance, times: Floats) -> Floats:
    """What a comparison of times forgives: nothing in ticks, a relative 1e-9 in seconds."""
    return np.zeros(len(times)) if instance.domain == "ticks" else TOLERANCE * np.maximum(1.0, np.abs(times))


def _forgiven(instance: Instance, s: Schedule) -> Floats:
    """The tolerance of each segment: thousands of segments shorter than it would do their work in no time."""
    tolerance = _tolerance(instance, s.end.astype(float))
    segments = np.bincount(s.task, minlength=instance.num_tasks)[s.task]
    return np.asarray(tolerance * np.minimum(1.0, SEGMENTS / np.maximum(1, segments)), dtype=float)


def _add(found: list[Violation], name: str, bad: Bools, amount: Any, describe: Any) -> None:
    """Record a constraint broken in the rows where ``bad`` holds."""
    rows = np.flatnonzero(bad)
    if len(rows) == 0:
        return
    text = "; ".join(describe(int(row)) for row in rows[:SHOWN])
    more = f"; and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
    worst = float(np.max(np.broadcast_to(amount, bad.shape)[rows]))
    found.append(Violation(name, text + more, worst, len(rows)))


def _per_segment(instance: Instance, s: Schedule, found: list[Violation]) -> None:
    tasks, name = instance.tasks, instance.tasks.name
    start, end = s.start.astype(float), s.end.astype(float)
    kind_ok = instance.modes.kind[s.mode] == tasks.kind[s.task]
    _add(found, "mode", ~kind_ok, 1.0, lambda r: f"task {name(s.task[r])} runs in mode {s.mode[r]}, which is not of its kind")
    room = instance.mode_memory_gb[s.mode]
    need = tasks.memory_gb[s.task]
    _add(
        found,
        "memory",
        need > room,
        need - np.where(np.isfinite(room), room, 0),
        lambda r: f"task {name(s.task[r])} needs {need[r]:g} GB, mode {s.mode[r]} has {room[r]:g} GB",
    )
    length = np.asarray(instance.duration(s.mode, s.units), dtype=float)
    tolerance = _tolerance(instance, end)
    off = np.abs(end - start - length)
    _add(
        found,
        "duration",
        off > _forgiven(instance, s),
        off,
        lambda r: f"task {name(s.task[r])} runs from {start[r]:g} to {end[r]:g}, its units take {length[r]:g}",
    )
    early = tasks.release[s.task].astype(float) - start
    early = np.maximum(early, -start)
    _add(
        found,
        "release",
        early > tolerance,
        early,
        lambda r: f"task {name(s.task[r])} starts at {start[r]:g}, released at {tasks.release[s.task[r]]:g}",
    )
    hard = tasks.deadline_hard[s.task] & np.isfinite(tasks.deadline[s.task])
    late = np.where(hard, end - np.where(hard, tasks.deadline[s.task], 0.0), -1.0)
    _add(
        found,
        "deadline",
        late > tolerance,
        late,
        lambda r: f"task {name(s.task[r])} ends at {end[r]:g}, its deadline is {tasks.deadline[s.task[r]]:g}",
    )
    if instance.horizon is not None:
        over = end - instance.horizon
        _add(
            found,
            "horizon",
            over > tolerance,
            over,
            lambda r: f"task {name(s.task[r])} ends at {end[r]:g}, the horizon is {instance.horizon:g}",
        )


def _assignment(instance: Instance, s: Schedule, found: list[Violation]) -> bool:
    """Units processed exactly; whether every task has a segment at all."""
    tasks, n = instance.tasks, instance.num_tasks
    done = np.bincount(s.task, weights=s.units, minlength=n).astype(float)
    segments = np.bincount(s.task, minlength=n)
    off = np.abs(done - tasks.units)
    # One segment must carry the very number: a trifle less could be a tick less.
    allowed = np.where(segments == 1, 0.0, TOLERANCE * np.maximum(1.0, np.abs(tasks.units)))
    wrong = (off > allowed) | (segments == 0)
    if instance.is_open:
        wrong &= ~_may_stay_undone(instance, s, done, segments)
    wrong[s.task[s.units <= 0]] = True
    _add(
        found,
        "assignment",
        wrong,
        off,
        lambda r: f"task {tasks.name(r)} has {done[r]:g} of its {tasks.units[r]:g} units in {segments[r]} segments",
    )
    if not instance.preemptive:
        _add(
            found,
            "single_segment",
            segments > 1,
            segments.astype(float),
            lambda r: f"task {tasks.name(r)} has {segments[r]} segments",
        )
    elif (segments > 1).any():
        order = np.lexsort((s.start, s.task))
        task, start, end = s.task[order], s.start[order].astype(float), s.end[order].astype(float)
        over = np.where(task[1:] == task[:-1], end[:-1] - start[1:], -1.0)
        _add(
            found,
            "self_overlap",
            over > _forgiven(instance, s)[order][1:],
            over,
            lambda r: f"task {tasks.name(task[r])} runs twice at {start[r + 1]:g}",
        )
    return bool((segments > 0).all())


def _may_stay_undone(instance: Instance, s: Schedule, done: Floats, segments: Ints) -> Bools:
    """Tasks of an open instance that are not done, and need not be: they run at the horizon, wait, or may be interrupted."""
    assert instance.horizon is not None
    last = np.full(instance.num_tasks, -np.inf)
    np.maximum.at(last, s.task, s.end.astype(float))
    running = last >= instance.horizon - slack(instance.horizon)
    return np.asarray((done < instance.tasks.units) & ((segments == 0) | running | instance.preemptive))


def _access(instance: Instance, s: Schedule, found: list[Violation]) -> None:
    """Way in, of each task's first segment."""
    stream, tasks = instance.stream, instance.tasks
    if stream is None or s.num_segments == 0:
        return
    order = np.lexsort((s.start, s.task))
    rows = order[np.concatenate(([True], s.task[order][1:] != s.task[order][:-1]))]
    pool, task = instance.modes.primary[s.mode[rows]], s.task[rows]
    there = tasks.release[task].astype(float) + np.asarray(instance.access(task, pool), dtype=float)
    start = s.start[rows].astype(float)
    late = there - start
    _add(
        found,
        "access",
        ~(late <= _tolerance(instance, start)),
        np.where(np.isfinite(late), late, 1.0),
        lambda r: (
            f"task {tasks.name(task[r])} starts in {instance.pools.names[pool[r]]} at {start[r]:g}, "
            + (f"and is there at {there[r]:g}" if np.isfinite(there[r]) else "which it cannot reach")
        ),
    )


def _edges(instance: Instance, s: Schedule, found: list[Violation]) -> None:
    edges, tasks = instance.edges, instance.tasks
    if len(edges.source) == 0:
        return
    first, last = first_and_last(instance, s)
    finish = np.full(instance.num_tasks, -np.inf)
    np.maximum.at(finish, s.task, s.end.astype(float))
    ends, starts = finish[edges.source], s.start[first[edges.target]].astype(float)
    tolerance = _tolerance(instance, starts)
    early = ends - starts
    _add(
        found,
        "precedence",
        early > tolerance,
        early,
        lambda e: (
            f"task {tasks.name(edges.target[e])} starts at {starts[e]:g}, "
            f"before {tasks.name(edges.source[e])} ends at {ends[e]:g}"
        ),
    )
    primary = instance.modes.primary[s.mode]
    sender, receiver = primary[last[edges.source]], primary[first[edges.target]]
    lag = np.asarray(instance.lag(sender, receiver, edges.data_gb), dtype=float)
    linked = np.isfinite(lag)
    pools = instance.pools.names
    _add(
        found,
        "link",
        ~linked,
        1.0,
        lambda e: (
            f"{tasks.name(edges.source[e])} to {tasks.name(edges.target[e])}: "
            f"no link from {pools[sender[e]]} to {pools[receiver[e]]}"
        ),
    )
    missing = np.where(linked & (lag > 0), ends + np.where(linked, lag, 0.0) - starts, -1.0)
    _add(
        found,
        "transfer",
        (missing > tolerance) & (early <= tolerance),
        missing,
        lambda e: f"data of {tasks.name(edges.source[e])} reaches {tasks.name(edges.target[e])} {missing[e]:g} too late",
    )


def _capacity(instance: Instance, s: Schedule, found: list[Violation]) -> None:
    row, pool, count = requirements(instance, s.mode)
    start, end = s.start.astype(float)[row], s.end.astype(float)[row]
    end = end - _forgiven(instance, s)[row]
    keep = end > start
    pool, start, end, count = pool[keep], start[keep], end[keep], count[keep]
    if instance.stream is not None and len(instance.stream.outages.time):
        gone, since, until, devices = missing_devices(instance)
        pool, count = np.concatenate((pool, gone)), np.concatenate((count, devices))
        start, end = np.concatenate((start, since)), np.concatenate((end, until))
    top, at = _peaks_by_pool(pool, start, end, count, instance.num_pools)
    over = top - instance.pools.count
    _add(
        found,
        "capacity",
        over > 0,
        over,
        lambda p: f"pool {instance.pools.names[p]} has {top[p]:g} busy devices of {instance.pools.count[p]} at {at[p]:g}",
    )


def missing_devices(instance: Instance) -> tuple[Ints, Floats, Floats, Ints]:
    """Outages as spans: pool, from, to (inf where they do not come back) and devices that are gone."""
    assert instance.stream is not None
    outages = instance.stream.outages
    spans: list[tuple[int, float, float, int]] = []
    for pool in np.unique(outages.pool).tolist():
        rows = outages.pool == pool
        times, gone = outages.time[rows], np.cumsum(outages.devices[rows])
        for since, until, devices in zip(times, [*times[1:], np.inf], gone, strict=True):
            if devices > 0 and until > since:
                spans.append((pool, float(since), float(until), int(devices)))
    table = np.array(spans, dtype=float).reshape(-1, 4)
    return table[:, 0].astype(np.int64), table[:, 1], table[:, 2], table[:, 3].astype(np.int64)


def _peaks_by_pool(pool: Ints, start: Floats, end: Floats, count: Ints, num_pools: int) -> tuple[Floats, Floats]:
    """Most devices busy at once in each pool, and when: one sweep over all pools, ends before starts."""
    which = np.concatenate((pool, pool))
    t, change = np.concatenate((start, end)), np.concatenate((count, -count))
    order = np.lexsort((change, t, which))
    which, t, level = which[order], t[order], np.cumsum(change[order])
    top, at = np.zeros(num_pools), np.zeros(num_pools)
    np.maximum.at(top, which, level)  # the level is 0 again at the end of each pool
    first = np.flatnonzero(level == top[which])[::-1]
    at[which[first]] = t[first]
    return top, at


def _power(instance: Instance, s: Schedule, found: list[Violation]) -> None:
    limits = instance.limits
    start, end = s.start.astype(float), s.end.astype(float)
    for place, cap in zip(limits.cap_place.tolist(), limits.cap_w.tolist(), strict=True):
        peak, at = peak_power(instance, start, end, s.mode, place)
        if peak > cap + slack(cap):
            message = f"{instance.places.names[place]} draws {peak:.6g} W at {at:g}, the cap is {cap:g} W"
            found.append(Violation("power_cap", message, peak - cap))
