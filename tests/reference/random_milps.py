"""Tiny random programmes of four kinds, whose answers can be found by enumeration in rationals."""

from __future__ import annotations

import math
import random
from typing import Any

from optbench.shapes.milp.program import Milp, milp

KINDS = ("whole", "mixed", "infeasible", "unbounded")
COEFFICIENTS = (1, -1, 2, 0.5, 0.1, 3, -2.5)
COSTS = (0, 1, -2, 0.1, 3.25, 5)


def random_milp(kind: str, seed: int) -> Milp:
    """Return a programme: ``whole`` has bounded integers only, ``mixed`` continuous and free
    columns too; ``infeasible`` has two rows that contradict each other, ``unbounded`` a free
    column that pays and occurs in no row.
    """
    rng = random.Random(f"{kind} {seed}")
    n, m = rng.randint(2, 4), rng.randint(1, 4)
    columns = [_column(rng, whole=kind == "whole" or rng.random() < 0.5) for _ in range(n)]
    rows: list[tuple[float, float]] = []
    entries: list[tuple[int, int, float]] = []
    for i in range(m):
        for j in range(n):
            if rng.random() < 0.7:
                entries.append((i, j, rng.choice(COEFFICIENTS)))
        rows.append(_sides(rng))
    sense = rng.choice(("min", "max"))
    cost = [float(rng.choice(COSTS)) for _ in range(n)]
    if kind == "infeasible":  # x_0 + x_1 ≥ 7.5 and ≤ 7.3: their sum is a Farkas certificate
        for low, high in ((7.5, math.inf), (-math.inf, 7.3)):
            entries += [(len(rows), 0, 1.0), (len(rows), 1, 1.0)]
            rows.append((low, high))
    if kind == "unbounded":  # the ray is the last column alone, and 0 satisfies every row
        rows = [(min(low, 0.0), max(high, 0.0)) for low, high in rows]
        columns = [(min(low, 0.0), max(high, 0.0), whole) for low, high, whole in columns]
        columns.append((-math.inf, math.inf, False))
        cost.append(1.5)
    parts: Any = zip(*entries, strict=True) if entries else ((), (), ())
    lower, upper, whole = zip(*columns, strict=True)
    names = [f"x{j}" for j in range(len(columns))]
    sides_low, sides_high = zip(*rows, strict=True)
    return milp(
        f"{kind}-{seed}",
        "min" if sense == "min" else "max",
        names,
        cost,
        lower,
        upper,
        whole,
        [f"r{i}" for i in range(len(rows))],
        sides_low,
        sides_high,
        tuple(parts),
        rng.choice((0.0, 2.5)),
    )


def _column(rng: random.Random, whole: bool) -> tuple[float, float, bool]:
    if whole:
        low = rng.choice((0.0, 0.0, -2.0))
        return low, low + rng.choice((1.0, 3.0, 4.5)), True
    return rng.choice((0.0, -3.0, 1.5, -math.inf)), rng.choice((4.0, 7.5, math.inf)), False


def _sides(rng: random.Random) -> tuple[float, float]:
    side = rng.choice((0.0, 1.0, 5.0, 7.3, -2.0, 10.0))
    kind = rng.choice(("low", "high", "high", "both", "equal"))
    if kind == "equal":
        return side, side
    if kind == "both":
        return side, side + rng.choice((0.2, 3.0))
    return (side, math.inf) if kind == "low" else (-math.inf, side)
