"""Sparse linear equations solved in fractions."""

from __future__ import annotations

import math
import time
from fractions import Fraction


def solve_exactly(
    equations: list[tuple[dict[int, Fraction], Fraction]],
    unknowns: list[int],
    deadline: float = math.inf,
) -> dict[int, Fraction] | None:
    """Solve square sparse linear equations by elimination in fractions; None where they are
    singular or the time is over.
    """
    rows = [(dict(entries), right) for entries, right in equations]
    if len(rows) < len(unknowns):
        return None
    order: list[tuple[int, dict[int, Fraction], Fraction]] = []
    left = set(range(len(rows)))
    using: dict[int, set[int]] = {k: set() for k in unknowns}
    for i, (entries, _) in enumerate(rows):
        for k in entries:
            using[k].add(i)
    for _ in range(len(unknowns)):
        if time.perf_counter() > deadline:
            return None
        # The shortest row, and in it the unknown of fewest rows, fills in least.
        pivot = min((i for i in left if rows[i][0]), key=lambda i: len(rows[i][0]), default=None)
        if pivot is None:
            return None
        entries, right = rows[pivot]
        unknown = min(entries, key=lambda k: len(using[k]))
        left.remove(pivot)
        for k in entries:
            using[k].discard(pivot)
        for i in list(using[unknown]):
            target, other = rows[i]
            factor = target.pop(unknown) / entries[unknown]
            using[unknown].discard(i)
            for k, a in entries.items():
                if k == unknown:
                    continue
                value = target.get(k, Fraction(0)) - factor * a
                if value:
                    target[k] = value
                    using[k].add(i)
                elif k in target:
                    del target[k]
                    using[k].discard(i)
            rows[i] = (target, other - factor * right)
        order.append((unknown, entries, right))
    solved: dict[int, Fraction] = {}
    for unknown, entries, right in reversed(order):
        rest = sum((a * solved[k] for k, a in entries.items() if k != unknown), Fraction(0))
        solved[unknown] = (right - rest) / entries[unknown]
    return solved
