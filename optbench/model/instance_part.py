"""A part of an instance: some of its tasks on some of its devices, as an instance of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from optbench.model.instance import Edges, Instance, Ints, Limits, Links, Modes, Tasks


def part_of(instance: Instance, task: Ints, count: Ints, now: int) -> Instance:
    """Return the tasks numbered ``task``, with the edges among them, on ``count`` devices of each
    pool; its time 0 is ``now``. Pools without devices, modes without room, and limits are left out.
    """
    pools, tasks, edges = instance.pools, instance.tasks, instance.edges
    pool = np.flatnonzero(count > 0)
    here = np.full(instance.num_tasks, -1)
    here[task] = np.arange(len(task))
    inside = (here[edges.source] >= 0) & (here[edges.target] >= 0)
    links = instance.links
    square = np.ix_(pool, pool)
    return replace(
        instance,
        name=f"{len(task)} tasks of {instance.name}",
        tasks=Tasks(
            kind=tasks.kind[task],
            units=tasks.units[task],
            release=np.maximum(0, tasks.release[task] - now),
            deadline=np.maximum(0.0, tasks.deadline[task] - now),
            deadline_hard=tasks.deadline_hard[task],
            weight=tasks.weight[task],
            memory_gb=tasks.memory_gb[task],
            user=None if tasks.user is None else tasks.user[task],
            user_names=tasks.user_names,
            checkpoint=None if tasks.checkpoint is None else tasks.checkpoint[task],
        ),
        pools=replace(
            pools,
            names=tuple(pools.names[p] for p in pool.tolist()),
            place=pools.place[pool],
            count=count[pool],
            idle_w=pools.idle_w[pool],
            sleep_w=pools.sleep_w[pool],
            gated=pools.gated[pool],
            memory_gb=pools.memory_gb[pool],
            **{
                name: None if values is None else values[pool]
                for name, values in (
                    ("failures_per_s", pools.failures_per_s),
                    ("wake_s", pools.wake_s),
                    ("wake_j", pools.wake_j),
                )
            },
        ),
        modes=modes_within(instance.modes, count),
        links=Links(links.latency_s[square], links.s_per_gb[square], links.j_per_gb[square]),
        edges=Edges(here[edges.source[inside]], here[edges.target[inside]], edges.data_gb[inside]),
        limits=Limits(np.zeros(0, dtype=np.int64), np.zeros(0)),
        cooling=None,
        congestion=None,
    )


def fits_within(modes: Modes, count: Ints) -> np.ndarray:
    """Return which modes need no more than ``count`` devices of each pool."""
    row = np.repeat(np.arange(len(modes.clock)), np.diff(modes.req_ptr))
    out = np.ones(len(modes.clock), dtype=bool)
    out[row[modes.req_count > count[modes.req_pool]]] = False
    return out


def modes_within(modes: Modes, count: Ints) -> Modes:
    """Return the modes that fit, of pools numbered without those that have no devices."""
    keep = fits_within(modes, count)
    mode = np.flatnonzero(keep)
    size = np.diff(modes.req_ptr)
    row = np.repeat(keep, size)
    number = np.cumsum(count > 0) - 1
    return Modes(
        modes.kind_names,
        np.searchsorted(modes.kind[mode], np.arange(len(modes.kind_ptr))).astype(np.int64),
        modes.time_per_unit_s[mode],
        modes.energy_per_unit_j[mode],
        modes.power_w[mode],
        modes.clock[mode],
        np.concatenate(([0], np.cumsum(size[mode]))).astype(np.int64),
        number[modes.req_pool[row]],
        modes.req_count[row],
    )
