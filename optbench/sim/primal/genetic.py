"""A genetic search over task lists for projects: tasks that take several devices of several pools
at a time.

An individual is a list of tasks compatible with the precedence, and a row (duration and demands)
per task. It is decoded by the serial scheme (each task as early as precedence and pools allow),
then shifted right and left again (double justification, Valls, Ballestín and Quintanilla 2005),
which shortens most schedules, and again while it does. A child is a list of one parent with a
section of limited length in the other's order.
"""

from __future__ import annotations

import numpy as np

from optbench.compiling.compiled import inner, njit
from optbench.sim.primal.chance import pick
from optbench.sim.primal.serial_schedules import decode, decoding_memory, justify

BIG = 1 << 60
# Entries of the state.
BEST, TARGET, TRIED, SINCE, DECODED = range(1, 6)
# Children without improvement, per member of the population, after which it is created anew.
PATIENCE = 60
# A child is shifted right and left again while that shortens it, at most so often.
ROUNDS = 3
# One child in so many is a new random list.
NEWCOMERS = 200
# Least and largest length of the section that is taken in the other parent's order, in percent.
LEAST_SECTION, LARGEST_SECTION = 20, 50
# The mean number of tasks between two changes of a list by chance, and of a row where a task has
# several.
LIST_GAP, ROW_GAP = 20, 50


@inner()
def random_list(graph, row_ptr, order, row, tails, state):  # type: ignore[no-untyped-def]
    """Return a list by long tails with noise, rows at random."""
    n = len(order)
    waiting = np.empty(n, np.int64)
    ready = np.empty(n, np.int64)
    size = 0
    for i in range(n):
        row[i] = row_ptr[i] + pick(state, row_ptr[i + 1] - row_ptr[i])
        waiting[i] = graph.pred_ptr[i + 1] - graph.pred_ptr[i]
        if waiting[i] == 0:
            ready[size] = i
            size += 1
    for k in range(n):
        chosen = pick(state, size)
        for _ in range(2):
            other = pick(state, size)
            if tails[ready[other]] > tails[ready[chosen]]:
                chosen = other
        i = ready[chosen]
        size -= 1
        ready[chosen] = ready[size]
        order[k] = i
        for e in range(graph.succ_ptr[i], graph.succ_ptr[i + 1]):
            j = graph.succ[e]
            waiting[j] -= 1
            if waiting[j] == 0:
                ready[size] = j
                size += 1


@inner()
def cross(mother, father, row_m, row_f, order, row, taken, state):  # type: ignore[no-untyped-def]
    """Take a section of the list in the father's order, with his rows, the rest from the mother."""
    n = len(order)
    percent = LEAST_SECTION + pick(state, LARGEST_SECTION - LEAST_SECTION + 1)
    length = max(1, n * percent // 100)
    begin = pick(state, n - length + 1)
    taken[:] = False
    for k in range(begin):
        i = mother[k]
        order[k], taken[i], row[i] = i, True, row_m[i]
    k = begin
    for i in father:
        if k == begin + length:
            break
        if not taken[i]:
            order[k], taken[i], row[i] = i, True, row_f[i]
            k += 1
    for i in mother:
        if not taken[i]:
            order[k], row[i] = i, row_m[i]
            k += 1


@inner()
def gap(state, mean):  # type: ignore[no-untyped-def]
    """Return a number from 1 to 2 * mean - 1."""
    return 1 + pick(state, 2 * mean - 1)


@inner()
def mutate(graph, row_ptr, order, row, state):  # type: ignore[no-untyped-def]
    """Swap neighbours in the list that no edge joins, and change rows, here and there."""
    n = len(order)
    k = gap(state, LIST_GAP) - 1
    while k < n - 1:
        i, j = order[k], order[k + 1]
        joined = False
        for e in range(graph.succ_ptr[i], graph.succ_ptr[i + 1]):
            joined |= graph.succ[e] == j
        if not joined:
            order[k], order[k + 1] = j, i
        k += gap(state, LIST_GAP)
    if row_ptr[n] > n:
        i = gap(state, ROW_GAP) - 1
        while i < n:
            row[i] = row_ptr[i] + pick(state, row_ptr[i + 1] - row_ptr[i])
            i += gap(state, ROW_GAP)


@inner()
def fingerprint(start):  # type: ignore[no-untyped-def]
    """Return a number that is hardly ever equal for schedules with different starts."""
    out = 7
    for t in start:
        out = (out * 1_000_003 + t) & 0xFFFFFFFFFF
    return out


@inner()
def insert(  # type: ignore[no-untyped-def]
    place, lists, chosen, fitness, prints, ranked, order, row, makespan, fingerprint_of
):
    """Overwrite the worst member, which gets this rank."""
    slot = ranked[-1]
    for k in range(len(ranked) - 1, place, -1):
        ranked[k] = ranked[k - 1]
    ranked[place] = slot
    fitness[slot], prints[slot] = makespan, fingerprint_of
    lists[slot], chosen[slot] = order, row


@inner()
def rank_of(makespan, fingerprint_of, fitness, prints, ranked):  # type: ignore[no-untyped-def]
    """Return the rank of a new member, after equal ones; that of nobody where it is no better than
    the worst, or a twin.
    """
    place = len(ranked)
    while place > 0 and fitness[ranked[place - 1]] > makespan:
        place -= 1
    k = place - 1
    while k >= 0 and fitness[ranked[k]] == makespan:
        if prints[ranked[k]] == fingerprint_of:
            return len(ranked)
        k -= 1
    return place


@njit(cache=True, nogil=True)
def evolve(  # type: ignore[no-untyped-def]
    graph,
    rows,
    row_ptr,
    tails,
    lists,
    chosen,
    fitness,
    prints,
    ranked,
    best_row,
    best_start,
    state,
    horizon,
    count,
):
    """Make ``count`` children, of which the first fill the population; keep the best schedule.
    ``ranked`` holds the members by fitness.
    """
    size, n = lists.shape
    order, row = np.empty(n, np.int64), np.empty(n, np.int64)
    start, taken = np.empty(n, np.int64), np.zeros(n, np.bool_)
    memory = decoding_memory(rows, n, horizon)
    makespan = 0
    for _ in range(count):
        if state[BEST] <= state[TARGET]:
            return
        state[TRIED] += 1
        if fitness[ranked[size - 1]] == BIG or pick(state, NEWCOMERS) == 0:
            random_list(graph, row_ptr, order, row, tails, state)
        else:
            a, b = pick(state, size), pick(state, size)
            cross(lists[a], lists[b], chosen[a], chosen[b], order, row, taken, state)
            mutate(graph, row_ptr, order, row, state)
        makespan = decode(
            graph.pred_ptr, graph.pred, graph.release, rows, order, row, start, memory, makespan
        )
        state[DECODED] += 1
        for _ in range(ROUNDS):
            before = makespan
            makespan = justify(graph, rows, order, row, start, memory, before)
            state[DECODED] += 2
            if makespan == before:
                break
        if makespan < state[BEST]:
            state[BEST] = makespan
            best_row[:], best_start[:] = row, start
        if state[TRIED] - state[SINCE] > PATIENCE * size:
            fitness[:] = BIG
            state[SINCE] = state[TRIED]
        fingerprint_of = fingerprint(start)
        place = rank_of(makespan, fingerprint_of, fitness, prints, ranked)
        if place == size:
            continue
        if place == 0:
            state[SINCE] = state[TRIED]
        insert(place, lists, chosen, fitness, prints, ranked, order, row, makespan, fingerprint_of)
