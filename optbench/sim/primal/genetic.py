"""A genetic search over task lists for projects: tasks that take several devices of several pools
at a time.

An individual is a list of tasks compatible with the precedence, and a row (duration and demands)
per task. It is decoded by the serial scheme (each task as early as precedence and pools allow),
then shifted right and left again (double justification, Valls, Ballestín and Quintanilla 2005),
which shortens most schedules. Children come from a two-point crossover of lists.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optbench.compiling.compiled import inner, njit
from optbench.model.instance import Ints
from optbench.sim.primal.chance import pick

BIG = 1 << 60
# Entries of the state.
BEST, TARGET, TRIED, SINCE = range(1, 5)
# Children without improvement, per member of the population, after which it is created anew.
PATIENCE = 60


class Demands(NamedTuple):
    """Duration and devices per pool of each row, and the devices that each pool has."""

    duration: Ints
    demand: Ints
    room: Ints


@inner()
def earliest(used, room, demand, begin, length):  # type: ignore[no-untyped-def]
    """Return the earliest time from ``begin`` on at which the pools have room for the whole
    length.
    """
    t = begin
    k = begin
    while k < t + length:
        for pool in range(len(room)):
            if demand[pool] > 0 and used[k, pool] + demand[pool] > room[pool]:
                t = k + 1
                break
        k += 1
    return t


@inner()
def decode(ptr, before, release, rows, order, row, start, used):  # type: ignore[no-untyped-def]
    """Apply the serial scheme along ``order``, each task after those in ``before``; return the
    makespan.
    """
    duration, demand, room = rows.duration, rows.demand, rows.room
    used[:, :] = 0
    makespan = 0
    for i in order:
        begin = release[i]
        for e in range(ptr[i], ptr[i + 1]):
            p = before[e]
            begin = max(begin, start[p] + duration[row[p]])
        length = duration[row[i]]
        needs = demand[row[i]]
        start[i] = begin = earliest(used, room, needs, begin, length)
        for t in range(begin, begin + length):
            for pool in range(len(room)):
                used[t, pool] += needs[pool]
        makespan = max(makespan, begin + length)
    return makespan


@inner()
def justify(graph, rows, order, row, start, used, rank, makespan):  # type: ignore[no-untyped-def]
    """Shift right, then left: lists by latest end, then by earliest start. Ties keep the order they
    had.
    """
    n = len(order)
    duration = rows.duration
    key = np.empty(n, np.int64)
    for k in range(n):
        rank[order[k]] = k
    for i in range(n):
        key[i] = -(start[i] + duration[row[i]]) * (n + 1) - rank[i]
    order[:] = np.argsort(key)
    zero = np.zeros(n, np.int64)
    length = decode(graph.succ_ptr, graph.succ, zero, rows, order, row, start, used)
    for k in range(n):
        rank[order[k]] = k
    for i in range(n):
        key[i] = (length - start[i] - duration[row[i]]) * (n + 1) + n - rank[i]
    order[:] = np.argsort(key)
    return decode(graph.pred_ptr, graph.pred, graph.release, rows, order, row, start, used)


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
def cross(mother, father, row_m, row_f, row_ptr, order, row, state):  # type: ignore[no-untyped-def]
    """Take the ends from one parent, the middle in the other's order; change a row here and
    there.
    """
    n = len(order)
    taken = np.zeros(n, np.bool_)
    a, b = pick(state, n + 1), pick(state, n + 1)
    a, b = min(a, b), max(a, b)
    for k in range(a):
        order[k] = mother[k]
        taken[mother[k]] = True
        row[mother[k]] = row_m[mother[k]]
    k = a
    for i in father:
        if k < b and not taken[i]:
            order[k] = i
            taken[i] = True
            row[i] = row_f[i]
            k += 1
    for i in mother:
        if not taken[i]:
            order[k] = i
            row[i] = row_m[i]
            k += 1
    for i in range(n):
        if row_ptr[i + 1] - row_ptr[i] > 1 and pick(state, 50) == 0:
            row[i] = row_ptr[i] + pick(state, row_ptr[i + 1] - row_ptr[i])


@inner()
def mutate(graph, order, state):  # type: ignore[no-untyped-def]
    """Swap neighbours in the list that no edge joins, with probability one in twenty."""
    for k in range(len(order) - 1):
        if pick(state, 20) == 0:
            i, j = order[k], order[k + 1]
            joined = False
            for e in range(graph.succ_ptr[i], graph.succ_ptr[i + 1]):
                joined |= graph.succ[e] == j
            if not joined:
                order[k], order[k + 1] = j, i


@inner()
def fingerprint(start):  # type: ignore[no-untyped-def]
    """Return a number that is hardly ever equal for schedules with different starts."""
    out = 7
    for t in start:
        out = (out * 1_000_003 + t) % 2_147_483_647
    return out


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
    best_row,
    best_start,
    state,
    horizon,
    count,
):
    """Make ``count`` children, of which the first fill the population; keep the best schedule."""
    size, n = lists.shape
    order, row = np.empty(n, np.int64), np.empty(n, np.int64)
    start, rank = np.empty(n, np.int64), np.empty(n, np.int64)
    used = np.zeros((horizon, len(rows.room)), np.int64)
    for _ in range(count):
        if state[BEST] <= state[TARGET]:
            return
        state[TRIED] += 1
        if fitness[size - 1] == BIG or pick(state, 200) == 0:
            random_list(graph, row_ptr, order, row, tails, state)
        else:
            a = min(pick(state, size), pick(state, size))
            b = min(pick(state, size), pick(state, size))
            cross(lists[a], lists[b], chosen[a], chosen[b], row_ptr, order, row, state)
            mutate(graph, order, state)
        makespan = decode(graph.pred_ptr, graph.pred, graph.release, rows, order, row, start, used)
        makespan = justify(graph, rows, order, row, start, used, rank, makespan)
        if makespan < state[BEST]:
            state[BEST] = makespan
            best_row[:], best_start[:] = row, start
        if state[TRIED] - state[SINCE] > PATIENCE * size:
            fitness[:] = BIG
            state[SINCE] = state[TRIED]
        place = size
        while place > 0 and fitness[place - 1] > makespan:
            place -= 1
        print_of = fingerprint(start)
        twin = place == size
        k = place - 1
        while k >= 0 and fitness[k] == makespan and not twin:
            twin = prints[k] == print_of
            k -= 1
        if twin:
            continue
        if place == 0:
            state[SINCE] = state[TRIED]
        for k in range(size - 1, place, -1):
            fitness[k], prints[k] = fitness[k - 1], prints[k - 1]
            lists[k], chosen[k] = lists[k - 1], chosen[k - 1]
        fitness[place], prints[place] = makespan, print_of
        lists[place], chosen[place] = order, row
