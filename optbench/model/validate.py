"""Checks of a finished instance; an error names the invalid task, pool, mode or field."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np

from optbench.errors import ModelError, nearest
from optbench.model.congestion import check_congestion
from optbench.model.features import provisioned
from optbench.model.instance import Bools, Instance, Tasks
from optbench.model.objective import METRICS, RATIOS
from optbench.model.sleeping import wake_ticks
from optbench.model.streams import check_stream
from optbench.model.temperature import check_cooling
from optbench.model.timegrid import HORIZON_TICKS
from optbench.model.windows import task_groups


def validate(instance: Instance) -> Instance:
    """Return the instance if it is valid; a ModelError names the invalid part."""
    _positive("tick_s", instance.tick_s)
    if instance.horizon is not None:
        _positive("horizon", instance.horizon)
        if instance.horizon != int(instance.horizon):
            raise ModelError(f"horizon is {instance.horizon!r}; it must be a whole number of ticks")
        if instance.horizon > HORIZON_TICKS:
            raise ModelError(f"horizon is {instance.horizon!r}; it must be at most 2^52 ticks")
    _check_places(instance)
    _check_pools(instance)
    _check_modes(instance)
    _check_tasks(instance)
    _check_edges(instance)
    if instance.congestion is not None:
        check_congestion(instance, instance.congestion)
    _check_links(instance)
    _check_limits(instance)
    _check_tariffs(instance)
    if instance.stream is not None:
        check_stream(instance, instance.stream)
    if instance.cooling is not None:
        check_cooling(instance, instance.cooling)
    return instance


def _positive(what: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ModelError(f"{what} is {value!r}; it must be a positive finite number")


def _first(bad: Any) -> int | None:
    rows = np.flatnonzero(bad)
    return int(rows[0]) if len(rows) else None


class _Rows:
    """The rows of a part of the instance; errors name the column, the row and what is allowed."""

    def __init__(self, part: Any, name: Callable[[int], str]) -> None:
        self.part, self.name = part, name

    def same_length(self, length: int, what: str) -> None:
        for column in fields(self.part):
            value = getattr(self.part, column.name)
            if isinstance(value, np.ndarray) and len(value) != length:
                rows = f"has {len(value)} rows; it must have {length}"
                raise ModelError(f"{what}.{column.name} {rows}")

    def require(self, column: str, ok: Bools, allowed: str) -> None:
        """Check every row; an error names the first invalid one."""
        row = _first(~ok)
        if row is not None:
            value = getattr(self.part, column)[row]
            raise ModelError(f"{column} of {self.name(row)} is {value}; it must be {allowed}")

    def index(self, column: str, size: int, allowed: str) -> None:
        """Check a column of indices below ``size``."""
        values = getattr(self.part, column)
        self.require(column, (values >= 0) & (values < size), allowed)

    def non_negative(self, *columns: str, infinite: bool = False) -> None:
        for column in columns:
            values = np.asarray(getattr(self.part, column), dtype=float)
            allowed = "a non-negative number" + ("" if infinite else ", and finite")
            self.require(column, (values >= 0) & (np.isfinite(values) | infinite), allowed)

    def whole_ticks(self, column: str) -> None:
        values = getattr(self.part, column)
        ok = np.isinf(values) | (np.floor(values) == values)
        self.require(column, ok, "a whole number of ticks")


def _check_matrix(
    part: Any,
    what: str,
    column: str,
    shape: tuple[int, int],
    place: Callable[[int, int], str],
    infinite: bool = False,
) -> None:
    """Check that a matrix has this shape and no negative entry; ``place`` names an entry."""
    matrix = getattr(part, column)
    if matrix.shape != shape:
        raise ModelError(f"{what}.{column} has shape {matrix.shape}; it must be {shape}")
    bad = ~(matrix >= 0) | (np.isinf(matrix) & (not infinite))
    if bad.any():
        a, b = np.argwhere(bad)[0]
        value = f"{column} is {matrix[a, b]}; it must be non-negative and finite"
        raise ModelError(f"{place(a, b)}: {value}")


def _check_places(instance: Instance) -> None:
    places = instance.places
    if not places.names:
        raise ModelError("there is no place; place 0 must be the whole cluster")
    rows = _Rows(places, lambda q: f"place {places.names[q]!r}")
    rows.same_length(len(places.names), "places")
    ok = (places.parent >= 0) & (places.parent < np.arange(len(places.parent)))
    ok[0] = places.parent[0] == -1
    rows.require("parent", ok, "an earlier place (-1 for place 0)")


def _check_pools(instance: Instance) -> None:
    pools = instance.pools
    if not pools.names:
        raise ModelError("there is no pool; declare one with m.pool('name', count=4, ...)")
    rows = _Rows(pools, lambda p: f"pool {pools.names[p]!r}")
    rows.same_length(len(pools.names), "pools")
    _unique(pools.names, "pool")
    rows.require("count", pools.count > 0, "a positive integer")
    rows.index("place", len(instance.places.names), "a known place")
    rows.non_negative("idle_w", "sleep_w")
    rows.non_negative("memory_gb", infinite=True)
    if pools.failures_per_s is not None:
        rows.non_negative("failures_per_s")
    _check_waking(instance, rows)


def _check_waking(instance: Instance, rows: _Rows) -> None:
    pools = instance.pools
    for name in ("wake_s", "wake_j"):
        if getattr(pools, name) is not None:
            rows.non_negative(name)
            allowed = "0 in a pool that does not sleep"
            rows.require(name, pools.gated | (getattr(pools, name) == 0), allowed)
    if pools.wake_s is not None or pools.wake_j is not None:
        less = pools.sleep_w <= np.where(provisioned(pools), pools.idle_w, np.inf)
        rows.require("sleep_w", less, "at most idle_w where waking takes time or energy")
        rows.require("wake_s", wake_ticks(instance) <= HORIZON_TICKS, "at most 2^52 ticks")


def _unique(names: tuple[str, ...], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ModelError(f"two {what}s are named {name!r}; names must differ")
        seen.add(name)


def _pointers(ptr: Any, rows: int, what: str) -> None:
    if len(ptr) < 1 or ptr[0] != 0 or ptr[-1] != rows or (np.diff(ptr) < 0).any():
        raise ModelError(f"{what} must rise from 0 to {rows}")


def _check_modes(instance: Instance) -> None:
    modes, pools = instance.modes, instance.pools
    n = len(modes.clock)
    _pointers(modes.kind_ptr, n, "modes.kind_ptr")
    _pointers(modes.req_ptr, len(modes.req_pool), "modes.req_ptr")
    kinds_fit = len(modes.kind_ptr) == len(modes.kind_names) + 1
    needs_fit = len(modes.req_ptr) == n + 1 and len(modes.req_count) == len(modes.req_pool)
    if not (kinds_fit and needs_fit):
        what = "the number of kinds, modes and requirements"
        raise ModelError(f"modes: the pointer columns do not fit {what}")
    if not len(modes.time_per_unit_s) == len(modes.energy_per_unit_j) == len(modes.power_w) == n:
        raise ModelError(f"modes: every column must have {n} rows")
    rows = _Rows(modes, lambda k: f"mode {k} of kind {modes.kind_names[modes.kind[k]]!r}")
    rows.non_negative("time_per_unit_s", "energy_per_unit_j", "power_w")
    clock = np.where(np.isnan(modes.clock), 1.0, modes.clock)
    rows.require("clock", (clock > 0) & np.isfinite(clock), "a positive fraction of the top clock")
    owner = np.repeat(np.arange(n), np.diff(modes.req_ptr))
    needs = _Rows(modes, lambda r: rows.name(int(owner[r])))
    needs.index("req_pool", len(pools.names), "a known pool")
    room = pools.count[modes.req_pool]
    row = _first((modes.req_count < 1) | (modes.req_count > room))
    if row is not None:
        pool = f"pool {pools.names[modes.req_pool[row]]!r}, which has {room[row]}"
        raise ModelError(f"{needs.name(row)} needs {modes.req_count[row]} devices of {pool}")
    if len(np.unique(owner * len(pools.names) + modes.req_pool)) != len(owner):
        remedy = "give each pool once with its number of devices"
        raise ModelError(f"a mode lists the same pool twice; {remedy}")
    homeless = (np.diff(modes.req_ptr) == 0) & ((modes.energy_per_unit_j > 0) | (modes.power_w > 0))
    row = _first(homeless)
    if row is not None:
        remedy = "name the pool that draws it"
        raise ModelError(f"{rows.name(row)} uses no pool but has energy; {remedy}")


def _check_tasks(instance: Instance) -> None:
    tasks, modes = instance.tasks, instance.modes
    if instance.num_tasks == 0:
        raise ModelError("there is no task; declare one with m.task('name', ...)")
    rows = _Rows(tasks, lambda i: f"task {tasks.name(i)!r}")
    rows.same_length(instance.num_tasks, "tasks")
    if tasks.names is not None:
        if len(tasks.names) != instance.num_tasks:
            length = f"{len(tasks.names)} rows; it must have {instance.num_tasks}"
            raise ModelError(f"tasks.names has {length}")
        _unique(tasks.names, "task")
    _check_users(tasks, rows)
    _check_checkpoints(instance, rows)
    rows.index("kind", len(modes.kind_names), "a known kind")
    positive = np.isfinite(tasks.units) & (tasks.units > 0)
    rows.require("units", positive, "positive and finite")
    rows.non_negative("release", "weight", "memory_gb")
    rows.require("deadline", tasks.deadline >= 0, "a non-negative number")
    rows.whole_ticks("deadline")
    rows.whole_ticks("release")
    with np.errstate(over="ignore"):
        longest = np.zeros(len(modes.kind_names))
        np.maximum.at(longest, modes.kind, instance.ticks_per_unit)
        total = tasks.release + tasks.units * longest[tasks.kind]
    late = _first(~(np.isfinite(total) & (total <= HORIZON_TICKS)))
    if late is not None:
        allowed = f"together at most 2^52 ticks of {instance.tick_s:g} s"
        what = f"release and longest duration of {rows.name(late)}"
        raise ModelError(f"{what} is {total[late]}; it must be {allowed}")
    empty = _first(np.diff(modes.kind_ptr)[tasks.kind] == 0)
    if empty is not None:
        raise ModelError(f"{rows.name(empty)} has no mode; give its kind at least one")
    room = np.zeros(len(modes.kind_names))
    np.maximum.at(room, modes.kind, instance.mode_memory_gb)
    tight = _first(tasks.memory_gb > room[tasks.kind])
    if tight is not None:
        largest = f"the largest it could use has {room[tasks.kind[tight]]:g} GB"
        need = f"{tasks.memory_gb[tight]:g} GB per device"
        raise ModelError(f"{rows.name(tight)} needs {need}; {largest}")


def _check_checkpoints(instance: Instance, rows: _Rows) -> None:
    if instance.tasks.checkpoint is None:
        return
    rows.non_negative("checkpoint", infinite=True)
    rows.whole_ticks("checkpoint")
    for wrong, what in ((not instance.preemptive, "not preemptive"), (instance.is_open, "open")):
        if wrong:
            raise ModelError(
                f"tasks.checkpoint is given, and {instance.name!r} is {what}; checkpoints need "
                "an instance with preemptive=True in which all work is completed"
            )


def _check_users(tasks: Tasks, rows: _Rows) -> None:
    names = tasks.user_names
    if tasks.user is None:
        if names is not None:
            raise ModelError("tasks.user_names has names, but no task has a user; give tasks.user")
        return
    if names is not None:
        _unique(names, "user")
        rows.index("user", len(names), f"one of the {len(names)} users, from 0")
    rows.require("user", tasks.user >= 0, "a whole number from 0")


def _check_edges(instance: Instance) -> None:
    edges, tasks = instance.edges, instance.tasks
    rows = _Rows(edges, lambda e: f"edge {e}")
    rows.same_length(len(edges.source), "edges")
    for column in ("source", "target"):
        rows.index(column, instance.num_tasks, f"a task from 0 to {instance.num_tasks - 1}")
    rows.non_negative("data_gb")
    if len(edges.source) and len(instance.order) < instance.num_tasks:
        path = " -> ".join(repr(tasks.name(task)) for task in _cycle(instance))
        raise ModelError(f"the precedence has a cycle: {path}; remove one of these edges")


def _cycle(instance: Instance) -> list[int]:
    """One cycle, its first task repeated at the end."""
    left = np.ones(instance.num_tasks, dtype=bool)
    left[instance.order] = False
    before: dict[int, int] = {}
    for source, target in zip(
        instance.edges.source.tolist(), instance.edges.target.tolist(), strict=True
    ):
        if left[source] and left[target]:
            before[target] = source  # Every remaining task has a remaining predecessor.
    walk, seen = [next(iter(before))], {}
    while walk[-1] not in seen:
        seen[walk[-1]] = len(walk) - 1
        walk.append(before[walk[-1]])
    return walk[seen[walk[-1]] :][::-1]


def _check_links(instance: Instance) -> None:
    links, pools = instance.links, instance.pools.names
    shape = (len(pools), len(pools))
    for column in ("latency_s", "s_per_gb", "j_per_gb"):
        infinite = column == "latency_s"
        _check_matrix(
            links,
            "links",
            column,
            shape,
            lambda a, b: f"link {pools[a]!r} to {pools[b]!r}",
            infinite,
        )
    edges = instance.edges
    heavy = np.flatnonzero(edges.data_gb > 0)
    latency_s = float(links.latency_s[np.isfinite(links.latency_s)].max())
    with np.errstate(over="ignore"):
        busy = instance.congestion
        slowest = float(links.s_per_gb.max()) * (1.0 if busy is None else busy.factor.max())
        lags_s = latency_s + edges.data_gb[heavy] * slowest
        lags = lags_s / instance.tick_s
    if not lags.max(initial=0.0) <= HORIZON_TICKS:
        edge = _carrier(instance, int(heavy[np.argmax(lags)]))
        most = f"at most 2^52 ticks of {instance.tick_s:g} s, this one {lags.max():.3g}"
        raise ModelError(f"{edge}; a transfer takes {most}")
    if np.isfinite(links.latency_s).all():
        return  # Any two pools are linked, and every task has one.
    group, pools_of = task_groups(instance)
    ends = np.stack((group[edges.source[heavy]], group[edges.target[heavy]]))
    _, first = np.unique(ends, axis=1, return_index=True)
    for e in heavy[first].tolist():
        senders, receivers = pools_of[group[edges.source[e]]], pools_of[group[edges.target[e]]]
        if not np.isfinite(instance.lag(senders[:, None], receivers[None, :], 1.0)).any():
            remedy = "but no link joins their pools (those with the memory); add m.link(...)"
            raise ModelError(f"{_carrier(instance, e)}, {remedy}")


def _carrier(instance: Instance, edge: int) -> str:
    edges, name = instance.edges, instance.tasks.name
    ends = f"{name(edges.source[edge])!r} to {name(edges.target[edge])!r}"
    return f"edge {ends} carries {edges.data_gb[edge]:g} GB"


def _check_limits(instance: Instance) -> None:
    limits, places = instance.limits, instance.places.names
    rows = _Rows(limits, lambda c: f"cap {c}")
    rows.same_length(len(limits.cap_place), "limits")
    rows.index("cap_place", len(places), "a known place")
    at_place = _Rows(limits, lambda c: f"the power cap at {places[limits.cap_place[c]]!r}")
    at_place.non_negative("cap_w")
    for name, value in limits.metric_max.items():
        if name not in METRICS:
            raise ModelError(f"limit on unknown metric {name!r}; {nearest(name, METRICS)}")
        if not (math.isfinite(value) and value >= 0):
            raise ModelError(
                f"limit on {name} is {value!r}; it must be a non-negative finite number"
            )
    for level in instance.objective.levels[:-1]:
        if len(level) > 1:
            names = " + ".join(name for name, _ in level)
            raise ModelError(
                f"minimize_in_order: {names} is not the last level; only the last level may be a "
                "weighted sum"
            )
    for ratio in sorted(instance.objective.metrics & set(RATIOS)):
        if (
            not instance.is_open
            or len(instance.objective.levels) > 1
            or len(instance.objective.levels[0]) > 1
        ):
            raise ModelError(
                f"{ratio} must be the only objective of an open instance; "
                "if all work is completed, minimise energy_j"
            )
    wanted = instance.objective.metrics | set(limits.metric_max)
    for name in sorted(wanted & {"cost_usd", "carbon_g"}):
        if instance.tariffs is None:
            raise ModelError(
                f"{name} is minimised or limited, but there is no tariff; add m.tariff(...)"
            )


def _check_tariffs(instance: Instance) -> None:
    tariffs = instance.tariffs
    if tariffs is None:
        return
    times = tariffs.times
    if (
        len(times) == 0
        or times[0] != 0
        or not np.isfinite(times).all()
        or (np.diff(times) <= 0).any()
    ):
        raise ModelError("tariff times must start at 0 and rise strictly")
    if (np.floor(times) != times).any():
        raise ModelError("tariff times must be whole ticks; choose a tick_s that divides them")
    names = instance.pools.names
    for column in ("price_usd_per_kwh", "carbon_g_per_kwh"):
        shape = (len(names), len(times))
        _check_matrix(
            tariffs, "tariffs", column, shape, lambda p, q: f"pool {names[p]!r} in period {q}"
        )
