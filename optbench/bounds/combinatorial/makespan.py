"""Lower bounds on the makespan, in ticks.

Pool set S, thresholds a on the heads and b on the tails: the tasks with head ≥ a and tail ≥ b all
run within [a, C − b], so

    C ≥ a + Σ work_i(S) / capacity(S) + b          (the quotient rounded up)

On one device (Jackson's preemptive schedule) the maximum over all thresholds is the length of the
schedule that always runs the released task of longest tail, interrupting at will; it is computed
directly.

Sums of ticks are exact in floats up to 2^53; loads beyond are lowered by more than their rounding.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from optbench.bounds.combinatorial.relaxation import PoolSet, Relaxation
from optbench.model.instance import Floats
from optbench.units import EXACT, SUM_MARGIN

# Thresholds tried per pool set and side: any subset of them gives a valid bound, all of them the
# exact one.
MAX_THRESHOLDS = 300
# With more tasks than this on one device, the threshold grid replaces Jackson's schedule.
MAX_JACKSON = 20_000


def makespan_bounds(relaxation: Relaxation) -> list[tuple[float, str]]:
    """Return (value, source) of every cheap bound: critical path, Jackson's schedule, loads with
    heads and tails.
    """
    found = [(relaxation.windows.critical_path, "critical_path")]
    return [*found, *(set_bound(pools) for pools in relaxation.sets)]


def set_bound(pools: PoolSet) -> tuple[float, str]:
    """Bound the tasks of one set of pools: Jackson's schedule on a single device, else the load."""
    if pools.capacity == 1 and len(pools.task) <= MAX_JACKSON:
        return jackson(pools.head, pools.length, pools.tail), f"jackson:{pools.name}"
    return load_bound(pools), f"pool_load:{pools.name}"


def load_bound(pools: PoolSet) -> float:
    """Return the best head + work / capacity + tail over the thresholds."""
    heads, tails = _thresholds(pools.head), _thresholds(pools.tail)
    shape = (len(heads), len(tails))
    row = np.searchsorted(heads, pools.head, side="right") - 1
    column = np.searchsorted(tails, pools.tail, side="right") - 1
    cell = row * shape[1] + column
    work = _from_above(
        np.bincount(cell, weights=pools.work, minlength=shape[0] * shape[1]).reshape(shape)
    )
    some = _from_above(np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)) > 0
    if work.max(initial=0.0) >= EXACT:
        work = work * (1.0 - SUM_MARGIN)
    share = -np.floor_divide(-work, pools.capacity)
    return float(np.max(heads[:, None] + share + tails[None, :], where=some, initial=0.0))


def jackson(head: Floats, length: Floats, tail: Floats) -> float:
    """Length of Jackson's preemptive schedule on one device: max over task sets of min head + Σ
    length + min tail.
    """
    order = np.argsort(head, kind="stable").tolist()
    heads, lengths, tails = head.tolist(), length.tolist(), tail.tolist()
    ready: list[list[float]] = []
    now = best = 0.0
    position = 0
    while position < len(order) or ready:
        if not ready:
            now = max(now, heads[order[position]])
        while position < len(order) and heads[order[position]] <= now:
            i = order[position]
            heapq.heappush(ready, [-tails[i], lengths[i]])
            position += 1
        top = ready[0]
        until = heads[order[position]] if position < len(order) else np.inf
        if now + top[1] <= until:
            now += top[1]
            best = max(best, now - top[0])
            heapq.heappop(ready)
        else:
            top[1] -= until - now
            now = until
    return float(best)


def _thresholds(values: Floats) -> Floats:
    """Return the distinct values, or evenly many of them by rank, always with the smallest."""
    distinct = np.unique(values)
    if len(distinct) <= MAX_THRESHOLDS:
        return distinct
    return distinct[np.linspace(0, len(distinct) - 1, MAX_THRESHOLDS).astype(np.int64)]


def _from_above(grid: Any) -> Floats:
    """Return sums over all cells at or beyond each cell."""
    return np.asarray(grid[::-1, ::-1].cumsum(axis=0).cumsum(axis=1)[::-1, ::-1])
