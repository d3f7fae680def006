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

NONE = -1
BIG = 1 << 60
# Entries of the state.
NOW, BEST, SINCE, TARGET, WILD, KICK, LOCAL, LOCAL_SINCE, TENURE = range(1, 10)
# Entries of a choice among moves, then the move: its kind, task, anchor and row.
VALUE, TIES, FOUND, REFUSED, KIND, TASK, ANCHOR, ROW = range(8)
BEHIND, BEFORE, ELSEWHERE = range(3)


@inner()
def tail_by_job(shop, q, i):  # type: ignore[no-untyped-def]
    """Longest tail among a task's successors."""
    best = 0
    for e in range(shop[2][i], shop[2][i + 1]):
        if q[shop[3][e]] > best:
            best = q[shop[3][e]]
    return best


@inner()
def evaluate(shop, sol, r, q, order, degree):  # type: ignore[no-untyped-def]
    """Compute heads, tails and makespan; -1 when the sequences contain a cycle."""
    n = len(r)
    size = 0
    for i in range(n):
        degree[i] = shop[0][i + 1] - shop[0][i] + (1 if sol[0][i] >= 0 else 0)
        r[i] = shop[4][i]
        if degree[i] == 0:
            order[size] = i
            size += 1
    k = makespan = 0
    while k < size:
        i = order[k]
        k += 1
        end = r[i] + sol[3][i]
        makespan = max(makespan, end)
        for e in range(shop[2][i], shop[2][i + 1] + 1):
            j = shop[3][e] if e < shop[2][i + 1] else sol[1][i]
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
        if sol[1][i] >= 0:
            tail = max(tail, q[sol[1][i]])
        q[i] = tail + sol[3][i]
    return makespan


@inner()
def is_pushed(shop, sol, r, i):  # type: ignore[no-untyped-def]
    """Whether another task ends exactly when this one starts."""
    a = sol[0][i]
    if a >= 0 and r[a] + sol[3][a] == r[i] and sol[3][a] > 0:
        return True
    for e in range(shop[0][i], shop[0][i + 1]):
        p = shop[1][e]
        if r[p] + sol[3][p] == r[i] and sol[3][p] > 0:
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
        end = r[node] + sol[3][node]
        following, choices = NONE, 0
        for e in range(shop[2][node], shop[2][node + 1] + 1):
            j = shop[3][e] if e < shop[2][node + 1] else sol[1][node]
            if j >= 0 and j != following and r[j] == end and r[j] + q[j] == makespan:
                choices += 1
                if pick(state, choices) == 0:
                    following = j
        node = following
    return size


@inner()
def head_by_job(shop, sol, r, i):  # type: ignore[no-untyped-def]
    """Earliest start of a task by its release and its predecessors alone."""
    best = shop[4][i]
    for e in range(shop[0][i], shop[0][i + 1]):
        p = shop[1][e]
        if r[p] + sol[3][p] > best:
            best = r[p] + sol[3][p]
    return best


@inner()
def estimate_sequence(shop, sol, r, q, seq, size, first_before, last_after, heads):  # type: ignore[no-untyped-def]
    """Longest path through consecutive tasks of one machine in a new order, between fixed
    neighbours.
    """
    length = sol[3]
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
def forward_ok(shop, sol, q, u, v):  # type: ignore[no-untyped-def]
    """Whether u may go right behind v: no successor of u leads to v."""
    for e in range(shop[2][u], shop[2][u + 1]):
        s = shop[3][e]
        if q[s] > q[v] or (q[s] == q[v] and sol[3][s] == 0) or s == v:
            return False
    return True


@inner()
def backward_ok(shop, sol, r, u, v):  # type: ignore[no-untyped-def]
    """Whether v may go right before u: no predecessor of v is reached from u."""
    for e in range(shop[0][v], shop[0][v + 1]):
        p = shop[1][e]
        if (
            r[p] + sol[3][p] > r[u] + sol[3][u]
            or (r[p] + sol[3][p] == r[u] + sol[3][u] and sol[3][p] == 0)
            or p == u
        ):
            return False
    return True


@inner()
def unlink(sol, first, i):  # type: ignore[no-untyped-def]
    a, b = sol[0][i], sol[1][i]
    if a >= 0:
        sol[1][a] = b
    else:
        first[sol[2][i]] = b
    if b >= 0:
        sol[0][b] = a


@inner()
def link(sol, first, i, machine, a):  # type: ignore[no-untyped-def]
    """Put task i on a machine right behind a (NONE: at the front)."""
    b = first[machine] if a < 0 else sol[1][a]
    sol[0][i], sol[1][i], sol[2][i] = a, b, machine
    if a >= 0:
        sol[1][a] = i
    else:
        first[machine] = i
    if b >= 0:
        sol[0][b] = i


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
    seq, is_tabu = work[0], False
    for t in range(m - 1):
        seq[t] = path[x + 1 + t]
        is_tabu |= tabu[seq[t], u] > state[NOW]
    seq[m - 1] = u
    value = estimate_sequence(shop, sol, r, q, seq, m, sol[0][u], sol[1][v], work[1])
    offer(choice, state, value, is_tabu, BEHIND, u, v, NONE)


