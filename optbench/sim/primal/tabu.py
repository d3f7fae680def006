"""Tabu search on the disjunctive graph of a shop: every task on one of its machines, one task at a
time on each.

A solution is a sequence per machine (links ``before`` and ``after``) and a row (machine and length)
per task. With heads r and tails q (own length included) by longest paths, moves are those of Balas
and Vazacopoulos restricted to block ends (N6): a task of a critical block goes behind its last or
before its first task, or the last or first one inward; and every task of the critical path with
other rows goes to every feasible gap of their machines (Mastrolilli and Gambardella 2000, with the
heads and tails of the present graph). Moves are estimated by the longest path through the tasks
they touch.
"""

from __future__ import annotations

import numpy as np

from optbench.compiling.compiled import inner, njit
from optbench.sim.primal.chance import pick
from optbench.sim.primal.shop_graph import (
    AFTER,
    BEFORE,
    HEAD,
    JOB_HEAD,
    JOB_TAIL,
    LASTING,
    LENGTH,
    LIST,
    MACHINE,
    NONE,
    ON_MACHINE,
    PATH,
    PATH_LENGTH,
    POSITION,
    PRED,
    PRED_END,
    ROW,
    ROWS,
    ROWS_END,
    SUCC,
    SUCC_END,
    TAIL,
    copy,
    critical_path,
    evaluate,
    fill_lines,
    relocate,
)

BIG = 1 << 60
# Entries of the state.
NOW, BEST, SINCE, TARGET, WILD, KICK, LOCAL, LOCAL_SINCE, TENURE = range(1, 10)
# Entries of a choice among moves, then the move: its kind, task, anchor and row.
VALUE, TIES, FOUND, REFUSED, KIND, TASK, ANCHOR, NEW_ROW = range(8)
RIGHT_BEHIND, RIGHT_BEFORE, ELSEWHERE = range(3)


@inner()
def may_lead(g, i, j):  # type: ignore[no-untyped-def]
    """Whether a path from task i to task j is possible: False only where there is none.

    A path from i to j needs an earlier position, a head of j no less than the end of i, and a tail
    of i no less than its length and the tail of j.
    """
    if i == j:
        return True
    length = g[LENGTH, i]
    return (
        g[POSITION, i] < g[POSITION, j]
        and g[HEAD, j] >= g[HEAD, i] + length
        and g[TAIL, i] >= length + g[TAIL, j]
    )


@inner()
def successors_may_lead(g, net, u, v):  # type: ignore[no-untyped-def]
    """Whether a path from a successor of u to v is possible: then u cannot go behind v."""
    possible = False
    for e in range(g[SUCC, u], g[SUCC_END, u]):
        possible |= may_lead(g, net[e], v)
    return possible


@inner()
def may_lead_to_predecessors(g, net, u, v):  # type: ignore[no-untyped-def]
    """Whether a path from u to a predecessor of v is possible: then v cannot go before u."""
    possible = False
    for e in range(g[PRED, v], g[PRED_END, v]):
        possible |= may_lead(g, u, net[e])
    return possible


@inner()
def offer(choice, state, value, is_tabu, kind, task, anchor, row):  # type: ignore[no-untyped-def]
    """Keep the allowed move of least estimate, ties at random; a tabu move only if there is no
    other.
    """
    if state[WILD] > 0:
        value, is_tabu = pick(state, 1 << 29), False
    if is_tabu and value >= state[BEST]:
        choice[REFUSED] += 1
        if choice[FOUND] or pick(state, choice[REFUSED]) > 0:
            return
    else:
        if value > choice[VALUE]:
            return
        if value < choice[VALUE]:
            choice[VALUE], choice[TIES] = value, 0
        choice[TIES] += 1
        if choice[TIES] > 1 and pick(state, choice[TIES]) > 0:
            return
        choice[FOUND] = 1
    choice[KIND], choice[TASK], choice[ANCHOR], choice[NEW_ROW] = kind, task, anchor, row


@inner()
def is_worse(choice, state, value):  # type: ignore[no-untyped-def]
    """Whether a move of this estimate, or more, cannot be chosen any more."""
    return choice[FOUND] > 0 and value > choice[VALUE] and state[WILD] == 0


@inner()
def chain_ends(g, x, y):  # type: ignore[no-untyped-def]
    """End of the task before task x of the path on its machine and tail of that behind task y."""
    a, b = g[BEFORE, g[PATH, x]], g[AFTER, g[PATH, y]]
    end = 0 if a < 0 else g[HEAD, a] + g[LENGTH, a]
    return end, 0 if b < 0 else g[TAIL, b]


