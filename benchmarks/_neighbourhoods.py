"""Eight ways to choose which tasks of a schedule are searched again, for ``neighbourhood_oracle``.

random     any tasks
window     tasks whose starts follow one another
critical   tasks that end late and those that they wait for, step by step
tardy      tasks that are late for their deadline, drawn by what that costs, and what they wait for
class      tasks on one class of alike pools, whose starts follow one another
job        the tasks of whole jobs (connected parts of the task graph)
loss       tasks drawn by what their mode and their end lose at the prices of the LP
milestone  tasks drawn by how much they end behind their milestone, at the schedule's own pace

Drawn by a weight means without repetition, so that two calls give different neighbourhoods.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optbench.bounds.milestones import Milestones
from optbench.model.classes import class_view
from optbench.model.instance import Floats, Instance, Ints

SELECTORS = ("random", "window", "critical", "tardy", "class", "job", "loss", "milestone")
# A weight of 0 counts as this share of the mean weight.
LEAST_WEIGHT = 1e-3
# The power of a task's end by which ``critical`` draws where its chains begin.
LATE_POWER = 8.0


@dataclass(frozen=True, eq=False)
class PointView:
    """A schedule as selectors see it: modes, starts and ends of the tasks, and the LP's answer."""

    instance: Instance
    known: Milestones
    mode: Ints
    start: Floats
    end: Floats

    @cached_property
    def pool(self) -> Ints:
        return np.asarray(self.instance.modes.primary[self.mode])

    @cached_property
    def pool_class(self) -> Ints:
        return np.asarray(class_view(self.instance).pool_class[self.pool])

    @cached_property
    def loss(self) -> Floats:
        """What each task's mode and each tick behind its milestone cost at the LP's prices."""
        pairs, width = self.instance.pairs, self.instance.num_modes
        key = pairs.task * width + pairs.mode
        order = np.argsort(key)
        at = np.searchsorted(key[order], np.arange(len(self.mode)) * width + self.mode)
        late = np.maximum(0.0, self.end - self.known.end)
        return np.asarray(self.known.loss[order[at]] + self.known.end_price * late)

    @cached_property
    def behind(self) -> Floats:
        """Ticks by which each task ends after its milestone, stretched to this makespan."""
        pace = float(self.end.max(initial=0.0)) / max(1.0, self.known.makespan)
        return np.asarray(np.maximum(0.0, self.end - pace * self.known.end))

    @cached_property
    def tardiness(self) -> Floats:
        """Weighted ticks by which each task misses its deadline."""
        tasks = self.instance.tasks
        return np.asarray(tasks.weight * np.maximum(0.0, self.end - tasks.deadline))

    @cached_property
    def waits_for(self) -> Ints:
        """The task whose end each task waits for, or -1: its last predecessor, or the last task on
        its pool that has ended by its start, whichever ends later.
        """
        n, edges = self.instance.num_tasks, self.instance.edges
        out, last = np.full(n, -1, dtype=np.int64), np.full(n, -np.inf)
        order = np.argsort(self.end[edges.source], kind="stable")
        target, source = edges.target[order], edges.source[order]
        out[target], last[target] = source, self.end[source]
        by_end = np.lexsort((self.end, self.pool))
        width = float(self.end.max(initial=0.0)) + 1.0
        key = self.pool[by_end] * width + self.end[by_end]
        at = np.searchsorted(key, self.pool * width + self.start, side="right") - 1
        before = by_end[np.maximum(at, 0)]
        holds = (at >= 0) & (self.pool[before] == self.pool) & (before != np.arange(n))
        holds &= self.end[before] > last
        out[holds] = before[holds]
        return out

    @cached_property
    def job(self) -> Ints:
        """The connected part of the task graph of each task, by its least task."""
        job = np.arange(self.instance.num_tasks)
        source, target = self.instance.edges.source, self.instance.edges.target
        while True:
            before = job.copy()
            least = np.minimum(job[source], job[target])
            np.minimum.at(job, source, least)
            np.minimum.at(job, target, least)
            job = job[job]
            if (job == before).all():
                return job


def select(name: str, view: PointView, size: int, rng: np.random.Generator) -> Ints:
    """Return the neighbourhood of a selector: at most ``size`` tasks, in rising order."""
    n = view.instance.num_tasks
    size = min(size, n)
    if name == "random":
        out = rng.choice(n, size, replace=False)
    elif name == "window":
        out = window(np.argsort(view.start, kind="stable"), size, rng)
    elif name == "critical":
        out = chains(view, drawn(view.end, n, rng, LATE_POWER), size)
    elif name == "tardy":
        out = chains(view, drawn(view.tardiness, n, rng), size)
    elif name == "class":
        out = on_one_class(view, size, rng)
    elif name == "job":
        rank = rng.permutation(n)[view.job]
        out = np.argsort(rank, kind="stable")[:size]
    else:
        out = drawn(view.loss if name == "loss" else view.behind, size, rng)
    return np.sort(out)


def drawn(weight: Floats, size: int, rng: np.random.Generator, power: float = 1.0) -> Ints:
    """Return ``size`` tasks, drawn one after the other by a power of their weight."""
    mean = float(weight.mean())
    least = LEAST_WEIGHT * mean if mean > 0 else 1.0
    key = power * np.log(np.maximum(weight, least)) + rng.gumbel(size=len(weight))
    return np.argsort(-key, kind="stable")[:size]


def window(order: Ints, size: int, rng: np.random.Generator) -> Ints:
    """Return ``size`` tasks that follow one another in an order."""
    first = int(rng.integers(max(1, len(order) - size + 1)))
    return order[first : first + size]


def chains(view: PointView, ends: Ints, size: int) -> Ints:
    """Return the tasks of ``ends`` in turn, each with those that it waits for, step by step."""
    before, taken = view.waits_for.tolist(), dict[int, None]()
    for task in ends.tolist():
        while task >= 0 and task not in taken:
            taken[task] = None
            if len(taken) == size:
                return np.fromiter(taken, dtype=np.int64)
            task = before[task]
    return np.fromiter(taken, dtype=np.int64)


def on_one_class(view: PointView, size: int, rng: np.random.Generator) -> Ints:
    """Return tasks of one class, drawn by its number of tasks."""
    used, count = np.unique(view.pool_class, return_counts=True)
    chosen = int(rng.choice(used, p=count / count.sum()))
    order = np.argsort(view.start, kind="stable")
    return window(order[view.pool_class[order] == chosen], size, rng)
