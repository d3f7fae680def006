"""Points checked in exact arithmetic: a row either holds or is broken, by so much.

A solver's point is off by its tolerances. ``exact_point`` rounds the integers, fixes them, and
solves the continuous part again in rationals: the linear programme that is left has an optimal
vertex, whose basis HiGHS names; the basic columns follow from the rows of the basis by elimination
in fractions. The point that results satisfies every row exactly, or it is no solution.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from optbench.shapes.milp.program import Floats, Milp, exact

Point = tuple[Fraction, ...]
# Rounding integers that are further from whole numbers than this makes another decision of them.
WHOLE = 1e-3


@dataclass(frozen=True)
class Broken:
    """A row, side or integrality that a point does not satisfy, and by how much."""

    constraint: str
    what: str
    amount: Fraction


def broken(program: Milp, point: Sequence[Fraction], share: float = 0.0) -> list[Broken]:
    """Return what the point breaks; an empty list means that it is feasible.

    ``share`` of the sum of absolute terms is forgiven, for values that went through floats.
    """
    room, out = Fraction(share), []
    for j, value in enumerate(point):
        name, size = f"column {program.columns[j]}", abs(value)
        sides = (float(program.lower[j]), float(program.upper[j]))
        out += _outside("bounds", name, value, sides, room * size)
        if program.integer[j] and value.denominator != 1:
            text = f"{name} is {shown(value)}, which is not a whole number"
            out.append(Broken("integrality", text, abs(value - round(value))))
    for i, name in enumerate(program.rows):
        terms = [a * point[j] for j, a in program.entries(i)]
        sides = (float(program.row_lower[i]), float(program.row_upper[i]))
        size = sum(map(abs, terms), Fraction(0))
        out += _outside(name, f"row {name}", sum(terms, Fraction(0)), sides, room * size)
    return out


def _outside(
    constraint: str, name: str, value: Fraction, sides: tuple[float, float], room: Fraction
) -> list[Broken]:
    low, high = sides
    if low != -math.inf and value < exact(low) - room:
        text = f"{name} is {shown(value)}, below {low:g}"
        return [Broken(constraint, text, exact(low) - value)]
    if high != math.inf and value > exact(high) + room:
        text = f"{name} is {shown(value)}, above {high:g}"
        return [Broken(constraint, text, value - exact(high))]
    return []


def shown(value: Fraction) -> str:
    """A number for a message."""
    return str(value) if value.denominator <= 1000 else f"{float(value):.15g}"


def within_tolerance(program: Milp, point: Sequence[float]) -> dict[str, Any]:
    """Describe a float point by its objective and its largest violation."""
    fractions = tuple(Fraction(float(value)) for value in point)
    worst = max(broken(program, fractions), key=lambda each: each.amount, default=None)
    return {
        "objective": float(program.objective_at(fractions)),
        "largest_violation": 0.0 if worst is None else float(worst.amount),
        "row": None if worst is None else worst.constraint,
    }


def exact_point(program: Milp, point: Sequence[float], deadline: float = math.inf) -> Point | None:
    """Return a feasible point with the rounded integers of this one; None where there is none or
    the time (``time.perf_counter``) is over.
    """
    whole = np.rint(np.asarray(point, dtype=float))
    integer = program.integer
    if np.abs(np.asarray(point)[integer] - whole[integer]).max(initial=0.0) > WHOLE:
        return None
    fixed = {j: Fraction(int(whole[j])) for j in np.flatnonzero(integer).tolist()}
    if len(fixed) == program.num_columns:
        candidate: Point | None = tuple(fixed[j] for j in range(program.num_columns))
    else:
        candidate = _with_continuous(program, fixed, deadline)
    return candidate if candidate is not None and not broken(program, candidate) else None


def _with_continuous(program: Milp, fixed: dict[int, Fraction], deadline: float) -> Point | None:
    """Solve for the continuous columns: their vertex by HiGHS, its numbers in rationals."""
    free = [j for j in range(program.num_columns) if j not in fixed]
    number = {j: k for k, j in enumerate(free)}
    rows, sides = _left_rows(program, fixed, number)
    vertex = _vertex(program, free, rows, sides, deadline)
    if vertex is None:
        return None
    at, tight = vertex
    values: dict[int, Fraction] = dict(at)
    basic = [k for k in range(len(free)) if k not in values]
    equations = []
    for i, side in tight:
        entries = rows[i]
        known = sum((a * values[k] for k, a in entries.items() if k in values), Fraction(0))
        equations.append(({k: a for k, a in entries.items() if k not in values}, side - known))
    solved = solve_exactly(equations, basic, deadline)
    if solved is None:
        return None
    values |= solved
    return tuple(fixed[j] if j in fixed else values[number[j]] for j in range(program.num_columns))


def _left_rows(
    program: Milp, fixed: dict[int, Fraction], number: dict[int, int]
) -> tuple[list[dict[int, Fraction]], list[tuple[Fraction | None, Fraction | None]]]:
    """Return rows over the continuous columns, and their sides less what the integers take."""
    rows, sides = [], []
    for i in range(program.num_rows):
        taken, left = Fraction(0), {}
        for j, a in program.entries(i):
            if j in fixed:
                taken += a * fixed[j]
            else:
                left[number[j]] = a
        if not left:
            continue  # ``broken`` checks it
        low, high = float(program.row_lower[i]), float(program.row_upper[i])
        rows.append(left)
        sides.append(
            (
                None if low == -math.inf else exact(low) - taken,
                None if high == math.inf else exact(high) - taken,
            )
        )
    return rows, sides


Vertex = tuple[dict[int, Fraction], list[tuple[int, Fraction]]]


def _vertex(
    program: Milp,
    free: list[int],
    rows: list[dict[int, Fraction]],
    sides: list[tuple[Fraction | None, Fraction | None]],
    deadline: float,
) -> Vertex | None:
    """Return the optimal basis of the continuous part: nonbasic columns at their values, and the
    rows that are tight there with their sides.
    """
    import highspy

    model = highspy.Highs()
    model.silent()
    left_s = deadline - time.perf_counter()
    if left_s <= 0:
        return None
    if left_s != math.inf:
        model.setOptionValue("time_limit", left_s)
    model.setOptionValue("solver", "simplex")
    sign = 1.0 if program.sense == "min" else -1.0
    lower, upper = program.lower[free], program.upper[free]
    model.addVars(len(free), lower, upper)
    model.changeColsCost(len(free), np.arange(len(free)), sign * program.cost[free])
    for entries, (low, high) in zip(rows, sides, strict=True):
        model.addRow(
            -highspy.kHighsInf if low is None else float(low),
            highspy.kHighsInf if high is None else float(high),
            len(entries),
            np.array(list(entries), dtype=np.int32),
            np.array([float(a) for a in entries.values()]),
        )
    model.run()
    basis = model.getBasis()
    if not basis.valid:
        return None
    status = highspy.HighsBasisStatus
    at: dict[int, Fraction] = {}
    for k, state in enumerate(basis.col_status):
        if state == status.kBasic:
            continue
        value = _nonbasic_value(float(lower[k]), float(upper[k]), state == status.kUpper)
        at[k] = value
    tight = []
    for i, state in enumerate(basis.row_status):
        if state != status.kBasic:
            low, high = sides[i]
            side = high if (state == status.kUpper and high is not None) or low is None else low
            tight.append((i, Fraction(0) if side is None else side))
    return at, tight


def _nonbasic_value(lower: float, upper: float, is_upper: bool) -> Fraction:
    if is_upper and upper != math.inf:
        return exact(upper)
    if lower != -math.inf:
        return exact(lower)
    return exact(upper) if upper != math.inf else Fraction(0)


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


def as_floats(point: Sequence[Fraction]) -> Floats:
    return np.array([float(value) for value in point])
