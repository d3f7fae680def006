"""Compiled deductions on the tasks of one resource.

On one device tasks of lengths p_i must not overlap. With several, task i uses at least u_i devices
for p_i and e_i device-time in all; in any interval [s, t) a task of window [a, b] spends at least u
· min(t − s, p, a + p − s, t − b + p) where that is positive (slid as far left or right as it can),
and all of e when its window lies inside; what is left of capacity · (t − s) after the others bounds
how early a task can start. Deductions are on earliest starts; latest ends follow by mirroring time,
(a, b) → (−b, −a). All numbers are integers.
"""

from __future__ import annotations

import numpy as np

from optbench.compiling.compiled import inner

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
