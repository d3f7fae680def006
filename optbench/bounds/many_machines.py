"""Compiled deductions for a resource of several devices: task i uses at least u_i devices for p_i, e_i device-time in all.

In any interval [s, t) a task of window [a, b] spends at least u · min(t − s, p, a + p − s, t − b + p) when that is positive
(slid as far left or right as it can), and all of e when the window lies inside. What is left of capacity · (t − s) after the
others bounds how early a task can start; latest ends follow by mirroring time. All numbers are integers.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def least_inside(a, b, p, u, e, s, t):  # type: ignore[no-untyped-def]
    """Device-time that a task cannot avoid within [s, t)."""
    if a >= s and b <= t:
        return e
    overlap = min(min(t - s, p), min(a + p - s, t - (b - p)))
    return u * overlap if overlap > 0 else np.int64(0)


@njit(cache=True)
def energetic(a, b, p, u, e, n, capacity, partial):  # type: ignore[no-untyped-def]
    """Over intervals from an earliest start to a latest end: −1 too much work, 0 nothing new, 1 some a moved (in place).

    ``partial`` counts tasks that stick out of the interval too, which is stronger and O(n) per interval throughout.
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
                own = least_inside(old[j], b[j], p[j], u[j], e[j], s, t) if partial else (0 if sticks_out else e[j])
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


@njit(cache=True)
def timetable(a, b, p, u, n, capacity):  # type: ignore[no-untyped-def]
    """Starts pushed past the profile of what must run (from b − p to a + p): −1, 0 or 1 as above."""
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
