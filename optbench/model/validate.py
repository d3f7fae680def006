"""Checks of a finished instance; an error names the invalid task, pool, mode or field."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np

from optbench.errors import ModelError, nearest
from optbench.model.instance import Bools, Instance
from optbench.model.objective import METRICS, RATIOS
from optbench.model.streams import check_stream
from optbench.model.timegrid import HORIZON_TICKS


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
    _check_links(instance)
    _check_limits(instance)
    _check_tariffs(instance)
    if instance.stream is not None:
        check_stream(instance, instance.stream)
    return instance


def _positive(what: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ModelError(f"{what} is {value!r}; it must be a positive finite number")


def _first(bad: Any) -> int | None:
    rows = np.flatnonzero(bad)
    return int(rows[0]) if len(rows) else None


def _require(column: Any, ok: Bools, what: str, allowed: str, name: Any) -> None:
    """Check every row; an error names the first invalid one."""
    row = _first(~ok)
    if row is not None:
        raise ModelError(f"{what} of {name(row)} is {column[row]}; it must be {allowed}")


def _non_negative(part: Any, columns: tuple[str, ...], what: str, name: Any, infinite: tuple[str, ...] = ()) -> None:
    for column in columns:
        values = np.asarray(getattr(part, column), dtype=float)
        ok = (values >= 0) & (np.isfinite(values) | (column in infinite))
        _require(values, ok, f"{what} {column}", "a non-negative number" + ("" if column in infinite else ", and finite"), name)


def _same_length(part: Any, length: int, what: str) -> None:
    for column in fields(part):
        value = getattr(part, column.name)
        if isinstance(value, np.ndarray) and len(value) != length:
            raise ModelError(f"{what}.{column.name} has {len(value)} rows; it must have {length}")


def _check_places(instance: Instance) -> None:
    places = instance.places
    if not places.names:
        raise ModelError("there is no place; place 0 must be the whole cluster")
    _same_length(places, len(places.names), "places")
    ok = (places.parent >= 0) & (places.parent < np.arange(len(places.parent)))
    ok[0] = places.parent[0] == -1
    _require(places.parent, ok, "parent", "an earlier place (-1 for place 0)", lambda q: f"place {places.names[q]!r}")


def _check_pools(instance: Instance) -> None:
    pools = instance.pools
    if not pools.names:
        raise ModelError("there is no pool; declare one with m.pool('name', count=4, ...)")
    _same_length(pools, len(pools.names), "pools")
    _unique(pools.names, "pool")

    def name(p: int) -> str:
        return f"pool {pools.names[p]!r}"

    _require(pools.count, pools.count > 0, "count", "a positive integer", name)
    _require(pools.place, (pools.place >= 0) & (pools.place < len(instance.places.names)), "place", "a known place", name)
    _non_negative(pools, ("idle_w", "sleep_w"), "pool", name)
    _non_negative(pools, ("memory_gb",), "pool", name, infinite=("memory_gb",))


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
    if (
        len(modes.kind_ptr) != len(modes.kind_names) + 1
        or len(modes.req_ptr) != n + 1
        or len(modes.req_count) != len(modes.req_pool)
    ):
        raise ModelError("modes: the pointer columns do not fit the number of kinds, modes and requirements")
    if not len(modes.time_per_unit_s) == len(modes.energy_per_unit_j) == len(modes.power_w) == n:
        raise ModelError(f"modes: every column must have {n} rows")

    def name(k: int) -> str:
        return f"mode {k} of kind {modes.kind_names[modes.kind[k]]!r}"

    _non_negative(modes, ("time_per_unit_s", "energy_per_unit_j", "power_w"), "mode", name)
    clock = np.where(np.isnan(modes.clock), 1.0, modes.clock)
    _require(modes.clock, (clock > 0) & np.isfinite(clock), "clock", "a positive fraction of the top clock", name)
    owner = np.repeat(np.arange(n), np.diff(modes.req_ptr))

    def of_requirement(r: int) -> str:
        return name(int(owner[r]))

    _require(modes.req_pool, (modes.req_pool >= 0) & (modes.req_pool < len(pools.names)), "pool", "a known pool", of_requirement)
    room = pools.count[modes.req_pool]
    row = _first((modes.req_count < 1) | (modes.req_count > room))
    if row is not None:
        pool = pools.names[modes.req_pool[row]]
        raise ModelError(f"{of_requirement(row)} needs {modes.req_count[row]} devices of pool {pool!r}, which has {room[row]}")
    if len(np.unique(owner * len(pools.names) + modes.req_pool)) != len(owner):
        raise ModelError("a mode lists the same pool twice; give each pool once with its number of devices")
    homeless = (np.diff(modes.req_ptr) == 0) & ((modes.energy_per_unit_j > 0) | (modes.power_w > 0))
    row = _first(homeless)
    if row is not None:
        raise ModelError(f"{name(row)} uses no pool but has energy; name the pool that draws it")


def _check_tasks(instance: Instance) -> None:
    tasks, modes = instance.tasks, instance.modes
    if instance.num_tasks == 0:
        raise ModelError("there is no task; declare one with m.task('name', ...)")
    _same_length(tasks, instance.num_tasks, "tasks")
    if tasks.names is not None:
        if len(tasks.names) != instance.num_tasks:
            raise ModelError(f"tasks.names has {len(tasks.names)} rows; it must have {instance.num_tasks}")
        _unique(tasks.names, "task")

    def name(i: int) -> str:
        return f"task {tasks.name(i)!r}"

    _require(tasks.kind, (tasks.kind >= 0) & (tasks.kind < len(modes.kind_names)), "kind", "a known kind", name)
    _require(tasks.units, np.isfinite(tasks.units) & (tasks.units > 0), "units", "positive and finite", name)
    _non_negative(tasks, ("release", "weight", "memory_gb"), "task", name)
    _require(tasks.deadline, tasks.deadline >= 0, "deadline", "a non-negative number", name)
    whole = np.isinf(tasks.deadline) | (np.floor(tasks.deadline) == tasks.deadline)
    _require(tasks.deadline, whole, "deadline", "a whole number of ticks", name)
    whole = np.floor(tasks.release) == tasks.release
    _require(tasks.release, whole, "release", "a whole number of ticks", name)
    with np.errstate(over="ignore"):
        longest = np.zeros(len(modes.kind_names))
        np.maximum.at(longest, modes.kind, instance.ticks_per_unit)
        total = tasks.release + tasks.units * longest[tasks.kind]
        in_time = np.isfinite(total) & (total <= HORIZON_TICKS)
        _require(total, in_time, "release and longest duration", f"together at most 2^52 ticks of {instance.tick_s:g} s", name)
    empty = _first(np.diff(modes.kind_ptr)[tasks.kind] == 0)
    if empty is not None:
        raise ModelError(f"{name(empty)} has no mode; give its kind at least one")
    room = np.zeros(len(modes.kind_names))
    np.maximum.at(room, modes.kind, instance.mode_memory_gb)
    tight = _first(tasks.memory_gb > room[tasks.kind])
    if tight is not None:
        most = room[tasks.kind[tight]]
        raise ModelError(
            f"{name(tight)} needs {tasks.memory_gb[tight]:g} GB per device; the largest it could use has {most:g} GB"
        )


def _check_edges(instance: Instance) -> None:
    edges, tasks = instance.edges, instance.tasks
    _same_length(edges, len(edges.source), "edges")

    def name(e: int) -> str:
        return f"edge {e}"

    for column in ("source", "target"):
        values = getattr(edges, column)
        _require(
            values, (values >= 0) & (values < instance.num_tasks), column, f"a task from 0 to {instance.num_tasks - 1}", name
        )
    _non_negative(edges, ("data_gb",), "edge", name)
    if len(edges.source) and len(instance.order) < instance.num_tasks:
        path = " -> ".join(repr(tasks.name(task)) for task in _cycle(instance))
        raise ModelError(f"the precedence has a cycle: {path}; remove one of these edges")


def _cycle(instance: Instance) -> list[int]:
    """One cycle, its first task repeated at the end."""
    left = np.ones(instance.num_tasks, dtype=bool)
    left[instance.order] = False
    before: dict[int, int] = {}
    for source, target in zip(instance.edges.source.tolist(), instance.edges.target.tolist(), strict=True):
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
        matrix = getattr(links, column)
        if matrix.shape != shape:
            raise ModelError(f"links.{column} has shape {matrix.shape}; it must be {shape}")
        bad = ~(matrix >= 0) | (np.isinf(matrix) & (column != "latency_s"))
        if bad.any():
            a, b = np.argwhere(bad)[0]
            raise ModelError(f"link {pools[a]!r} to {pools[b]!r}: {column} is {matrix[a, b]}; it must be non-negative and finite")
    edges, tasks = instance.edges, instance.tasks
    heavy = np.flatnonzero(edges.data_gb > 0)
    slowest = float(links.latency_s[np.isfinite(links.latency_s)].max()), float(links.s_per_gb.max())
    with np.errstate(over="ignore"):
        lags = (slowest[0] + edges.data_gb[heavy] * slowest[1]) / instance.tick_s
    if not lags.max(initial=0.0) <= HORIZON_TICKS:
        e = int(heavy[np.argmax(lags)])
        edge = f"edge {tasks.name(edges.source[e])!r} to {tasks.name(edges.target[e])!r} carries {edges.data_gb[e]:g} GB"
        raise ModelError(f"{edge}; a transfer takes at most 2^52 ticks of {instance.tick_s:g} s, this one {lags.max():.3g}")
    # Tasks of one kind whose memory fits the same modes are equivalent, so that few pairs are checked.
    rooms = np.unique(instance.mode_memory_gb)
    alike = tasks.kind * (len(rooms) + 1) + np.searchsorted(rooms, tasks.memory_gb)
    ends = np.stack((alike[edges.source[heavy]], alike[edges.target[heavy]]))
    _, first = np.unique(ends, axis=1, return_index=True)
    for e in heavy[first].tolist():
        i, j = int(edges.source[e]), int(edges.target[e])
        senders, receivers = _primary_pools(instance, i), _primary_pools(instance, j)
        if not np.isfinite(instance.lag(senders[:, None], receivers[None, :], 1.0)).any():
            edge = f"edge {tasks.name(i)!r} to {tasks.name(j)!r} carries {edges.data_gb[e]:g} GB"
            raise ModelError(f"{edge}, but no link joins their pools (those with the memory); add m.link(...)")


def _primary_pools(instance: Instance, task: int) -> Any:
    """Primary pools of the modes that fit a task."""
    kind = instance.tasks.kind[task]
    rows = np.arange(instance.modes.kind_ptr[kind], instance.modes.kind_ptr[kind + 1])
    rows = rows[instance.tasks.memory_gb[task] <= instance.mode_memory_gb[rows]]
    return np.unique(instance.modes.primary[rows])


def _check_limits(instance: Instance) -> None:
    limits, places = instance.limits, instance.places.names
    _same_length(limits, len(limits.cap_place), "limits")
    _require(
        limits.cap_place,
        (limits.cap_place >= 0) & (limits.cap_place < len(places)),
        "place",
        "a known place",
        lambda c: f"cap {c}",
    )
    _non_negative(limits, ("cap_w",), "limit", lambda c: f"power cap at {places[limits.cap_place[c]]!r}")
    for name, value in limits.metric_max.items():
        if name not in METRICS:
            raise ModelError(f"limit on unknown metric {name!r}; {nearest(name, METRICS)}")
        if not (math.isfinite(value) and value >= 0):
            raise ModelError(f"limit on {name} is {value!r}; it must be a non-negative finite number")
    for level in instance.objective.levels[:-1]:
        if len(level) > 1:
            names = " + ".join(name for name, _ in level)
            raise ModelError(f"minimize_in_order: {names} is not the last level; only the last level may be a weighted sum")
    for ratio in sorted(instance.objective.metrics & set(RATIOS)):
        if not instance.is_open or len(instance.objective.levels) > 1 or len(instance.objective.levels[0]) > 1:
            raise ModelError(
                f"{ratio} must be the only objective of an open instance; "
                "if all work is completed, minimise energy_j"
            )
    wanted = instance.objective.metrics | set(limits.metric_max)
    for name in sorted(wanted & {"cost_usd", "carbon_g"}):
        if instance.tariffs is None:
            raise ModelError(f"{name} is minimised or limited, but there is no tariff; add m.tariff(...)")


def _check_tariffs(instance: Instance) -> None:
    tariffs = instance.tariffs
    if tariffs is None:
        return
    times = tariffs.times
    if len(times) == 0 or times[0] != 0 or not np.isfinite(times).all() or (np.diff(times) <= 0).any():
        raise ModelError("tariff times must start at 0 and rise strictly")
    if (np.floor(times) != times).any():
        raise ModelError("tariff times must be whole ticks; choose a tick_s that divides them")
    shape = (instance.num_pools, len(times))
    for column in ("price_usd_per_kwh", "carbon_g_per_kwh"):
        matrix = getattr(tariffs, column)
        if matrix.shape != shape:
            raise ModelError(f"tariffs.{column} has shape {matrix.shape}; it must be {shape} (pools x periods)")
        if not (np.isfinite(matrix) & (matrix >= 0)).all():
            p, q = np.argwhere(~(np.isfinite(matrix) & (matrix >= 0)))[0]
            raise ModelError(
                f"tariff {column} of pool {instance.pools.names[p]!r} in period {q} is {matrix[p, q]}; it must be non-negative"
            )
