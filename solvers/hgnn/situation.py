"""What the network sees of an instance, and the scales by which its answers are read.

Times are relative to C = max(critical path, work / N), where the work is that of every task in its
cheapest set at the plain price of a device (``class_tables``); prices and energies are relative to
one another. Nothing depends on the number of nodes but through logarithms, so that one network is
used for all sizes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Bools, Floats, Instance, Ints
from optbench.model.windows import Windows, by_source, windows

from .class_tables import PLAIN, PRICES, ClassTables, class_tables
from .seen_arrays import Float32, SeenArrays

# Dates that are missing count as being so many spans away.
FAR = 3.0
# Seconds and seconds per GB of what is not linked.
UNLINKED = 10.0


@dataclass(frozen=True, eq=False)
class DeviceState:
    """What is known of each class at a moment: the share of devices that are free, log(1 + w) of
    the work w that waits or runs, in spans of all its devices, and the temperature over its limit.
    """

    free: Floats
    backlog: Floats
    heat: Floats


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What of the features belongs to the cluster alone, and stays while tasks arrive."""

    tables: ClassTables
    sets: Float32
    link: Float32
    near: Float32
    member: Float32
    memory_gb: Floats


def surroundings_of(instance: Instance) -> Surroundings:
    """Return the part of the features that depends on no task."""
    tables = class_tables(instance)
    link, near = _links(instance, tables)
    memory = np.zeros(tables.view.num_classes)
    memory[tables.view.pool_class] = instance.pools.memory_gb
    sets, members = _set_table(tables), _members(instance, tables)
    return Surroundings(tables, sets, link, near, members, memory)


@dataclass(frozen=True, eq=False)
class Situation:
    """Features, and per task in ticks: its earliest end, shortest length, the path behind it, by
    when deadlines want it to end, and its device-time in its class of choice; ``span`` is C.
    """

    seen: SeenArrays
    tables: ClassTables
    early: Floats
    shortest: Floats
    tail: Floats
    later_deadline: Floats
    load: Floats
    choice: Ints
    span: float


@dataclass(frozen=True, eq=False)
class _Parts:
    """What the tables of features are computed from."""

    instance: Instance
    tables: ClassTables
    known: Windows
    fits: Bools
    cost: Floats
    choice: Ints
    length: Floats
    load: Floats
    later: Floats
    path: float
    span: float

    @property
    def early(self) -> Floats:
        return self.known.head + self.known.shortest


def situation_of(
    instance: Instance,
    around: Surroundings | None = None,
    state: DeviceState | None = None,
    backlog: float = 0.0,
) -> Situation:
    """Return what is seen of an instance; ``backlog`` is the device-time of other known work.

    With a ``state`` the instance is a job that has just arrived (``job_windows``).
    """
    around = surroundings_of(instance) if around is None else around
    tables, kind = around.tables, instance.tasks.kind
    fits = _fits(instance, around)
    known = windows(instance) if state is None else job_windows(instance, tables, fits)
    cost = np.where(fits, tables.cost[kind, :, PLAIN], np.inf)
    choice = cost.argmin(axis=1)
    length = instance.tasks.units * tables.long[kind, choice, PLAIN]
    load = length * tables.wide[kind, choice, PLAIN]
    devices = max(1.0, float(tables.num_devices.sum()))
    path = known.critical_path - float(known.head.min(initial=known.critical_path))
    span = float(max(path, (load.sum() + backlog) / devices, 1.0))
    later = later_deadlines(instance, known)
    parts = _Parts(instance, tables, known, fits, cost, choice, length, load, later, path, span)
    close = 1.0 - np.clip((known.critical_path - parts.early - known.tail) / span, 0.0, 1.0)
    seen = SeenArrays(
        _task_table(parts), _class_table(parts, state), _pair_table(parts), _whole(parts),
        around.sets, around.link, around.near, around.member, fits,
        np.maximum(0, tables.view.primary_class), np.asarray(instance.edges.source),
        np.asarray(instance.edges.target), _single(close * load / max(1e-12, load.max(initial=0))),
    )  # fmt: skip
    return Situation(
        seen, tables, parts.early, known.shortest, known.tail, later, load, choice, span
    )


def job_windows(instance: Instance, tables: ClassTables, fits: Bools) -> Windows:
    """Return heads and tails of the tasks of one job, without times of transfers: those between
    tasks that may share a pool are 0, and jobs arrive by the thousand.
    """
    tasks, edges = instance.tasks, instance.edges
    least = np.where(fits, tables.shortest[tasks.kind], np.inf).min(axis=1)
    shortest = np.ceil(tasks.units * least)
    head, tail = np.asarray(tasks.release, dtype=float).tolist(), [0.0] * len(shortest)
    p, source, target = shortest.tolist(), edges.source.tolist(), edges.target.tolist()
    order = by_source(instance)
    for e in order:
        head[target[e]] = max(head[target[e]], head[source[e]] + p[source[e]])
    for e in reversed(order):
        tail[source[e]] = max(tail[source[e]], p[target[e]] + tail[target[e]])
    lag = np.zeros(len(edges.source))
    return Windows(shortest, shortest, np.asarray(head), np.asarray(tail), lag)