@inner()
def offer_before(shop, sol, r, q, path, x, y, work, tabu, state, choice):  # type: ignore[no-untyped-def]
    """Task path[y] right before path[x] of its block."""
    u, v, m = path[x], path[y], y - x + 1
    if not backward_ok(shop, sol, r, u, v):
        return
    seq, is_tabu = work[0], False
    seq[0] = v
    for t in range(m - 1):
        seq[t + 1] = path[x + t]
        is_tabu |= tabu[v, seq[t + 1]] > state[NOW]
    value = estimate_sequence(shop, sol, r, q, seq, m, sol[0][u], sol[1][v], work[1])
    offer(choice, state, value, is_tabu, BEFORE, v, u, NONE)


@inner()
def offer_block_moves(shop, sol, r, q, path, size, work, tabu, state, choice):  # type: ignore[no-untyped-def]
    """Every N6 move of every block."""
    a = 0
    while a < size:
        b = a
        while b + 1 < size and sol[1][path[b]] == path[b + 1]:
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
        for e in range(shop[2][v], shop[2][v + 1]):
            s = shop[3][e]
            if s == prev or r[prev] >= r[s] + sol[3][s]:
                return 2
    if following >= 0:
        for e in range(shop[0][v], shop[0][v + 1]):
            p = shop[1][e]
            if p == following or r[p] >= r[following] + sol[3][following]:
                return 1
    return 0


@inner()
def offer_rows(shop, rows, sol, first, r, q, v, tabu_machine, state, choice):  # type: ignore[no-untyped-def]
    """Task v in its other rows, in every gap of their machines."""
    head, tail = head_by_job(shop, sol, r, v), tail_by_job(shop, q, v)
    for row in range(rows[0][v], rows[0][v + 1]):
        machine = rows[1][row]
        if machine == sol[2][v]:
            continue
        is_tabu = tabu_machine[v, machine] > state[NOW]
        prev, following = NONE, first[machine]
        # Behind the last of the tasks that end by the head of v, the estimate is no larger and the
        # gap is no less feasible.
        while following >= 0 and r[following] + sol[3][following] <= head and sol[3][following] > 0:
            prev, following = following, sol[1][following]
        while True:
            verdict = gap_ok(shop, sol, r, v, prev, following)
            if verdict == 2:
                break
            if verdict == 0:
                begin = head if prev < 0 else max(head, r[prev] + sol[3][prev])
                rest = tail if following < 0 else max(tail, q[following])
                offer(choice, state, begin + rows[2][row] + rest, is_tabu, ELSEWHERE, v, prev, row)
                if following >= 0 and q[following] <= tail:
                    break  # from here on the estimate only grows
            if following < 0:
                break
            prev, following = following, sol[1][following]


@inner()
def apply(rows, sol, first, choice, tabu, tabu_machine, until):  # type: ignore[no-untyped-def]
    """Make the chosen move and make its reversal tabu for a while."""
    task, anchor = choice[TASK], choice[ANCHOR]
    if choice[KIND] == BEHIND:
        i = task
        while i != anchor:
            i = sol[1][i]
            tabu[task, i] = until
        unlink(sol, first, task)
        link(sol, first, task, sol[2][anchor], anchor)
    elif choice[KIND] == BEFORE:
        i = task
        while i != anchor:
            i = sol[0][i]
            tabu[i, task] = until
        unlink(sol, first, task)
        link(sol, first, task, sol[2][anchor], sol[0][anchor])
    else:
        row = choice[ROW]
        tabu_machine[task, sol[2][task]] = until
        unlink(sol, first, task)
        link(sol, first, task, rows[1][row], anchor)
        sol[3][task], sol[4][task] = rows[2][row], row


@inner()
def copy(source, source_first, target, target_first):  # type: ignore[no-untyped-def]
    for t in range(5):
        target[t][:] = source[t]
    target_first[:] = source_first


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
    old,
    old_first,
    work,
    tabu,
    tabu_machine,
    state,
    iterations,
    patience,
):
    """Run ``iterations`` iterations; improve ``best`` in place, its starts in a sixth column."""
    r, q, order, degree, path = work[2], work[3], work[4], work[5], work[6]
    choice = np.zeros(8, np.int64)
    makespan = evaluate(shop, sol, r, q, order, degree)
    for _ in range(iterations):
        if makespan < state[BEST]:
            state[BEST], state[SINCE] = makespan, state[NOW]
            copy(sol, first, best, best_first)
            best[5][:] = r
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
            if rows[0][path[k] + 1] - rows[0][path[k]] > 1:
                offer_rows(shop, rows, sol, first, r, q, path[k], tabu_machine, state, choice)
        state[WILD] = max(0, state[WILD] - 1)
        if choice[FOUND] == 0 and choice[REFUSED] == 0:
            state[LOCAL_SINCE] = (
                state[NOW] - patience - 1
            )  # no move changes this path: restart from the best
            continue
        copy(sol, first, old, old_first)
        tenure = state[TENURE] + pick(state, 1 + state[TENURE] // 2)
        apply(rows, sol, first, choice, tabu, tabu_machine, state[NOW] + tenure)
        makespan = evaluate(shop, sol, r, q, order, degree)
        if makespan < 0:  # tasks of no length can close a cycle that the tests above overlook
            copy(old, old_first, sol, first)
            makespan = evaluate(shop, sol, r, q, order, degree)
