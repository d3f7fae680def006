"""Models in units that suit HiGHS's absolute tolerances: powers of two, which round nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from optbench.model.instance import Floats
from optbench.views.milp import Formulation

# Columns that are times, and the largest time, other amount and coefficient for HiGHS.
TIMES = ("start", "makespan", "tardy")
LARGEST = 2.0**12


class Matrix(Protocol):
    """The parts of a model for HiGHS, which the array form and the compiled Pyomo model share."""

    @property
    def cost(self) -> Floats: ...
    @property
    def lower(self) -> Floats: ...
    @property
    def upper(self) -> Floats: ...
    @property
    def integer(self) -> np.ndarray[Any, np.dtype[np.bool_]]: ...
    @property
    def row_lower(self) -> Floats: ...
    @property
    def row_upper(self) -> Floats: ...
    @property
    def matrix(self) -> tuple[Any, Any, Floats]: ...


@dataclass(frozen=True)
class Scaled:
    """A model with its columns in other units, and its rows divided by powers of two: nothing is
    rounded.

    HiGHS's tolerances are absolute. In ticks of a nanosecond times and the constants that switch
    rows on and off are 1e9 and more: with those HiGHS 1.14.0 proved bounds above the optimum.
    """

    cost: Floats
    lower: Floats
    upper: Floats
    integer: np.ndarray[Any, np.dtype[np.bool_]]
    row_lower: Floats
    row_upper: Floats
    matrix: tuple[Any, Any, Floats]

    @classmethod
    def of(cls, model: Matrix, units: Floats) -> Scaled:
        ptr, col, value = model.matrix
        value = value * units[col]
        row = np.repeat(np.arange(len(model.row_lower)), np.diff(ptr))
        largest = np.zeros(len(model.row_lower))
        np.maximum.at(largest, row, np.abs(value))
        divisor = np.ldexp(1.0, np.maximum(0, np.frexp(largest / LARGEST)[1]))
        return cls(
            model.cost * units,
            model.lower / units,
            model.upper / units,
            model.integer,
            model.row_lower / divisor,
            model.row_upper / divisor,
            (ptr, col, value / divisor[row]),
        )


def column_units(formulation: Formulation) -> Floats:
    """Return the scale of each column: powers of two that bring times, and what else may be large
    and broken, up to LARGEST. Times share one scale.

    With flows of 2e9 devices and ticks beside binary columns HiGHS 1.14.0 called a feasible model
    infeasible.
    """
    out = np.ones(formulation.arrays.num_columns)
    time_unit = unit_of(float(formulation.frame.end))
    for block in formulation.arrays.columns:
        if block.integer:
            continue
        place = slice(block.first, block.first + block.size)
        if block.name in TIMES:
            out[place] = time_unit
        else:
            upper = block.upper[np.isfinite(block.upper)]
            out[place] = unit_of(float(upper.max(initial=0.0)))
    return out


def unit_of(largest: float) -> float:
    """Return the power of two, at least 1, that brings the largest of some values to LARGEST."""
    return float(np.ldexp(1.0, max(0, int(np.frexp(largest / LARGEST)[1]))))


def pass_model(highs: Any, model: Matrix, scale: float = 1.0) -> None:
    """Pass the arrays, the objective times ``scale`` and without its constant, rows of small
    numbers scaled up.

    HiGHS's tolerances are absolute, and it drops coefficients below 1e-9: a limit of 6e-9 g on
    carbon would always hold, or never.
    """
    ptr, col, value = model.matrix
    unit = row_units(ptr, value)
    highs.passModel(
        len(model.cost),
        len(model.row_lower),
        len(col),
        2,
        1,
        0.0,
        model.cost * scale,
        model.lower,
        model.upper,
        model.row_lower * unit,
        model.row_upper * unit,
        ptr,
        col,
        value * np.repeat(unit, np.diff(ptr)),
        model.integer.astype(np.int32),
    )


def row_units(ptr: Any, value: Floats) -> Floats:
    """Return factors of rows: powers of two that bring small largest coefficients to [1/2, 1)."""
    largest = np.zeros(len(ptr) - 1)
    np.maximum.at(largest, np.repeat(np.arange(len(largest)), np.diff(ptr)), np.abs(value))
    exponent = np.frexp(largest)[1]
    return np.asarray(
        np.where((largest > 0) & (exponent < 0), np.ldexp(1.0, -exponent), 1.0), dtype=float
    )