def later_deadlines(instance: Instance, known: Windows) -> Floats:
    """Return by when each task has to end for itself and all tasks behind it to meet their
    deadlines, soft or hard; inf without one.
    """
    out = np.asarray(instance.tasks.deadline, dtype=float).copy()
    if not np.isfinite(out).any() or len(instance.edges.source) == 0:
        return out
    source, target = instance.edges.source.tolist(), instance.edges.target.tolist()
    need = (known.shortest[instance.edges.target] + known.edge_lag).tolist()
    dates = out.tolist()
    for e in reversed(by_source(instance)):
        dates[source[e]] = min(dates[source[e]], dates[target[e]] - need[e])
    return np.asarray(dates)


def _fits(instance: Instance, around: Surroundings) -> Bools:
    there = np.isfinite(around.tables.shortest[instance.tasks.kind])
    return np.asarray(there & (instance.tasks.memory_gb[:, None] <= around.memory_gb[None, :]))


def _log_ratio(a: Floats, b: Floats | float) -> Floats:
    return np.clip(np.log(np.maximum(a, 1e-12) / np.maximum(b, 1e-12)), -6.0, 6.0)


def _single(values: Floats) -> Float32:
    return np.ascontiguousarray(values, dtype=np.float32)


def _columns(*columns: Floats | np.float64 | float) -> Float32:
    return _single(np.stack([np.asarray(each, dtype=float) for each in columns], axis=-1))


def _task_table(p: _Parts) -> Float32:
    tasks, known, n = p.instance.tasks, p.known, p.instance.num_tasks
    kind, edges, span = tasks.kind, p.instance.edges, p.span
    net = np.where(p.fits, p.tables.least_net[kind], np.inf).min(axis=1)
    fastest = np.where(p.fits, p.tables.shortest[kind], np.inf).argmin(axis=1)
    sends = np.zeros(n)
    np.maximum.at(sends, edges.source, known.edge_lag)
    first = float(known.head.min(initial=known.critical_path))
    path = max(1.0, p.path)

    def rank(key: Floats) -> Floats:
        """The share of the work that comes before each task in this order."""
        order = np.argsort(key, kind="stable")
        out = np.empty(n)
        out[order] = np.cumsum(p.load[order]) / max(1e-12, float(p.load.sum()))
        return out

    def slack(date: Floats) -> Floats:
        return np.clip(np.where(np.isfinite(date), (date - p.early) / span, FAR), -FAR, FAR)

    return _columns(
        (known.head - first) / path, known.tail / path,
        (known.critical_path - p.early - known.tail) / path,
        _log_ratio(known.shortest, float(known.shortest.mean())),
        _log_ratio(p.load, float(p.load.mean())), _log_ratio(p.length, known.shortest),
        np.log1p(np.bincount(edges.target, minlength=n)),
        np.log1p(np.bincount(edges.source, minlength=n)), rank(known.head), rank(-known.tail),
        np.isfinite(tasks.deadline), slack(tasks.deadline), np.isfinite(p.later), slack(p.later),
        np.log(np.maximum(1e-3, tasks.weight)), np.log(p.tables.stretch[kind, fastest]),
        _log_ratio(p.tables.net_of_shortest[kind, fastest], np.maximum(net, 1e-12)),
        np.log1p(sends / max(1.0, float(known.shortest.mean()))), p.fits.mean(axis=1),
    )  # fmt: skip


def _class_table(p: _Parts, state: DeviceState | None) -> Float32:
    tables, tasks, count = p.tables, p.instance.tasks, p.tables.num_devices
    view, kind = tables.view, tasks.kind
    rest = np.zeros(view.num_classes)
    rest[view.pool_class] = p.instance.pools.rest_w
    demands = []
    for k in range(len(PRICES)):
        choice = np.where(p.fits, tables.cost[kind, :, k], np.inf).argmin(axis=1)
        need = tasks.units * tables.long[kind, choice, k] * tables.wide[kind, choice, k]
        there = np.bincount(choice, weights=need, minlength=view.num_classes)
        demands.append(np.log1p(there / np.maximum(1.0, count * p.span)))
    some = np.maximum(1, p.fits.sum(axis=0))

    def mean_log(values: Floats) -> Floats:
        with np.errstate(invalid="ignore"):
            ratio = np.log(
                np.maximum(values, 1e-12) / np.maximum(1e-12, values.min(axis=1)[:, None])
            )
        return np.where(p.fits, ratio, 0.0).sum(axis=0) / some

    ones, zeros = np.ones(view.num_classes), np.zeros(view.num_classes)
    shortest = np.where(p.fits, tables.shortest[kind], np.inf)
    dynamic = (ones, zeros, zeros) if state is None else (state.free, state.backlog, state.heat)
    mean_rest = float((rest * count).sum() / max(1.0, count.sum()))
    return _columns(
        count / max(1.0, count.sum()), np.log(np.maximum(1.0, count)),
        np.minimum(FAR, rest / max(1e-9, mean_rest)), *demands, mean_log(shortest),
        mean_log(p.cost), p.fits.mean(axis=0), *dynamic,
    )  # fmt: skip


