"""The remaining part of an instance at a moment of a run, as an instance whose time begins now."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from optbench.model.instance import Edges, Floats, Instance, Ints, Limits, Modes, Tariffs, Tasks
from optbench.model.streams import without_latencies
from optbench.sim.kernel.plant import Plant
from optbench.sim.kernel.state import DONE, NOW, RUNNING, State


@dataclass(frozen=True, eq=False)
class RemainingInstance:
    """``task[i]`` is the whole instance's number of task i here; ``running`` marks those that run
    now, each in its own kind.
    """

    instance: Instance
    task: Ints
    running: Ints


def remaining_instance(instance: Instance, plant: Plant, state: State) -> RemainingInstance:
    """Return tasks that have not ended, are released, and wait for no unreleased task; modes keep
    their numbers, those of running tasks follow.

    A running task has one mode only, that of its run with its remaining length. Data in transit is
    a release, ingress latencies are 0. Limits on metrics are left out, and a hard deadline that has
    passed becomes due at once.
    """
    now = float(state.total[NOW])
    task = np.flatnonzero(_known(instance, state, now))
    here = np.full(instance.num_tasks, -1)
    here[task] = np.arange(len(task))
    busy = task[state.status[task] == RUNNING]
    edges = instance.edges
    kept = (here[edges.source] >= 0) & (here[edges.target] >= 0)
    tasks = instance.tasks
    kind, units = tasks.kind[task].copy(), state.remaining[task].copy()
    kind[here[busy]] = len(instance.modes.kind_ptr) - 1 + np.arange(len(busy))
    length = np.maximum(1e-300, state.end[busy] - state.start[busy])
    units[here[busy]] *= (state.end[busy] - now) / length
    late = _arrivals(instance, state, task, here)
    release = np.maximum(0.0, np.maximum(np.asarray(tasks.release[task], dtype=float), late) - now)
    deadline = np.maximum(0.0, tasks.deadline[task] - now)
    tasks_left = Tasks(
        kind=kind,
        units=units,
        release=np.ceil(release).astype(np.int64),
        deadline=deadline,
        deadline_hard=tasks.deadline_hard[task],
        weight=tasks.weight[task],
        memory_gb=tasks.memory_gb[task],
    )
    pools = replace(instance.pools, count=np.maximum(1, instance.pools.count - state.gone))
    left = replace(
        instance,
        name=f"{instance.name} from {now:g}",
        tasks=tasks_left,
        pools=pools,
        modes=_append_running_modes(instance.modes, state.mode[busy]),
        edges=Edges(here[edges.source[kept]], here[edges.target[kept]], edges.data_gb[kept]),
        limits=Limits(instance.limits.cap_place, instance.limits.cap_w),
        cooling=None,
        tariffs=_tariffs(instance.tariffs, now),
        horizon=None if instance.horizon is None else max(1, instance.horizon - int(now)),
        stream=None if instance.stream is None else without_latencies(instance.stream, task),
    )
    return RemainingInstance(left, task, here[busy])


def _known(instance: Instance, state: State, now: float) -> np.ndarray:
    """Return which tasks can be planned."""
    known = np.asarray(instance.tasks.release, dtype=float) <= now
    edges = instance.edges
    order = np.argsort(edges.source, kind="stable")
    target = edges.target[order]
    ptr = np.searchsorted(edges.source[order], np.arange(instance.num_tasks + 1))
    if not known.all():
        for i in instance.order.tolist():  # a task that waits for an unknown one is unknown
            if not known[i]:
                known[target[ptr[i] : ptr[i + 1]]] = False
    return known & (state.status != DONE)


def _arrivals(instance: Instance, state: State, task: Ints, here: Ints) -> Floats:
    """Return when data of tasks that have ended is at the nearest pool where each task
    could run.
    """
    edges, primary = instance.edges, instance.modes.primary
    late = np.zeros(instance.num_tasks)
    old = np.flatnonzero(
        (state.status[edges.source] == DONE) & (here[edges.target] >= 0) & (edges.data_gb > 0)
    )
    if len(old) == 0 or instance.num_pools < 2:
        return late[task]
    kinds = len(instance.modes.kind_ptr) - 1
    reach = np.zeros((kinds, instance.num_pools), dtype=bool)
    some = primary >= 0
    reach[instance.modes.kind[some], primary[some]] = True
    sender = primary[state.mode[edges.source[old]]]
    pools = np.arange(instance.num_pools)
    lag = np.asarray(
        instance.lag(sender[:, None], pools[None, :], edges.data_gb[old][:, None]), dtype=float
    )
    least = np.where(reach[instance.tasks.kind[edges.target[old]]], lag, np.inf).min(axis=1)
    at = state.end[edges.source[old]] + np.where(np.isfinite(least), least, 0.0)
    np.maximum.at(late, edges.target[old], at)
    return late[task]


def _append_running_modes(modes: Modes, running: Ints) -> Modes:
    """Return the modes, and after them for each running task a kind of its own whose only mode is
    a copy of the mode that the task runs in.
    """
    size = np.diff(modes.req_ptr)[running]
    first = modes.req_ptr[running]
    req = np.repeat(first, size) + np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
    return Modes(
        kind_names=(*modes.kind_names, *(f"running {k}" for k in range(len(running)))),
        kind_ptr=np.concatenate((modes.kind_ptr, len(modes.clock) + 1 + np.arange(len(running)))),
        time_per_unit_s=np.concatenate((modes.time_per_unit_s, modes.time_per_unit_s[running])),
        energy_per_unit_j=np.concatenate(
            (modes.energy_per_unit_j, modes.energy_per_unit_j[running])
        ),
        power_w=np.concatenate((modes.power_w, modes.power_w[running])),
        clock=np.concatenate((modes.clock, modes.clock[running])),
        req_ptr=np.concatenate((modes.req_ptr, modes.req_ptr[-1] + np.cumsum(size))),
        req_pool=np.concatenate((modes.req_pool, modes.req_pool[req])),
        req_count=np.concatenate((modes.req_count, modes.req_count[req])),
    )


def _tariffs(tariffs: Tariffs | None, now: float) -> Tariffs | None:
    """Return the tariffs from now on."""
    if tariffs is None:
        return None
    first = int(np.searchsorted(tariffs.times, now, side="right")) - 1
    times = np.maximum(0.0, tariffs.times[first:] - now).astype(tariffs.times.dtype)
    return Tariffs(times, tariffs.price_usd_per_kwh[:, first:], tariffs.carbon_g_per_kwh[:, first:])
