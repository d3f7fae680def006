"""Compiled deductions for one device: tasks i with windows [a_i, b_i] and lengths p_i that must not overlap.

Both work on earliest starts only; latest ends follow by mirroring time (a, b) → (−b, −a). All numbers are integers.
"""

from __future__ import annotations

import numpy as np
from numba import njit

FAR = np.int64(1) << 60


@njit(cache=True)
def edge_finding(a, b, p, n, order, fresh):  # type: ignore[no-untyped-def]
    """Baptiste, Le Pape and Nuijten (2001), O(n²): False when some set of tasks has no room.

    For each latest end b_k, with Ω the tasks of b ≤ b_k: where Ω' ∪ {i} cannot end by b_k, i comes after all of Ω' ⊆ Ω
    and starts no earlier than the largest min a + Σ p over subsets of Ω'. ``fresh`` receives the earliest starts.
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


@njit(cache=True)
def detectable(a, b, p, n, order, fresh):  # type: ignore[no-untyped-def]
    """Where i cannot end before j must start, j comes first: i starts after all such j have been run one by one."""
    for i in range(n):
        end = -FAR
        for at in range(n):
            j = order[at]
            if j != i and a[i] + p[i] > b[j] - p[j]:
                end = max(end, a[j]) + p[j]
        fresh[i] = max(fresh[i], end)
    return True


@njit(cache=True)
def tighten(a, b, p, n):  # type: ignore[no-untyped-def]
    """One round of both deductions on both ends, in place: −1 contradiction, 0 nothing new, 1 something moved."""
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
