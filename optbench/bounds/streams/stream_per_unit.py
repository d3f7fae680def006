"""The least energy per unit over all amounts of work: a linear-fractional programme.

Schedules that process less than a small part of what is offered are bounded separately: their least
is all rest over that part.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optbench.bounds.lp.exact_check import round_down
from optbench.bounds.lp.linear_program import LinearProgram
from optbench.bounds.streams.stream_program import StreamProgram
from optbench.model.instance import Instance
from optbench.units import SUM_MARGIN


def lp_of(instance: Instance, program: StreamProgram) -> LinearProgram | None:
    """Return the LP of the objective, or of J per unit over all amounts of work; None where nothing
    is bounded.
    """
    if program.unbounded_waste:
        return None
    if "j_per_unit" not in instance.objective.metrics:
        return program.lp
    return None if program.constant < 0 else per_unit(program, program.few)


def value_of(instance: Instance, program: StreamProgram, proven: Fraction | None) -> float | None:
    """Return the bound on the objective that a proven value of the LP gives."""
    if proven is None:
        return None
    if "j_per_unit" not in instance.objective.metrics:
        return round_down(proven + Fraction(program.constant))
    # A schedule that processes less than a few units pays all rest for them.
    few_only = Fraction(program.cheapest) + Fraction(program.constant) / Fraction(program.few)
    return round_down(min(proven, few_only) * (1 - Fraction(2, 10**9)))


def per_unit(program: StreamProgram, low: float) -> LinearProgram:
    """Return min (c·v + constant) / Σ x as a linear programme in v / Σ x and 1 / Σ x (Charnes and
    Cooper), for at least ``low`` units.
    """
    lp, n = program.lp, program.lp.num_columns
    most = 1.0 / low
    scale = n
    row = np.concatenate((lp.row, np.flatnonzero(lp.right), np.full(len(program.cls), lp.num_rows)))
    column = np.concatenate(
        (lp.column, np.full(int((lp.right != 0).sum()), scale), np.arange(len(program.cls)))
    )
    value = np.concatenate((lp.value, -lp.right[lp.right != 0], np.ones(len(program.cls))))
    order = np.lexsort((column, row))
    ptr = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=lp.num_rows + 1)))).astype(
        np.int64
    )
    upper = np.concatenate(
        (np.ones(len(program.cls)), lp.upper[len(program.cls) :] * most * (1 + SUM_MARGIN), [most])
    )
    least = 1.0 / (program.offered * (1 + 2 * SUM_MARGIN))
    return LinearProgram(
        np.append(lp.cost, program.constant),
        np.append(lp.lower, least),
        upper,
        ptr,
        column[order],
        value[order],
        np.append(np.zeros(lp.num_rows), 1.0),
        np.append(lp.equal, True),
        (*lp.family, "one_unit"),
        np.append(lp.of, 0),
    )
