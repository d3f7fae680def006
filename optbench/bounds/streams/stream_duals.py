"""Repair duals of the stream LP: the interior point method leaves them slightly infeasible.

A reduced cost of −1e-10 is charged at the bound of its column, which for billions of units is much.
With the prices of devices and of time in the system kept, the prices of units follow
(``stream_program``, ``stream_waiting``): with p_cs the least cost of a unit of class c in slot s at
those prices, σ_cs the price of its group row, v_bs of waiting and λ of time in the system,

    v_bs ≤ λ / u_b,    π'_bs ≤ min(σ_cs, π'_b,s+1 + w_s v_bs),    π_cs ≤ min(p_cs − σ_cs, π_c,s+1)

each set to its greatest value, last slot first. Where the price of a unit falls from one slot to
the next by more than such an error, a deadline makes it fall, and its column's bound pays for that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optbench.bounds.lp.linear_program import LinearProgram, LpSolution, solve_in_units
from optbench.model.instance import Bools, Floats, Ints

# A fall in price of less than this share of the highest price is an error of the interior point
# method.
ERROR = 1e-5


def solve_scaled(lp: LinearProgram, time_limit_s: float) -> LpSolution:
    """Solve with columns of at most about 1, rows whose largest entry is about 1, and costs of at
    most 1: HiGHS's tolerances are absolute, and a cent per million units is below them. Scales
    are powers of two: nothing is rounded.
    """
    top = np.isfinite(lp.upper) & (lp.upper > 0)
    column = np.where(top, _power(np.where(top, lp.upper, 1.0)), 1.0)
    size = np.abs(lp.value) * column[lp.column]
    bounded = top[lp.column]
    largest = np.zeros(lp.num_rows)
    np.maximum.at(largest, lp.row[bounded], size[bounded])
    row = np.where(largest > 0, 1.0 / _power(np.where(largest > 0, largest, 1.0)), 1.0)
    most = np.zeros(lp.num_columns)
    np.maximum.at(most, lp.column, np.abs(lp.value) * row[lp.row])
    column = np.where(np.isfinite(lp.upper), column, 1.0 / _power(np.where(most > 0, most, 1.0)))
    cost = lp.cost * column
    unit = float(_power(np.abs(cost).max(initial=0.0) or 1.0))
    return solve_in_units(lp, column, row, unit, time_limit_s)


def _power(value: Any) -> Floats:
    """Return the power of two below."""
    return np.asarray(np.ldexp(0.5, np.frexp(value)[1]), dtype=float)


def repaired(lp: LinearProgram, dual: Floats, choices: int, classes: int, width: Floats) -> Floats:
    """Return duals close to these with hardly a negative reduced cost; the first columns are the
    ``choices`` x, slots have these widths.
    """
    family, count = np.asarray(lp.family), len(width)
    y = np.where(np.isfinite(dual), dual, 0.0)
    y = np.where(lp.equal, y, np.maximum(y, 0.0))
    waiting, undone, backlog, linked = (
        np.flatnonzero(family == name) for name in ("waiting", "undone", "backlog", "by_group")
    )
    column = np.arange(lp.num_columns)
    if len(undone):
        groups = len(undone) // count
        ends = len(waiting) // groups
        # Time integrals are the columns with a positive entry in a row of waiting, done units those
        # that link both.
        integral = np.isin(column, lp.column[np.isin(lp.row, waiting) & (lp.value > 0)])
        y[waiting] = np.clip(_least(lp, y, waiting, integral), 0.0, y[waiting])
        more = np.zeros((groups, count))
        more[:, :ends] = width[:ends] * y[waiting].reshape(groups, ends)
        done = np.isin(column, lp.column[np.isin(lp.row, linked)]) & (column >= choices)
        y[undone] = _rising(_least(lp, y, undone, done).reshape(groups, count), more).ravel()
    old = y[backlog].reshape(classes, count)
    cap = _least(lp, y, backlog, column < choices).reshape(classes, count)
    y[backlog] = _rising(cap, np.zeros((classes, count)), old).ravel()
    return y


def _least(lp: LinearProgram, y: Floats, rows: Ints, columns: Bools) -> Floats:
    """Return, per row, the least reduced cost of these columns, each with entry 1 there, if the
    duals of the rows were zero.
    """
    rest = y.copy()
    rest[rows] = 0.0
    reduced = lp.cost - np.bincount(
        lp.column, weights=lp.value * rest[lp.row], minlength=lp.num_columns
    )
    entries = np.flatnonzero(columns[lp.column] & np.isin(lp.row, rows))
    out = np.full(lp.num_rows, np.inf)
    np.minimum.at(out, lp.row[entries], reduced[lp.column[entries]])
    return np.asarray(out[rows], dtype=float)


def _rising(cap: Floats, more: Floats, old: Floats | None = None) -> Floats:
    """Return the greatest prices up to ``cap`` that fall from slot to slot by at most ``more``,
    except where ``old`` ones clearly do.
    """
    out = cap.copy()
    scale = ERROR * float(np.abs(cap[np.isfinite(cap)]).max(initial=0.0))
    for s in range(cap.shape[1] - 2, -1, -1):
        limit = out[:, s + 1] + more[:, s]
        if old is not None:
            limit = np.where(old[:, s] > limit + scale, old[:, s], limit)
        out[:, s] = np.minimum(out[:, s], limit)
    return out
