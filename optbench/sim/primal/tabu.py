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
    NONE,
    copy,
    critical_path,
    estimate_sequence,
    evaluate,
    head_by_job,
    link,
    tail_by_job,
    unlink,
)

BIG = 1 << 60
# Entries of the state.
NOW, BEST, SINCE, TARGET, WILD, KICK, LOCAL, LOCAL_SINCE, TENURE = range(1, 10)
# Entries of a choice among moves, then the move: its kind, task, anchor and row.
VALUE, TIES, FOUND, REFUSED, KIND, TASK, ANCHOR, ROW = range(8)
BEHIND, BEFORE, ELSEWHERE = range(3)


@inner()
def forward_ok(shop, sol, q, u, v):  # type: ignore[no-untyped-def]
    """Whether u may go right behind v: no successor of u leads to v."""
    for e in range(shop.succ_ptr[u], shop.succ_ptr[u + 1]):
        s = shop.succ[e]
        if q[s] > q[v] or (q[s] == q[v] and sol.length[s] == 0) or s == v:
            return False
    return True


@inner()
def backward_ok(shop, sol, r, u, v):  # type: ignore[no-untyped-def]
    """Whether v may go right before u: no predecessor of v is reached from u."""
    for e in range(shop.pred_ptr[v], shop.pred_ptr[v + 1]):
        p = shop.pred[e]
        end, other = r[p] + sol.length[p], r[u] + sol.length[u]
        if end > other or (end == other and sol.length[p] == 0) or p == u:
            return False
    return True


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
        if pick(state, choice[TIES]) > 0:
            return
        choice[FOUND] = 1
    choice[KIND], choice[TASK], choice[ANCHOR], choice[ROW] = kind, task, anchor, row


@inner()
def offer_behind(shop, sol, r, q, path, x, y, work, tabu, state, choice):  # type: ignore[no-untyped-def]
    """Task path[x] right behind path[y] of its block."""
    u, v, m = path[x], path[y], y - x + 1
    if not forward_ok(shop, sol, q, u, v):
        return
    seq, is_tabu = work.seq, False
    for t in range(m - 1):
        seq[t] = path[x + 1 + t]
        is_tabu |= tabu[seq[t], u] > state[NOW]
    seq[m - 1] = u
    value = estimate_sequence(shop, sol, r, q, seq, m, sol.before[u], sol.after[v], work.heads)
    offer(choice, state, value, is_tabu, BEHIND, u, v, NONE)


@inner()
def offer_before(shop, sol, r, q, path, x, y, work, tabu, state, choice):  # type: ignore[no-untyped-def]
    """Task path[y] right before path[x] of its block."""
    u, v, m = path[x], path[y], y - x + 1
    if not backward_ok(shop, sol, r, u, v):
        return
    seq, is_tabu = work.seq, False
    seq[0] = v
    for t in range(m - 1):
        seq[t + 1] = path[x + t]
        is_tabu |= tabu[v, seq[t + 1]] > state[NOW]
    value = estimate_sequence(shop, sol, r, q, seq, m, sol.before[u], sol.after[v], work.heads)
    offer(choice, state, value, is_tabu, BEFORE, v, u, NONE)


@inner()
def offer_block_moves(shop, sol, r, q, path, size, work, tabu, state, choice):  # type: ignore[no-untyped-def]
    """Every N6 move of every block."""
    a = 0
    while a < size:
        b = a
        while b + 1 < size and sol.after[path[b]] == path[b + 1]:
            b += 1
        for k in range(a, b + 1):
            if k < b:
                offer_behind(shop, sol, r, q, path, k, b, work, tabu, state, choice)
            if a < k < b:
                offer_behind(shop, sol, r, q, path, a, k, work, tabu, state, choice)
            if k > a + 1:
                offer_before(shop, sol, r, q, path, a, k, work, tabu, state, choice)
            if a < k < b - 1:
                offer_before(shop, sol, r, q, path, k, b, work, tabu, state, choice)
        a = b + 1


@inner()
def gap_ok(shop, sol, r, v, prev, following):  # type: ignore[no-untyped-def]
    """Whether v fits between two tasks of another machine: 0 yes, 1 not yet, 2 nor further
    behind.
    """
    if prev >= 0:
        for e in range(shop.succ_ptr[v], shop.succ_ptr[v + 1]):
            s = shop.succ[e]
            if s == prev or r[prev] >= r[s] + sol.length[s]:
                return 2
    if following >= 0:
        for e in range(shop.pred_ptr[v], shop.pred_ptr[v + 1]):
            p = shop.pred[e]
            if p == following or r[p] >= r[following] + sol.length[following]:
                return 1
    return 0


