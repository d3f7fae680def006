"""Which tasks have arrived: all that a policy may know of an instance at a moment of a run.

A task has arrived once it and every task before it are released:

    arrival_i = max(release_i, max_{j before i} arrival_j)

Pools, modes, links, tariffs, limits, the horizon and announced outages are known beforehand; how
busy links are is known up to now.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from optbench.model.instance import Edges, Floats, Instance, Ints, Tasks
from optbench.model.streams import Outages, Stream

COLUMNS = ("kind", "units", "release", "deadline", "deadline_hard", "weight", "memory_gb")


@dataclass(frozen=True, eq=False)
class TaskArrivals:
    """The tasks of an instance in order of arrival, equal ones in their own order.

    ``time`` ascends; ``order[k]`` is the k-th task to arrive, None where that is task k itself.
    """

    instance: Instance
    time: Floats
    order: Ints | None

    @classmethod
    def of(cls, instance: Instance) -> TaskArrivals:
        time = arrival_times(instance)
        if (time[1:] >= time[:-1]).all():
            return cls(instance, time, None)
        order = np.argsort(time, kind="stable")
        return cls(instance, time[order], order)

    @classmethod
    def foreseen(cls, instance: Instance) -> TaskArrivals:
        """Everything is known from time 0 on: for clairvoyant references."""
        return cls(instance, np.zeros(instance.num_tasks), None)

    @cached_property
    def place(self) -> Ints:
        """The place of each task in the order of arrival."""
        place = np.arange(len(self.time))
        if self.order is not None:
            place[self.order] = np.arange(len(self.time))
        return place

    def moments(self) -> list[float]:
        """The times at which something arrives, ascending."""
        return [float(time) for time in np.unique(self.time)]

    def count(self, now: float) -> int:
        """The number of tasks that have arrived."""
        return int(np.searchsorted(self.time, now, side="right"))

    def tasks(self, count: int) -> Ints:
        """The first tasks to arrive, in this order."""
        return np.arange(count) if self.order is None else self.order[:count]

    def row(self, task: int) -> int:
        """The row of the task that arrives in this place; what is no place is no row either."""
        if self.order is None or not 0 <= task < len(self.order):
            return task
        return int(self.order[task])

    def known(self, now: float) -> Instance:
        """The instance as it is known: task k is the k-th one to arrive, later ones are absent.

        The spec of the problem is left out, since the whole instance could be made from it."""
        instance, count = self.instance, self.count(now)
        rows: slice | Ints = slice(count) if self.order is None else self.order[:count]
        tasks = instance.tasks
        columns = {name: getattr(tasks, name)[rows] for name in COLUMNS}
        names = tasks.names
        if names is not None:
            names = names[rows] if isinstance(rows, slice) else tuple(names[k] for k in rows)
        return replace(
            instance,
            tasks=Tasks(
                **columns,
                names=names,
                user=None if tasks.user is None else tasks.user[rows],
                user_names=tasks.user_names,
                checkpoint=None if tasks.checkpoint is None else tasks.checkpoint[rows],
            ),
            edges=self._edges(count),
            stream=None if instance.stream is None else _stream(instance.stream, rows, now),
            problem=None,
            congestion=None if instance.congestion is None else instance.congestion.known(now),
        )

    def periods(self, now: float) -> int:
        """The number of changes of congestion seen so far."""
        busy = self.instance.congestion
        return 0 if busy is None else int(np.searchsorted(busy.times, now, side="right"))

    def _edges(self, count: int) -> Edges:
        edges = self.instance.edges
        if len(edges.source) == 0:
            return edges
        target = self.place[edges.target]
        kept = target < count  # the task before it has arrived then, too
        return Edges(self.place[edges.source][kept], target[kept], edges.data_gb[kept])


def arrival_times(instance: Instance) -> Floats:
    """Return when each task arrives."""
    release = np.asarray(instance.tasks.release, dtype=float)
    if len(instance.edges.source) == 0 or not (release != release[:1]).any():
        return release
    time, order = release.copy(), np.argsort(instance.edges.source, kind="stable")
    target = instance.edges.target[order]
    ptr = np.searchsorted(instance.edges.source[order], np.arange(instance.num_tasks + 1))
    for task in instance.order.tolist():
        after = target[ptr[task] : ptr[task + 1]]
        time[after] = np.maximum(time[after], time[task])
    return time


def _stream(stream: Stream, rows: slice | Ints, now: float) -> Stream:
    """Return the stream of these tasks, with outages that are announced or have happened."""
    o = stream.outages
    seen = o.announced | (o.time <= now)
    known = Outages(o.time[seen], o.pool[seen], o.devices[seen], o.announced[seen])
    return replace(
        stream, ingress=stream.ingress[rows], sent_to=stream.sent_to[rows], outages=known
    )
