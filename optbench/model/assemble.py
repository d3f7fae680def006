"""From what a Model declared to the arrays of an Instance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from optbench.errors import ModelError
from optbench.model.declarations import FamilyKey, KindKey, Mode
from optbench.model.instance import (
    MAX_TIME,
    ROUNDING_GUARD,
    Edges,
    Instance,
    Limits,
    Links,
    Modes,
    Places,
    Pools,
    Tariffs,
    Tasks,
    round_down,
    round_up,
)
from optbench.model.validate import validate

if TYPE_CHECKING:
    from optbench.model.builder import Model

# Columns of declared tasks, with the value that stands for "not given".
TASK_COLUMNS: dict[str, Any] = {
    "units": 1.0,
    "kind": 0,
    "release_s": 0.0,
    "deadline_s": np.inf,
    "hard": -1,
    "weight": 1.0,
    "memory_gb": 0.0,
}


def instance_of(m: Model) -> Instance:
    """Assemble and validate."""
    if m.time not in ("ticks", "seconds"):
        raise ModelError(f"model {m.name!r}: time is {m.time!r}; it must be 'ticks' or 'seconds'")
    if not (np.isfinite(m.tick_s) and m.tick_s > 0):
        raise ModelError(f"model {m.name!r}: tick_s is {m.tick_s!r}; it must be a positive finite number")
    if m.objective is None:
        aims = "m.minimize(energy_j=1.0) or m.minimize_in_order('makespan_s', ...)"
        raise ModelError(f"model {m.name!r} has no objective; add {aims}")
    if not m.pools:
        raise ModelError("there is no pool; declare one with m.pool('name', count=4, ...)")
    pools = _pools(m)
    return validate(
        Instance(
            name=m.name,
            domain=m.time,
            tick_s=m.tick_s if m.time == "ticks" else 1.0,
            horizon=_down(m, m.horizon_s, "horizon_s"),
            tasks=_tasks(m),
            edges=_edges(m),
            places=Places(tuple(m.place_names), np.asarray(m.place_parent, dtype=np.int64)),
            pools=pools,
            modes=_modes(m),
            links=_links(m),
            limits=Limits(
                np.asarray([place for place, _ in m.caps], dtype=np.int64),
                np.asarray([cap for _, cap in m.caps], dtype=float),
                dict(m.metric_max),
            ),
            objective=m.objective,
            tariffs=_tariffs(m, pools),
            preemptive=m.preemptive,
        )
    )


def _down(m: Model, seconds: float | None, what: str) -> float | None:
    """Seconds to the time domain, rounded down."""
    if seconds is None:
        return None
    if not np.isfinite(seconds):
        raise ModelError(f"{what} is {seconds!r}; it must be a finite number")
    return float(round_down(np.asarray(seconds / m.tick_s))) if m.time == "ticks" else float(seconds)


def _tasks(m: Model) -> Tasks:
    try:
        column = {name: np.asarray(values, dtype=float) for name, values in m.columns.items()}
    except (TypeError, ValueError):
        name, row, value = next(_not_numbers(m))
        raise ModelError(f"{name} of task {m.task_names.get(row, row)!r} is {value!r}; it must be a number") from None
    deadline, release = column["deadline_s"], column["release_s"]
    if m.time == "ticks":
        bad = np.flatnonzero(~(np.isfinite(release) & (np.abs(release / m.tick_s) < MAX_TIME)))
        if len(bad):
            who = m.task_names.get(int(bad[0]), int(bad[0]))
            raise ModelError(f"release_s of task {who!r} is {release[bad[0]]}; it must be finite")
        deadline, release = round_down(deadline / m.tick_s), round_up(release / m.tick_s)
    assert m.objective is not None
    given = column["hard"]
    hard = np.where(given < 0, "tardiness_s" not in m.objective.metrics, given > 0) & np.isfinite(deadline)
    names = tuple(m.task_names.get(i, f"t{i}") for i in range(len(deadline))) if m.task_names else None
    kind = column["kind"].astype(np.int64)
    return Tasks(kind, column["units"], release, deadline, hard, column["weight"], column["memory_gb"], names)


def _not_numbers(m: Model) -> Iterator[tuple[str, int, Any]]:
    for name, values in m.columns.items():
        for row, value in enumerate(values):
            try:
                float(value)
            except (TypeError, ValueError):
                yield name, row, value


def _edges(m: Model) -> Edges:
    """Declared edges; one declared several times keeps the sum of its data."""
    source, target = (np.asarray(column, dtype=np.int64) for column in m.edges[:2])
    data = np.asarray(m.edges[2], dtype=float)
    if len(source) == 0:
        return Edges(source, target, data)
    _, first, which = np.unique(source * len(m.columns["units"]) + target, return_index=True, return_inverse=True)
    if len(first) == len(source):
        return Edges(source, target, data)
    return Edges(source[first], target[first], np.bincount(which, weights=data).astype(float))


def _pools(m: Model) -> Pools:
    def column(name: str, dtype: Any) -> Any:
        return np.asarray([getattr(pool, name) for pool in m.pools], dtype=dtype)

    return Pools(
        tuple(pool.name for pool in m.pools),
        column("place", np.int64),
        column("count", np.int64),
        column("idle_w", float),
        column("sleep_w", float),
        column("sleeps", bool),
        column("memory_gb", float),
    )


def _modes(m: Model) -> Modes:
    names, ptr, rows = [], [0], []
    for idx, key in enumerate(m.kinds):
        name, modes = _modes_of(m, idx, key)
        names.append(name)
        rows.extend(modes)
        ptr.append(len(rows))
    req_ptr = np.concatenate(([0], np.cumsum([len(mode.needs) for mode in rows]))).astype(np.int64)
    needs = [need for mode in rows for need in mode.needs]

    def column(name: str) -> Any:
        return np.asarray([getattr(mode, name) for mode in rows], dtype=float)

    return Modes(
        tuple(names),
        np.asarray(ptr, dtype=np.int64),
        column("time_s"),
        column("energy_j"),
        column("power_w"),
        column("clock"),
        req_ptr,
        np.asarray([p for p, _ in needs], dtype=np.int64),
        np.asarray([n for _, n in needs], dtype=np.int64),
    )


def _modes_of(m: Model, idx: int, key: KindKey) -> tuple[str, list[Mode]]:
    """Name and modes of a kind: as given, or the family pool x GPU count x clock of the profiles."""
    if not isinstance(key, FamilyKey):
        return f"k{idx}", list(key)
    kind, counts, allowed, size_gflop = key.kind, key.gpus, key.pools, key.size_gflop
    modes: list[Mode] = []
    for p, pool in enumerate(m.pools):
        if pool.profile is None or kind not in pool.profile.kinds or (allowed is not None and p not in allowed):
            continue
        for n in counts:
            if not 1 <= n <= pool.count:
                continue
            for clock in pool.clocks:
                shape = pool.profile
                modes.append(
                    Mode(
                        ((p, n),),
                        shape.time_per_unit_s(kind, n, clock, size_gflop),
                        shape.energy_per_unit_j(kind, n, clock, size_gflop),
                        shape.power_w(kind, n, clock, size_gflop),
                        clock,
                    )
                )
    if not modes:
        offered = sorted({k for pool in m.pools if pool.profile is not None for k in pool.profile.kinds})
        who = next((m.task_names.get(i, str(i)) for i, k in enumerate(m.columns["kind"]) if k == idx), "?")
        raise ModelError(
            f"task {who!r} of kind {kind!r} with gpus={counts} can run on no pool; the pools' profiles offer kinds {offered}, "
            f"and the largest pool has {max(pool.count for pool in m.pools)} devices"
        )
    return f"{kind}/{idx}", modes


def _links(m: Model) -> Links:
    n = len(m.pools)
    latency, s_per_gb, j_per_gb = np.full((n, n), np.inf), np.zeros((n, n)), np.zeros((n, n))
    for link in m.links:
        at = np.ix_(link.senders, link.receivers)
        latency[at], s_per_gb[at], j_per_gb[at] = link.latency_s, link.s_per_gb, link.j_per_gb
    for matrix in (latency, s_per_gb, j_per_gb):  # a group linked with itself
        np.fill_diagonal(matrix, 0.0)
    return Links(latency, s_per_gb, j_per_gb)


def _tariffs(m: Model, pools: Pools) -> Tariffs | None:
    """Each pool takes the tariff of the nearest place above it that has one."""
    if not m.tariffs:
        return None
    times_s = np.unique(np.concatenate([np.asarray(tariff.times_s, dtype=float) for tariff in m.tariffs]))
    times = times_s / m.tick_s if m.time == "ticks" else times_s
    whole = np.rint(times)
    if m.time == "ticks" and (np.abs(times - whole) > ROUNDING_GUARD * np.maximum(1.0, whole)).any():
        raise ModelError(f"tariff times must be whole ticks of {m.tick_s:g} s; choose a tick_s that divides them")
    by_place = {tariff.place: tariff for tariff in m.tariffs}
    price, carbon = np.zeros((2, len(m.pools), len(times)))
    for p, place in enumerate(pools.place.tolist()):
        while place >= 0 and place not in by_place:
            place = m.place_parent[place]
        if place < 0:
            raise ModelError(f"pool {m.pools[p].name!r} has no tariff; declare one for its place or for the whole cluster")
        tariff = by_place[place]
        period = np.searchsorted(np.asarray(tariff.times_s), times_s, side="right") - 1
        price[p], carbon[p] = np.asarray(tariff.price_usd_per_kwh)[period], np.asarray(tariff.carbon_g_per_kwh)[period]
    return Tariffs(whole if m.time == "ticks" else times, price, carbon)
