"""Convert the order and modes of a relaxed solution to starts in whole ticks: each task in turn as
early as it fits.

Pools, precedence, transfers and ingress latencies are kept. The verifier checks deadlines and power
caps.
"""

from __future__ import annotations

import heapq

import numpy as np

from optbench.model.instance import Ints
from optbench.views.cpsat.draft import Draft


def in_order(draft: Draft, mode: list[int], wanted: list[int]) -> Ints:
    """Return starts in ticks of the draft's instance; tasks come in the order of ``wanted``, each
    after its predecessors.
    """
    instance, n = draft.instance, draft.instance.num_tasks
    edges, pairs = instance.edges, instance.pairs
    rows = [
        next(r for r in range(draft.ptr[i], draft.ptr[i + 1]) if draft.mode[r] == mode[i])
        for i in range(n)
    ]
    length, ready = [draft.ticks[r] for r in rows], [int(pairs.ready[r]) for r in rows]
    primary = instance.modes.primary[np.asarray(mode)]
    lags = np.asarray(
        instance.lag(primary[edges.source], primary[edges.target], edges.data_gb), dtype=float
    )
    after: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    waiting = [0] * n
    for source, target, lag in zip(
        edges.source.tolist(), edges.target.tolist(), lags.tolist(), strict=True
    ):
        after[source].append((target, int(lag) if np.isfinite(lag) else 0))
        waiting[target] += 1
    start, booked = [0] * n, [list[tuple[int, int, int]]() for _ in range(instance.num_pools)]
    heap = [(wanted[i], i) for i in range(n) if waiting[i] == 0]
    heapq.heapify(heap)
    while heap:
        _, i = heapq.heappop(heap)
        needs = draft.needs[mode[i]] if length[i] > 0 else {}
        start[i] = _earliest(ready[i], length[i], needs, booked, instance.pools.count.tolist())
        for pool, count in needs.items():
            booked[pool].append((start[i], start[i] + length[i], count))
        for target, lag in after[i]:
            ready[target] = max(ready[target], start[i] + length[i] + lag)
            waiting[target] -= 1
            if waiting[target] == 0:
                heapq.heappush(heap, (wanted[target], target))
    return np.asarray(start, dtype=np.int64)


def _earliest(
    ready: int,
    length: int,
    needs: dict[int, int],
    booked: list[list[tuple[int, int, int]]],
    room: list[int],
) -> int:
    """Return the first start from ``ready`` on at which every pool has the devices for the whole
    length.
    """
    ends = {end for pool in needs for _, end, _ in booked[pool] if end > ready}
    for begin in sorted({ready, *ends}):
        if all(
            _peak(booked[pool], begin, begin + length) + count <= room[pool]
            for pool, count in needs.items()
        ):
            return begin
    return max({ready, *ends})


def _peak(booked: list[tuple[int, int, int]], begin: int, end: int) -> int:
    """Return the most devices that are booked at once within [begin, end)."""
    inside = [row for row in booked if row[0] < end and row[1] > begin]
    return max(
        (
            sum(n for a, b, n in inside if a <= at < b)
            for at in {max(begin, a) for a, _, _ in inside}
        ),
        default=0,
    )
