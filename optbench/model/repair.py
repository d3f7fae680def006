"""Repair of schedules that are infeasible by rounding alone; a repaired schedule is verified as
usual.

Float times are rounded to the nearest tick. Then starts and ends move by at most ``reach`` = 1 µs,
or one tick if that is coarser: each segment gets the duration of its task, and starts when its
release, ingress latency, predecessors' data and devices allow. If deadlines or the horizon are
missed by that much, all segments start up to ``reach`` earlier. A schedule that would need larger
moves is left unchanged.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optbench.model.instance import Floats, Instance, Ints
from optbench.model.schedule import Schedule
from optbench.model.task_progress import saved_ticks, ticks_left
from optbench.model.timegrid import grid_down
from optbench.model.verify import Verdict, verify

REACH_S = 1e-6
# Constraints whose violation is in ticks: beyond twice the reach it cannot be repaired.
IN_TICKS = frozenset(
    {
        "duration",
        "release",
        "access",
        "deadline",
        "horizon",
        "precedence",
        "transfer",
        "self_overlap",
    }
)
# Constraints that moves of starts and ends may repair, whatever the amount of the violation.
MAY_BE_MENDED = frozenset({"assignment", "capacity", "power_cap"})


@dataclass(frozen=True)
class Repaired:
    """A schedule with its verdict, the number of moved segments, and the largest move in ticks."""

    schedule: Schedule
    verdict: Verdict
    segments_moved: int = 0
    largest_move: int = 0

    def to_dict(self, instance: Instance) -> dict[str, float] | None:
        """The entry of a repair in results; None if there was none."""
        if not self.segments_moved:
            return None
        return {
            "segments": self.segments_moved,
            "largest_move_s": self.largest_move * instance.tick_s,
        }


def reach_of(instance: Instance) -> int:
    """The largest move of a start or an end, in ticks."""
    return max(1, int(grid_down(REACH_S / instance.tick_s)))


def is_repairable(instance: Instance, verdict: Verdict) -> bool:
    """Whether moves within reach could repair all violations."""
    most = 2 * reach_of(instance)
    return not verdict.feasible and all(
        each.constraint in MAY_BE_MENDED or (each.constraint in IN_TICKS and each.amount <= most)
        for each in verdict.violations
    )


def on_grid(task: Any, mode: Any, start: Any, end: Any) -> Schedule:
    """A schedule from fractional times in ticks."""
    times = (np.rint(np.asarray(column, dtype=float)).astype(np.int64) for column in (start, end))
    return Schedule(np.asarray(task, dtype=np.int64), np.asarray(mode, dtype=np.int64), *times)


def verified_or_repaired(instance: Instance, schedule: Schedule) -> Repaired:
    """The schedule with its verdict, repaired if that makes an infeasible schedule feasible."""
    verdict = verify(instance, schedule)
    if not is_repairable(instance, verdict):
        return Repaired(schedule, verdict)
    schedule = schedule.as_int64()
    for early in (0, reach_of(instance)):
        tried = _moved(instance, schedule, early)
        if tried is None:
            continue
        better = verify(instance, tried)
        if better.feasible:
            moves = np.maximum(
                np.abs(tried.start - schedule.start), np.abs(tried.end - schedule.end)
            )
            return Repaired(tried, better, int((moves > 0).sum()), int(moves.max(initial=0)))
    return Repaired(schedule, verdict)


def _moved(instance: Instance, schedule: Schedule, early: int) -> Schedule | None:
    """Move segments as little as possible, or up to ``early`` earlier; None if too far."""
    reach, order = reach_of(instance), np.lexsort((schedule.end, schedule.start))
    length = _lengths(instance, schedule, reach)
    if length is None:
        return None
    devices, ready = _Devices(instance), _ready_times(instance, schedule)
    finish = np.zeros(instance.num_tasks, dtype=np.int64)
    last_row = np.full(instance.num_tasks, -1, dtype=np.int64)
    edges_of = _edges_by_target(instance)
    start, end = schedule.start.copy(), schedule.end.copy()
    for row in order.tolist():
        task, mode = int(schedule.task[row]), int(schedule.mode[row])
        begins = max(int(schedule.start[row]) - early, int(ready[row]))
        if last_row[task] >= 0:
            begins = max(begins, int(finish[task]))
        for source, data_gb in edges_of(task):
            if last_row[source] < 0:
                return None
            sender = instance.modes.primary[schedule.mode[last_row[source]]]
            receiver = instance.modes.primary[mode]
            lag = float(instance.lag(sender, receiver, data_gb, int(finish[source])))
            if not np.isfinite(lag):
                return None
            begins = max(begins, int(finish[source]) + int(lag))
        begins = devices.first_start(mode, begins, int(schedule.start[row]) + reach)
        ends = begins + int(length[row])
        if (
            abs(begins - int(schedule.start[row])) > reach
            or abs(ends - int(schedule.end[row])) > reach
        ):
            return None
        devices.take(mode, ends if ends > begins else begins)
        start[row], end[row], finish[task], last_row[task] = (
            begins,
            ends,
            max(int(finish[task]), ends),
            row,
        )
    return replace(schedule, start=start, end=end)


def _lengths(instance: Instance, schedule: Schedule, reach: int) -> Ints | None:
    """The new length of each segment: the task's duration.

    With preemption, segments keep their lengths, and the last one gets the remaining work."""
    whole = instance.duration(schedule.mode, instance.tasks.units[schedule.task])
    given = schedule.end - schedule.start
    if not instance.preemptive:
        cut_off = instance.is_open & (schedule.end == instance.end_of_time) & (given < whole)
        return np.asarray(np.where(cut_off, given, whole), dtype=np.int64)
    out = np.where(whole > 0, np.maximum(given, 1), 0)
    if instance.is_open:
        return np.asarray(out, dtype=np.int64)
    order = np.lexsort((schedule.start, schedule.task))
    task = schedule.task[order]
    every = instance.tasks.checkpoint
    saved = out if every is None else saved_ticks(out, every[schedule.task])
    for rows in np.split(order, np.flatnonzero(np.diff(task)) + 1):
        done = [*saved[rows[:-1]].tolist(), int(out[rows[-1]])]
        parts = list(zip(done, whole[rows].tolist(), strict=True))
        left = ticks_left(parts, parts[-1][1])
        if left > 2 * reach:
            return None
        out[rows[-1]] += left
    return np.asarray(out, dtype=np.int64)


def _ready_times(instance: Instance, schedule: Schedule) -> Floats:
    """The earliest start of each segment by release and ingress latency, at least 0."""
    way = np.asarray(
        instance.access(schedule.task, instance.modes.primary[schedule.mode]), dtype=float
    )
    there = instance.tasks.release[schedule.task] + np.where(np.isfinite(way), way, 0.0)
    return np.maximum(0.0, there)


def _edges_by_target(instance: Instance) -> Any:
    """For a task, its predecessors with the data they send."""
    edges = instance.edges
    order = np.argsort(edges.target, kind="stable")
    ptr = np.searchsorted(edges.target[order], np.arange(instance.num_tasks + 1))
    source, data_gb = edges.source[order].tolist(), edges.data_gb[order].tolist()

    def of(task: int) -> Iterator[tuple[int, float]]:
        return zip(
            source[ptr[task] : ptr[task + 1]], data_gb[ptr[task] : ptr[task + 1]], strict=True
        )

    return of


class _Devices:
    """Free devices of each pool over time, with the ends of running segments."""

    def __init__(self, instance: Instance) -> None:
        self.modes = instance.modes
        self.free = instance.pools.count.tolist()
        self.ends: list[list[tuple[int, int]]] = [[] for _ in self.free]

    def _needs(self, mode: int) -> Iterator[tuple[int, int]]:
        rows = slice(int(self.modes.req_ptr[mode]), int(self.modes.req_ptr[mode + 1]))
        return zip(
            self.modes.req_pool[rows].tolist(), self.modes.req_count[rows].tolist(), strict=True
        )

    def first_start(self, mode: int, begins: int, latest: int) -> int:
        """The first time from ``begins`` on with a mode's devices; else after ``latest``."""
        for pool, count in self._needs(mode):
            ends = self.ends[pool]
            while ends and ends[0][0] <= begins:
                self.free[pool] += heapq.heappop(ends)[1]
            while self.free[pool] < count and ends and ends[0][0] <= latest:
                begins = max(begins, ends[0][0])
                self.free[pool] += heapq.heappop(ends)[1]
            if self.free[pool] < count:
                return latest + 1
        return begins

    def take(self, mode: int, ends: int) -> None:
        """Occupy the devices of a mode until ``ends``."""
        for pool, count in self._needs(mode):
            self.free[pool] -= count
            heapq.heappush(self.ends[pool], (ends, count))
