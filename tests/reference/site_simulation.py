"""Arriving jobs at sites, moment by moment, in plain Python: restated from the words, sharing no
code with the event kernel.

One list of what is to come, sorted at every step; at one time ends come first, then jobs that were
sent or held, then arrivals, then outages, each of them in the order of the tasks. Only the numbers
of an instance are read, and the ranks by which the kernel breaks ties among tasks that began at one
time on devices that vanish. Times are whole ticks, what is left of a task is a fraction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from optbench.model.instance import Instance
from tests.reference.plain_facts import duration, way_in

ENDS, COMES, ARRIVES, BREAKS = range(4)
Segment = tuple[int, int, int, int]
# (task, how often it was asked about, time) to (pool, devices, clock), or to a time until which it
# is held.
Decide = Callable[[int, int, int], tuple[int, int, int] | int]


@dataclass
class Run:
    """A job at work."""

    mode: int
    start: int
    end: int


@dataclass
class Sites:
    """The sites of an instance; ``pick`` says in which mode a job begins (given itself, task, pool
    and free devices; None: wait), ``learn`` hears of each mode that has ended.
    """

    instance: Instance
    pick: Callable[[Sites, int, int, int], int | None]
    learn: Callable[[int], None]
    rank: list[int]
    classes: list[int]
    faults: list[tuple[int, int, int]]
    until: float
    now: int = 0
    ahead: list[tuple[int, int, int]] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)

    def __post_init__(self) -> None:
        i = self.instance
        self.free = [int(count) for count in i.pools.count]
        self.left = [Fraction(1) for _ in i.tasks.units]
        self.queues: list[list[list[int]]] = [
            [[] for _ in range(max(self.classes) + 1)] for _ in self.free
        ]
        self.running: dict[int, Run] = {}
        self.bound_for: dict[int, int | None] = {}
        self.asked = [0] * len(self.left)
        self.wishes: dict[int, tuple[int, int]] = {}
        self.ahead += [(time, BREAKS, k) for k, (time, _, _) in enumerate(self.faults)]

    def go(self, pools: list[int] | None, decide: Decide | None) -> list[Segment]:
        """With pools, every job goes to its own; else somebody decides."""
        release, way = self.instance.tasks.release, self.way
        for task in range(len(self.left)):
            there = int(release[task]) + (way(task, pools[task]) if pools is not None else 0)
            if math.isfinite(there):
                self.ahead.append((int(there), ARRIVES, task))
        while self.ahead:
            self.ahead.sort()
            time, what, which = self.ahead.pop(0)
            if time > self.until:
                break
            self.now = time
            if what == ENDS:
                self.end(which)
            elif what == BREAKS:
                self.break_down(*self.faults[which][1:])
            elif what == COMES and self.bound_for[which] is not None:
                self.reach(which, self.bound_for[which] or 0)
            elif pools is not None:
                self.reach(which, pools[which])
            else:
                assert decide is not None
                self.ask(which, decide)
        return self.segments

    def way(self, task: int, pool: int) -> float:
        return way_in(self.instance, task, pool)

    def whole(self, task: int, run: Run) -> int:
        """Ticks that all of a task takes in a mode."""
        return duration(self.instance, task, run.mode)

    def ask(self, task: int, decide: Decide) -> None:
        answer = decide(task, self.asked[task], self.now)
        self.asked[task] += 1
        if not isinstance(answer, tuple):
            self.bound_for[task] = None
            self.ahead.append((answer, COMES, task))
            return
        pool = answer[0]
        self.wishes[task] = answer[1], answer[2]
        if self.way(task, pool) > 0:
            self.bound_for[task] = pool
            self.ahead.append((self.now + int(self.way(task, pool)), COMES, task))
        else:
            self.reach(task, pool)

    def reach(self, task: int, pool: int) -> None:
        queue = self.queues[pool][self.classes[int(self.instance.tasks.kind[task])]]
        if queue or not self.begin(task, pool):
            queue.append(task)

    def begin(self, task: int, pool: int) -> bool:
        if self.free[pool] <= 0:
            return False
        mode = self.pick(self, task, pool, self.free[pool])
        if mode is None:
            return False
        self.free[pool] -= int(self.instance.modes.devices[mode])
        end = self.now + math.ceil(self.left[task] * duration(self.instance, task, mode))
        self.running[task] = Run(mode, self.now, end)
        self.ahead.append((end, ENDS, task))
        return True

    def serve(self, pool: int) -> None:
        for queue in self.queues[pool]:
            while queue and self.begin(queue[0], pool):
                queue.pop(0)

    def end(self, task: int) -> None:
        run = self.running.pop(task)
        pool = int(self.instance.modes.primary[run.mode])
        self.segments.append((task, run.mode, run.start, run.end))
        self.left[task] = Fraction(0)
        self.free[pool] += int(self.instance.modes.devices[run.mode])
        self.learn(run.mode)
        self.serve(pool)

    def break_down(self, pool: int, devices: int) -> None:
        self.free[pool] -= devices
        stopped = []
        while self.free[pool] < 0:
            here = [
                task
                for task, run in self.running.items()
                if self.instance.modes.primary[run.mode] == pool
            ]
            task = max(here, key=lambda each: (self.running[each].start, self.rank[each]))
            run = self.running.pop(task)
            self.ahead.remove((run.end, ENDS, task))
            self.free[pool] += int(self.instance.modes.devices[run.mode])
            if self.instance.preemptive and self.now > run.start:
                self.segments.append((task, run.mode, run.start, self.now))
                self.left[task] -= Fraction(self.now - run.start, self.whole(task, run))
            stopped.append(task)
        for task in stopped:
            self.queues[pool][self.classes[int(self.instance.tasks.kind[task])]].insert(0, task)
        for each in range(len(self.free)):
            self.serve(each)

    def cut(self) -> list[Segment]:
        """Segments at the horizon of an open instance, with what is running there."""
        until = int(self.until)
        here = [
            (task, run.mode, run.start, until)
            for task, run in self.running.items()
            if run.start < until
        ]
        return [*self.segments, *here]
