"""The common relaxation of pool-based bounds: sets of pools, and the work each task must do there
in any mode.

For a set S of pools with Σ count devices, task i needs there at least

    work_i(S) = min over its modes k of duration_k · (devices of S that k occupies)
    length_i  = min_k duration_k

A task that has a mode outside S needs nothing of S. No schedule does more than Σ count · (b − a)
device-time in [a, b].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Bools, Floats, Instance, Ints
from optbench.model.metrics import mode_uses
from optbench.model.windows import Windows, windows

# Sets of pools that tasks choose among; beyond this number, the rarest are left out.
MAX_SETS = 48


@dataclass(frozen=True, eq=False)
class PoolSet:
    """A set of pools; rows are the tasks that must use them."""

    name: str
    pools: tuple[int, ...]
    capacity: int
    task: Ints
    work: Floats
    head: Floats
    tail: Floats
    length: Floats


@dataclass(frozen=True, eq=False)
class Relaxation:
    """An instance, its windows and the pool sets to bound."""

    instance: Instance
    windows: Windows
    sets: tuple[PoolSet, ...]


def relax(instance: Instance) -> Relaxation:
    """Return windows and pool sets of an instance."""
    w = windows(instance)
    uses = mode_uses(instance)
    sets = (pool_set(instance, w, uses, pools) for pools in candidate_sets(instance, uses))
    return Relaxation(instance, w, tuple(s for s in sets if len(s.task)))


def pool_set(instance: Instance, w: Windows, uses: Ints, pools: tuple[int, ...]) -> PoolSet:
    """Return the tasks that must use these pools, with their least work there."""
    pairs = instance.pairs
    device_time = pairs.duration.astype(float) * uses[:, list(pools)].sum(axis=1)[pairs.mode]
    work = np.full(instance.num_tasks, np.inf)
    np.minimum.at(work, pairs.task, device_time)
    task = np.flatnonzero((work > 0) & np.isfinite(work))
    capacity = int(instance.pools.count[list(pools)].sum())
    name = (
        "+".join(instance.pools.names[p] for p in pools)
        if len(pools) < instance.num_pools or len(pools) == 1
        else "all"
    )
    return PoolSet(
        name, pools, capacity, task, work[task], w.head[task], w.tail[task], w.shortest[task]
    )


def candidate_sets(instance: Instance, uses: Ints) -> list[tuple[int, ...]]:
    """Return every pool, every set of pools that some task chooses among, their connected groups,
    and all pools together.
    """
    num_pools = instance.num_pools
    found: dict[tuple[int, ...], None] = {(p,): None for p in range(num_pools)}
    pairs = instance.pairs
    reach = np.zeros((instance.num_tasks, num_pools), dtype=bool)
    for p in range(num_pools):
        reach[pairs.task[uses[pairs.mode, p] > 0], p] = True
    choices, often = np.unique(reach, axis=0, return_counts=True)
    by_weight = np.argsort(-often, kind="stable")[:MAX_SETS]
    for choice in choices[by_weight]:
        found.setdefault(tuple(np.flatnonzero(choice).tolist()), None)
    for group in _connected(choices):
        found.setdefault(group, None)
    found.setdefault(tuple(range(num_pools)), None)
    found.pop((), None)
    return list(found)


def _connected(choices: Bools) -> list[tuple[int, ...]]:
    """Return groups of pools that no task joins."""
    groups: list[set[int]] = []
    for choice in choices:
        new = set(np.flatnonzero(choice).tolist())
        disjoint = [g for g in groups if not g & new]
        groups = [*disjoint, new.union(*(g for g in groups if g & new))]
    return [tuple(sorted(g)) for g in groups if g]
