"""A linear programme by rows, and its solution by HiGHS: min c·v, A v ≥ b (or = b), lower ≤ v ≤
upper.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from optbench.model.instance import Bools, Floats, Ints

# With more columns the interior point method is 2 to 3 times as fast as simplex; with fewer they
# are equal or simplex is faster.
SIMPLEX_COLUMNS = 12_000


@dataclass(frozen=True, eq=False)
class LinearProgram:
    """Rows in compressed form; ``equal`` marks equations, all other rows read ≥.

    ``family`` names each row's origin, ``of`` its number there: a pool, an edge, a group, a place.
    """

    cost: Floats
    lower: Floats
    upper: Floats
    row_ptr: Ints
    column: Ints
    value: Floats
    right: Floats
    equal: Bools
    family: tuple[str, ...]
    of: Ints

    @property
    def num_rows(self) -> int:
        return len(self.right)

    @property
    def num_columns(self) -> int:
        return len(self.cost)

    @property
    def row(self) -> Ints:
        """Row of each coefficient."""
        return np.repeat(np.arange(self.num_rows), np.diff(self.row_ptr))

    def times(self, point: Floats) -> Floats:
        """A v."""
        product = np.bincount(
            self.row, weights=self.value * point[self.column], minlength=self.num_rows
        )
        return np.asarray(product, dtype=float)


@dataclass
class LpColumns:
    """Columns as they are declared, in blocks."""

    cost: list[Floats] = field(default_factory=list)
    lower: list[Floats] = field(default_factory=list)
    upper: list[Floats] = field(default_factory=list)
    count: int = 0

    def add(self, number: int, lower: Any, upper: Any, cost: Any = 0.0) -> Ints:
        """Declare a block; return its column indices."""
        for store, value in ((self.cost, cost), (self.lower, lower), (self.upper, upper)):
            store.append(np.broadcast_to(np.asarray(value, dtype=float), (number,)))
        self.count += number
        return np.arange(self.count - number, self.count)


@dataclass
class LpRows:
    """Rows as they are declared, in blocks of (row, column, value) triplets."""

    row: list[Ints] = field(default_factory=list)
    column: list[Ints] = field(default_factory=list)
    value: list[Floats] = field(default_factory=list)
    right: list[Floats] = field(default_factory=list)
    equal: list[Bools] = field(default_factory=list)
    family: list[str] = field(default_factory=list)
    of: list[Ints] = field(default_factory=list)
    count: int = 0

    def add(
        self,
        family: str,
        right: Any,
        *terms: tuple[Any, Any, Any],
        equal: bool = False,
        of: Any = None,
    ) -> None:
        """Add rows ``Σ value · column ≥ right``; each term gives row (from 0), column and value,
        broadcast against each other.
        """
        right = np.atleast_1d(np.asarray(right, dtype=float))
        for row, column, value in terms:
            r, c, v = np.broadcast_arrays(
                *(np.atleast_1d(np.asarray(part)) for part in (row, column, value))
            )
            self.row.append(r.ravel().astype(np.int64) + self.count)
            self.column.append(c.ravel().astype(np.int64))
            self.value.append(v.ravel().astype(float))
        self.right.append(right)
        self.equal.append(np.full(len(right), equal))
        self.family += [family] * len(right)
        which = np.arange(len(right)) if of is None else np.asarray(of, dtype=np.int64)
        self.of.append(np.broadcast_to(which, (len(right),)))
        self.count += len(right)


def assemble(columns: LpColumns, rows: LpRows) -> LinearProgram:
    """Return compressed rows from the declared blocks; zeros are dropped."""
    row, column, value = (
        np.concatenate([*part, np.zeros(0)]) for part in (rows.row, rows.column, rows.value)
    )
    keep = value != 0
    row, column, value = row[keep].astype(np.int64), column[keep].astype(np.int64), value[keep]
    order = np.lexsort((column, row))
    ptr = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=rows.count)))).astype(np.int64)
    return LinearProgram(
        np.concatenate(columns.cost),
        np.concatenate(columns.lower),
        np.concatenate(columns.upper),
        ptr,
        column[order],
        value[order],
        np.concatenate(rows.right),
        np.concatenate(rows.equal),
        tuple(rows.family),
        np.concatenate(rows.of),
    )


# HiGHS refuses coefficients from this size on (its option large_matrix_value).
LARGEST = 1e15


@dataclass(frozen=True, eq=False)
class LpSolution:
    """The result of HiGHS; ``dual`` is None when it has none. It is not trusted until it is
    proved.
    """

    status: str
    value: float
    primal: Floats
    dual: Floats | None


def solve_in_units(
    lp: LinearProgram, column: Floats, row: Floats, cost: float, time_limit_s: float
) -> LpSolution:
    """Solve with columns counted in these units, rows multiplied by these factors and costs divided
    by ``cost``.

    All are powers of two, so that nothing is rounded; the result is in the units of ``lp``.
    """
    scaled = replace(
        lp, cost=lp.cost * column / cost, lower=lp.lower / column, upper=lp.upper / column,
        value=lp.value * column[lp.column] * row[lp.row], right=lp.right * row,
    )  # fmt: skip
    answer = solve(scaled, time_limit_s)
    dual = None if answer.dual is None else answer.dual * row * cost
    return LpSolution(answer.status, answer.value * cost, answer.primal * column, dual)


def solve(lp: LinearProgram, time_limit_s: float) -> LpSolution:
    """Solve with HiGHS on one thread: simplex, or the interior point method alone where that is
    several times faster.

    The interior point result is not a vertex and slightly inexact; the exact proof loses about 1e-9
    of the bound.
    """
    if len(lp.value) and np.abs(lp.value).max() >= LARGEST:
        return LpSolution("too large a coefficient", 0.0, np.zeros(lp.num_columns), None)
    import highspy

    # HiGHS keeps one pool of threads per process and refuses another number of them later: reset
    # it.
    highspy.Highs.resetGlobalScheduler(True)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = lp.num_columns, lp.num_rows
    model.col_cost_, model.col_lower_, model.col_upper_ = lp.cost, lp.lower, lp.upper
    model.row_lower_ = lp.right
    model.row_upper_ = np.where(lp.equal, lp.right, np.inf)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_, model.a_matrix_.index_, model.a_matrix_.value_ = (
        lp.row_ptr,
        lp.column,
        lp.value,
    )
    highs = highspy.Highs()
    options: dict[str, Any] = {
        "output_flag": False,
        "threads": 1,
        "time_limit": max(0.01, time_limit_s),
    }
    if lp.num_columns > SIMPLEX_COLUMNS:
        options |= {"solver": "ipm", "run_crossover": "off"}
    for name, option in options.items():
        highs.setOptionValue(name, option)
    if highs.passModel(model) == highspy.HighsStatus.kError:
        size = f"{lp.num_rows} rows and {lp.num_columns} columns"
        raise RuntimeError(
            f"HiGHS {highs.version()} refused the linear programme of {size}: passModel() "
            "returned kError"
        )
    if highs.run() == highspy.HighsStatus.kError:
        # It gives up on some LPs whose numbers span many magnitudes: without duals nothing can be
        # proved.
        return LpSolution("HiGHS gave up", 0.0, np.zeros(lp.num_columns), None)
    found = highs.getSolution()
    dual = np.asarray(found.row_dual, dtype=float) if found.dual_valid else None
    status = highs.modelStatusToString(highs.getModelStatus())
    primal = np.asarray(found.col_value, dtype=float)
    return LpSolution(status, float(highs.getInfo().objective_function_value), primal, dual)
