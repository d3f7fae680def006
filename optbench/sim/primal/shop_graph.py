"""The disjunctive graph of a shop in compiled code: the sequence of each machine, heads and tails
by longest paths, critical paths, and the longest path through tasks in a new order.

Heads and tails are times; a tail includes the task's own length.
"""

from __future__ import annotations

from typing import NamedTuple

from optbench.compiling.compiled import inner
from optbench.model.instance import Ints
from optbench.sim.primal.chance import pick

NONE = -1


class RowChoices(NamedTuple):
    """The rows that each task chooses among, as compressed rows."""

    ptr: Ints
    machine: Ints
    length: Ints


class Sequences(NamedTuple):
    """A solution: the neighbours of each task on its machine, and the row that it takes.

    Tuples of columns and not a table: compiled code would create a view at every access to a row.
    """

    before: Ints
    after: Ints
    machine: Ints
    length: Ints
    row: Ints


class Scratch(NamedTuple):
    """Columns for intermediate results; ``head`` and ``tail`` are those of every task."""

    seq: Ints
    heads: Ints
    head: Ints
    tail: Ints
    order: Ints
    degree: Ints
    path: Ints


@inner()
def tail_by_job(shop, q, i):  # type: ignore[no-untyped-def]
    """Longest tail among a task's successors."""
    best = 0
    for e in range(shop.succ_ptr[i], shop.succ_ptr[i + 1]):
        if q[shop.succ[e]] > best:
            best = q[shop.succ[e]]
    return best


@inner()
def evaluate(shop, sol, r, q, order, degree):  # type: ignore[no-untyped-def]
    """Compute heads, tails and makespan; -1 when the sequences contain a cycle."""
    n = len(r)
    size = 0
    for i in range(n):
        degree[i] = shop.pred_ptr[i + 1] - shop.pred_ptr[i] + (1 if sol.before[i] >= 0 else 0)
        r[i] = shop.release[i]
        if degree[i] == 0:
            order[size] = i
            size += 1
    k = makespan = 0
    while k < size:
        i = order[k]
        k += 1
        end = r[i] + sol.length[i]
        makespan = max(makespan, end)
        for e in range(shop.succ_ptr[i], shop.succ_ptr[i + 1] + 1):
            j = shop.succ[e] if e < shop.succ_ptr[i + 1] else sol.after[i]
            if j < 0:
                continue
            r[j] = max(r[j], end)
            degree[j] -= 1
            if degree[j] == 0:
                order[size] = j
                size += 1
    if size < n:
        return -1
    for k in range(n - 1, -1, -1):
        i = order[k]
        tail = tail_by_job(shop, q, i)
        if sol.after[i] >= 0:
            tail = max(tail, q[sol.after[i]])
        q[i] = tail + sol.length[i]
    return makespan


@inner()
def is_pushed(shop, sol, r, i):  # type: ignore[no-untyped-def]
    """Whether another task ends exactly when this one starts."""
    a = sol.before[i]
    if a >= 0 and r[a] + sol.length[a] == r[i] and sol.length[a] > 0:
        return True
    for e in range(shop.pred_ptr[i], shop.pred_ptr[i + 1]):
        p = shop.pred[e]
        if r[p] + sol.length[p] == r[i] and sol.length[p] > 0:
            return True
    return False


@inner()
def critical_path(shop, sol, r, q, makespan, path, state):  # type: ignore[no-untyped-def]
    """Find a random critical path; return its number of tasks."""
    size = seen = 0
    node = NONE
    for i in range(len(r)):
        if r[i] + q[i] == makespan and not is_pushed(shop, sol, r, i):
            seen += 1
            if pick(state, seen) == 0:
                node = i
    while node >= 0:
        path[size] = node
        size += 1
        end = r[node] + sol.length[node]
        following, choices = NONE, 0
        for e in range(shop.succ_ptr[node], shop.succ_ptr[node + 1] + 1):
            j = shop.succ[e] if e < shop.succ_ptr[node + 1] else sol.after[node]
            if j >= 0 and j != following and r[j] == end and r[j] + q[j] == makespan:
                choices += 1
                if pick(state, choices) == 0:
                    following = j
        node = following
    return size


@inner()
def head_by_job(shop, sol, r, i):  # type: ignore[no-untyped-def]
    """Earliest start of a task by its release and its predecessors alone."""
    best = shop.release[i]
    for e in range(shop.pred_ptr[i], shop.pred_ptr[i + 1]):
        p = shop.pred[e]
        if r[p] + sol.length[p] > best:
            best = r[p] + sol.length[p]
    return best


@inner()
def estimate_sequence(shop, sol, r, q, seq, size, first_before, last_after, heads):  # type: ignore[no-untyped-def]
    """Longest path through consecutive tasks of one machine in a new order, between fixed
    neighbours.
    """
    length = sol.length
    end = 0 if first_before < 0 else r[first_before] + length[first_before]
    for k in range(size):
        i = seq[k]
        head = head_by_job(shop, sol, r, i)
        if end > head:
            head = end
        heads[k] = head
        end = head + length[i]
    tail = 0 if last_after < 0 else q[last_after]
    worst = 0
    for k in range(size - 1, -1, -1):
        i = seq[k]
        own = tail_by_job(shop, q, i)
        if tail > own:
            own = tail
        tail = own + length[i]
        if heads[k] + tail > worst:
            worst = heads[k] + tail
    return worst


@inner()
def unlink(sol, first, i):  # type: ignore[no-untyped-def]
    a, b = sol.before[i], sol.after[i]
    if a >= 0:
        sol.after[a] = b
    else:
        first[sol.machine[i]] = b
    if b >= 0:
        sol.before[b] = a


@inner()
def link(sol, first, i, machine, a):  # type: ignore[no-untyped-def]
    """Put task i on a machine right behind a (NONE: at the front)."""
    b = first[machine] if a < 0 else sol.after[a]
    sol.before[i], sol.after[i], sol.machine[i] = a, b, machine
    if a >= 0:
        sol.after[a] = i
    else:
        first[machine] = i
    if b >= 0:
        sol.before[b] = i


@inner()
def copy(source, source_first, target, target_first):  # type: ignore[no-untyped-def]
    target.before[:], target.after[:] = source.before, source.after
    target.machine[:], target.length[:], target.row[:] = source.machine, source.length, source.row
    target_first[:] = source_first
