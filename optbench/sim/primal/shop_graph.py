"""The disjunctive graph of a shop in compiled code: the sequence of each machine, heads and tails
by longest paths in a topological order that is repaired after each move, and critical paths.

Heads and tails are times; a tail includes the task's own length.
"""

from __future__ import annotations

from optbench.compiling.compiled import inner
from optbench.sim.primal.chance import pick

NONE = -1
# Rows of the table of a search, one column per task. A solution: the neighbours of each task on its
# machine, the machine, length and row (of ``rows``) that it takes.
BEFORE, AFTER, MACHINE, LENGTH, ROW = range(5)
# Its graph: heads, tails, a topological order, the position of each task in it, the latest end up
# to each position, and the place of each task on its machine.
HEAD, TAIL, ORDER, POSITION, LATEST, PLACE = range(5, 11)
# A critical path, and of the tasks of the path: the times at which they may start and the tails
# behind them by precedence alone, and their lengths.
PATH, JOB_HEAD, JOB_TAIL, PATH_LENGTH = range(11, 15)
# Intermediate results; marks are zero between calls.
MARK, LIST = 15, 16
# The instance: releases, where the predecessors, successors and rows of each task begin and end in
# ``net`` and in ``rows``, and the tasks without successors (then NONE).
RELEASE, PRED, PRED_END, SUCC, SUCC_END, ROWS, ROWS_END, SINK = range(17, 25)
COLUMNS = 25
# The table ``rows``: machine and length of each.
ON_MACHINE, LASTING = 0, 1
# ``line`` holds the sequences for bisection: line[m] is where that of machine m begins, with room
# for every task that may go there, and the entry before it the number of its tasks.


@inner()
def head_by_job(g, net, i):  # type: ignore[no-untyped-def]
    """Earliest start of a task by its release and its predecessors alone."""
    best = g[RELEASE, i]
    for e in range(g[PRED, i], g[PRED_END, i]):
        p = net[e]
        if g[HEAD, p] + g[LENGTH, p] > best:
            best = g[HEAD, p] + g[LENGTH, p]
    return best


@inner()
def tail_by_job(g, net, i):  # type: ignore[no-untyped-def]
    """Longest tail among a task's successors."""
    best = 0
    for e in range(g[SUCC, i], g[SUCC_END, i]):
        if g[TAIL, net[e]] > best:
            best = g[TAIL, net[e]]
    return best


@inner()
def sort_tasks(g, net):  # type: ignore[no-untyped-def]
    """Find a topological order of the whole graph; return whether there is one."""
    n = g.shape[1]
    size = k = 0
    for i in range(n):
        g[MARK, i] = g[PRED_END, i] - g[PRED, i] + (1 if g[BEFORE, i] >= 0 else 0)
        if g[MARK, i] == 0:
            g[ORDER, size] = i
            size += 1
    while k < size:
        i = g[ORDER, k]
        g[POSITION, i] = k
        k += 1
        for e in range(g[SUCC, i], g[SUCC_END, i] + 1):
            j = net[e] if e < g[SUCC_END, i] else g[AFTER, i]
            if j >= 0:
                g[MARK, j] -= 1
                if g[MARK, j] == 0:
                    g[ORDER, size] = j
                    size += 1
    g[MARK, :] = 0
    return size == n


@inner()
def renew_heads(g, net, first):  # type: ignore[no-untyped-def]
    """Compute the heads from a position on; return the makespan."""
    makespan = g[LATEST, first - 1] if first > 0 else 0
    for k in range(first, g.shape[1]):
        i = g[ORDER, k]
        head = g[RELEASE, i]
        for e in range(g[PRED, i], g[PRED_END, i]):
            p = net[e]
            head = max(head, g[HEAD, p] + g[LENGTH, p])
        p = g[BEFORE, i]
        if p >= 0:
            head = max(head, g[HEAD, p] + g[LENGTH, p])
        g[HEAD, i] = head
        makespan = max(makespan, head + g[LENGTH, i])
        g[LATEST, k] = makespan
    return makespan


