"""Feasibility checks, one function per constraint; a violation states place and amount."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from optbench.model.instance import Bools, Floats, Instance, Ints
from optbench.model.metrics import first_and_last, peak_power, requirements
from optbench.model.schedule import Schedule
from optbench.model.task_progress import TaskProgress
from optbench.model.timegrid import exceeds

CONSTRAINTS = {
    "form": "columns of equal length, known tasks and modes, whole ticks",
    "assignment": "every task is complete: its shares add up to 1 or more (of an open instance it may be cut off by the horizon)",
    "single_segment": "one segment per task unless the instance is preemptive",
    "one_pool": "a task that sends or receives data keeps the primary pool of its first segment",
    "mode": "a task runs in a mode of its own kind",
    "memory": "the task fits the memory of the devices",
    "duration": "a segment lasts what its task takes in its mode; preemptive, it is not empty unless the task takes no time",
    "release": "no task starts before its release, nor before time 0",
    "access": "a segment starts after the task's release and the latency from its ingress to the pool",
    "deadline": "hard deadlines hold",
    "horizon": "everything ends within a fixed horizon, and by tick 2^52",
    "precedence": "a task starts after its predecessors end",
    "transfer": "a task starts after its predecessors' data has arrived",
    "link": "data moves only between linked pools",
    "capacity": "a pool never has more busy devices than it has",
    "self_overlap": "segments of one task do not overlap",
    "power_cap": "power at a place stays within its cap",
    "limit": "an upper limit on a metric holds (named limit:<metric>)",
    "finite": "every metric is a finite number",
}

# The number of rows that a violation's message describes.
SHOWN = 3
# Later times, far beyond any horizon, are invalid, so that differences of times fit into int64.
LARGEST_TIME = 2**60


@dataclass(frozen=True)
class Violation:
    """A broken constraint: the number of violations, the largest amount, and the first place."""

    constraint: str
    message: str
    amount: float = 0.0
    count: int = 1

    def __str__(self) -> str:
        return f"{self.constraint}: {self.message}"


def check_form(instance: Instance, schedule: Schedule) -> Violation | None:
    """Violations of the form; a schedule of invalid form is not checked further."""
    bad_form = _form(instance, schedule)
    return Violation("form", bad_form) if bad_form else None


def check(instance: Instance, schedule: Schedule, made: TaskProgress) -> list[Violation]:
    """All violations, except of limits on metrics, of a schedule of valid form in 64-bit columns."""
    found: list[Violation] = []
    _check_each_segment(instance, schedule, found)
    _check_segment_lengths(instance, schedule, made, found)
    _check_access(instance, schedule, found)
    _check_assignment(instance, schedule, made, found)
    _check_each_task(instance, schedule, found)
    if np.isfinite(made.first).all():
        _check_edges(instance, schedule, found)
    _check_capacity(instance, schedule, found)
    _check_power_caps(instance, schedule, found)
    return found


def _form(instance: Instance, s: Schedule) -> str | None:
    columns = {"task": s.task, "mode": s.mode, "start": s.start, "end": s.end}
    n = s.task.size
    for name, column in columns.items():
        if column.ndim != 1 or len(column) != n:
            return f"column {name!r} has shape {column.shape}, expected ({n},)"
        if column.dtype.kind not in "iu":
            return f"column {name!r} holds {column.dtype}, expected whole numbers"
    for name, column, top in (("task", s.task, instance.num_tasks), ("mode", s.mode, instance.num_modes)):
        bad = np.flatnonzero((column < 0) | (column >= top))
        if len(bad):
            return f"{name}[{bad[0]}] is {column[bad[0]]}, expected 0 to {top - 1}"
    for name in ("start", "end"):
        bad = np.flatnonzero((columns[name] > LARGEST_TIME) | (columns[name] < -LARGEST_TIME))
        if len(bad):
            return f"{name}[{bad[0]}] is {columns[name][bad[0]]}, expected at most 2^60 ticks"
    return None


def _add(found: list[Violation], name: str, bad: Bools, amount: Any, describe: Any) -> None:
    """Record a constraint broken in the rows where ``bad`` holds."""
    rows = np.flatnonzero(bad)
    if len(rows) == 0:
        return
    text = "; ".join(describe(int(row)) for row in rows[:SHOWN])
    more = f"; and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
    worst = float(np.max(np.broadcast_to(amount, bad.shape)[rows]))
    found.append(Violation(name, text + more, worst, len(rows)))


def _check_each_segment(instance: Instance, s: Schedule, found: list[Violation]) -> None:
    """Record segments that break a constraint by themselves: kind of the mode, memory, release,
    hard deadline, horizon.
    """
    clock = clock_of(instance)
    tasks, name = instance.tasks, instance.tasks.name
    start, end = s.start, s.end
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
    early = np.maximum(tasks.release[s.task], 0) - start
    _add(
        found,
        "release",
        early > 0,
        early,
        lambda r: f"task {name(s.task[r])} starts at {clock(start[r])}, released at {clock(tasks.release[s.task[r]])}",
    )
    hard = tasks.deadline_hard[s.task] & np.isfinite(tasks.deadline[s.task])
    late = np.where(hard, end - np.where(hard, tasks.deadline[s.task], 0.0), -1.0)
    _add(
        found,
        "deadline",
        late > 0,
        late,
        lambda r: f"task {name(s.task[r])} ends at {clock(end[r])}, its deadline is {clock(tasks.deadline[s.task[r]])}",
    )
    over = end - instance.end_of_time
    _add(
        found,
        "horizon",
        over > 0,
        over,
        lambda r: f"task {name(s.task[r])} ends at {clock(end[r])}, the horizon is {clock(instance.end_of_time)}",
    )


def _check_segment_lengths(instance: Instance, s: Schedule, made: TaskProgress, found: list[Violation]) -> None:
    """Check lengths of segments: D, or less if the instance is preemptive or the horizon cuts it off."""
    clock = clock_of(instance)
    whole, length = made.whole, s.end - s.start
    if instance.preemptive:
        wrong = np.where(whole > 0, length <= 0, length != 0)
    else:
        wrong = length != whole
        if instance.is_open:
            wrong &= ~((s.end == instance.end_of_time) & (length > 0) & (length < whole))
    name = instance.tasks.name
    _add(
        found,
        "duration",
        wrong,
        np.abs(length - whole),
        lambda r: (
            f"task {name(s.task[r])} runs from {clock(s.start[r])} to {clock(s.end[r])}, "
            f"in mode {s.mode[r]} it takes {clock(whole[r])}"
        ),
    )


def _check_assignment(instance: Instance, s: Schedule, made: TaskProgress, found: list[Violation]) -> None:
    """Check that every task is complete.

    In an open instance, tasks without a segment may stay undone, and those that ``_check_segment_lengths`` accepted."""
    if instance.is_open:
        return
    name, segments = instance.tasks.name, np.bincount(s.task, minlength=instance.num_tasks)
    # Without preemption the constraint "duration" checks the length of the one segment.
    wrong = ~made.complete & (instance.preemptive | (segments == 0))
    share = np.minimum(made.share, 1.0)
    _add(
        found,
        "assignment",
        wrong,
        1.0 - share,
        lambda r: f"task {name(r)} is done to {100 * share[r]:.9g} % in {segments[r]} segments",
    )


def _check_each_task(instance: Instance, s: Schedule, found: list[Violation]) -> None:
    """Check the constraints between the segments of one task."""
    clock = clock_of(instance)
    tasks, segments = instance.tasks, np.bincount(s.task, minlength=instance.num_tasks)
    if not (segments > 1).any():
        return
    if not instance.preemptive:
        _add(
            found,
            "single_segment",
            segments > 1,
            segments.astype(float),
            lambda r: f"task {tasks.name(r)} has {segments[r]} segments",
        )
        return
    order = np.lexsort((s.end, s.start, s.task))
    task, start, end = s.task[order], s.start[order], s.end[order]
    same = task[1:] == task[:-1]
    over = np.where(same, end[:-1] - start[1:], -1)
    _add(
        found,
        "self_overlap",
        over > 0,
        over,
        lambda r: f"task {tasks.name(task[r])} runs twice at {clock(start[r + 1])}",
    )
    pool, moves = instance.modes.primary[s.mode[order]], tasks_with_data(instance)
    _add(
        found,
        "one_pool",
        same & (pool[1:] != pool[:-1]) & moves[task[1:]],
        1.0,
        lambda r: (
            f"task {tasks.name(task[r])} sends or receives data, and goes from {pool_name(instance, pool[r])} "
            f"to {pool_name(instance, pool[r + 1])} at {clock(start[r + 1])}"
        ),
    )


def clock_of(instance: Instance) -> Callable[[Any], str]:
    """The format of times in messages: ticks if a tick is a second, else seconds."""
    if instance.tick_s == 1.0:
        return lambda ticks: f"{int(ticks)}"
    return lambda ticks: f"{float(ticks) * instance.tick_s:.12g} s"


def tasks_with_data(instance: Instance) -> Bools:
    """Tasks that send or receive data; all their segments run on one pool."""
    edges, out = instance.edges, np.zeros(instance.num_tasks, dtype=bool)
    heavy = edges.data_gb > 0
    out[edges.source[heavy]] = True
    out[edges.target[heavy]] = True
    return out


def pool_name(instance: Instance, pool: Any) -> str:
    return instance.pools.names[int(pool)] if pool >= 0 else "no pool"


def _check_access(instance: Instance, s: Schedule, found: list[Violation]) -> None:
    """Check the ingress latency of every segment, whichever pools other segments ran on."""
    clock = clock_of(instance)
    if instance.stream is None or s.num_segments == 0:
        return
    tasks, pool = instance.tasks, instance.modes.primary[s.mode]
    there = tasks.release[s.task] + np.asarray(instance.access(s.task, pool), dtype=float)
    late = there - s.start
    _add(
        found,
        "access",
        late > 0,
        np.where(np.isfinite(late), late, 1.0),
        lambda r: (
            f"task {tasks.name(s.task[r])} starts in {pool_name(instance, pool[r])} at {clock(s.start[r])}, "
            + (f"and is there at {clock(there[r])}" if np.isfinite(there[r]) else "which it cannot reach")
        ),
    )


def _check_edges(instance: Instance, s: Schedule, found: list[Violation]) -> None:
    clock = clock_of(instance)
    edges, tasks = instance.edges, instance.tasks
    if len(edges.source) == 0:
        return
    first, last = first_and_last(instance, s)
    finish = np.full(instance.num_tasks, -LARGEST_TIME, dtype=np.int64)
    np.maximum.at(finish, s.task, s.end)
    ends, starts = finish[edges.source], s.start[first[edges.target]]
    early = ends - starts
    _add(
        found,
        "precedence",
        early > 0,
        early,
        lambda e: (
            f"task {tasks.name(edges.target[e])} starts at {clock(starts[e])}, "
            f"before {tasks.name(edges.source[e])} ends at {clock(ends[e])}"
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
        (missing > 0) & (early <= 0),
        missing,
        lambda e: f"data of {tasks.name(edges.source[e])} reaches {tasks.name(edges.target[e])} {clock(missing[e])} too late",
    )


def _check_capacity(instance: Instance, s: Schedule, found: list[Violation]) -> None:
    clock = clock_of(instance)
    row, pool, count = requirements(instance, s.mode)
    start, end = s.start[row].astype(float), s.end[row].astype(float)
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
        lambda p: f"pool {instance.pools.names[p]} has {top[p]:g} busy devices of {instance.pools.count[p]} at {clock(at[p])}",
    )


def missing_devices(instance: Instance) -> tuple[Ints, Floats, Floats, Ints]:
    """Outages as intervals: pool, from, to (inf if devices do not return) and number of devices."""
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
    """The largest number of busy devices of each pool, and its first time, by one sweep."""
    t, change = np.concatenate((end, start)), np.concatenate((-count, count))
    order = np.argsort(t, kind="stable")  # An end is sorted before a start at the same time.
    which = np.concatenate((pool, pool))[order].astype(np.int16 if num_pools < 2**15 else np.int64)
    by_pool = np.argsort(which, kind="stable")
    level = np.cumsum(change[order][by_pool])  # The sum is 0 again at the end of each pool.
    top, at = np.zeros(num_pools), np.zeros(num_pools)
    sizes = np.bincount(which, minlength=num_pools)
    for p, (size, last) in enumerate(zip(sizes.tolist(), np.cumsum(sizes).tolist(), strict=True)):
        if size:
            row = int(np.argmax(level[last - size : last])) + last - size
            top[p], at[p] = level[row], t[order[by_pool[row]]]
    return top, at


def _check_power_caps(instance: Instance, s: Schedule, found: list[Violation]) -> None:
    clock = clock_of(instance)
    limits = instance.limits
    for place, cap in zip(limits.cap_place.tolist(), limits.cap_w.tolist(), strict=True):
        peak = peak_power(instance, s, place)
        if exceeds(peak.watts, cap):
            message = f"{instance.places.names[place]} draws {peak.watts:.12g} W at {clock(peak.at)}, the cap is {cap:.12g} W"
            found.append(Violation("power_cap", message, peak.watts - cap))
