"""Assembly of the arrays of an Instance from the declarations of a Model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from optbench.errors import ModelError
from optbench.model.assemble_physics import congestion_of, cooling_of, tariffs_of
from optbench.model.declarations import FamilyKey, Kind, KindKey, Mode, Pool
from optbench.model.instance import (
    Edges,
    Instance,
    Limits,
    Links,
    Modes,
    Places,
    Pools,
    Tasks,
)
from optbench.model.plain_instance import longest_by_kind, mode_table, unlinked
from optbench.model.timegrid import HORIZON_TICKS, automatic_tick_s, grid_down, grid_up
from optbench.model.validate import validate

if TYPE_CHECKING:
    from optbench.model.builder import Model

# The user of a task that names none.
NO_USER = -1
# The checkpoints of a task that names none: it keeps all that it has done, like one with 0.
NO_CHECKPOINT = -np.inf
# Columns of declared tasks, with the value that stands for "not given".
TASK_COLUMNS: dict[str, Any] = {
    "units": 1.0,
    "kind": 0,
    "release_s": 0.0,
    "deadline_s": np.inf,
    "hard": -1,
    "weight": 1.0,
    "memory_gb": 0.0,
    "user": NO_USER,
    "checkpoint_s": NO_CHECKPOINT,
}


def instance_of(m: Model) -> Instance:
    """Assemble and validate."""
    if m.tick_s != "auto" and not (np.isfinite(m.tick_s) and m.tick_s > 0):
        raise ModelError(
            f"model {m.name!r}: tick_s is {m.tick_s!r}; it must be a positive finite number, or "
            "'auto'"
        )
    if m.objective is None:
        aims = "m.minimize(energy_j=1.0) or m.minimize_in_order('makespan_s', ...)"
        raise ModelError(f"model {m.name!r} has no objective; add {aims}")
    if not m.pools:
        raise ModelError("there is no pool; declare one with m.pool('name', count=4, ...)")
    pools, columns, modes = _pools(m), _task_columns(m), _modes(m)
    edges, links = _edges(m), _links(m)
    tick_s = _automatic_tick_s(m, columns, modes, edges, links) if m.tick_s == "auto" else m.tick_s
    return validate(
        Instance(
            name=m.name,
            tick_s=tick_s,
            horizon=_horizon(m.horizon_s, tick_s),
            tasks=_tasks(m, columns, tick_s),
            edges=edges,
            places=Places(tuple(m.place_names), np.asarray(m.place_parent, dtype=np.int64)),
            pools=pools,
            modes=modes,
            links=links,
            limits=Limits(
                np.asarray([place for place, _ in m.caps], dtype=np.int64),
                np.asarray([cap for _, cap in m.caps], dtype=float),
                _metric_limits(m),
            ),
            # With an automatic tick the makespan is given in seconds: in ticks it would have no
            # meaning.
            objective=m.objective.in_seconds() if m.tick_s == "auto" else m.objective,
            tariffs=tariffs_of(m, pools, tick_s),
            preemptive=m.preemptive,
            cooling=cooling_of(m),
            congestion=congestion_of(m, tick_s),
        )
    )


def _metric_limits(m: Model) -> dict[str, float]:
    limits = dict(m.metric_max)
    if m.tick_s == "auto" and "makespan" in limits:
        seconds = limits.pop("makespan")
        limits["makespan_s"] = min(seconds, limits.get("makespan_s", seconds))
    return limits


def _horizon(seconds: float | None, tick_s: float) -> int | None:
    """The horizon in ticks, rounded down, and at most the horizon that every instance has."""
    if seconds is None:
        return None
    if not np.isfinite(seconds):
        raise ModelError(f"horizon_s is {seconds!r}; it must be a finite number")
    return int(min(float(grid_down(seconds / tick_s)), HORIZON_TICKS))


def _automatic_tick_s(
    m: Model, columns: dict[str, Any], modes: Modes, edges: Edges, links: Links
) -> float:
    """The tick by the horizon, or by the latest given time, longest task and lag."""
    if m.horizon_s is not None and np.isfinite(m.horizon_s):
        return automatic_tick_s(m.horizon_s)
    longest = longest_by_kind(modes)
    with np.errstate(over="ignore", invalid="ignore"):
        lasts_s = columns["units"] * longest[columns["kind"].astype(np.int64)]
        latency_s = links.latency_s[np.isfinite(links.latency_s)].max(initial=0.0)
        lag_s = latency_s + edges.data_gb.max(initial=0.0) * links.s_per_gb.max(initial=0.0)
    given = [
        columns["release_s"],
        columns["deadline_s"],
        *(np.asarray(tariff.times_s, dtype=float) for tariff in m.tariffs),
        *(np.asarray(row.times_s, dtype=float) for row in m.busy),
    ]
    last_s = max(float(times[np.isfinite(times)].max(initial=0.0)) for times in given)
    span_s = (
        last_s
        + float(lasts_s[np.isfinite(lasts_s)].max(initial=0.0))
        + float(lag_s if np.isfinite(lag_s) else 0.0)
    )
    return automatic_tick_s(span_s)


def _task_columns(m: Model) -> dict[str, Any]:
    """The declared columns as arrays of floats; a ModelError names a task with an invalid value."""
    try:
        return {name: np.asarray(values, dtype=float) for name, values in m.columns.items()}
    except (TypeError, ValueError):
        name, row, value = next(_not_numbers(m))
        raise ModelError(
            f"{name} of task {m.task_names.get(row, row)!r} is {value!r}; it must be a number"
        ) from None


def _tasks(m: Model, column: dict[str, Any], tick_s: float) -> Tasks:
    release = column["release_s"] / tick_s
    bad = np.flatnonzero(~(np.abs(release) <= HORIZON_TICKS))
    if len(bad):
        who = m.task_names.get(int(bad[0]), int(bad[0]))
        what = f"release_s of task {who!r} is {column['release_s'][bad[0]]}"
        raise ModelError(f"{what}; it must be finite, and at most 2^52 ticks of {tick_s:g} s")
    assert m.objective is not None
    deadline, given = grid_down(column["deadline_s"] / tick_s), column["hard"]
    hard = np.where(given < 0, "tardiness_s" not in m.objective.metrics, given > 0) & np.isfinite(
        deadline
    )
    names = (
        tuple(m.task_names.get(i, f"t{i}") for i in range(len(deadline))) if m.task_names else None
    )
    whole_release = np.asarray(grid_up(release), dtype=np.int64)
    kind = column["kind"].astype(np.int64)
    return Tasks(
        kind,
        column["units"],
        whole_release,
        deadline,
        hard,
        column["weight"],
        column["memory_gb"],
        names,
        *_users(m, column["user"]),
        checkpoint=_checkpoints(column["checkpoint_s"], tick_s),
    )


def _users(m: Model, column: Any) -> tuple[Any, tuple[str, ...] | None]:
    """The user of each task and the users' names; None where no task names one."""
    if not m.users:
        return None, None
    nobody = np.flatnonzero(column == NO_USER)
    if len(nobody):
        who = m.task_names.get(int(nobody[0]), int(nobody[0]))
        raise ModelError(f"task {who!r} has no user, but others do; give user= to every task")
    return column.astype(np.int64), tuple(m.users)