@inner()
def renew_tails(g, net, last):  # type: ignore[no-untyped-def]
    """Compute the tails back from a position on."""
    for k in range(last, -1, -1):
        i = g[ORDER, k]
        tail = 0
        for e in range(g[SUCC, i], g[SUCC_END, i]):
            tail = max(tail, g[TAIL, net[e]])
        s = g[AFTER, i]
        if s >= 0:
            tail = max(tail, g[TAIL, s])
        g[TAIL, i] = tail + g[LENGTH, i]


@inner()
def evaluate(g, net):  # type: ignore[no-untyped-def]
    """Compute order, heads, tails and makespan; -1 when the sequences contain a cycle."""
    if not sort_tasks(g, net):
        return -1
    makespan = renew_heads(g, net, 0)
    renew_tails(g, net, g.shape[1] - 1)
    return makespan


@inner()
def shift_later(g, net, u, last):  # type: ignore[no-untyped-def]
    """Repair the order where task u, which now follows the task at position ``last``, stands before
    it: u and what follows u up to there go behind. Return whether there is no cycle.

    Only u has a new predecessor, so each task between them that u leads to has a predecessor that u
    leads to, or u, which the scan in order finds.
    """
    first, size = g[POSITION, u], 1
    g[MARK, u], g[LIST, 0] = 1, u
    for k in range(first + 1, last + 1):
        i = g[ORDER, k]
        p = g[BEFORE, i]
        hit = p >= 0 and g[MARK, p] > 0
        for e in range(g[PRED, i], g[PRED_END, i]):
            hit |= g[MARK, net[e]] > 0
        if hit:
            g[MARK, i], g[LIST, size] = 1, i
            size += 1
    feasible = g[MARK, g[ORDER, last]] == 0
    if feasible:
        to = first
        for k in range(first, last + 1):
            i = g[ORDER, k]
            if g[MARK, i] == 0:
                g[ORDER, to], g[POSITION, i] = i, to
                to += 1
        for k in range(size):
            g[ORDER, to + k], g[POSITION, g[LIST, k]] = g[LIST, k], to + k
    for k in range(size):
        g[MARK, g[LIST, k]] = 0
    return feasible


@inner()
def shift_earlier(g, net, u, first):  # type: ignore[no-untyped-def]
    """The mirror image: task u now precedes the task at position ``first``, which stands before
    it.
    """
    last, size = g[POSITION, u], 1
    g[MARK, u], g[LIST, 0] = 1, u
    for k in range(last - 1, first - 1, -1):
        i = g[ORDER, k]
        s = g[AFTER, i]
        hit = s >= 0 and g[MARK, s] > 0
        for e in range(g[SUCC, i], g[SUCC_END, i]):
            hit |= g[MARK, net[e]] > 0
        if hit:
            g[MARK, i], g[LIST, size] = 1, i
            size += 1
    feasible = g[MARK, g[ORDER, first]] == 0
    if feasible:
        to = last
        for k in range(last, first - 1, -1):
            i = g[ORDER, k]
            if g[MARK, i] == 0:
                g[ORDER, to], g[POSITION, i] = i, to
                to -= 1
        for k in range(size):
            g[ORDER, to - k], g[POSITION, g[LIST, k]] = g[LIST, k], to - k
    for k in range(size):
        g[MARK, g[LIST, k]] = 0
    return feasible


