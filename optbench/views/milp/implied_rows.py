"""Rows and columns that tighten the relaxation of the disjunctive formulation and exclude no
schedule.

With x = mode, e_i the end of task i, and n_kp the devices of pool p that mode k takes:

    work[p]          count_p (C − h_p − t_p) >= Σ n_kp p_ik mode[i,k], with h_p, t_p the least head
                     and tail on p: all work of p lies between them
    between[c]       Σ w_k p_ik mode[i,k] <= room (s_b − e_a − wait), the cuts of ``time_cuts``
    exclude[p,n,i,j] Σ_{k takes ≥ n of p} mode[i,k] + Σ_{l takes > count_p − n of p} mode[j,l]
                     <= 1 + before[end i, start j] + before[end j, start i]
    one_way[i,j]     before[end i, start j] + before[end j, start i] <= 1
    hold[i,k]        integer, = Σ of mode[i,l] over the modes l with the pools and devices of k

``exclude``: modes of positive length only; two of them on both sides together need more than
count_p devices, so that one task ends before the other starts. ``one_way``: where i or j always
takes time; otherwise both orders hold for two tasks at one instant. Both are left out where an
order is known, since they then follow from it. ``hold`` exists where a task has several modes for
the same devices (clocks): branching on it decides where a task runs before its clock.

**Where.** Relaxations are weak where tasks share the devices of a pool in time and choose among
modes. Where every task has one length and one set of devices (job shops, projects) HiGHS's own
cuts find what ``between`` says, and the rows only slow its LPs: there ``is_tightened`` is false.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from optbench.model.instance import Floats, Instance, Ints
from optbench.model.metrics import mode_uses
from optbench.model.time_cuts import has_cuts, time_cuts
from optbench.views.milp.arrays import BlockCollector, Entries
from optbench.views.milp.frame import Frame
from optbench.views.milp.occupancy_rows import pool_demand

if TYPE_CHECKING:
    from optbench.views.milp.cumulative import Resource
    from optbench.views.milp.disjunctive import Disjunctive

Column = dict[tuple[int, int], int]


def is_tightened(instance: Instance) -> bool:
    """Whether the rows are worth their place: some task has two modes that differ in length."""
    pairs = instance.pairs
    if not has_cuts(instance) or len(pairs.task) == instance.num_tasks:
        return False
    longest = np.maximum.reduceat(pairs.duration, pairs.ptr[:-1])
    return bool((longest[pairs.task] > pairs.duration).any())


def add_work(sheet: BlockCollector, base: Frame, makespan: int) -> None:
    """Add the rows ``work``."""
    pairs = base.instance.pairs
    pair, pool, count = pool_demand(base)
    pools = np.unique(pool)
    row, room = np.searchsorted(pools, pool), base.instance.pools.count[pools].astype(float)
    head, tail = np.full((2, len(pools)), np.inf)
    np.minimum.at(head, row, base.head[pairs.task[pair]])
    np.minimum.at(tail, row, base.windows.tail[pairs.task[pair]])
    work = (row, base.instance.num_tasks + pair, -count * pairs.duration[pair])
    own = (np.arange(len(pools)), np.full(len(pools), makespan), room)
    sheet.add_rows("work", pools, [own, work], room * (head + tail), np.inf)


def add_between(sheet: BlockCollector, form: Disjunctive, makespan: int | None) -> None:
    """Add the rows ``between``; the area cut of all time is ``work`` where there is a makespan."""
    pairs, n = form.instance.pairs, form.instance.num_tasks
    row: list[int] = []
    col: list[int] = []
    value: list[float] = []
    events: list[tuple[int, int, float]] = []
    upper: list[float] = []
    for cut in time_cuts(form.instance):
        if cut.after is None and cut.before is None and makespan is not None and not cut.chain:
            continue
        at, right = len(upper), -float(cut.room * cut.wait)
        rows = np.asarray(cut.rows)
        row += [at] * len(rows)
        col += (n + rows).tolist()
        value += (np.asarray(cut.weights) * pairs.duration[rows]).tolist()
        if cut.after is not None:
            events.append((at, 2 * cut.after + 1, float(cut.room)))
        if cut.before is not None:
            events.append((at, 2 * cut.before, -float(cut.room)))
        elif makespan is not None:
            row, col, value = [*row, at], [*col, makespan], [*value, -float(cut.room)]
        else:
            right += cut.room * form.frame.end
        upper.append(right)
    label, event, sign = (
        (np.asarray(part) for part in zip(*events, strict=True))
        if events
        else (np.zeros((3, 0), dtype=np.int64))
    )
    entries: list[Entries] = [(np.asarray(row, dtype=np.int64), col, value)]
    for room in np.unique(sign).tolist():
        some = np.flatnonzero(sign == room)
        entries += form.time_terms(label[some], event[some].astype(np.int64), room)
    sheet.add_rows(
        "between", np.arange(len(upper)), entries, -np.inf, np.asarray(upper), distinct=False
    )


def add_exclusions(sheet: BlockCollector, form: Disjunctive, before: Column) -> None:
    """Add the rows ``exclude`` of pools that several tasks share, and ``one_way``."""
    n, shortest = form.instance.num_tasks, form.frame.windows.shortest
    label: list[tuple[int, int, int, int]] = []
    terms: list[list[int]] = []
    for resource in form.resources[1]:
        if resource.number >= form.instance.num_pools:
            continue  # a power cap
        for level, i, j, pairs in _conflicts(resource, form.instance.pairs.task):
            if _is_ordered(form, i, j):
                continue
            label.append((resource.number, level, i, j))
            terms.append((n + pairs).tolist())
    ordered = [[before[o] for o in _orders(i, j) if o in before] for _, _, i, j in label]
    row = np.repeat(np.arange(len(label)), [len(each) for each in terms])
    taken = np.repeat(np.arange(len(label)), [len(each) for each in ordered])
    sheet.add_rows(
        "exclude",
        np.asarray(label, dtype=np.int64).reshape(-1, 4),
        [
            (row, np.asarray([c for each in terms for c in each], dtype=np.int64), 1.0),
            (taken, np.asarray([c for each in ordered for c in each], dtype=np.int64), -1.0),
        ],
        -np.inf,
        1.0,
    )
    both = [
        (i, j)
        for i in range(n)
        for j in range(i + 1, n)
        if all(order in before for order in _orders(i, j)) and shortest[i] + shortest[j] > 0
    ]
    rows = np.repeat(np.arange(len(both)), 2)
    cols = np.asarray([before[o] for i, j in both for o in _orders(i, j)], dtype=np.int64)
    sheet.add_rows(
        "one_way",
        np.asarray(both, dtype=np.int64).reshape(-1, 2),
        [(rows, cols, 1.0)],
        -np.inf,
        1.0,
    )


def _orders(i: int, j: int) -> tuple[tuple[int, int], tuple[int, int]]:
    return (2 * i + 1, 2 * j), (2 * j + 1, 2 * i)


def _is_ordered(form: Disjunctive, i: int, j: int) -> bool:
    """Whether one of two tasks ends before the other starts in every schedule."""
    u, v = np.asarray(_orders(i, j)).T
    return bool(form.events.decide(u, v)[0].any())


def _conflicts(resource: Resource, task: Ints) -> Iterator[tuple[int, int, int, Ints]]:
    """Yield n, tasks i and j, and the pairs of ``exclude``; each set of pairs once."""
    tasks = np.unique(task[resource.pair]).tolist()
    mine = {i: task[resource.pair] == i for i in tasks}
    seen: set[tuple[int, ...]] = set()
    for i in tasks:
        for level in np.unique(resource.amount[mine[i]]).tolist():
            left = resource.pair[mine[i] & (resource.amount >= level)]
            for j in tasks:
                right = resource.pair[mine[j] & (resource.amount > resource.room - level)]
                both = np.concatenate((left, right))
                key = tuple(np.sort(both).tolist())
                if i == j or len(right) == 0 or key in seen:
                    continue
                seen.add(key)
                yield int(level), i, j, both


def add_holds(sheet: BlockCollector, instance: Instance) -> None:
    """Add the columns ``hold`` with their rows."""
    pairs, n = instance.pairs, instance.num_tasks
    uses = mode_uses(instance)[pairs.mode]
    key = np.concatenate(
        (pairs.task[:, None], instance.modes.primary[pairs.mode][:, None], uses), axis=1
    )
    _, first, group = np.unique(key, axis=0, return_index=True, return_inverse=True)
    group = group.reshape(-1)
    size = np.bincount(group)
    several = np.bincount(pairs.task[first], minlength=n)
    kept = np.flatnonzero((size > 1) & (several[pairs.task[first]] > 1))
    place = np.full(len(first), -1)
    place[kept] = np.arange(len(kept))
    label = np.stack((pairs.task[first[kept]], pairs.mode[first[kept]]), axis=1)
    column = sheet.add_columns("hold", label, 0.0, 1.0, integer=True)
    inside = np.flatnonzero(place[group] >= 0)
    own = (np.arange(len(kept)), column + np.arange(len(kept)), -1.0)
    sheet.add_rows("hold", label, [(place[group[inside]], n + inside, 1.0), own], 0.0, 0.0)


def hold_values(instance: Instance, label: Ints, mode: Ints) -> Floats:
    """Return the columns ``hold`` of a decision: one mode per task."""
    uses, primary = mode_uses(instance), instance.modes.primary
    task, like = label.T
    same = (uses[mode[task]] == uses[like]).all(axis=1)
    return np.asarray(same & (primary[mode[task]] == primary[like]), dtype=float)