def _checkpoints(every_s: Any, tick_s: float) -> Any:
    """Ticks between the checkpoints of each task; None where no task names any."""
    given = every_s != NO_CHECKPOINT
    if not given.any():
        return None
    every = grid_up(np.where(given, every_s, 0.0) / tick_s)
    return np.asarray(np.where(every > HORIZON_TICKS, np.inf, every), dtype=float)


def _not_numbers(m: Model) -> Iterator[tuple[str, int, Any]]:
    for name, values in m.columns.items():
        for row, value in enumerate(values):
            try:
                float(value)
            except (TypeError, ValueError):
                yield name, row, value


def _edges(m: Model) -> Edges:
    """Declared edges; the data of an edge that is declared several times are added."""
    source, target = (np.asarray(column, dtype=np.int64) for column in m.edges[:2])
    data = np.asarray(m.edges[2], dtype=float)
    if len(source) == 0:
        return Edges(source, target, data)
    _, first, which = np.unique(
        source * len(m.columns["units"]) + target, return_index=True, return_inverse=True
    )
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
        *(_of_some(m, name) for name in ("failures_per_s", "wake_s", "wake_j")),
    )


def _of_some(m: Model, name: str) -> Any:
    """A column of the pools, 0 where one does not declare it; None where none does."""
    given = [getattr(pool, name) for pool in m.pools]
    if all(value is None for value in given):
        return None
    return np.array([0.0 if value is None else float(value) for value in given])


