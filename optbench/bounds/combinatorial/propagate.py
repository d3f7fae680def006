"""Compiled propagation of windows: precedence, resources and the modes that still fit, to a fixed
point.

A state is (a, b, alive): earliest start and latest end of each task, and which of its (task, mode)
pairs are still possible. A resource is one or several pools with a capacity; entries list, task by
task, the pairs that use it and how much. A task belongs to it only while all of its living pairs
use it; ``resource_deductions`` moves the windows of its members. All numbers are integers.
"""

from __future__ import annotations

import numpy as np

from optbench.bounds.combinatorial.resource_deductions import FAR, MAX_CUBIC, on_resource
from optbench.compiling.compiled import inner, njit


@inner()
def shortest_lengths(a, b, alive, pair_ptr, length, p):  # type: ignore[no-untyped-def]
    """Drop pairs that no longer fit their window, set p to the least remaining length: −1, 0 or 1
    (some pair dropped).
    """
    dropped = 0
    for i in range(len(a)):
        least = FAR
        for k in range(pair_ptr[i], pair_ptr[i + 1]):
            if alive[k] and a[i] + length[k] > b[i]:
                alive[k] = False
                dropped = 1
            if alive[k]:
                least = min(least, length[k])
        if least == FAR:
            return -1
        p[i] = least
    return dropped


@inner()
def precedence(a, b, p, source, target, lag):  # type: ignore[no-untyped-def]
    """Sweep the edges in both topological directions: −1, 0 or 1."""
    moved = 0
    for e in range(len(source)):
        earliest = a[source[e]] + p[source[e]] + lag[e]
        if earliest > a[target[e]]:
            a[target[e]] = earliest
            moved = 1
    for e in range(len(source) - 1, -1, -1):
        latest = b[target[e]] - p[target[e]] - lag[e]
        if latest < b[source[e]]:
            b[source[e]] = latest
            moved = 1
    for i in range(len(a)):
        if a[i] + p[i] > b[i]:
            return -1
    return moved


@inner()
def members(  # type: ignore[no-untyped-def]
    r,
    alive,
    pair_ptr,
    length,
    entry_ptr,
    entry_task,
    entry_pair,
    entry_use,
    task,
    low_p,
    low_u,
    low_e,
):
    """Find tasks all of whose remaining pairs use resource r, with least length, devices and
    device-time; return their number.
    """
    n, at, stop = 0, entry_ptr[r], entry_ptr[r + 1]
    far = FAR
    while at < stop:
        i = entry_task[at]
        here, p, u, e = 0, far, far, far
        while at < stop and entry_task[at] == i:
            k = entry_pair[at]
            if alive[k]:
                here += 1
                p, u = min(p, length[k]), min(u, entry_use[at])
                e = min(e, entry_use[at] * length[k])
            at += 1
        living = 0
        for k in range(pair_ptr[i], pair_ptr[i + 1]):
            living += alive[k]
        if here == living and p > 0:
            task[n], low_p[n], low_u[n], low_e[n] = i, p, u, e
            n += 1
    return n


@njit(cache=True)
def propagate(a, b, alive, dirty, partial, left, pairs, edges, resources):  # type: ignore[no-untyped-def]
    """Propagate to a fixed point, starting from the dirty resources; False on a contradiction.
    States change in place.

    ``left[0]`` is the amount of work allowed, counted down: at 0 it returns True with the remaining
    resources dirty.
    """
    pair_ptr, length = pairs
    source, target, lag = edges
    capacity, entry_ptr, entry_task, entry_pair, entry_use, of_ptr, of = resources
    n = len(a)
    p, old_a, old_b = np.empty(n, dtype=np.int64), a.copy(), b.copy()
    task, low_p, low_u = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    low_e = np.empty(n, np.int64)
    low_a, low_b = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    while True:
        dropped = shortest_lengths(a, b, alive, pair_ptr, length, p)
        if dropped < 0 or precedence(a, b, p, source, target, lag) < 0:
            return False
        if dropped:
            dirty[:] = True
        for i in range(n):
            if a[i] != old_a[i] or b[i] != old_b[i]:
                old_a[i], old_b[i] = a[i], b[i]
                for r in of[of_ptr[i] : of_ptr[i + 1]]:
                    dirty[r] = True
        if left[0] <= 0:
            return True
        again = False
        for r in range(len(capacity)):
            if not dirty[r] or left[0] <= 0:
                continue
            dirty[r] = False
            m = members(
                r,
                alive,
                pair_ptr,
                length,
                entry_ptr,
                entry_task,
                entry_pair,
                entry_use,
                task,
                low_p,
                low_u,
                low_e,
            )
            for q in range(m):
                low_a[q], low_b[q] = a[task[q]], b[task[q]]
            left[0] -= m * m * (m if capacity[r] > 1 and m <= MAX_CUBIC else 1)
            found = on_resource(low_a, low_b, low_p, low_u, low_e, m, capacity[r], partial)
            if found < 0:
                return False
            if found > 0:
                again = True
                for q in range(m):
                    a[task[q]], b[task[q]] = max(a[task[q]], low_a[q]), min(b[task[q]], low_b[q])
        if not again and not dropped:
            return True


@inner()
def refuted(a, b, alive, i, low, high, only, partial, left, pairs, edges, resources):  # type: ignore[no-untyped-def]
    """Whether task i cannot lie within [low, high] (in pair ``only`` unless −1), in a copy of the
    state.
    """
    x, y, living = a.copy(), b.copy(), alive.copy()
    x[i], y[i] = low, high
    if only >= 0:
        for k in range(pairs[0][i], pairs[0][i + 1]):
            living[k] = living[k] and k == only
    dirty = np.zeros(len(resources[0]), dtype=np.bool_)
    for r in resources[6][resources[5][i] : resources[5][i + 1]]:
        dirty[r] = True
    return not propagate(x, y, living, dirty, partial, left, pairs, edges, resources)


@njit(cache=True)
def shave(a, b, alive, i, partial, left, pairs, edges, resources):  # type: ignore[no-untyped-def]
    """Cut modes and both ends of task i's window by contradiction: −1 no room is left, 0 nothing, 1
    something cut.

    The part of the window tried starts at a half and shrinks while it cannot be refuted. Of the
    starts from a on, ``part`` are tried together: their window must have room for the longest
    remaining mode, not only for the shortest.
    """
    pair_ptr, length = pairs
    cut, living, least, most = 0, 0, FAR, np.int64(0)
    for k in range(pair_ptr[i], pair_ptr[i + 1]):
        living += alive[k]
    for k in range(pair_ptr[i], pair_ptr[i + 1]):
        if (
            living > 1
            and alive[k]
            and refuted(a, b, alive, i, a[i], b[i], k, partial, left, pairs, edges, resources)
        ):
            alive[k] = False
            living, cut = living - 1, 1
        if alive[k]:
            least, most = min(least, length[k]), max(most, length[k])
    for side in range(2):
        part = (b[i] - a[i] - least + 1) // 2
        while part >= 1 and a[i] + least <= b[i]:
            part = min(part, b[i] - a[i] - least + 1)
            low = a[i] if side == 0 else max(a[i], b[i] - most - part + 1)
            high = b[i] if side == 1 else min(b[i], a[i] + most + part - 1)
            if refuted(a, b, alive, i, low, high, -1, partial, left, pairs, edges, resources):
                cut = 1
                if side == 0:
                    a[i] += part
                else:
                    b[i] -= part
            else:
                part //= 4
        if a[i] + least > b[i]:
            return -1
    return cut
