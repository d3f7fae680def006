"""Instances without what most formats do not have: horizon, limits, tariffs, deadlines, weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from optbench.model.instance import (
    Edges,
    Floats,
    Instance,
    Limits,
    Links,
    Modes,
    Places,
    Pools,
    Tasks,
)
from optbench.model.objective import Objective


def plain_instance(
    name: str,
    problem: str,
    tasks: Tasks,
    pools: Pools,
    modes: Modes,
    weights: Mapping[str, float],
    *,
    tick_s: float = 1.0,
    edges: tuple[Any, Any, Any] = ((), (), ()),
    places: Sequence[str] = (),
    links: Links | None = None,
) -> Instance:
    """The instance; ``places`` lie directly in the cluster, pools are not linked by default."""
    source, target, data_gb = edges
    return Instance(
        name=name,
        tick_s=tick_s,
        horizon=None,
        tasks=tasks,
        edges=Edges(_ints(source), _ints(target), np.array(data_gb, dtype=float)),
        places=Places(("cluster", *places), _ints([-1] + [0] * len(places))),
        pools=pools,
        modes=modes,
        links=unlinked(len(pools.names)) if links is None else links,
        limits=Limits(_ints(()), np.zeros(0)),
        objective=Objective.weighted(weights),
        problem=problem,
    )


def plain_tasks(kind: Any, names: Sequence[str], units: Any = 1.0, release: Any = 0) -> Tasks:
    """Tasks with nothing but a size and a release; a single value holds for all."""
    n = len(names)
    return Tasks(
        kind=_ints(kind),
        units=np.array(np.broadcast_to(units, n), dtype=float),
        release=_ints(np.broadcast_to(release, n)),
        deadline=np.full(n, np.inf),
        deadline_hard=np.zeros(n, dtype=bool),
        weight=np.ones(n),
        memory_gb=np.zeros(n),
        names=tuple(names),
    )


def plain_pools(
    names: Sequence[str],
    count: Any,
    place: Any = 0,
    idle_w: Any = 0.0,
    sleep_w: Any = 0.0,
    memory_gb: Any = np.inf,
) -> Pools:
    """Pools whose devices do not sleep; a single value holds for all."""
    n = len(names)

    def column(value: Any) -> Floats:
        return np.array(np.broadcast_to(value, n), dtype=float)

    return Pools(
        names=tuple(names),
        place=_ints(np.broadcast_to(place, n)),
        count=_ints(count),
        idle_w=column(idle_w),
        sleep_w=column(sleep_w),
        gated=np.zeros(n, dtype=bool),
        memory_gb=column(memory_gb),
    )


def mode_table(
    kind_names: Iterable[str],
    kind_ptr: Any,
    rows: Sequence[tuple[float, float, float, float]],
    needs: Sequence[Sequence[tuple[int, int]]],
) -> Modes:
    """Modes by time and energy per unit, power and clock; ``needs`` are (pool, devices) of each."""
    time_s, energy_j, power_w, clock = np.array(rows, dtype=float).reshape(len(rows), 4).T.copy()
    flat = np.array([need for each in needs for need in each], dtype=np.int64).reshape(-1, 2)
    return Modes(
        tuple(kind_names),
        _ints(kind_ptr),
        time_s,
        energy_j,
        power_w,
        clock,
        req_ptr=np.cumsum([0] + [len(each) for each in needs], dtype=np.int64),
        req_pool=flat[:, 0].copy(),
        req_count=flat[:, 1].copy(),
    )


def unlinked(num_pools: int) -> Links:
    """No link between any two pools."""
    latency = np.full((num_pools, num_pools), np.inf)
    np.fill_diagonal(latency, 0.0)
    return Links(latency, np.zeros((num_pools, num_pools)), np.zeros((num_pools, num_pools)))


def longest_by_kind(modes: Modes) -> Floats:
    """Seconds per unit in the slowest mode of each kind."""
    out = np.zeros(len(modes.kind_names))
    np.maximum.at(out, modes.kind, modes.time_per_unit_s)
    return out


def _ints(values: Any) -> Any:
    return np.array(values, dtype=np.int64)
