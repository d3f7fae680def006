"""What the network sees of an instance: numbers without units, by task, class of devices, group of
nodes, and for the whole.

Times are relative to C = max(critical path, work / N), where the work is that of every task in its
cheapest set at the plain price of a device (``class_tables``); prices and energies are relative to
one another. Nothing depends on the number of nodes but through logarithms, so that one network is
used for all sizes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Floats, Instance, Ints
from optbench.model.windows import windows

from .class_tables import PLAIN, PRICES, ClassTables, class_tables

TASK_COLUMNS = (
    "head", "tail", "slack", "length", "load", "dearness", "in_degree", "out_degree",
    "work_before", "work_behind", "has_deadline", "deadline_slack", "has_later_deadline",
    "later_deadline_slack", "weight", "clock_stretch", "energy_spread", "sends", "choices",
)  # fmt: skip
CLASS_COLUMNS = (
    "share", "log_count", "rest", *(f"demand_{price:g}" for price in PRICES), "slowness",
    "dearness", "fits", "free", "backlog", "heat",
)  # fmt: skip
PAIR_COLUMNS = ("slowness", "net", "cost", "clock_stretch")
WHOLE_COLUMNS = (
    "path_share", "work_share", "log_devices", "log_tasks", "tasks_per_device", "time_value",
    "lateness_value", "dated", "date_slack", "transfers", "classes", "arrives",
)  # fmt: skip
NONE, FAR = -1, 3.0


@dataclass(frozen=True, eq=False)
class Situation:
    """The tables of features, the edges between their rows, and the scales that decode answers.

    ``pair_task`` and ``pair_class`` are the fitting (task, class) pairs, ``nearness`` the strength
    of links between classes, ``member`` the share of each class in each group of alike nodes.
    """

    task: Floats
    device: Floats
    pair: Floats
    whole: Floats
    source: Ints
    target: Ints
    pair_task: Ints
    pair_class: Ints
    link: Floats
    nearness: Floats
    member: Floats
    tables: ClassTables
    kind: Ints
    early: Floats
    shortest: Floats
    tail: Floats
    later_deadline: Floats
    load: Floats
    span: float


def situation_of(instance: Instance) -> Situation:
    """Return what is seen of an instance before anything has started."""
    tables, known = class_tables(instance), windows(instance)
    tasks, kind = instance.tasks, instance.tasks.kind
    fits = _fits(instance, tables)
    cost = np.where(fits, tables.cost[kind, :, PLAIN], np.inf)
    n = instance.num_tasks
    choice = cost.argmin(axis=1)
    units = tasks.units
    length = units * tables.long[kind, choice, PLAIN]
    load = length * tables.wide[kind, choice, PLAIN]
    devices = max(1.0, float(tables.view.count.sum()))
    span = max(known.critical_path, load.sum() / devices, 1.0)
    later = later_deadlines(instance, known.shortest, known.edge_lag)
    early = known.head + known.shortest
    pair_task, pair_class = np.nonzero(fits)
    task = _task_table(instance, tables, fits, known, load, length, later, span)
    device = _class_table(instance, tables, fits, cost, load.sum(), span)
    link, nearness = _links(instance, tables)
    whole = _whole(instance, tables, known, load, later, early, span, choice)

    return Situation(
        task, device, _pair_table(instance, tables, cost, pair_task, pair_class), whole,
        np.asarray(instance.edges.source), np.asarray(instance.edges.target), pair_task,
        pair_class, link, nearness, _members(instance, tables), tables, kind, early,
        known.shortest, known.tail, later, load, float(span),
    )  # fmt: skip


def later_deadlines(instance: Instance, shortest: Floats, lag: Floats) -> Floats:
    """Return by when each task has to end for itself and all tasks behind it to meet their
    deadlines, soft or hard; inf without one.
    """
    out, source, target = instance.tasks.deadline.copy(), instance.edges.source, instance.edges.target
    if not np.isfinite(out).any() or len(source) == 0:
        return np.asarray(out, dtype=float)
    for e in _edges_from_behind(instance):
        out[source[e]] = min(out[source[e]], out[target[e]] - shortest[target[e]] - lag[e])
    return np.asarray(out, dtype=float)


def _edges_from_behind(instance: Instance) -> list[int]:
    position = np.empty(instance.num_tasks, dtype=np.int64)
    position[instance.order] = np.arange(instance.num_tasks)
    return np.argsort(-position[instance.edges.source], kind="stable").tolist()


def _fits(instance: Instance, tables: ClassTables) -> np.ndarray:
    view = tables.view
    memory = np.zeros(view.num_classes)
    memory[view.class_of_pool] = instance.pools.memory_gb
    there = np.isfinite(tables.shortest[instance.tasks.kind])
    return there & (instance.tasks.memory_gb[:, None] <= memory[None, :])


def _log_ratio(a: Floats, b: Floats | float) -> Floats:
    return np.clip(np.log(np.maximum(a, 1e-12) / np.maximum(b, 1e-12)), -6.0, 6.0)


def _task_table(instance, tables, fits, known, load, length, later, span):  # type: ignore[no-untyped-def]
    tasks, kind, n = instance.tasks, instance.tasks.kind, instance.num_tasks
    path = max(1.0, known.critical_path)
    out_degree = np.bincount(instance.edges.source, minlength=n)
    in_degree = np.bincount(instance.edges.target, minlength=n)
    early = known.head + known.shortest
    net = np.where(fits, tables.least_net[kind], np.inf)
    least = net.min(axis=1)
    fastest = np.where(fits, tables.shortest[kind], np.inf).argmin(axis=1)
    sends = np.zeros(n)
    np.maximum.at(sends, instance.edges.source, known.edge_lag)

    def rank(key: Floats) -> Floats:
        order = np.argsort(key, kind="stable")
        out = np.empty(n)
        out[order] = np.cumsum(load[order]) / max(1e-12, load.sum())
        return out

    def slack(date: Floats) -> Floats:
        return np.clip(np.where(np.isfinite(date), (date - early) / span, FAR), -FAR, FAR)

    columns = (
        known.head / path, known.tail / path, (path - early - known.tail) / path,
        _log_ratio(known.shortest, known.shortest.mean()), _log_ratio(load, load.mean()),
        _log_ratio(length, known.shortest), np.log1p(in_degree), np.log1p(out_degree),
        rank(known.head), rank(-known.tail), np.isfinite(tasks.deadline), slack(tasks.deadline),
        np.isfinite(later), slack(later), np.log(np.maximum(1e-3, tasks.weight)),
        np.log(tables.stretch[kind, fastest]),
        _log_ratio(tables.net_of_shortest[kind, fastest], np.maximum(least, 1e-12)),
        np.log1p(sends / max(1.0, known.shortest.mean())), fits.mean(axis=1),
    )  # fmt: skip
    return np.stack([np.asarray(column, dtype=float) for column in columns], axis=1)


def _class_table(instance, tables, fits, cost, work, span):  # type: ignore[no-untyped-def]
    view, kind, units = tables.view, instance.tasks.kind, instance.tasks.units
    count = view.count
    rest = np.zeros(view.num_classes)
    rest[view.class_of_pool] = instance.pools.rest_w
    demands = []
    for p in range(len(PRICES)):
        choice = np.where(fits, tables.cost[kind, :, p], np.inf).argmin(axis=1)
        need = units * tables.long[kind, choice, p] * tables.wide[kind, choice, p]
        there = np.bincount(choice, weights=need, minlength=view.num_classes)
        demands.append(np.log1p(there / np.maximum(1.0, count * span)))
    shortest = np.where(fits, tables.shortest[kind], np.inf)
    net = np.where(fits, tables.cost[kind, :, PLAIN], np.inf)
    some = np.maximum(1, fits.sum(axis=0))

    def mean_log(values: Floats) -> Floats:
        ratio = np.log(values / values.min(axis=1, keepdims=True))
        return np.where(fits, ratio, 0.0).sum(axis=0) / some

    zeros = np.zeros(view.num_classes)
    columns = (
        count / count.sum(), np.log(np.maximum(1.0, count)),
        rest / max(1e-9, float((rest * count).sum() / count.sum())), *demands, mean_log(shortest),
        mean_log(net), fits.mean(axis=0), zeros + 1.0, zeros, zeros,
    )  # fmt: skip
    return np.stack(columns, axis=1)


def _pair_table(instance, tables, cost, task, cls):  # type: ignore[no-untyped-def]
    kind = instance.tasks.kind[task]
    fastest = np.full(instance.num_tasks, np.inf)
    np.minimum.at(fastest, task, tables.shortest[kind, cls])
    least = np.full(instance.num_tasks, np.inf)
    np.minimum.at(least, task, tables.least_net[kind, cls])
    columns = (
        np.log(tables.shortest[kind, cls] / fastest[task]),
        _log_ratio(tables.least_net[kind, cls], np.maximum(1e-12, least[task])),
        np.log(cost[task, cls] / cost.min(axis=1)[task]),
        np.log(tables.stretch[kind, cls]),
    )
    return np.stack(columns, axis=1)


def _whole(instance, tables, known, load, later, early, span, choice):  # type: ignore[no-untyped-def]
    n = max(1, instance.num_tasks)
    devices = max(1.0, float(tables.view.count.sum()))
    weights = dict(instance.objective.levels[0])
    net = instance.tasks.units * tables.least_net[instance.tasks.kind, choice]
    energy = max(1e-9, float(np.abs(net).sum()))
    dated = np.isfinite(later)
    late = weights.get("tardiness_s", 0.0) * instance.tick_s
    late *= float(instance.tasks.weight[np.isfinite(instance.tasks.deadline)].sum())
    slack = (later - early)[dated]
    row = (
        known.critical_path / span, load.sum() / (devices * span), np.log(devices), np.log(n),
        np.log(n / devices), np.log(max(1e-6, tables.end_cost * span / energy)),
        np.log(1e-3 + late * span / energy), dated.mean() if n else 0.0,
        float(np.clip(slack / span, -FAR, FAR).mean()) if dated.any() else FAR,
        np.log1p(float(known.edge_lag.mean()) / max(1.0, float(known.shortest.mean())))
        if len(known.edge_lag) else 0.0,
        np.log(tables.view.num_classes), float((instance.tasks.release > 0).mean()),
    )  # fmt: skip
    return np.asarray(row, dtype=float)


def _links(instance, tables):  # type: ignore[no-untyped-def]
    """Return (classes, classes, 2) features of links, and their strength between 0 and 1."""
    view, links = tables.view, instance.links
    classes = view.num_classes
    _, first = np.unique(view.class_of_pool, return_index=True)
    last = np.zeros(classes, dtype=np.int64)
    last[view.class_of_pool] = np.arange(instance.num_pools)
    latency, slowness = (t[np.ix_(first, last)] for t in (links.latency_s, links.s_per_gb))
    linked = np.isfinite(latency)
    latency = np.where(linked, latency, 10.0)
    slowness = np.where(linked, slowness, 10.0)
    link = np.stack([np.log1p(1e3 * latency), np.log1p(1e2 * slowness)], axis=-1)
    near = np.where(linked, 1.0 / (1.0 + slowness), 0.0)
    near = (near + near.T) / 2
    np.fill_diagonal(near, 0.0)
    return link, near


def _members(instance, tables):  # type: ignore[no-untyped-def]
    """Return the share of each class's devices in each group of places with alike pools."""
    view = tables.view
    places = len(instance.places.names)
    table = np.zeros((places, view.num_classes))
    np.add.at(table, (instance.pools.place, view.class_of_pool), instance.pools.count)
    table = table[table.sum(axis=1) > 0]
    _, group = np.unique(table > 0, axis=0, return_inverse=True)
    group = group.reshape(-1)
    member = np.zeros((int(group.max()) + 1, view.num_classes))
    np.add.at(member, group, table)
    return member / np.maximum(1e-12, member.sum(axis=0, keepdims=True))
