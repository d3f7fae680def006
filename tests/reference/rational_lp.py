"""Linear and mixed-integer programmes in rationals, slow and simple: a reference for tiny ones.

Bland's rule on a dense tableau in fractions; integers by trying all of them. Nothing of optbench is
used but the data.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from optbench.shapes.milp.program import Milp

Status = Literal["optimal", "infeasible", "unbounded"]
Row = list[Fraction]


@dataclass(frozen=True)
class Answer:
    """Status, and the value of a minimisation with a point where there is one."""

    status: Status
    value: Fraction = Fraction(0)
    point: tuple[Fraction, ...] = ()


def decimal(value: float) -> Fraction:
    return Fraction(repr(float(value)))


def minimise(cost: Row, rows: Sequence[tuple[Row, str, Fraction]]) -> Answer:
    """Minimise cost · x over x ≥ 0 and rows (a, relation, b), by the two-phase simplex method."""
    n = len(cost)
    table: list[Row] = []
    kinds: list[str] = []
    for a, relation, b in rows:
        flip = b < 0
        table.append([-v for v in a] + [-b] if flip else [*a, b])
        kinds.append({"<=": ">=", ">=": "<=", "=": "="}[relation] if flip else relation)
    extra = sum(kind != "=" for kind in kinds)
    artificial = sum(kind != "<=" for kind in kinds)
    width = n + extra + artificial
    tableau: list[Row] = []
    basis: list[int] = []
    slack, helper = n, n + extra
    for row, kind in zip(table, kinds, strict=True):
        full = [*row[:-1], *[Fraction(0)] * (extra + artificial), row[-1]]
        if kind != "=":
            full[slack] = Fraction(1 if kind == "<=" else -1)
            slack += 1
        if kind == "<=":
            basis.append(slack - 1)
        else:
            full[helper] = Fraction(1)
            basis.append(helper)
            helper += 1
        tableau.append(full)
    first = [Fraction(0)] * (n + extra) + [Fraction(1)] * artificial
    _simplex(tableau, basis, first, width)
    if sum((first[j] * tableau[i][-1] for i, j in enumerate(basis)), Fraction(0)) > 0:
        return Answer("infeasible")
    for i, j in enumerate(basis):
        if (
            j >= n + extra
        ):  # an artificial column at 0: another takes its place, or the row is empty
            other = next((k for k in range(n + extra) if tableau[i][k] != 0), None)
            if other is not None:
                _pivot(tableau, basis, i, other)
    second = [*cost, *[Fraction(0)] * extra]
    if not _simplex(tableau, basis, second, n + extra):
        return Answer("unbounded")
    values = [Fraction(0)] * width
    for i, j in enumerate(basis):
        values[j] = tableau[i][-1]
    point = tuple(values[:n])
    return Answer(
        "optimal", sum((c * x for c, x in zip(cost, point, strict=True)), Fraction(0)), point
    )


def _simplex(tableau: list[Row], basis: list[int], cost: Row, width: int) -> bool:
    """Pivot until no column improves; False where the cost falls without end."""
    padded = [*cost, *[Fraction(0)] * (len(tableau[0]) - 1 - len(cost) if tableau else 0)]
    while True:
        entering = next(
            (
                j
                for j in range(width)
                if j not in basis
                and padded[j]
                - sum((padded[b] * tableau[i][j] for i, b in enumerate(basis)), Fraction(0))
                < 0
            ),
            None,
        )
        if entering is None:
            return True
        ratios = [
            (row[-1] / row[entering], basis[i], i)
            for i, row in enumerate(tableau)
            if row[entering] > 0
        ]
        if not ratios:
            return False
        _pivot(tableau, basis, min(ratios)[2], entering)


def _pivot(tableau: list[Row], basis: list[int], row: int, column: int) -> None:
    pivot = tableau[row][column]
    tableau[row] = [v / pivot for v in tableau[row]]
    for i, other in enumerate(tableau):
        if i != row and other[column] != 0:
            factor = other[column]
            tableau[i] = [v - factor * w for v, w in zip(other, tableau[row], strict=True)]
    basis[row] = column


def linear(program: Milp, fixed: dict[int, Fraction]) -> Answer:
    """Solve the programme with some columns fixed and no integrality; each column is split."""
    sign = 1 if program.sense == "min" else -1
    columns: list[tuple[int, int]] = []
    for j in range(program.num_columns):
        if j not in fixed:
            columns += [(j, 1), (j, -1)]
    rows: list[tuple[Row, str, Fraction]] = []
    for i in range(program.num_rows):
        entries = {
            int(program.index[k]): decimal(program.value[k])
            for k in range(int(program.row_ptr[i]), int(program.row_ptr[i + 1]))
        }
        taken = sum((a * fixed[j] for j, a in entries.items() if j in fixed), Fraction(0))
        a = [s * entries.get(j, Fraction(0)) for j, s in columns]
        rows += _sided(a, float(program.row_lower[i]), float(program.row_upper[i]), taken)
    for j in {j for j, _ in columns}:
        a = [Fraction(s if k == j else 0) for k, s in columns]
        rows += _sided(a, float(program.lower[j]), float(program.upper[j]), Fraction(0))
    cost = [sign * s * decimal(program.cost[j]) for j, s in columns]
    found = minimise(cost, rows)
    if found.status != "optimal":
        return found
    values = dict(fixed)
    for (j, s), x in zip(columns, found.point, strict=True):
        values[j] = values.get(j, Fraction(0)) + s * x
    point = tuple(values[j] for j in range(program.num_columns))
    paid = sum((decimal(program.cost[j]) * x for j, x in enumerate(point)), Fraction(0))
    return Answer("optimal", paid + decimal(program.constant), point)


def _sided(a: Row, low: float, high: float, taken: Fraction) -> Iterator[tuple[Row, str, Fraction]]:
    if low == high:
        yield a, "=", decimal(low) - taken
        return
    if low != -math.inf:
        yield a, ">=", decimal(low) - taken
    if high != math.inf:
        yield a, "<=", decimal(high) - taken


def by_enumeration(program: Milp) -> Answer:
    """Try every assignment of the integers, which must be bounded; the rest is an exact LP."""
    whole = [j for j in range(program.num_columns) if program.integer[j]]
    spans = [range(math.ceil(program.lower[j]), math.floor(program.upper[j]) + 1) for j in whole]
    best: Answer | None = None
    sign = 1 if program.sense == "min" else -1
    for values in itertools.product(*spans):
        found = linear(program, {j: Fraction(v) for j, v in zip(whole, values, strict=True)})
        if found.status == "unbounded":
            return found
        if found.status == "optimal" and (best is None or sign * found.value < sign * best.value):
            best = found
    return best or Answer("infeasible")
