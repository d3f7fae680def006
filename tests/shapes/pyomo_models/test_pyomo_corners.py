"""Models that Pyomo itself finds to be infeasible, and continuous columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyomo.environ as pyo
import pytest

import optbench as ob
from optbench.shapes import Findings, PyomoShape


@dataclass(frozen=True)
class Mix:
    """How much of a thing is wanted."""

    wanted: float


@dataclass(frozen=True)
class Amount:
    """How much of it is made."""

    made: float


class Mixing(PyomoShape):
    """Make a third of something: 3 x is at least what is wanted."""

    name = "mixing"
    data, solution = Mix, Amount
    minimize = "made"

    def model(self, data: Mix) -> Any:
        m: Any = pyo.ConcreteModel()
        m.x = pyo.Var(bounds=(0, None))
        m.cost = pyo.Objective(expr=m.x)
        m.enough = pyo.Constraint(expr=3 * m.x >= data.wanted)
        m.possible = pyo.Constraint(expr=0 * m.x <= 10 - data.wanted)
        return m

    def encode(self, data: Mix, decision: Amount, m: Any) -> None:
        m.x.set_value(decision.made)

    def decode(self, data: Mix, m: Any) -> Amount:
        return Amount(m.x.value)

    def verify(self, data: Mix, decision: Amount) -> Findings:
        found = Findings({"made": decision.made})
        found.require(3 * decision.made >= data.wanted * (1 - 1e-12), "enough", "too little")
        return found


def test_a_third_goes_through_floats() -> None:
    instance: Any = Mixing().instance("third", Mix(1.0))
    result = ob.solve(instance, "highs", time_limit_s=10)
    assert result.status == "optimal" and result.objective == pytest.approx(1 / 3, rel=1e-15)
    (bound,) = ob.bound(instance)
    assert bound.proof == "exact-lp" and bound.value == pytest.approx(1 / 3, rel=1e-12)


@pytest.mark.parametrize("solver", ["highs", "cpsat"])
def test_a_row_without_variables_that_cannot_hold(solver: str) -> None:
    instance: Any = Mixing().instance("too much", Mix(12.0))
    assert ob.solve(instance, solver, time_limit_s=10).status == "infeasible"
