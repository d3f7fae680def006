"""A mixed-integer linear programme: min or max c·x + constant, row_lower ≤ A x ≤ row_upper,
lower ≤ x ≤ upper, x_j whole where ``integer``.

Numbers are stored as floats, and each of them means the shortest decimal that gives this float: 0.1
in a file is one tenth, not the dyadic number beside it. Exact arithmetic starts from ``exact``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from optbench.errors import ModelError, clipped, nearest

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Sense = Literal["min", "max"]

# Larger numbers are refused: HiGHS takes 1e20 and beyond for infinity.
LARGEST = 1e19


@lru_cache(maxsize=1 << 16)
def exact(value: float) -> Fraction:
    """Return the number that a float means: the shortest decimal that gives it."""
    return Fraction(int(value)) if value.is_integer() else Fraction(repr(value))


def added(a: float, b: float) -> float:
    """Add as decimals: 0.1 and 0.2 make 0.3."""
    return float(exact(a) + exact(b))


@dataclass(frozen=True, eq=False)
class Milp:
    """The data, by rows in compressed form; infinite sides are ±inf. ``validate`` checks it."""

    name: str
    sense: Sense
    constant: float
    columns: tuple[str, ...]
    cost: Floats
    lower: Floats
    upper: Floats
    integer: Bools
    rows: tuple[str, ...]
    row_lower: Floats
    row_upper: Floats
    row_ptr: Ints
    index: Ints
    value: Floats

    @property
    def num_columns(self) -> int:
        return len(self.columns)

    @property
    def num_rows(self) -> int:
        return len(self.rows)

    @cached_property
    def column_numbers(self) -> dict[str, int]:
        return {name: k for k, name in enumerate(self.columns)}

    def entries(self, row: int) -> Iterator[tuple[int, Fraction]]:
        """Yield (column, exact coefficient) of a row."""
        for k in range(int(self.row_ptr[row]), int(self.row_ptr[row + 1])):
            yield int(self.index[k]), exact(float(self.value[k]))

    def objective_at(self, point: Sequence[Fraction]) -> Fraction:
        """Return c·x + constant, exactly."""
        used = np.flatnonzero(self.cost)
        total = sum((exact(float(self.cost[j])) * point[j] for j in used.tolist()), Fraction(0))
        return total + exact(self.constant)

    def column_of(self, name: str) -> int:
        """Return the number of a column; the error names the nearest one."""
        number = self.column_numbers.get(name)
        if number is None:
            raise ModelError(f"no column {clipped(name)!r}; {nearest(name, self.columns)}")
        return number


def milp(
    name: str,
    sense: Sense,
    columns: Sequence[str],
    cost: Any,
    lower: Any,
    upper: Any,
    integer: Any,
    rows: Sequence[str],
    row_lower: Any,
    row_upper: Any,
    triplets: tuple[Any, Any, Any],
    constant: float = 0.0,
) -> Milp:
    """Return a valid programme from columns, rows and (row, column, value) triplets.

    Entries of one place are added, zeros are dropped, and so are rows without sides.
    """
    low, high = np.asarray(row_lower, dtype=float), np.asarray(row_upper, dtype=float)
    row, column, value = (np.asarray(part) for part in triplets)
    row, column, value = _added(row.astype(np.int64), column.astype(np.int64), value.astype(float))
    has_side = (low != -math.inf) | (high != math.inf)
    if not has_side.all():
        kept = has_side[row]
        row, column, value = (np.cumsum(has_side) - 1)[row[kept]], column[kept], value[kept]
        rows = [name for name, side in zip(rows, has_side, strict=True) if side]
        low, high = low[has_side], high[has_side]
    ptr = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=len(rows))))).astype(np.int64)
    cost, lower, upper = (np.asarray(part, dtype=float) for part in (cost, lower, upper))
    whole = np.asarray(integer, dtype=bool)
    out = Milp(
        name,
        sense,
        float(constant),
        tuple(columns),
        cost,
        lower,
        upper,
        whole,
        tuple(rows),
        low,
        high,
        ptr,
        column,
        value,
    )
    validate(out)
    return out


def _added(row: Ints, column: Ints, value: Floats) -> tuple[Ints, Ints, Floats]:
    order = np.lexsort((column, row))
    row, column, value = row[order], column[order], value[order]
    first = np.ones(len(row), dtype=bool)
    first[1:] = (row[1:] != row[:-1]) | (column[1:] != column[:-1])
    if not first.all():
        start = np.flatnonzero(first)
        value = np.add.reduceat(value, start) if len(start) else value
        row, column = row[start], column[start]
    keep = value != 0
    return row[keep], column[keep], value[keep]


def validate(program: Milp) -> None:
    """Raise a ModelError that names the column or row at fault."""
    _check_names("column", program.columns)
    _check_names("row", program.rows)
    if program.num_columns == 0:
        raise ModelError("there are no columns")
    _check_finite("objective coefficient of column", program.columns, program.cost)
    largest = np.zeros(program.num_rows)
    row = np.repeat(np.arange(program.num_rows), np.diff(program.row_ptr))
    np.maximum.at(largest, row, np.abs(program.value))
    _check_finite("largest coefficient of row", program.rows, largest)
    if not abs(program.constant) <= LARGEST:
        raise ModelError(f"the objective's constant is {program.constant!r}; it must be finite")
    _check_sides("column", program.columns, program.lower, program.upper)
    _check_sides("row", program.rows, program.row_lower, program.row_upper)
    if len(program.index) and not (
        program.index.min() >= 0 and program.index.max() < program.num_columns
    ):
        raise ModelError(f"column {int(program.index.max())} of {program.num_columns} is in a row")


def _check_names(what: str, names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if not name or any(mark.isspace() for mark in name):
            raise ModelError(
                f"{what} {clipped(name)!r}: a name has at least one character and no blanks"
            )
        if name in seen:
            raise ModelError(f"two {what}s are called {clipped(name)!r}")
        seen.add(name)


def _check_finite(what: str, names: Sequence[str], values: Floats) -> None:
    bad = np.flatnonzero(~(np.abs(values) <= LARGEST))
    if len(bad):
        allowed = f"finite and at most {LARGEST:g} in size"
        found = clipped(names[bad[0]])
        raise ModelError(f"{what} {found!r} is {values[bad[0]]!r}; it must be {allowed}")


def _check_sides(what: str, names: Sequence[str], lower: Floats, upper: Floats) -> None:
    for side, values, wrong in (("lower", lower, math.inf), ("upper", upper, -math.inf)):
        bad = (
            np.isnan(values)
            | (values == wrong)
            | (np.isfinite(values) & (np.abs(values) > LARGEST))
        )
        for k in np.flatnonzero(bad).tolist():
            raise ModelError(f"the {side} side of {what} {clipped(names[k])!r} is {values[k]!r}")
