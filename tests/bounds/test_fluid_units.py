"""Units of time and cost in which HiGHS is given the fluid LP: powers of two."""

from __future__ import annotations

import numpy as np
import pytest

import optbench as ob
from optbench.bounds.fluid import fluid_units
from optbench.bounds.fluid.fluid_program import Fluid, fluid_model
from optbench.bounds.fluid.fluid_units import cost_unit, solve_program, time_unit
from optbench.bounds.lp.linear_program import LinearProgram, LpSolution, solve_in_units
from optbench.model.instance import Floats


def one_task(ticks: float) -> Fluid:
    m = ob.Model("one")
    m.task(modes=[m.mode(m.pool("gpu"), time_s=ticks)])
    m.minimize(makespan=3.0)
    return fluid_model(m.build())


def test_the_longest_task_has_about_a_thousand_units() -> None:
    assert time_unit(one_task(2**20)) == 1
    # 2^30 and 2^31 − 1 ticks have 31 binary digits; without the last 21 they are 512 to 1,023.
    assert time_unit(one_task(2**30)) == time_unit(one_task(2**31 - 1)) == 2**21
    assert time_unit(one_task(2**31)) == 2**22


def test_the_largest_cost_is_between_one_and_two_units() -> None:
    assert [cost_unit(np.array([1.0, -largest])) for largest in (1.0, 5.0, 8.0)] == [1, 4, 8]
    assert cost_unit(np.array([0.0, 0.375])) == 0.25
    assert cost_unit(np.zeros(2)) == cost_unit(np.zeros(0)) == 1


def test_only_long_times_are_solved_in_units(monkeypatch: pytest.MonkeyPatch) -> None:
    units: list[tuple[Floats, Floats, float]] = []

    def kept(lp: LinearProgram, column: Floats, row: Floats, *rest: float) -> LpSolution:
        units.append((column, row, rest[0]))
        return solve_in_units(lp, column, row, *rest)

    monkeypatch.setattr(fluid_units, "solve_in_units", kept)
    for ticks in (5.0, 2.0**30):
        fluid = one_task(ticks)
        assert solve_program(fluid, fluid.program(), 10.0).value == pytest.approx(3 * ticks)
    ((column, row, cost),) = units
    # Columns: a share, a start and the makespan. Rows: one mode, and two of times.
    assert column.tolist() == [1.0, 2.0**21, 2.0**21]
    assert sorted(set(row.tolist())) == [2.0**-21, 1.0]
    # The makespan costs 3 · 2^21: the power of two below it is 2^22.
    assert cost == 2.0**22
