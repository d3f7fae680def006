"""Compiled propagation of windows: precedence, resources and the modes that still fit, to a fixed
point.

A state is (a, b, alive): earliest start and latest end of each task, and which of its (task, mode)
pairs are still possible. A resource is one or several pools with a capacity; entries list, task by
task, the pairs that use it and how much. A task belongs to it only while all of its living pairs
use it. All numbers are integers.

On one device tasks of lengths p_i must not overlap. With several, task i uses at least u_i devices
for p_i and e_i device-time in all; in any interval [s, t) a task of window [a, b] spends at least u
· min(t − s, p, a + p − s, t − b + p) where that is positive (slid as far left or right as it can),
and all of e when its window lies inside; what is left of capacity · (t − s) after the others bounds
how early a task can start. Deductions are on earliest starts; latest ends follow by mirroring time,
(a, b) → (−b, −a). All compiled code is in this one file: numba's cache does not see a change in
another.
"""

from __future__ import annotations

import numpy as np

from optbench.compiling.compiled import inner, njit

FAR = np.int64(1) << 60
# Resources of more members skip the deductions that grow with the cube of their number.
MAX_CUBIC = 150


@inner()
def edge_finding(a, b, p, n, order, fresh):  # type: ignore[no-untyped-def]
    """Apply Baptiste, Le Pape and Nuijten (2001), O(n²); False when some set of tasks has no room.

    For each latest end b_k, with Ω the tasks of b ≤ b_k: where Ω' ∪ {i} cannot end by b_k, i comes
    after all of Ω' ⊆ Ω and starts no earlier than the largest min a + Σ p over subsets of Ω'.
    ``fresh`` receives the earliest starts.
    """
    ceiling = np.empty(n, dtype=np.int64)
    for i in range(n):
        fresh[i] = a[i]
    for k in range(n):
        total, top, before = np.int64(0), -FAR, -FAR
        for at in range(n - 1, -1, -1):
            i = order[at]
            if b[i] <= b[k]:
                total += p[i]
                top = max(top, a[i] + total)
                if top > b[k]:
                    return False
            ceiling[i] = top
        for at in range(n):
            i = order[at]
            if b[i] <= b[k]:
                before = max(before, a[i] + total)
                total -= p[i]
            else:
                if a[i] + total + p[i] > b[k]:
                    fresh[i] = max(fresh[i], ceiling[i])
                if before + p[i] > b[k]:
                    fresh[i] = max(fresh[i], top)
    return True


@inner()
def detectable(a, b, p, n, order, fresh):  # type: ignore[no-untyped-def]
    """Where i cannot end before j must start, j comes first: i starts after all such j have been
    run one by one.
    """
    for i in range(n):
        end = -FAR
        for at in range(n):
            j = order[at]
            if j != i and a[i] + p[i] > b[j] - p[j]:
                end = max(end, a[j]) + p[j]
        fresh[i] = max(fresh[i], end)
    return True


@inner()
def tighten(a, b, p, n):  # type: ignore[no-untyped-def]
    """Run one round of both deductions on both ends, in place: −1 contradiction, 0 nothing new, 1
    something moved.
    """
    moved = 0
    fresh = np.empty(n, dtype=np.int64)
    low, high = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    for side in range(2):
        for i in range(n):
            low[i], high[i] = (a[i], b[i]) if side == 0 else (-b[i], -a[i])
        order = np.argsort(low, kind="mergesort")
        if not edge_finding(low, high, p, n, order, fresh):
            return -1
        detectable(low, high, p, n, order, fresh)
        for i in range(n):
            if fresh[i] > low[i]:
                moved = 1
                if fresh[i] + p[i] > high[i]:
                    return -1
                if side == 0:
                    a[i] = fresh[i]
                else:
                    b[i] = -fresh[i]
    return moved


@inner()
def least_inside(a, b, p, u, e, s, t):  # type: ignore[no-untyped-def]
    """Return the device-time that a task cannot avoid within [s, t)."""
    if a >= s and b <= t:
        return e
    overlap = min(min(t - s, p), min(a + p - s, t - (b - p)))
    return u * overlap if overlap > 0 else np.int64(0)


