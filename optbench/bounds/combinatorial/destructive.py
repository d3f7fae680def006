"""Destructive bounds: a makespan C that propagation refutes proves C + 1.

For a trial C every task gets the window [head, C − tail] (and its own hard deadline), windows are
propagated to a fixed point (precedence, edge finding on single devices, energetic reasoning and
timetables on several, modes that no longer fit), then shaved: a part of one window, or one mode, is
refuted by propagation and cut away. All of it is integer arithmetic, and every deduction holds for
every schedule of makespan C or less, so that an empty window refutes C.

Besides the pools, resources are: sets of pools that tasks choose among, and cliques of tasks no two
of which fit side by side.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from optbench.bounds.combinatorial.relaxation import Relaxation
from optbench.model.instance import Instance, Ints
from optbench.model.metrics import mode_uses
from optbench.model.windows import by_source, latest_ends

MAX_TASKS = 3_000
# Shorter budgets skip these bounds.
LEAST_S = 0.5
# Work of the deductions between two checks of the clock: less than half a second. A shaving that
# needs more is abandoned.
CHUNK = 100_000_000
# Greedy cliques of mutually exclusive tasks, per instance.
MAX_CLIQUES = 60
MAX_CLIQUE_TASKS = 400
# The latest end of a task without one; the limit on sums of device time in the deductions' 64-bit
# integers.
NEVER, MOST_DEVICE_TIME = 2.0**61, 2.0**60
# Levels of effort, cheapest first: whether parts of windows count, and whether windows are shaved.
STAGES = ((False, False), (True, False), (False, True), (True, True))


@dataclass(eq=False)
class TrialArrays:
    """Arrays of one instance in the layout of ``propagate``."""

    head: Ints
    tail: Ints
    latest: Ints
    num_pairs: int
    pairs: tuple[Ints, Ints]
    edges: tuple[Ints, Ints, Ints]
    resources: tuple[Ints, ...]

    def state(self, makespan: int) -> tuple[Ints, Ints, Any]:
        """Return windows and modes under a trial makespan."""
        end = np.minimum(makespan - self.tail, self.latest)
        return self.head.copy(), end, np.ones(self.num_pairs, dtype=np.bool_)


def destructive_bound(
    relaxation: Relaxation, lower: float, time_limit_s: float, upper: float = math.inf
) -> float:
    """Return the largest bound proved in time, at least ``lower``; makespans from ``upper``, that
    of a known schedule, on are not tried.
    """
    deadline = time.perf_counter() + time_limit_s
    instance = relaxation.instance
    if (
        not is_deducible(instance)
        or not _fits_integers(relaxation, lower)
        or time_limit_s < LEAST_S
    ):
        return lower
    trial = trial_of(relaxation)
    top = int(min(_last(relaxation) + 1, upper))
    best = int(lower)
    for partial, shaved in STAGES:

        def refutes(makespan: int, partial: bool = partial, shaved: bool = shaved) -> bool:
            return _refutes(trial, makespan, partial, shaved, deadline)

        best = _search(refutes, best, top, deadline)
    return float(max(best, lower))


def is_refuted(relaxation: Relaxation, makespan: int, time_limit_s: float) -> bool:
    """Whether propagation refutes this one makespan within the time, which proves a destructive
    bound again.
    """
    deadline = time.perf_counter() + time_limit_s
    instance = relaxation.instance
    if not is_deducible(instance) or not _fits_integers(relaxation, makespan):
        return False
    trial = trial_of(relaxation)
    return any(_refutes(trial, makespan, partial, shaved, deadline) for partial, shaved in STAGES)


def is_deducible(instance: Instance) -> bool:
    """Whether this bound can apply to the instance."""
    return instance.num_tasks <= MAX_TASKS and not instance.preemptive


def _last(relaxation: Relaxation) -> float:
    """Return a time by which all tasks can have run one after the other."""
    known = relaxation.windows
    return float(known.longest.sum() + known.head.max() + known.tail.max())


def _fits_integers(relaxation: Relaxation, makespan: float) -> bool:
    """Whether devices times time stay within 64-bit integers: a month in ns times 1,000 devices
    does not.
    """
    devices = max((pools.capacity for pools in relaxation.sets), default=1)
    return max(_last(relaxation), makespan) * (devices + 1.0) <= MOST_DEVICE_TIME


def _search(refutes: Callable[[int], bool], low: int, top: int, deadline: float) -> int:
    """Return the smallest makespan from ``low`` on that is not refuted, as far as time allows:
    doubling steps, then bisection.
    """
    step, high = 1, top
    while low < high and time.perf_counter() < deadline:
        trial = min(low + step - 1, high - 1)
        if refutes(trial):
            low, step = trial + 1, step * 2
        else:
            high, step = trial, max(1, (trial - low + 1) // 2)
    return low


def _refutes(
    trial: TrialArrays, makespan: int, partial: bool, shaved: bool, deadline: float
) -> bool:
    from optbench.bounds.combinatorial.propagate import propagate, shave

    a, b, alive = trial.state(makespan)
    tables = (trial.pairs, trial.edges, trial.resources)
    left = np.full(1, CHUNK)

    def contradicted() -> bool:
        dirty = np.ones(len(trial.resources[0]), dtype=np.bool_)
        left[0] = CHUNK
        while propagate(a, b, alive, dirty, partial, left, *tables):
            if left[0] > 0 or time.perf_counter() > deadline:
                return False
            left[0] = CHUNK
        return True

    if contradicted():
        return True
    again = shaved
    while again:
        again = False
        # Narrow windows first: they are quickly emptied and restrict others most.
        for i in np.argsort(b - a, kind="stable").tolist():
            if time.perf_counter() > deadline:
                return False
            left[0] = CHUNK
            cut = shave(a, b, alive, i, partial, left, *tables)
            if cut < 0:
                return True
            if cut > 0:
                again = True
                if contradicted():
                    return True
    return False


def trial_of(relaxation: Relaxation) -> TrialArrays:
    """The arrays of an instance."""
    instance, w = relaxation.instance, relaxation.windows
    order = np.asarray(by_source(instance), dtype=np.int64)
    latest = latest_ends(instance, w)
    return TrialArrays(
        head=w.head.astype(np.int64),
        tail=w.tail.astype(np.int64),
        latest=np.where(np.isfinite(latest), latest, NEVER).astype(np.int64),
        num_pairs=len(instance.pairs.task),
        pairs=(instance.pairs.ptr.astype(np.int64), instance.pairs.duration.astype(np.int64)),
        edges=(
            instance.edges.source[order],
            instance.edges.target[order],
            w.edge_lag[order].astype(np.int64),
        ),
        resources=_resources(relaxation),
    )


def _resources(relaxation: Relaxation) -> tuple[Ints, ...]:
    instance = relaxation.instance
    pairs, uses = instance.pairs, mode_uses(instance)
    capacity: list[int] = []
    entries: list[tuple[Ints, Ints, Ints]] = []
    for pools in relaxation.sets:
        use = uses[:, list(pools.pools)].sum(axis=1)[pairs.mode]
        rows = np.flatnonzero(use > 0)
        capacity.append(pools.capacity)
        entries.append((pairs.task[rows], rows, use[rows]))
    for clique in _cliques(instance, uses):
        rows = np.flatnonzero(np.isin(pairs.task, clique))
        capacity.append(1)
        entries.append((pairs.task[rows], rows, np.ones(len(rows), dtype=np.int64)))
    sizes = [len(rows) for _, rows, _ in entries]
    task, pair, use = (
        np.concatenate([*(e[c] for e in entries), np.zeros(0, dtype=np.int64)]) for c in range(3)
    )
    resource = np.repeat(np.arange(len(capacity)), sizes)
    order = np.lexsort((resource, task))
    first = np.ones(len(order), dtype=bool)
    first[1:] = (np.diff(task[order]) > 0) | (np.diff(resource[order]) > 0)
    of_ptr = np.concatenate(
        ([0], np.cumsum(np.bincount(task[order][first], minlength=instance.num_tasks)))
    )
    return (
        np.asarray(capacity, dtype=np.int64),
        np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        task.astype(np.int64),
        pair.astype(np.int64),
        use.astype(np.int64),
        of_ptr.astype(np.int64),
        resource[order][first].astype(np.int64),
    )


def _cliques(instance: Instance, uses: Ints) -> list[Ints]:
    """Return greedy cliques of two or more tasks, no two of which fit at once on a pool of several
    devices.
    """
    n, pairs = instance.num_tasks, instance.pairs
    if n > MAX_CLIQUE_TASKS:
        return []
    least = np.full((n, instance.num_pools), np.iinfo(np.int64).max)
    np.minimum.at(least, pairs.task, uses[pairs.mode])
    shortest = np.full(n, np.iinfo(np.int64).max)
    np.minimum.at(shortest, pairs.task, pairs.duration.astype(np.int64))
    least[shortest == 0] = 0
    exclude = np.zeros((n, n), dtype=bool)
    for p in np.flatnonzero(instance.pools.count > 1):
        exclude |= least[:, None, p] + least[None, :, p] > instance.pools.count[p]
    np.fill_diagonal(exclude, False)
    found: dict[bytes, Ints] = {}
    for seed in np.argsort(-(exclude @ shortest), kind="stable")[: 2 * MAX_CLIQUES].tolist():
        clique, candidates = [seed], exclude[seed].copy()
        while candidates.any():
            best = int(
                np.argmax(np.where(candidates, (exclude & candidates).sum(axis=1) * shortest, -1))
            )
            clique.append(best)
            candidates &= exclude[best]
        if len(clique) > 1 and len(found) < MAX_CLIQUES:
            found.setdefault(np.sort(clique).tobytes(), np.sort(clique))
    return list(found.values())