@inner()
def offer_rows(shop, rows, sol, first, r, q, v, tabu_machine, state, choice):  # type: ignore[no-untyped-def]
    """Task v in its other rows, in every gap of their machines."""
    head, tail = head_by_job(shop, sol, r, v), tail_by_job(shop, q, v)
    for row in range(rows.ptr[v], rows.ptr[v + 1]):
        machine = rows.machine[row]
        if machine == sol.machine[v]:
            continue
        is_tabu = tabu_machine[v, machine] > state[NOW]
        prev, following = NONE, first[machine]
        # Behind the last of the tasks that end by the head of v, the estimate is no larger and the
        # gap is no less feasible.
        while (
            following >= 0
            and r[following] + sol.length[following] <= head
            and sol.length[following] > 0
        ):
            prev, following = following, sol.after[following]
        while True:
            verdict = gap_ok(shop, sol, r, v, prev, following)
            if verdict == 2:
                break
            if verdict == 0:
                begin = head if prev < 0 else max(head, r[prev] + sol.length[prev])
                rest = tail if following < 0 else max(tail, q[following])
                offer(
                    choice, state, begin + rows.length[row] + rest, is_tabu, ELSEWHERE, v, prev, row
                )
                if following >= 0 and q[following] <= tail:
                    break  # from here on the estimate only grows
            if following < 0:
                break
            prev, following = following, sol.after[following]


@inner()
def apply(rows, sol, first, choice, tabu, tabu_machine, until):  # type: ignore[no-untyped-def]
    """Make the chosen move and make its reversal tabu for a while."""
    task, anchor = choice[TASK], choice[ANCHOR]
    if choice[KIND] == BEHIND:
        i = task
        while i != anchor:
            i = sol.after[i]
            tabu[task, i] = until
        unlink(sol, first, task)
        link(sol, first, task, sol.machine[anchor], anchor)
    elif choice[KIND] == BEFORE:
        i = task
        while i != anchor:
            i = sol.before[i]
            tabu[i, task] = until
        unlink(sol, first, task)
        link(sol, first, task, sol.machine[anchor], sol.before[anchor])
    else:
        row = choice[ROW]
        tabu_machine[task, sol.machine[task]] = until
        unlink(sol, first, task)
        link(sol, first, task, rows.machine[row], anchor)
        sol.length[task], sol.row[task] = rows.length[row], row


@inner()
def kick(state, sol, first, best, best_first, tabu, tabu_machine):  # type: ignore[no-untyped-def]
    """Return to the best solution and take random steps, more after each return in vain."""
    copy(best, best_first, sol, first)
    tabu[:, :] = 0
    tabu_machine[:, :] = 0
    state[KICK] = 0 if state[SINCE] >= state[LOCAL_SINCE] else min(state[KICK] + 1, 25)
    state[WILD] = 2 + pick(state, 4 + state[KICK])
    state[LOCAL], state[LOCAL_SINCE] = BIG, state[NOW]


@njit(cache=True, nogil=True)
def search(  # type: ignore[no-untyped-def]
    shop,
    rows,
    sol,
    first,
    best,
    best_first,
    best_start,
    old,
    old_first,
    work,
    tabu,
    tabu_machine,
    state,
    iterations,
    patience,
):
    """Run ``iterations`` iterations; improve ``best`` and its starts in place."""
    r, q, order, degree, path = work.head, work.tail, work.order, work.degree, work.path
    choice = np.zeros(8, np.int64)
    makespan = evaluate(shop, sol, r, q, order, degree)
    for _ in range(iterations):
        if makespan < state[BEST]:
            state[BEST], state[SINCE] = makespan, state[NOW]
            copy(sol, first, best, best_first)
            best_start[:] = r
        if makespan < state[LOCAL]:
            state[LOCAL], state[LOCAL_SINCE] = makespan, state[NOW]
        if state[BEST] <= state[TARGET]:
            return
        state[NOW] += 1
        if state[NOW] - state[LOCAL_SINCE] > patience:
            kick(state, sol, first, best, best_first, tabu, tabu_machine)
            makespan = evaluate(shop, sol, r, q, order, degree)
        size = critical_path(shop, sol, r, q, makespan, path, state)
        choice[:] = 0
        choice[VALUE] = BIG
        offer_block_moves(shop, sol, r, q, path, size, work, tabu, state, choice)
        for k in range(size):
            if rows.ptr[path[k] + 1] - rows.ptr[path[k]] > 1:
                offer_rows(shop, rows, sol, first, r, q, path[k], tabu_machine, state, choice)
        state[WILD] = max(0, state[WILD] - 1)
        if choice[FOUND] == 0 and choice[REFUSED] == 0:
            # No move changes this path: restart from the best
            state[LOCAL_SINCE] = state[NOW] - patience - 1
            continue
        copy(sol, first, old, old_first)
        tenure = state[TENURE] + pick(state, 1 + state[TENURE] // 2)
        apply(rows, sol, first, choice, tabu, tabu_machine, state[NOW] + tenure)
        makespan = evaluate(shop, sol, r, q, order, degree)
        if makespan < 0:  # tasks of no length can close a cycle that the tests above overlook
            copy(old, old_first, sol, first)
            makespan = evaluate(shop, sol, r, q, order, degree)