@inner()
def offer_behind(g, net, x, y, tabu, state, choice):  # type: ignore[no-untyped-def]
    """Task x of the path right behind task y of its block; the value is the longest path through
    the tasks from x to y in their new order, with heads and tails by precedence as they are.
    """
    u, v = g[PATH, x], g[PATH, y]
    end, tail = chain_ends(g, x, y)
    is_tabu = False
    for k in range(x + 1, y + 1):
        is_tabu |= tabu[g[PATH, k], u] > state[NOW]
        g[LIST, k] = max(end, g[JOB_HEAD, k])
        end = g[LIST, k] + g[PATH_LENGTH, k]
    tail = max(tail, g[JOB_TAIL, x]) + g[PATH_LENGTH, x]
    worst = max(end, g[JOB_HEAD, x]) + tail
    if is_worse(choice, state, worst):
        return
    for k in range(y, x, -1):
        tail = max(tail, g[JOB_TAIL, k]) + g[PATH_LENGTH, k]
        worst = max(worst, g[LIST, k] + tail)
    if not (is_worse(choice, state, worst) or successors_may_lead(g, net, u, v)):
        offer(choice, state, worst, is_tabu, RIGHT_BEHIND, u, v, NONE)


@inner()
def offer_before(g, net, x, y, tabu, state, choice):  # type: ignore[no-untyped-def]
    """Task y of the path right before task x of its block, valued likewise."""
    u, v = g[PATH, x], g[PATH, y]
    end, tail = chain_ends(g, x, y)
    is_tabu = False
    begin = max(end, g[JOB_HEAD, y])
    end = begin + g[PATH_LENGTH, y]
    for k in range(x, y):
        is_tabu |= tabu[v, g[PATH, k]] > state[NOW]
        g[LIST, k] = max(end, g[JOB_HEAD, k])
        end = g[LIST, k] + g[PATH_LENGTH, k]
    worst = 0
    for k in range(y - 1, x - 1, -1):
        tail = max(tail, g[JOB_TAIL, k]) + g[PATH_LENGTH, k]
        worst = max(worst, g[LIST, k] + tail)
    worst = max(worst, begin + g[PATH_LENGTH, y] + max(tail, g[JOB_TAIL, y]))
    if not (is_worse(choice, state, worst) or may_lead_to_predecessors(g, net, u, v)):
        offer(choice, state, worst, is_tabu, RIGHT_BEFORE, v, u, NONE)


@inner()
def offer_block_moves(g, net, size, tabu, state, choice):  # type: ignore[no-untyped-def]
    """Every N6 move of every block."""
    a = 0
    while a < size:
        b = a
        while b + 1 < size and g[AFTER, g[PATH, b]] == g[PATH, b + 1]:
            b += 1
        for k in range(a, b + 1):
            if k < b:
                offer_behind(g, net, k, b, tabu, state, choice)
            if a < k < b:
                offer_behind(g, net, a, k, tabu, state, choice)
            if k > a + 1:
                offer_before(g, net, a, k, tabu, state, choice)
            if a < k < b - 1:
                offer_before(g, net, k, b, tabu, state, choice)
        a = b + 1


@inner()
def first_gap(g, line, machine, head):  # type: ignore[no-untyped-def]
    """The place behind the last of the tasks of a machine that end by ``head``: earlier places
    start a task there no sooner and delay more.
    """
    low, high = 0, line[line[machine] - 1]
    while low < high:
        middle = (low + high) // 2
        i = line[line[machine] + middle]
        if g[HEAD, i] + g[LENGTH, i] <= head:
            low = middle + 1
        else:
            high = middle
    return low


@inner()
def offer_rows(g, net, line, rows, at, tabu_machine, state, choice):  # type: ignore[no-untyped-def]
    """Task ``at`` of the path in its other rows, in each gap of their machines that may be best."""
    v, head, tail = g[PATH, at], g[JOB_HEAD, at], g[JOB_TAIL, at]
    for row in range(g[ROWS, v], g[ROWS_END, v]):
        machine, length = rows[ON_MACHINE, row], rows[LASTING, row]
        if machine == g[MACHINE, v] or is_worse(choice, state, head + length + tail):
            continue
        is_tabu = tabu_machine[v, machine] > state[NOW]
        start, count = line[machine], line[line[machine] - 1]
        place = first_gap(g, line, machine, head)
        while True:
            prev = line[start + place - 1] if place > 0 else NONE
            following = line[start + place] if place < count else NONE
            begin = head if prev < 0 else max(head, g[HEAD, prev] + g[LENGTH, prev])
            # Farther behind, begin only grows, and tasks that a successor leads to only follow.
            if is_worse(choice, state, begin + length + tail):
                break
            value = begin + length + (tail if following < 0 else max(tail, g[TAIL, following]))
            if not is_worse(choice, state, value):
                if prev >= 0 and successors_may_lead(g, net, v, prev):
                    break
                if following < 0 or not may_lead_to_predecessors(g, net, following, v):
                    offer(choice, state, value, is_tabu, ELSEWHERE, v, prev, row)
                    if following >= 0 and g[TAIL, following] <= tail:
                        break  # from here on the estimate only grows
            if following < 0:
                break
            place += 1


