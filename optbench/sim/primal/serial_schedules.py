"""Schedules of projects from lists of tasks: the serial scheme, and forward-backward improvement.

Time is ticks. The free devices of all pools at a tick are packed into words of 62 bits: a pool with
``room`` devices has a field that is one bit wider than ``room`` needs, and the extra bit, its
guard, is always set. Subtracting a row's need from a word borrows the guard of a pool if and only
if the pool has fewer devices free than are needed (a need is at most ``room``, so that no borrow
passes the guard), and one comparison of the guards checks all pools of a word.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optbench.compiling.compiled import inner
from optbench.model.instance import Ints

WORD_BITS = 62


class Demands(NamedTuple):
    """Duration of each row and its need in each word; the guards and the free devices of an empty
    tick, by word.
    """

    duration: Ints
    need: Ints
    guard: Ints
    empty: Ints


class Decoding(NamedTuple):
    """Memory for one schedule at a time: free devices by word and tick, ends of the tasks, a second
    list, sorting keys, numbers of tasks below each key, and release times that are all zero.
    """

    free: Ints
    end: Ints
    other: Ints
    key: Ints
    below: Ints
    zero: Ints


def packed_demands(duration: Ints, demand: Ints, room: Ints) -> Demands:
    """Pack ``demand[row, pool]`` into words."""
    demand = demand.astype(np.int64)
    needs, guards, empties, used = list[Ints](), list[int](), list[int](), WORD_BITS
    for pool in np.flatnonzero(demand.max(axis=0, initial=0)).tolist():
        bits = int(room[pool]).bit_length()
        if used + bits + 1 > WORD_BITS:
            needs.append(np.zeros(len(duration), np.int64))
            guards.append(0)
            empties.append(0)
            used = 0
        needs[-1] += demand[:, pool] << used
        guards[-1] |= 1 << (used + bits)
        empties[-1] += (1 << (used + bits)) + (int(room[pool]) << used)
        used += bits + 1
    by_word = np.array(needs, np.int64).reshape(len(needs), len(duration))
    return Demands(
        duration.astype(np.int64),
        np.ascontiguousarray(by_word.T),
        np.array(guards, np.int64),
        np.array(empties, np.int64),
    )


@inner()
def decoding_memory(rows, n, horizon):  # type: ignore[no-untyped-def]
    """Return empty memory for schedules of ``n`` tasks that end by ``horizon``."""
    words = len(rows.guard)
    free = np.empty((words, horizon + 1), np.int64)
    for w in range(words):
        free[w, :] = rows.empty[w]
    return Decoding(
        free,
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(horizon + 3, np.int64),
        np.zeros(n, np.int64),
    )


@inner()
def earliest_in_word(free, need, guard, begin, length):  # type: ignore[no-untyped-def]
    """Return the earliest time from ``begin`` on at which one word has room for the whole length.

    A window is read from its end: after the last tick without room there is nothing to read again,
    and windows that contain that tick are skipped.
    """
    t = begin
    known = begin
    while True:
        k = t + length - 1
        while k >= known and (free[k] - need) & guard == guard:
            k -= 1
        if k < known:
            return t
        known = t + length
        t = k + 1


@inner()
def decode(  # type: ignore[no-untyped-def]
    ptr, before, release, rows, order, row, start, memory, dirty
):
    """Apply the serial scheme along ``order``, each task after those in ``before``; return the
    makespan. Ticks of the memory below ``dirty`` hold an earlier schedule.
    """
    free, end = memory.free, memory.end
    words = len(rows.guard)
    for w in range(words):
        free[w, :dirty] = rows.empty[w]
    makespan = 0
    for i in order:
        t = release[i]
        for e in range(ptr[i], ptr[i + 1]):
            t = max(t, end[before[e]])
        r = row[i]
        length = rows.duration[r]
        if length > 0:
            agreed = w = 0
            while agreed < words:
                need = rows.need[r, w]
                if need > 0:
                    begin = earliest_in_word(free[w], need, rows.guard[w], t, length)
                    if begin > t:
                        agreed, t = 0, begin
                agreed += 1
                w = w + 1 if w + 1 < words else 0
            for w in range(words):
                need = rows.need[r, w]
                if need > 0:
                    for k in range(t, t + length):
                        free[w, k] -= need
        start[i] = t
        end[i] = t + length
        makespan = max(makespan, t + length)
    return makespan


@inner()
def sort_by_key(key, largest, order, out, below):  # type: ignore[no-untyped-def]
    """Write the tasks into ``out`` by increasing key (0 to ``largest``); ties turn their order."""
    below[: largest + 2] = 0
    for i in order:
        below[key[i] + 1] += 1
    for k in range(1, largest + 2):
        below[k] += below[k - 1]
    for k in range(len(order) - 1, -1, -1):
        i = order[k]
        out[below[key[i]]] = i
        below[key[i]] += 1


@inner()
def justify(graph, rows, order, row, start, memory, makespan):  # type: ignore[no-untyped-def]
    """Shift right, then left; return the makespan, which is at most ``makespan``. The list becomes
    compatible with the new starts.

    Right: the tasks by latest end, each as late as its successors and the pools allow, which is the
    serial scheme in reversed time. No task i moves to an earlier time: let j be placed before i and
    use tick t of the old place of i. Since j ended no earlier than i and, by induction, did not
    move to an earlier time, it used t before as well. So the old place of i still has room. Hence
    nothing starts before the old time 0, and releases are kept.
    Left: the same forwards, so that nothing ends after the old makespan.
    """
    key, below, other, end = memory.key, memory.below, memory.other, memory.end
    for i in range(len(order)):
        key[i] = makespan - end[i]
    sort_by_key(key, makespan, order, other, below)
    length = decode(
        graph.succ_ptr, graph.succ, memory.zero, rows, other, row, start, memory, makespan
    )
    for i in range(len(order)):
        key[i] = length - end[i]
    sort_by_key(key, length, other, order, below)
    return decode(
        graph.pred_ptr, graph.pred, graph.release, rows, order, row, start, memory, length
    )
