"""How much work of gpu_cluster is: shortest times of tasks, and what the cluster can do at most.

Two measures of the seconds that a cluster needs for its work say how fast jobs may arrive. Both
leave out transfers, precedence and clocks below the top:

    least       Σ_i min_m devices_m · time_im / devices of the cluster
    capacity    min s such that shares y of each task's work over the types of devices exist with
                Σ_t y_it = 1 for every task i, and for every type t, with its modes m,
                Σ_i y_it · min_m devices_m · time_im ≤ s · devices_t

The first measures work as if all devices were the best for each task. On a mixed cluster, in which
they are not, it is less than the second; no policy works off its jobs faster than the second says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from optbench.model.instance import Floats, Ints, Modes, Pools

LoadOf = Literal["least", "capacity"]
# The programme has some hundred shares and takes milliseconds.
TIME_LIMIT_S = 60.0


@dataclass(frozen=True, eq=False)
class TaskColumns:
    """What of the tasks decides how long they take; tasks of one group differ only in units."""

    kind: Ints
    units: Floats
    memory_gb: Floats

    def classes(self, pools: Pools) -> tuple[Ints, Floats]:
        """The class of memory of each task, and the memory that a device of each class needs."""
        sizes = np.unique(pools.memory_gb)
        return np.searchsorted(sizes, self.memory_gb), sizes


def shortest_times_s(modes: Modes, pools: Pools, tasks: TaskColumns) -> Floats:
    """Seconds of each task in the fastest mode that fits it.

    They are computed by kind and class of memory: a table of all pairs of tasks and modes would
    have millions of rows.
    """
    return _least(modes, pools, tasks, modes.time_per_unit_s)


def seconds_of_work(
    measure: LoadOf, modes: Modes, pools: Pools, type_of_pool: Ints, tasks: TaskColumns
) -> float:
    """The seconds that the cluster needs for all tasks by one of the two measures."""
    if measure == "least":
        device_s = _least(modes, pools, tasks, modes.time_per_unit_s * modes.req_count)
        return float(device_s.sum()) / int(pools.count.sum())
    return _fluid_s(modes, pools, type_of_pool, tasks)


def _least(modes: Modes, pools: Pools, tasks: TaskColumns, per_unit: Floats) -> Floats:
    memory_class, sizes = tasks.classes(pools)
    room_gb = pools.memory_gb[modes.req_pool]
    least = np.full((len(modes.kind_names), len(sizes)), np.inf)
    for c, size in enumerate(sizes.tolist()):
        fits = room_gb >= size
        np.minimum.at(least[:, c], modes.kind[fits], per_unit[fits])
    return np.asarray(tasks.units * least[tasks.kind, memory_class])


def _fluid_s(modes: Modes, pools: Pools, type_of_pool: Ints, tasks: TaskColumns) -> float:
    """The linear programme above, by groups of tasks."""
    from optbench.bounds.lp.linear_program import LpColumns, LpRows, assemble, solve

    memory_class, sizes = tasks.classes(pools)
    num_types, num_sizes = int(type_of_pool.max()) + 1, len(sizes)
    per_unit = np.full((len(modes.kind_names), num_types), np.inf)
    of_mode = type_of_pool[modes.req_pool]
    np.minimum.at(per_unit, (modes.kind, of_mode), modes.time_per_unit_s * modes.req_count)
    room_gb = np.zeros(num_types)
    room_gb[type_of_pool] = pools.memory_gb
    work = np.bincount(
        tasks.kind * num_sizes + memory_class,
        weights=tasks.units,
        minlength=len(modes.kind_names) * num_sizes,
    ).reshape(-1, num_sizes)
    kind, size = np.nonzero(work)
    device_s = work[kind, size][:, None] * per_unit[kind]
    fits = np.isfinite(device_s) & (room_gb >= sizes[size][:, None])
    group, on_type = np.nonzero(fits)
    columns, rows = LpColumns(), LpRows()
    share = columns.add(len(group), 0.0, 1.0)
    span_s = columns.add(1, 0.0, np.inf, 1.0)
    count = np.bincount(type_of_pool, weights=pools.count, minlength=num_types)
    rows.add("group", np.ones(len(kind)), (group, share, 1.0))
    rows.add(
        "type",
        np.zeros(num_types),
        (np.arange(num_types), span_s, count),
        (on_type, share, -device_s[group, on_type]),
    )
    return solve(assemble(columns, rows), TIME_LIMIT_S).value