def _pair_table(p: _Parts) -> Float32:
    """Zero where a class does not fit."""
    kind = p.instance.tasks.kind

    def relative(table: Floats) -> Floats:
        values = np.where(p.fits, table, np.inf)
        return np.where(p.fits, _log_ratio(values, values.min(axis=1, keepdims=True)), 0.0)

    stretch = np.where(p.fits, p.tables.stretch[kind], 1.0)
    return _columns(
        relative(p.tables.shortest[kind]), relative(p.tables.least_net[kind]), relative(p.cost),
        np.log(stretch),
    )  # fmt: skip


def _set_table(tables: ClassTables) -> Float32:
    view = tables.view
    kinds = len(view.kind_ptr) - 1
    fastest, cheapest = np.full(kinds, np.inf), np.full(kinds, np.inf)
    np.minimum.at(fastest, view.kind, view.time_per_unit_s)
    np.minimum.at(cheapest, view.kind, view.energy_per_unit_j)
    return _columns(
        np.nan_to_num(view.clock, nan=1.0), _log_ratio(view.time_per_unit_s, fastest[view.kind]),
        _log_ratio(view.energy_per_unit_j, cheapest[view.kind]),
        np.log(np.maximum(1, view.devices)),
    )  # fmt: skip


def _whole(p: _Parts) -> Float32:
    instance, tables, known = p.instance, p.tables, p.known
    n, devices = max(1, instance.num_tasks), max(1.0, float(p.tables.num_devices.sum()))
    weights = dict(instance.objective.levels[0])
    net = instance.tasks.units * tables.least_net[instance.tasks.kind, p.choice]
    energy = max(1e-9, float(np.abs(net).sum()))
    dated = np.isfinite(p.later)
    late = weights.get("tardiness_s", 0.0) * instance.tick_s
    late *= float(instance.tasks.weight[np.isfinite(instance.tasks.deadline)].sum())
    slack = np.clip((p.later - p.early)[dated] / p.span, -FAR, FAR)
    lag = float(known.edge_lag.mean()) if len(known.edge_lag) else 0.0
    return _columns(
        np.float64(p.path / p.span),
        np.float64(p.load.sum() / (devices * p.span)), np.log(devices), np.log(n),
        np.log(n / devices), np.log(max(1e-6, tables.end_cost * p.span / energy)),
        np.log(1e-3 + late * p.span / energy), np.float64(dated.mean()) if n else 0.0,
        np.float64(slack.mean()) if dated.any() else np.float64(FAR),
        np.log1p(lag / max(1.0, float(known.shortest.mean()))),
        np.log(max(1, tables.view.num_classes)),
        np.float64((instance.tasks.release > instance.tasks.release.min(initial=0)).mean()),
    )  # fmt: skip


def _links(instance: Instance, tables: ClassTables) -> tuple[Float32, Float32]:
    """Return features of links between classes (their first and last pools), and their strength
    between 0 and 1.
    """
    view, links = tables.view, instance.links
    _, first = np.unique(view.pool_class, return_index=True)
    last = np.zeros(view.num_classes, dtype=np.int64)
    last[view.pool_class] = np.arange(instance.num_pools)
    latency, slowness = (t[np.ix_(first, last)] for t in (links.latency_s, links.s_per_gb))
    linked = np.isfinite(latency)
    latency, slowness = (np.where(linked, t, UNLINKED) for t in (latency, slowness))
    near = np.where(linked, 1.0 / (1.0 + slowness), 0.0)
    near = (near + near.T) / 2
    np.fill_diagonal(near, 0.0)
    return _columns(np.log1p(1e3 * latency), np.log1p(1e2 * slowness)), _single(near)


def _members(instance: Instance, tables: ClassTables) -> Float32:
    """Return the share of each class's devices in each group of places with pools of the same
    classes.
    """
    view, pools = tables.view, instance.pools
    table = np.zeros((len(instance.places.names), view.num_classes))
    np.add.at(table, (pools.place, view.pool_class), pools.count)
    table = table[table.sum(axis=1) > 0]
    _, group = np.unique(table > 0, axis=0, return_inverse=True)
    group = group.reshape(-1)
    member = np.zeros((int(group.max(initial=-1)) + 1, view.num_classes))
    np.add.at(member, group, table)
    return _single(member / np.maximum(1e-12, member.sum(axis=0, keepdims=True)))
