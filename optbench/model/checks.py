"""Feasibility checks, one function per constraint; a violation states place and amount."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from optbench.model.busy_devices import Spans, joined, missing_devices, peaks_by_pool
from optbench.model.cooling import Cooling
from optbench.model.features import provisioned
from optbench.model.instance import Bools, Floats, Instance
from optbench.model.metrics import first_and_last, peak_power, requirements
from optbench.model.schedule import Schedule, Sleep
from optbench.model.schedule_form import LARGEST_TIME, form_error
from optbench.model.sleeping import wake_ticks
from optbench.model.task_progress import TaskProgress
from optbench.model.temperature import hottest, tolerance_c
from optbench.model.timegrid import exceeds

CONSTRAINTS = {
    "form": "columns of equal length, known tasks and modes, whole ticks",
    "assignment": (
        "every task is complete: its shares add up to 1 or more, of a segment that was cut short "
        "what a checkpoint saved (of an open instance it may be cut off by the horizon)"
    ),
    "single_segment": "one segment per task unless the instance is preemptive",
    "one_pool": "a task that sends or receives data keeps the primary pool of its first segment",
    "mode": "a task runs in a mode of its own kind",
    "memory": "the task fits the memory of the devices",
    "duration": (
        "a segment lasts what its task takes in its mode; preemptive, it is not empty "
        "unless the task takes no time"
    ),
    "release": "no task starts before its release, nor before time 0",
    "access": (
        "a segment starts after the task's release and the latency from its ingress to the pool"
    ),
    "deadline": "hard deadlines hold",
    "horizon": "everything ends within a fixed horizon, and by tick 2^52",
    "precedence": "a task starts after its predecessors end",
    "transfer": "a task starts after its predecessors' data has arrived",
    "link": "data moves only between linked pools",
    "capacity": "a pool never has more busy devices than it has",
    "self_overlap": "segments of one task do not overlap",
    "sleep": "devices sleep where a schedule decides it, from time 0 on, for a positive time",
    "awake": "devices that sleep or wake are not busy: together they are at most the pool's",
    "power_cap": "power at a place stays within its cap",
    "temperature": "a cooled place stays within its highest temperature",
    "limit": "an upper limit on a metric holds (named limit:<metric>)",
    "finite": "every metric is a finite number",
}

# The text of a broken row.
Describe = Callable[[int], str]
# The number of rows that a violation's message describes.
SHOWN = 3


@dataclass(frozen=True)
class Violation:
    """A broken constraint: the number of violations, the largest amount, and the first place."""

    constraint: str
    message: str
    amount: float = 0.0
    count: int = 1

    def __str__(self) -> str:
        return f"{self.constraint}: {self.message}"


def check_form(instance: Instance, s: Schedule) -> Violation | None:
    """Violations of the form; a schedule of invalid form is not checked further."""
    bad_form = form_error(instance, s)
    return Violation("form", bad_form) if bad_form else None


def check(instance: Instance, schedule: Schedule, made: TaskProgress) -> list[Violation]:
    """All violations, except of limits on metrics, by a schedule of valid form in int64."""
    checks = _Checks(instance, schedule, made)
    checks.check_each_segment()
    checks.check_segment_lengths()
    checks.check_access()
    checks.check_assignment()
    checks.check_each_task()
    if np.isfinite(made.first).all():
        checks.check_edges()
    checks.check_capacity()
    checks.check_power_caps()
    if schedule.sleep is not None:
        checks.check_sleep(schedule.sleep)
    if instance.cooling is not None:
        checks.check_temperature(instance.cooling)
    return checks.found


class _Checks:
    """The constraints on one schedule; violations are added to ``found``."""

    def __init__(self, instance: Instance, schedule: Schedule, made: TaskProgress) -> None:
        self.instance, self.tasks, self.s, self.made = instance, instance.tasks, schedule, made
        self.name, self.clock = instance.tasks.name, clock_of(instance)
        self.found: list[Violation] = []

    def add(self, constraint: str, bad: Bools, amount: Any, describe: Describe) -> None:
        """Record a constraint broken in the rows where ``bad`` holds."""
        rows = np.flatnonzero(bad)
        if len(rows) == 0:
            return
        text = "; ".join(describe(int(row)) for row in rows[:SHOWN])
        more = f"; and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
        worst = float(np.max(np.broadcast_to(amount, bad.shape)[rows]))
        self.found.append(Violation(constraint, text + more, worst, len(rows)))

    def add_segments(self, constraint: str, bad: Bools, amount: Any, describe: Describe) -> None:
        """Record a constraint broken by these segments; each description begins with its task."""
        who = self.s.task
        self.add(constraint, bad, amount, lambda r: f"task {self.name(who[r])} {describe(r)}")

    def check_each_segment(self) -> None:
        """Constraints on a segment alone: kind of the mode, memory, release, deadline, horizon."""
        instance, tasks, s, clock = self.instance, self.tasks, self.s, self.clock
        start, end = s.start, s.end
        other_kind = instance.modes.kind[s.mode] != tasks.kind[s.task]
        self.add_segments(
            "mode", other_kind, 1.0, lambda r: f"runs in mode {s.mode[r]}, which is not of its kind"
        )
        room, need = instance.mode_memory_gb[s.mode], tasks.memory_gb[s.task]
        lack = need - np.where(np.isfinite(room), room, 0)
        self.add_segments(
            "memory",
            need > room,
            lack,
            lambda r: f"needs {need[r]:g} GB, mode {s.mode[r]} has {room[r]:g} GB",
        )
        release = tasks.release[s.task]
        early = np.maximum(release, 0) - start
        self.add_segments(
            "release",
            early > 0,
            early,
            lambda r: f"starts at {clock(start[r])}, released at {clock(release[r])}",
        )
        deadline = tasks.deadline[s.task]
        hard = tasks.deadline_hard[s.task] & np.isfinite(deadline)
        late = np.where(hard, end - np.where(hard, deadline, 0.0), -1.0)
        self.add_segments(
            "deadline",
            late > 0,
            late,
            lambda r: f"ends at {clock(end[r])}, its deadline is {clock(deadline[r])}",
        )
        over, horizon = end - instance.end_of_time, clock(instance.end_of_time)
        self.add_segments(
            "horizon",
            over > 0,
            over,
            lambda r: f"ends at {clock(end[r])}, the horizon is {horizon}",
        )

    def check_segment_lengths(self) -> None:
        """Segments last D, or less if the instance is preemptive or the horizon cuts them off."""
        instance, s, clock = self.instance, self.s, self.clock
        whole, length = self.made.whole, s.end - s.start
        if instance.preemptive:
            wrong = np.where(whole > 0, length <= 0, length != 0)
        else:
            wrong = length != whole
            if instance.is_open:
                cut_off = (s.end == instance.end_of_time) & (length > 0) & (length < whole)
                wrong &= ~cut_off

        def describe(r: int) -> str:
            span = f"runs from {clock(s.start[r])} to {clock(s.end[r])}"
            return f"{span}, in mode {s.mode[r]} it takes {clock(whole[r])}"

        self.add_segments("duration", wrong, np.abs(length - whole), describe)

    def check_access(self) -> None:
        """Segments start after their task's ingress latency, whichever pools others ran on."""
        instance, s, clock = self.instance, self.s, self.clock
        if instance.stream is None or s.num_segments == 0:
            return
        pool = instance.modes.primary[s.mode]
        there = self.tasks.release[s.task] + np.asarray(instance.access(s.task, pool), dtype=float)
        late = there - s.start

        def describe(r: int) -> str:
            reached = np.isfinite(there[r])
            arrival = f"and is there at {clock(there[r])}" if reached else "which it cannot reach"
            where = pool_name(instance, pool[r])
            return f"starts in {where} at {clock(s.start[r])}, {arrival}"

        self.add_segments("access", late > 0, np.where(np.isfinite(late), late, 1.0), describe)

    def check_assignment(self) -> None:
        """Every task is complete, unless the instance is open."""
        if self.instance.is_open:
            return
        segments = np.bincount(self.s.task, minlength=self.instance.num_tasks)
        # Without preemption the constraint "duration" checks the length of the one segment.
        wrong = ~self.made.complete & (self.instance.preemptive | (segments == 0))
        share = np.minimum(self.made.share, 1.0)

        def describe(r: int) -> str:
            done = f"{100 * share[r]:.9g} % in {segments[r]} segments"
            return f"task {self.name(r)} is done to {done}"

        self.add("assignment", wrong, 1.0 - share, describe)

    def check_each_task(self) -> None:
        """The constraints between the segments of one task."""
        instance, s, name, clock = self.instance, self.s, self.name, self.clock
        segments = np.bincount(s.task, minlength=instance.num_tasks)
        if not (segments > 1).any():
            return
        if not instance.preemptive:
            self.add(
                "single_segment",
                segments > 1,
                segments.astype(float),
                lambda r: f"task {name(r)} has {segments[r]} segments",
            )
            return
        order = np.lexsort((s.end, s.start, s.task))
        task, start, end = s.task[order], s.start[order], s.end[order]
        same = task[1:] == task[:-1]
        over = np.where(same, end[:-1] - start[1:], -1)
        self.add(
            "self_overlap",
            over > 0,
            over,
            lambda r: f"task {name(task[r])} runs twice at {clock(start[r + 1])}",
        )
        pool, moves = instance.modes.primary[s.mode[order]], tasks_with_data(instance)

        def describe(r: int) -> str:
            left, entered = (pool_name(instance, pool[k]) for k in (r, r + 1))
            move = f"goes from {left} to {entered} at {clock(start[r + 1])}"
            return f"task {name(task[r])} sends or receives data, and {move}"

        self.add("one_pool", same & (pool[1:] != pool[:-1]) & moves[task[1:]], 1.0, describe)

    def check_edges(self) -> None:
        instance, s, name, clock = self.instance, self.s, self.name, self.clock
        source, target = instance.edges.source, instance.edges.target
        if len(source) == 0:
            return
        first, last = first_and_last(instance, s)
        finish = np.full(instance.num_tasks, -LARGEST_TIME, dtype=np.int64)
        np.maximum.at(finish, s.task, s.end)
        ends, starts = finish[source], s.start[first[target]]
        early = ends - starts

        def too_early(e: int) -> str:
            before = f"before {name(source[e])} ends at {clock(ends[e])}"
            return f"task {name(target[e])} starts at {clock(starts[e])}, {before}"

        self.add("precedence", early > 0, early, too_early)
        primary, pools = instance.modes.primary[s.mode], instance.pools.names
        sender, receiver = primary[last[source]], primary[first[target]]
        data_gb = instance.edges.data_gb
        lag = np.asarray(instance.lag(sender, receiver, data_gb, ends), dtype=float)
        linked = np.isfinite(lag)

        def no_link(e: int) -> str:
            link = f"no link from {pools[sender[e]]} to {pools[receiver[e]]}"
            return f"{name(source[e])} to {name(target[e])}: {link}"

        self.add("link", ~linked, 1.0, no_link)
        missing = np.where(linked & (lag > 0), ends + np.where(linked, lag, 0.0) - starts, -1.0)

        def too_late(e: int) -> str:
            delay = f"{clock(missing[e])} too late"
            return f"data of {name(source[e])} reaches {name(target[e])} {delay}"

        self.add("transfer", (missing > 0) & (early <= 0), missing, too_late)

    def check_capacity(self) -> None:
        top, at = self.busiest(*self.busy_spans())
        names, room = self.instance.pools.names, self.instance.pools.count

        def describe(p: int) -> str:
            busy = f"{top[p]:g} busy devices of {room[p]} at {self.clock(at[p])}"
            return f"pool {names[p]} has {busy}"

        self.add("capacity", top > room, top - room, describe)

    def busy_spans(self) -> Spans:
        """Pool, start, end and number of the devices that are busy or gone."""
        instance, s = self.instance, self.s
        row, pool, count = requirements(instance, s.mode)
        start, end = s.start[row].astype(float), s.end[row].astype(float)
        keep = end > start
        spans = pool[keep], start[keep], end[keep], count[keep]
        if instance.stream is not None and len(instance.stream.outages.time):
            return joined(spans, missing_devices(instance))
        return spans

    def busiest(self, *spans: Any) -> tuple[Floats, Floats]:
        pool, start, end, count = spans
        return peaks_by_pool(pool, start, end, count, self.instance.num_pools)

    def check_sleep(self, rows: Sleep) -> None:
        """Rows are sound each by itself; then devices that sleep or wake do nothing else."""
        instance, names, clock = self.instance, self.instance.pools.names, self.clock
        wakes, room = provisioned(instance.pools)[rows.pool], instance.pools.count
        late = rows.end > instance.end_of_time
        bad = ~wakes | (rows.devices < 1) | (rows.start < 0) | (rows.end <= rows.start) | late

        def unsound(r: int) -> str:
            span = f"sleep from {clock(rows.start[r])} to {clock(rows.end[r])}"
            none = "" if wakes[r] else ", where devices do not wake by rows of a schedule"
            return f"{rows.devices[r]} devices of pool {names[rows.pool[r]]} {span}{none}"

        self.add("sleep", bad, 1.0, unsound)
        if bad.any():
            return
        until = (rows.end + wake_ticks(instance)[rows.pool]).astype(float)
        slept = rows.pool, rows.start.astype(float), until, rows.devices
        top, at = self.busiest(*joined(self.busy_spans(), slept))
        sleeps = np.isin(np.arange(instance.num_pools), rows.pool)

        def describe(p: int) -> str:
            out = f"{top[p]:g} devices of {room[p]} that are busy, gone, asleep or waking"
            return f"pool {names[p]} has {out} at {clock(at[p])}"

        self.add("awake", sleeps & (top > room), top - room, describe)

    def check_power_caps(self) -> None:
        limits, names = self.instance.limits, self.instance.places.names
        for place, cap in zip(limits.cap_place.tolist(), limits.cap_w.tolist(), strict=True):
            peak = peak_power(self.instance, self.s, place)
            if exceeds(peak.watts, cap):
                drawn = f"{peak.watts:.12g} W at {self.clock(peak.at)}"
                message = f"{names[place]} draws {drawn}, the cap is {cap:.12g} W"
                self.found.append(Violation("power_cap", message, peak.watts - cap))

    def check_temperature(self, cooling: Cooling) -> None:
        reached, names = hottest(self.instance, self.s), self.instance.places.names
        limit, celsius = cooling.limit_c, np.array([each.celsius for each in reached])

        def describe(row: int) -> str:
            warm = f"{celsius[row]:.12g} °C at {self.clock(reached[row].at)}"
            return f"{names[cooling.place[row]]} reaches {warm}, its limit is {limit[row]:.12g} °C"

        bad = ~(celsius <= limit + tolerance_c(cooling))
        self.add("temperature", bad, celsius - limit, describe)


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
