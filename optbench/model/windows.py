"""Heads, tails and time windows: the times at which a task can run in any schedule.

With p_i the shortest duration that fits task i, ready_i its release plus shortest ingress latency,
l_ij the shortest transfer on an edge,

    head_j = max(ready_j, max_i head_i + p_i + l_ij)          no task starts earlier
    tail_i = max(0, max_j l_ij + p_j + tail_j)                time needed after i has ended
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from optbench.model.instance import Floats, Instance, Ints
from optbench.model.timegrid import grid_down, grid_up


@dataclass(frozen=True, eq=False)
class Windows:
    """Per task, in ticks: shortest and longest duration, earliest start, time after its end."""

    shortest: Floats
    longest: Floats
    head: Floats
    tail: Floats
    edge_lag: Floats

    @property
    def critical_path(self) -> float:
        """The length of the critical path: no schedule ends earlier."""
        return float((self.head + self.shortest + self.tail).max(initial=0.0))


def windows(instance: Instance) -> Windows:
    """Heads and tails by longest paths with fastest modes and cheapest transfers."""
    n, kinds = instance.num_tasks, _fitting_modes(instance)
    shortest, longest = kinds.durations(instance)
    lag = edge_lags(instance)
    head, tail = kinds.ready(instance, kinds.nearest).tolist(), [0.0] * n
    p, l = shortest.tolist(), lag.tolist()
    source, target = instance.edges.source.tolist(), instance.edges.target.tolist()
    for e in by_source(instance):
        head[target[e]] = max(head[target[e]], head[source[e]] + p[source[e]] + l[e])
    for e in reversed(by_source(instance)):
        tail[source[e]] = max(tail[source[e]], l[e] + p[target[e]] + tail[target[e]])
    return Windows(shortest, longest, np.asarray(head), np.asarray(tail), lag)


def shortest_durations(instance: Instance) -> Floats:
    """The ticks of each task in the fastest mode that fits; inf where none does."""
    return _fitting_modes(instance).durations(instance)[0]


def earliest_ready(instance: Instance) -> Floats:
    """The earliest start of each task on any pool, by release and ingress latency alone."""
    kinds = _fitting_modes(instance)
    return kinds.ready(instance, kinds.nearest)


@dataclass(frozen=True, eq=False)
class _FittingModes:
    """What the modes that fit have in common for tasks of one kind, one class of memory and one
    ingress, which form a group: the fewest and the most ticks per unit (inf and 0 where no mode
    fits) and the shortest and longest ingress latency.

    ``instance.pairs`` has a row per task and mode: with a pool per node these are millions.
    """

    group: Ints
    fastest: Floats
    slowest: Floats
    nearest: Floats
    farthest: Floats

    def durations(self, instance: Instance) -> tuple[Floats, Floats]:
        """The shortest and longest duration of each task: more ticks per unit never take less."""
        units, some = instance.tasks.units, np.isfinite(self.fastest)[self.group]
        fastest = np.where(some, self.fastest[self.group], 0.0)
        shortest = np.where(some, grid_up(units * fastest), np.inf)
        return shortest, grid_up(units * self.slowest[self.group])

    def ready(self, instance: Instance, access: Floats) -> Floats:
        """The release of each task plus an ingress latency, where there is one."""
        way = access[self.group]
        return np.asarray(instance.tasks.release + np.where(np.isfinite(way), way, 0.0))


def _fitting_modes(instance: Instance) -> _FittingModes:
    tasks, modes, stream = instance.tasks, instance.modes, instance.stream
    memory = np.unique(instance.mode_memory_gb)
    columns = [tasks.kind, np.searchsorted(memory, tasks.memory_gb)]
    if stream is not None:
        columns.append(stream.ingress)
    key = np.zeros(instance.num_tasks, dtype=np.int64)
    for column in columns:
        key = key * (int(column.max(initial=0)) + 1) + column
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    size = np.diff(modes.kind_ptr)[tasks.kind[first]]
    row = np.repeat(np.arange(len(first)), size)
    mode = np.arange(len(row)) + np.repeat(
        modes.kind_ptr[:-1][tasks.kind[first]] - (np.cumsum(size) - size), size
    )
    way = np.asarray(instance.access(first[row], modes.primary[mode]), dtype=float)
    keep = (tasks.memory_gb[first[row]] <= instance.mode_memory_gb[mode]) & np.isfinite(way)
    row, way, ticks = row[keep], way[keep], instance.ticks_per_unit[mode[keep]]
    fastest, nearest = np.full((2, len(first)), np.inf)
    slowest, farthest = np.zeros(len(first)), np.full(len(first), -np.inf)
    np.minimum.at(fastest, row, ticks)
    np.maximum.at(slowest, row, ticks)
    np.minimum.at(nearest, row, way)
    np.maximum.at(farthest, row, way)
    return _FittingModes(group.reshape(-1), fastest, slowest, nearest, farthest)


def by_source(instance: Instance) -> list[int]:
    """Edges sorted by the topological position of their source."""
    position = np.empty(instance.num_tasks, dtype=np.int64)
    position[instance.order] = np.arange(instance.num_tasks)
    return np.argsort(position[instance.edges.source], kind="stable").tolist()  # type: ignore[no-any-return]


def edge_lags(instance: Instance) -> Floats:
    """Shortest transfer time of each edge over the pools of its tasks; inf without a link."""
    return _extreme_lags(instance, longest=False)


def longest_lags(instance: Instance) -> Floats:
    """Longest finite transfer time of each edge over the pools its two tasks can use."""
    return _extreme_lags(instance, longest=True)


def _extreme_lags(instance: Instance, longest: bool) -> Floats:
    edges, busy = instance.edges, instance.congestion
    if longest and busy is not None:  # links as slow as they ever are
        slow = instance.links.s_per_gb * float(busy.factor.max())
        instance = replace(instance, links=replace(instance.links, s_per_gb=slow))
    out = np.zeros(len(edges.source))
    heavy = np.flatnonzero(edges.data_gb > 0)
    if len(heavy) == 0:
        return out
    group, pools = _numbered_pools(instance)
    ends = group[edges.source[heavy]] * len(pools) + group[edges.target[heavy]]
    keys, which = np.unique(ends, return_inverse=True)
    for key, edges_here in zip(
        keys.tolist(), np.split(heavy[np.argsort(which, kind="stable")], _cuts(which)), strict=True
    ):
        sending, receiving = pools[key // len(pools)], pools[key % len(pools)]
        if not longest and len(np.intersect1d(sending, receiving)):
            continue  # Data stay where they are.
        senders, receivers = different_links(instance, sending, receiving)
        lag = instance.lag(senders[:, None], receivers[:, None], edges.data_gb[edges_here][None, :])
        if longest:
            lag = np.where(np.isfinite(lag), lag, 0.0)
        out[edges_here] = lag.max(axis=0) if longest else lag.min(axis=0)
    return out


def _numbered_pools(instance: Instance) -> tuple[Ints, list[Ints]]:
    """The different lists of primary pools that tasks can use, and the number of each task's."""
    group, pools = task_groups(instance)
    number: dict[bytes, int] = {}
    of_group = [number.setdefault(each.tobytes(), len(number)) for each in pools]
    known = dict(zip(of_group, pools, strict=True))
    return np.asarray(of_group, dtype=np.int64)[group], list(known.values())


