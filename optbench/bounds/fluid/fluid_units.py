"""Solve the fluid LP with times scaled for HiGHS, whose tolerances are absolute.

In ticks of 1 ns a makespan of seconds costs 1e-9 of the objective per tick, far below the tolerance
of a reduced cost. Where the longest task has more than 2^20 ticks, columns and rows in ticks are
counted in 2^k of them, in which it has about a thousand, and costs are scaled so that the largest
is about 1. Powers of two round nothing; LP, duals and proofs stay in ticks.
"""

from __future__ import annotations

import numpy as np

from optbench.bounds.fluid.fluid_program import Fluid
from optbench.bounds.lp.linear_program import LinearProgram, LpSolution, solve, solve_in_units
from optbench.model.instance import Bools, Floats

LONG_TICKS, BITS = 2**20, 10
# Families of rows whose terms are times, or powers times times.
TIME_ROWS = (
    "capacity",
    "start",
    "completion",
    "deadline",
    "power",
    "lateness",
    "worked",
    "room",
    "early",
    "late",
)


def solve_program(
    fluid: Fluid, lp: LinearProgram, time_limit_s: float, kept: Bools | None = None
) -> LpSolution:
    """Solve the LP of ``fluid``, or the one restricted to the columns ``kept``."""
    ticks = time_unit(fluid)
    if ticks == 1.0:
        return solve(lp, time_limit_s)
    column = np.ones(lp.num_columns if kept is None else len(kept))
    column[np.concatenate((fluid.start, fluid.late, fluid.slot, [fluid.makespan]))] = ticks
    column = column if kept is None else column[kept]
    row = np.where(np.isin(np.asarray(lp.family), TIME_ROWS), 1.0 / ticks, 1.0)
    return solve_in_units(lp, column, row, cost_unit(lp.cost * column), time_limit_s)


def time_unit(fluid: Fluid) -> float:
    """Return 2^k ticks, 1 where times are small numbers."""
    longest = float(fluid.groups.duration.max(initial=0.0))
    return 1.0 if longest <= LONG_TICKS else 2.0 ** (np.frexp(longest)[1] - BITS)


def cost_unit(cost: Floats) -> float:
    """Return the power of two below the largest cost."""
    largest = float(np.abs(cost).max(initial=0.0))
    return float(np.ldexp(0.5, np.frexp(largest)[1])) if largest > 0 else 1.0
