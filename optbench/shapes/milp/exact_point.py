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
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from optbench.shapes.milp.lp_relaxation import Place, relax
from optbench.shapes.milp.program import Floats, Milp, exact
from optbench.shapes.milp.rational_equations import solve_exactly

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


def within_tolerance(program: Milp, point: Floats) -> dict[str, Any]:
    """Describe a float point by its objective and its largest violation."""
    fractions = tuple(Fraction(float(value)) for value in point)
    worst = max(broken(program, fractions), key=lambda each: each.amount, default=None)
    return {
        "objective": float(program.objective_at(fractions)),
        "largest_violation": 0.0 if worst is None else float(worst.amount),
        "row": None if worst is None else worst.constraint,
    }


def exact_point(program: Milp, point: Floats, deadline: float = math.inf) -> Point | None:
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
    lower, upper = program.lower.copy(), program.upper.copy()
    for j, value in fixed.items():
        lower[j] = upper[j] = float(value)
    pinned = replace(program, lower=lower, upper=upper, integer=np.zeros_like(program.integer))
    solved = relax(pinned, deadline - time.perf_counter())
    values: dict[int, Fraction] = {}
    unknown: list[int] = []
    for j, place in enumerate(solved.columns):
        if j in fixed:
            values[j] = fixed[j]
        elif place == "basic":
            unknown.append(j)
        else:
            values[j] = _side(float(lower[j]), float(upper[j]), place)
    equations = []
    for i, place in enumerate(solved.rows):
        if place != "basic":
            entries = dict(pinned.entries(i))
            known = sum((a * values[j] for j, a in entries.items() if j in values), Fraction(0))
            side = _side(float(program.row_lower[i]), float(program.row_upper[i]), place)
            equations.append(({j: a for j, a in entries.items() if j not in values}, side - known))
    found = solve_exactly(equations, unknown, deadline) if solved.columns else None
    if found is None:
        return None
    values |= found
    return tuple(values[j] for j in range(program.num_columns))


def _side(lower: float, upper: float, place: Place) -> Fraction:
    """Return the side at which something is nonbasic; a free column is at 0."""
    if place == "upper" and upper != math.inf:
        return exact(upper)
    if lower != -math.inf:
        return exact(lower)
    return exact(upper) if upper != math.inf else Fraction(0)


def as_floats(point: Sequence[Fraction]) -> Floats:
    return np.array([float(value) for value in point])