def different_links(instance: Instance, senders: Ints, receivers: Ints) -> tuple[Ints, Ints]:
    """One pair of pools for each different link: a few instead of two million for 1,500 devices."""
    sender, receiver = (each.ravel() for each in np.meshgrid(senders, receivers, indexing="ij"))
    free = (sender == receiver) | (sender < 0) | (receiver < 0)
    links = instance.links
    latency = np.where(free, -1.0, links.latency_s[sender, receiver])
    slowness = np.where(free, -1.0, links.s_per_gb[sender, receiver])
    order = np.lexsort((slowness, latency))
    latency, slowness = latency[order], slowness[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (latency[1:] != latency[:-1]) | (slowness[1:] != slowness[:-1])
    return sender[order[first]], receiver[order[first]]


def _cuts(which: Ints) -> Ints:
    """The first row of each next group in rows sorted by group."""
    return np.cumsum(np.bincount(which))[:-1]


def task_groups(instance: Instance) -> tuple[Ints, list[Ints]]:
    """The group of each task, and the primary pools of each group.

    A group are the tasks of one kind and one class of memory."""
    levels = np.unique(instance.mode_memory_gb)
    memory_class = np.searchsorted(levels, instance.tasks.memory_gb)
    _, first, group = np.unique(
        instance.tasks.kind * (len(levels) + 1) + memory_class,
        return_index=True,
        return_inverse=True,
    )
    primary, ptr, memory = instance.modes.primary, instance.modes.kind_ptr, instance.mode_memory_gb
    pools = []
    # ``instance.pairs`` is not used: for a million tasks it is by far the largest table.
    for i in first.tolist():
        modes = slice(ptr[instance.tasks.kind[i]], ptr[instance.tasks.kind[i] + 1])
        pools.append(np.unique(primary[modes][memory[modes] >= instance.tasks.memory_gb[i]]))
    return group.astype(np.int64), pools


def task_pools(instance: Instance) -> list[Ints]:
    """Primary pools each task can run on."""
    group, pools = task_groups(instance)
    return [pools[g] for g in group.tolist()]


def latest_ends(instance: Instance, known: Windows, end: float = np.inf) -> Floats:
    """latest_i = min(end, horizon, limits on the makespan, hard deadline_i, min_j latest_j − p_j −
    l_ij), in whole ticks.

    It is inf if none of these is declared; the horizon of every instance, tick 2^52, is not used.
    """
    tasks = instance.tasks
    hard = np.where(tasks.deadline_hard, tasks.deadline, np.inf)
    horizon = np.inf if instance.horizon is None else float(instance.horizon)
    top = min(float(np.floor(end)), horizon, makespan_limit(instance))
    out = np.minimum(hard, top).tolist()
    source, target = instance.edges.source.tolist(), instance.edges.target.tolist()
    lag, shortest = known.edge_lag.tolist(), known.shortest.tolist()
    for e in reversed(by_source(instance)):
        out[source[e]] = min(out[source[e]], out[target[e]] - shortest[target[e]] - lag[e])
    return np.asarray(out)


def makespan_limit(instance: Instance) -> float:
    """The least limit on the makespan in whole ticks, as in the verifier; inf without one."""
    limits = instance.limits.metric_max
    ticks = [float(np.floor(limits["makespan"]))] if "makespan" in limits else []
    ticks += (
        [float(grid_down(limits["makespan_s"] / instance.tick_s))] if "makespan_s" in limits else []
    )
    return min(ticks, default=np.inf)


def time_horizon(instance: Instance) -> float:
    """A time by which some optimal schedule has ended.

    It allows all tasks one after another, after the last arrival and the last change of tariffs."""
    bounds, kinds = windows(instance), _fitting_modes(instance)
    lags = longest_lags(instance)
    last = float(kinds.ready(instance, kinds.farthest).max(initial=0.0))
    if "tariffs" in instance.features and instance.tariffs is not None:
        last = max(last, float(instance.tariffs.times[-1]))
    serial = last + float(bounds.longest.sum()) + float(lags.sum())
    ends = [serial, float(instance.end_of_time), makespan_limit(instance)]
    tasks = instance.tasks
    if instance.num_tasks and (np.isfinite(tasks.deadline) & tasks.deadline_hard).all():
        ends.append(float(tasks.deadline.max()))
    return float(np.floor(min(ends)))
