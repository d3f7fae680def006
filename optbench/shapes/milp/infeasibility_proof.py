"""Prove that a programme has no point, in rationals (Farkas), and that it has no best one.

**No point.** For any y and r = −Aᵀ y every point of row_lower ≤ A x ≤ row_upper, lower ≤ x ≤ upper
satisfies

    0 = y·A x + r·x ≥ Σ_i (y_i ≥ 0 ? y_i row_lower_i : y_i row_upper_i)
                      + Σ_j (r_j ≥ 0 ? r_j lower_j : r_j upper_j)

so that a y with a positive right side leaves none. That is the bound of ``relaxation_proof`` with
costs 0. Such a y are the duals of the programme that minimises the sum of what rows are violated by
(columns p, q ≥ 0 with row_lower ≤ A x + p − q ≤ row_upper).

**No best point.** From a point, all points along a rational direction d are feasible where d leaves
no side that is finite: d_j ≥ 0 at a finite lower side, ≤ 0 at a finite upper one, and (A d)_i
likewise; where c·d < 0 the minimum is unbounded. Multiples of d keep integers whole. Such a d is
the minimum of c·d over directions with −1 ≤ d ≤ 1.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from optbench.shapes.milp.exact_point import Point, broken, exact_point
from optbench.shapes.milp.lp_relaxation import highs_model
from optbench.shapes.milp.program import Floats, Milp, milp
from optbench.shapes.milp.relaxation_proof import prove, proven_value, signed_costs


def without_costs(program: Milp) -> Milp:
    """Return the programme whose bound is positive only where it has no point."""
    none = np.zeros_like(program.cost)
    return replace(program, sense="min", cost=none, constant=0.0)


def is_farkas(program: Milp, duals: Sequence[Fraction]) -> bool:
    """Whether these duals leave no point."""
    relaxed = replace(without_costs(program), integer=np.zeros_like(program.integer))
    value = proven_value(relaxed, duals)
    return value is not None and value > 0


def prove_infeasible(program: Milp, time_limit_s: float) -> tuple[Fraction, ...] | None:
    """Return duals that leave no point of the linear relaxation; None where none were found."""
    if program.num_rows == 0 or crossed(program) is not None:
        return None
    duals = prove(elastic(program), time_limit_s)
    return duals if duals is not None and is_farkas(program, duals) else None


def crossed(program: Milp) -> str | None:
    """Return the name of a row or column whose lower side is above its upper side."""
    for what, names, low, high in (
        ("row", program.rows, program.row_lower, program.row_upper),
        ("column", program.columns, program.lower, program.upper),
    ):
        for k in np.flatnonzero(low > high).tolist():
            return f"{what} {names[k]!r}"
    return None


def elastic(program: Milp) -> Milp:
    """Return the programme that minimises by how much rows are violated, whatever is whole."""
    n, m = program.num_columns, program.num_rows
    row = np.repeat(np.arange(m), np.diff(program.row_ptr))
    every = np.arange(m)
    triplets = (
        np.concatenate((row, every, every)),
        np.concatenate((program.index, n + every, n + m + every)),
        np.concatenate((program.value, np.ones(m), -np.ones(m))),
    )
    names = [f"x{j}" for j in range(n + 2 * m)]
    return milp(
        program.name,
        "min",
        names,
        np.concatenate((np.zeros(n), np.ones(2 * m))),
        np.concatenate((program.lower, np.zeros(2 * m))),
        np.concatenate((program.upper, np.full(2 * m, np.inf))),
        np.zeros(n + 2 * m, dtype=bool),
        [f"r{i}" for i in range(m)],
        program.row_lower,
        program.row_upper,
        triplets,
    )


def prove_unbounded(program: Milp, time_limit_s: float) -> tuple[Point, Point] | None:
    """Return a point and a direction along which the objective improves for ever; None where none
    were found.
    """
    deadline = time.perf_counter() + time_limit_s
    cone = directions(program)
    found = _solution(cone, time_limit_s)
    direction = None if found is None else exact_point(cone, found, deadline)
    if direction is None or not is_ray(program, direction):
        return None
    start = _solution(without_costs(program), max(0.0, deadline - time.perf_counter()))
    point = None if start is None else exact_point(without_costs(program), start, deadline)
    return None if point is None or broken(program, point) else (point, direction)


def is_ray(program: Milp, direction: Sequence[Fraction]) -> bool:
    """Whether all points along the direction stay feasible, and the objective improves."""
    cost = sum((c * d for c, d in zip(signed_costs(program), direction, strict=True)), Fraction(0))
    return cost < 0 and not broken(directions(program), direction)


def directions(program: Milp) -> Milp:
    """Return the programme of directions that leave no finite side."""

    def sides(values: Floats, most: float) -> Floats:
        return np.where(np.isfinite(values), 0.0, most)

    return replace(
        program,
        constant=0.0,
        lower=sides(program.lower, -1.0),
        upper=sides(program.upper, 1.0),
        row_lower=sides(program.row_lower, -math.inf),
        row_upper=sides(program.row_upper, math.inf),
        integer=np.zeros_like(program.integer),
    )


def _solution(program: Milp, time_limit_s: float) -> Floats | None:
    """Return the point that HiGHS finds."""
    import highspy

    model = highspy.Highs()
    model.silent()
    model.setOptionValue("time_limit", max(0.01, float(time_limit_s)))
    model.passModel(highs_model(program, whole=True))
    model.run()
    if model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return np.asarray(model.getSolution().col_value, dtype=float)