@inner()
def relocate(g, net, line, u, machine, anchor):  # type: ignore[no-untyped-def]
    """Put task u on a machine right behind ``anchor`` (NONE: at the front), its length and row
    being set already; return the new makespan, or -1 and nothing changed where a cycle would arise.
    """
    source, back = g[MACHINE, u], g[BEFORE, u]
    first = last = g[POSITION, u]
    detach(g, line, u)
    attach(g, line, u, machine, anchor)
    following = g[AFTER, u]
    feasible = True
    if anchor >= 0 and g[POSITION, anchor] > first:
        last = g[POSITION, anchor]
        feasible = shift_later(g, net, u, last)
    elif following >= 0 and g[POSITION, following] < last:
        first = g[POSITION, following]
        feasible = shift_earlier(g, net, u, first)
    if not feasible:
        detach(g, line, u)
        attach(g, line, u, source, back)
        return -1
    renew_tails(g, net, last)
    return renew_heads(g, net, first)


@inner()
def critical_path(g, net, makespan, state):  # type: ignore[no-untyped-def]
    """Find a random critical path; return its number of tasks."""
    size = seen = 0
    node = NONE
    for k in range(g.shape[1]):
        i = g[SINK, k]
        if i < 0:
            break
        if g[HEAD, i] + g[LENGTH, i] == makespan:
            seen += 1
            if seen == 1 or pick(state, seen) == 0:
                node = i
    while node >= 0:
        g[PATH, size] = node
        size += 1
        begin, earlier, choices = g[HEAD, node], NONE, 0
        for e in range(g[PRED, node], g[PRED_END, node] + 1):
            p = net[e] if e < g[PRED_END, node] else g[BEFORE, node]
            if p >= 0 and p != earlier and g[HEAD, p] + g[LENGTH, p] == begin:
                choices += 1
                if choices == 1 or pick(state, choices) == 0:
                    earlier = p
        node = earlier
    for k in range(size // 2):
        g[PATH, k], g[PATH, size - 1 - k] = g[PATH, size - 1 - k], g[PATH, k]
    for k in range(size):
        i = g[PATH, k]
        g[PATH_LENGTH, k] = g[LENGTH, i]
        g[JOB_HEAD, k] = head_by_job(g, net, i)
        g[JOB_TAIL, k] = tail_by_job(g, net, i)
    return size


@inner()
def detach(g, line, i):  # type: ignore[no-untyped-def]
    """Take task i from its machine."""
    a, b, machine = g[BEFORE, i], g[AFTER, i], g[MACHINE, i]
    if a >= 0:
        g[AFTER, a] = b
    if b >= 0:
        g[BEFORE, b] = a
    line[line[machine] - 1] -= 1
    start = line[machine]
    for k in range(g[PLACE, i], line[line[machine] - 1]):
        j = line[start + k + 1]
        line[start + k], g[PLACE, j] = j, k


@inner()
def attach(g, line, i, machine, a):  # type: ignore[no-untyped-def]
    """Put task i on a machine right behind a (NONE: at the front)."""
    start, size = line[machine], line[line[machine] - 1]
    place = 0 if a < 0 else g[PLACE, a] + 1
    b = line[start + place] if place < size else NONE
    g[BEFORE, i], g[AFTER, i], g[MACHINE, i] = a, b, machine
    if a >= 0:
        g[AFTER, a] = i
    if b >= 0:
        g[BEFORE, b] = i
    for k in range(size, place, -1):
        j = line[start + k - 1]
        line[start + k], g[PLACE, j] = j, k
    line[start + place], g[PLACE, i] = i, place
    line[line[machine] - 1] = size + 1


@inner()
def fill_lines(g, line, num_machines):  # type: ignore[no-untyped-def]
    """Write the sequences of a solution as rows."""
    for machine in range(num_machines):
        line[line[machine] - 1] = 0
    for i in range(g.shape[1]):
        if g[BEFORE, i] < 0:
            machine, j = g[MACHINE, i], i
            while j >= 0:
                place = line[line[machine] - 1]
                line[line[machine] + place], g[PLACE, j] = j, place
                line[line[machine] - 1] += 1
                j = g[AFTER, j]


@inner()
def copy(source, target):  # type: ignore[no-untyped-def]
    """Copy a solution and its heads between tables."""
    for k in range(HEAD + 1):
        for i in range(source.shape[1]):
            target[k, i] = source[k, i]
