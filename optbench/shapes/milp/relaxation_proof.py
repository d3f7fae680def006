"""Prove a bound of the linear relaxation in rationals, from any dual vector.

For a minimisation over row_lower ≤ A x ≤ row_upper, lower ≤ x ≤ upper, any y and r = c − Aᵀ y give

    c·x = y·A x + r·x ≥ Σ_i (y_i ≥ 0 ? y_i row_lower_i : y_i row_upper_i)
                      + Σ_j (r_j ≥ 0 ? r_j lower_j : r_j upper_j)

which is finite where no multiplier ≠ 0 meets an infinite side. A maximisation is the minimisation
of −c. Where every column with a cost is whole and its cost too, the bound is rounded up.

The duals of a solver are floats. Their wrong signs are removed and they prove a bound a little
below the relaxation's, unless a column without sides has a reduced cost that is only nearly 0; then
the duals are computed again exactly, from the rows and columns of the optimal basis.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from optbench.shapes.milp.lp_relaxation import SolvedRelaxation, relax
from optbench.shapes.milp.program import Milp, exact
from optbench.shapes.milp.rational_equations import solve_exactly

# Float duals keep this many decimals below the largest one.
DIGITS = 12


def signed_costs(program: Milp) -> list[Fraction]:
    """Return the costs of the minimisation."""
    sign = 1 if program.sense == "min" else -1
    return [sign * exact(float(value)) for value in program.cost]


def proven_value(program: Milp, duals: Sequence[Fraction]) -> Fraction | None:
    """Return the bound that these duals prove, in the programme's own sense; None where they prove
    nothing finite.
    """
    reduced = signed_costs(program)
    total = Fraction(0)
    for i, y in enumerate(duals):
        if y == 0:
            continue
        side = float(program.row_lower[i] if y > 0 else program.row_upper[i])
        if math.isinf(side):
            return None
        total += y * exact(side)
        for j, a in program.entries(i):
            reduced[j] -= y * a
    for j, r in enumerate(reduced):
        if r == 0:
            continue
        side = float(program.lower[j] if r > 0 else program.upper[j])
        if math.isinf(side):
            return None
        total += r * exact(side)
    if _is_whole(program):
        total = Fraction(math.ceil(total))
    sign = 1 if program.sense == "min" else -1
    return sign * total + exact(program.constant)


def _is_whole(program: Milp) -> bool:
    used = program.cost != 0
    return bool(np.all(program.integer[used]) and np.all(program.cost[used] % 1 == 0))


def prove(program: Milp, time_limit_s: float = math.inf) -> tuple[Fraction, ...] | None:
    """Return rational duals that prove a finite bound; None without one in this time."""
    deadline = time.perf_counter() + time_limit_s
    solved = relax(program, time_limit_s)
    if solved.status != "optimal":
        return None
    rounded = rounded_duals(program, solved.duals)
    if proven_value(program, rounded) is not None:
        return rounded
    duals = _exact_duals(program, solved, deadline)
    return None if duals is None or proven_value(program, duals) is None else duals


def rounded_duals(program: Milp, duals: Sequence[float]) -> tuple[Fraction, ...]:
    """Return duals as short decimals whose signs meet finite sides."""
    largest = max((abs(value) for value in duals), default=0.0)
    digits = DIGITS - (math.frexp(largest)[1] * 3) // 10 if largest else DIGITS
    out = []
    for i, value in enumerate(duals):
        y = round(Fraction(value), max(0, digits))
        side = program.row_lower[i] if y > 0 else program.row_upper[i]
        out.append(Fraction(0) if y and math.isinf(side) else y)
    return tuple(out)


def _exact_duals(
    program: Milp, solved: SolvedRelaxation, deadline: float
) -> tuple[Fraction, ...] | None:
    """Solve Bᵀ y = c_B over the rows that are tight; the other rows have no dual."""
    cost = signed_costs(program)
    tight = [i for i, place in enumerate(solved.rows) if place != "basic"]
    basic = [j for j, place in enumerate(solved.columns) if place == "basic"]
    equations: dict[int, dict[int, Fraction]] = {j: {} for j in basic}
    for i in tight:
        for j, a in program.entries(i):
            if j in equations:
                equations[j][i] = a
    rows = [(entries, cost[j]) for j, entries in equations.items()]
    found = solve_exactly(rows, tight, deadline)
    if found is None:
        return None
    return tuple(found.get(i, Fraction(0)) for i in range(program.num_rows))
