"""Neighbourhoods of a schedule: which tasks to free, by eight selectors.

random      any tasks
window      tasks whose starts follow one another
critical    tasks that end late and those that they wait for, step by step
tardy       tasks that are late for their deadline, drawn by what that costs, and what they wait for
class       tasks on one class of alike pools, whose starts follow one another
job         the tasks of whole jobs (connected parts of the task graph)
loss        tasks drawn by their loss at the network's prices (``network_scores``)
importance  tasks drawn by how close they are to the critical path, times their work

Drawn by a weight means without repetition, so that two calls give different neighbourhoods.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optbench.model.classes import class_view
from optbench.model.instance import Floats, Instance, Ints

from ..hgnn.situation import Situation
from .network_scores import NetworkScores

SELECTORS = ("random", "window", "critical", "tardy", "class", "job", "loss", "importance")
# A weight of 0 counts as this share of the mean weight.
LEAST_WEIGHT = 1e-3


@dataclass(frozen=True, eq=False)
class PointView:
    """A schedule as selectors see it: modes, starts and ends of the tasks."""

    surroundings: TaskSurroundings
    mode: Ints
    start: Floats
    end: Floats

    @property
    def instance(self) -> Instance:
        return self.surroundings.instance

    @cached_property
    def pool(self) -> Ints:
        return np.asarray(self.instance.modes.primary[self.mode])

    @cached_property
    def pool_class(self) -> Ints:
        return np.asarray(class_view(self.instance).pool_class[self.pool])

    @cached_property
    def loss(self) -> Floats:
        return self.surroundings.scores.loss(self.mode, self.start)

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


@dataclass(frozen=True, eq=False)
class TaskSurroundings:
    """What selectors know besides the schedule: the network's scores, jobs, importance."""

    instance: Instance
    scores: NetworkScores
    job: Ints
    importance: Floats


def surroundings_of_tasks(
    instance: Instance, found: Situation, scores: NetworkScores
) -> TaskSurroundings:
    return TaskSurroundings(
        instance, scores, jobs_of(instance), np.asarray(found.seen.importance, dtype=float)
    )


def jobs_of(instance: Instance) -> Ints:
    """Return the connected part of the task graph of each task, by its least task."""
    job = np.arange(instance.num_tasks)
    source, target = instance.edges.source, instance.edges.target
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
        out = chains(view, drawn(view.end - view.end.min() * (1 - 1e-9), n, rng, 8.0), size)
    elif name == "tardy":
        out = chains(view, drawn(view.tardiness, n, rng), size)
    elif name == "class":
        out = on_one_class(view, size, rng)
    elif name == "job":
        out = whole_jobs(view, size, rng)
    else:
        weight = view.loss if name == "loss" else view.surroundings.importance
        out = drawn(weight, size, rng)
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
    used, count = np.unique(view.pool_class, return_counts=True)
    chosen = int(rng.choice(used, p=count / count.sum()))
    order = np.argsort(view.start, kind="stable")
    return window(order[view.pool_class[order] == chosen], size, rng)


def whole_jobs(view: PointView, size: int, rng: np.random.Generator) -> Ints:
    job = view.surroundings.job
    rank = np.empty(len(job))
    rank[:] = rng.permutation(len(job))[job]
    return np.argsort(rank, kind="stable")[:size]