def _modes(m: Model) -> Modes:
    names, ptr, rows = [], [0], []
    for idx, key in enumerate(m.kinds):
        name, modes = _modes_of(m, idx, key)
        names.append(name)
        rows.extend(modes)
        ptr.append(len(rows))
    columns = [(mode.time_s, mode.energy_j, mode.power_w, mode.clock) for mode in rows]
    return mode_table(names, ptr, columns, [mode.needs for mode in rows])


def _modes_of(m: Model, idx: int, key: KindKey) -> tuple[str, list[Mode]]:
    """Name and modes of a kind: explicit ones, or pool x GPU count x clock from the profiles."""
    if not isinstance(key, FamilyKey):
        return f"k{idx}", list(key)
    kind, counts, allowed, size_gflop = key.kind, key.gpus, key.pools, key.size_gflop
    modes: list[Mode] = []
    for p, pool in enumerate(m.pools):
        if (
            pool.profile is None
            or kind not in pool.profile.kinds
            or (allowed is not None and p not in allowed)
        ):
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
        offered = sorted(
            {k for pool in m.pools if pool.profile is not None for k in pool.profile.kinds}
        )
        who = next(
            (m.task_names.get(i, str(i)) for i, k in enumerate(m.columns["kind"]) if k == idx), "?"
        )
        raise ModelError(
            f"task {who!r} of kind {kind!r} with gpus={counts} cannot run on any pool; the "
            "pools' profiles "
            f"have the kinds {offered}, and the largest pool has "
            f"{max(pool.count for pool in m.pools)} devices"
        )
    return f"{kind}/{idx}", modes


def _links(m: Model) -> Links:
    links = unlinked(len(m.pools))
    for link in m.links:
        at = np.ix_(link.senders, link.receivers)
        links.latency_s[at], links.s_per_gb[at] = link.latency_s, link.s_per_gb
        links.j_per_gb[at] = link.j_per_gb
    for matrix in (links.latency_s, links.s_per_gb, links.j_per_gb):
        np.fill_diagonal(matrix, 0.0)  # A group that is linked with itself.
    return links


def kind_key(
    label: str,
    kind: str | Kind | None,
    modes: Iterable[Mode] | None,
    gpus: int | Iterable[int],
    pools: Iterable[Pool] | None,
    size_gflop: float | None,
) -> KindKey:
    """Return what tasks of one kind have in common: their modes, or a kind of the profiles."""
    if (kind is None) == (modes is None):
        raise ModelError(
            f"{label}: give either kind='...' (of the pools' profiles) or modes=[m.mode(...), ...]"
        )
    is_size = size_gflop is None or (math.isfinite(size_gflop) and size_gflop > 0)
    if not is_size or (size_gflop is not None and modes is not None):
        raise ModelError(
            f"{label}: size_gflop is {size_gflop!r}; it must be positive, and goes with a kind of "
            "the profiles"
        )
    if modes is not None:
        key = tuple(modes)
        if not key:
            raise ModelError(f"{label}: modes is empty; give at least one m.mode(...)")
        return key
    counts = tuple(sorted({gpus} if isinstance(gpus, int) else set(gpus)))
    where = None if pools is None else tuple(sorted({pool.idx for pool in pools}))
    return FamilyKey(str(kind), counts, where, size_gflop)


Series = tuple[float, ...]