@inner()
def apply(g, net, line, rows, choice, tabu, tabu_machine, until):  # type: ignore[no-untyped-def]
    """Make the chosen move and make its reversal tabu for a while; return the makespan."""
    task, anchor, machine = choice[TASK], choice[ANCHOR], g[MACHINE, choice[TASK]]
    if choice[KIND] == RIGHT_BEHIND:
        i = task
        while i != anchor:
            i = g[AFTER, i]
            tabu[task, i] = until
    elif choice[KIND] == RIGHT_BEFORE:
        i = task
        while i != anchor:
            i = g[BEFORE, i]
            tabu[i, task] = until
        anchor = g[BEFORE, anchor]
    else:
        tabu_machine[task, machine] = until
        old_length, old_row = g[LENGTH, task], g[ROW, task]
        g[ROW, task] = choice[NEW_ROW]
        g[LENGTH, task] = rows[LASTING, choice[NEW_ROW]]
        machine = rows[ON_MACHINE, choice[NEW_ROW]]
        makespan = relocate(g, net, line, task, machine, anchor)
        if makespan < 0:
            g[LENGTH, task], g[ROW, task] = old_length, old_row
        return makespan
    return relocate(g, net, line, task, machine, anchor)


@inner()
def kick(state, g, best, tabu, tabu_machine):  # type: ignore[no-untyped-def]
    """Return to the best solution and take random steps, more after each return in vain."""
    copy(best, g)
    tabu[:, :] = 0
    tabu_machine[:, :] = 0
    state[KICK] = 0 if state[SINCE] >= state[LOCAL_SINCE] else min(state[KICK] + 1, 25)
    state[WILD] = 2 + pick(state, 4 + state[KICK])
    state[LOCAL], state[LOCAL_SINCE] = BIG, state[NOW]


@njit(cache=True, nogil=True)
def search(  # type: ignore[no-untyped-def]
    g,
    net,
    line,
    rows,
    best,
    tabu,
    tabu_machine,
    state,
    iterations,
    patience,
):
    """Run ``iterations`` iterations from the solution in ``g``; improve ``best``, a solution with
    its heads, in place.
    """
    choice = np.zeros(8, np.int64)
    fill_lines(g, line, tabu_machine.shape[1])
    makespan = evaluate(g, net)
    for _ in range(iterations):
        if makespan < state[BEST]:
            state[BEST], state[SINCE] = makespan, state[NOW]
            copy(g, best)
        if makespan < state[LOCAL]:
            state[LOCAL], state[LOCAL_SINCE] = makespan, state[NOW]
        if state[BEST] <= state[TARGET]:
            return
        state[NOW] += 1
        if state[NOW] - state[LOCAL_SINCE] > patience:
            kick(state, g, best, tabu, tabu_machine)
            fill_lines(g, line, tabu_machine.shape[1])
            makespan = evaluate(g, net)
        size = critical_path(g, net, makespan, state)
        choice[:] = 0
        choice[VALUE] = BIG
        offer_block_moves(g, net, size, tabu, state, choice)
        for k in range(size):
            if g[ROWS_END, g[PATH, k]] - g[ROWS, g[PATH, k]] > 1:
                offer_rows(g, net, line, rows, k, tabu_machine, state, choice)
        state[WILD] = max(0, state[WILD] - 1)
        if choice[FOUND] == 0 and choice[REFUSED] == 0:
            # No move changes this path: restart from the best
            state[LOCAL_SINCE] = state[NOW] - patience - 1
            continue
        until = state[NOW] + state[TENURE] + pick(state, 1 + state[TENURE] // 2)
        value = apply(g, net, line, rows, choice, tabu, tabu_machine, until)
        if value >= 0:
            makespan = value
