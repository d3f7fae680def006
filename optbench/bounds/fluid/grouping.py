"""Groups of tasks that no row of the fluid LP distinguishes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.bounds.combinatorial.relaxation import Relaxation
from optbench.model.instance import Floats, Instance, Ints
from optbench.model.windows import latest_ends, task_pools


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of tasks and their modes. ``group[i]`` is task i's; the other columns have a row per
    group, then per (group, mode).

    A group's head, tail and latest end are those of its least restricted member; kind, units,
    weight, release, deadline and ingress are equal within it unless the grouping is coarse
    (``alone`` marks groups that are single tasks with edges).
    """

    group: Ints
    size: Floats
    member: Ints
    head: Floats
    tail: Floats
    latest: Floats
    ptr: Ints
    of: Ints
    pair: Ints
    mode: Ints
    duration: Floats
    energy_j: Floats


def group_tasks(relaxation: Relaxation, keep_edges: bool) -> Groups:
    """Group equal tasks; those with edges stay alone when the edges are to be kept."""
    instance, w = relaxation.instance, relaxation.windows
    tasks, n = instance.tasks, instance.num_tasks
    latest = latest_ends(instance, w)
    columns = [
        tasks.kind,
        tasks.units,
        tasks.release,
        tasks.deadline,
        tasks.deadline_hard,
        tasks.weight,
        tasks.memory_gb,
    ]
    if instance.stream is not None:
        columns.append(instance.stream.ingress)
    alone = np.zeros(n)
    if keep_edges:
        linked = np.unique(np.concatenate((instance.edges.source, instance.edges.target)))
        alone[linked] = linked + 1
    table = np.column_stack([*(np.asarray(c, dtype=float) for c in columns), alone])
    _, member, group = np.unique(table, axis=0, return_index=True, return_inverse=True)
    group = group.reshape(-1)
    num = len(member)
    head, tail, last = np.full(num, np.inf), np.full(num, np.inf), np.full(num, -np.inf)
    np.minimum.at(head, group, w.head)
    np.minimum.at(tail, group, w.tail)
    np.maximum.at(last, group, latest)
    pairs = instance.pairs
    count = np.diff(pairs.ptr)[member]
    of = np.repeat(np.arange(num), count)
    ptr = np.concatenate(([0], np.cumsum(count)))
    pair = pairs.ptr[member][of] + np.arange(len(of)) - ptr[of]
    return Groups(
        group,
        np.bincount(group, minlength=num).astype(float),
        member,
        head,
        tail,
        last,
        ptr,
        of,
        pair,
        pairs.mode[pair],
        pairs.duration[pair].astype(float),
        pairs.energy_j[pair],
    )


def sending_costs(instance: Instance, groups: Groups, edges: Ints) -> tuple[Floats, Floats]:
    """Return, per (edge, mode of its source), flattened in the order of the edges, the least lag
    and energy to any pool of the target.

    A pool of the source without a link to any pool of the target gets the least lag of the others:
    it cannot be chosen.
    """
    pools = task_pools(instance)
    lags, energies = [], []
    for e in edges.tolist():
        source, data = int(instance.edges.source[e]), float(instance.edges.data_gb[e])
        g = int(groups.group[source])
        sender = instance.modes.primary[groups.mode[groups.ptr[g] : groups.ptr[g + 1]]][:, None]
        receiver = pools[int(instance.edges.target[e])][None, :]
        lag = np.asarray(instance.lag(sender, receiver, data), dtype=float)
        energy = np.asarray(instance.transfer_j(sender, receiver, data), dtype=float)
        least_lag = lag.min(axis=1)
        least_energy = np.where(np.isfinite(lag), energy, np.inf).min(axis=1)
        lags.append(np.where(np.isfinite(least_lag), least_lag, 0.0))
        energies.append(np.where(np.isfinite(least_energy), least_energy, 0.0))
    return np.concatenate([*lags, np.zeros(0)]), np.concatenate([*energies, np.zeros(0)])