@inner()
def energetic(a, b, p, u, e, n, capacity, partial):  # type: ignore[no-untyped-def]
    """Check intervals from an earliest start to a latest end: −1 too much work, 0 nothing new, 1
    some a moved (in place).

    ``partial`` counts tasks that partly lie in the interval too, which is stronger and O(n) per
    interval throughout.
    """
    moved, largest = 0, np.int64(0)
    for i in range(n):
        largest = max(largest, e[i])
    by_start = np.argsort(-a[:n], kind="mergesort")
    starts, old = a[:n].copy(), a[:n].copy()
    for k in range(n):
        t, inside = b[k], np.int64(0)
        for at in range(n):
            i = by_start[at]
            s = starts[i]
            if b[i] <= t:
                inside += e[i]
            if s >= t or (at + 1 < n and starts[by_start[at + 1]] == s):
                continue
            room, used = capacity * (t - s), inside
            if partial:
                used = np.int64(0)
                for j in range(n):
                    used += least_inside(old[j], b[j], p[j], u[j], e[j], s, t)
            if used > room:
                return -1
            if room - used >= largest:
                continue
            for j in range(n):
                sticks_out = old[j] < s or b[j] > t
                own = (
                    least_inside(old[j], b[j], p[j], u[j], e[j], s, t)
                    if partial
                    else (0 if sticks_out else e[j])
                )
                left = room - (used - own)
                overlap = min(old[j] + p[j], t) - max(old[j], s)
                if overlap > 0 and u[j] * overlap > left:
                    start = t - left // u[j]
                    if start > a[j]:
                        a[j] = start
                        moved = 1
                        if start + p[j] > b[j]:
                            return -1
    return moved


@inner()
def timetable(a, b, p, u, n, capacity):  # type: ignore[no-untyped-def]
    """Push starts past the profile of compulsory parts (from b − p to a + p): −1, 0 or 1 as
    above.
    """
    times = np.empty(2 * n, dtype=np.int64)
    m = 0
    for i in range(n):
        if b[i] - p[i] < a[i] + p[i]:
            times[m], times[m + 1] = b[i] - p[i], a[i] + p[i]
            m += 2
    if m == 0:
        return 0
    points = np.unique(times[:m])
    m = len(points) - 1
    level = np.zeros(m, dtype=np.int64)
    for i in range(n):
        if b[i] - p[i] < a[i] + p[i]:
            q = np.searchsorted(points, b[i] - p[i])
            while points[q] < a[i] + p[i]:
                level[q] += u[i]
                q += 1
    for q in range(m):
        if level[q] > capacity:
            return -1
    moved = 0
    for i in range(n):
        latest, own_end, start = b[i] - p[i], a[i] + p[i], a[i]
        q = max(0, np.searchsorted(points, start, side="right") - 1)
        while q < m and points[q] < start + p[i]:
            own = u[i] if latest <= points[q] < own_end else 0
            if points[q + 1] > start and level[q] - own + u[i] > capacity:
                start = points[q + 1]
            q += 1
        if start > a[i]:
            if start > latest:
                return -1
            a[i] = start
            moved = 1
    return moved


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
def members(
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
):  # type: ignore[no-untyped-def]
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
                p, u, e = (
                    min(p, length[k]),
                    min(u, entry_use[at]),
                    min(e, entry_use[at] * length[k]),
                )
            at += 1
        living = 0
        for k in range(pair_ptr[i], pair_ptr[i + 1]):
            living += alive[k]
        if here == living and p > 0:
            task[n], low_p[n], low_u[n], low_e[n] = i, p, u, e
            n += 1
    return n


@inner()
def on_resource(a, b, p, u, e, n, capacity, partial):  # type: ignore[no-untyped-def]
    """Apply all deductions of one resource to its members' windows, in place: −1, 0 or 1."""
    if capacity == 1:
        return tighten(a[:n], b[:n], p, n)
    moved = 0
    low, high = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    for side in range(2):
        for i in range(n):
            low[i], high[i] = (a[i], b[i]) if side == 0 else (-b[i], -a[i])
        found = timetable(low, high, p, u, n, capacity)
        if found >= 0 and n <= MAX_CUBIC:
            more = energetic(low, high, p, u, e, n, capacity, partial)
            found = -1 if more < 0 else max(found, more)
        if found < 0:
            return -1
        moved = max(moved, found)
        for i in range(n):
            if side == 0:
                a[i] = low[i]
            else:
                b[i] = -low[i]
    return moved


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
    task, low_p, low_u, low_e = (
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
    )
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
