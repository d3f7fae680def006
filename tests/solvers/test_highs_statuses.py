"""How HiGHS ends: every status is mapped, and unbounded or infeasible is looked into."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import highspy
import numpy as np
import pytest

from optbench.errors import ContradictionError
from optbench.model.instance import Instance
from optbench.plugins.protocol import Run
from optbench.plugins.solvers._highs_session import SOLVED, STOPPED
from optbench.plugins.solvers.highs import Highs, Session, safe_bound
from optbench.views.milp import formulate
from tests.solvers.highs_shops import serial, shop


def session(instance: Instance) -> Session:
    run = Run(instance)
    formulation, _ = formulate(instance, "disjunctive")
    return Session(run, formulation, formulation.arrays, np.arange(formulation.arrays.num_columns))


def line(cost: float, upper: float, least: float) -> Any:
    """minimise cost · x over 0 <= x <= upper and x >= least, x whole."""
    return SimpleNamespace(
        cost=np.asarray([cost]),
        lower=np.zeros(1),
        upper=np.asarray([upper]),
        integer=np.ones(1, dtype=bool),
        row_lower=np.asarray([least]),
        row_upper=np.asarray([np.inf]),
        matrix=(np.asarray([0, 1], dtype=np.int32), np.asarray([0], dtype=np.int32), np.ones(1)),
    )


@pytest.mark.parametrize(
    ("model", "unbounded", "infeasible"),
    [
        (line(-1.0, np.inf, 0.0), True, False),
        (line(-1.0, 3.0, 4.0), False, True),
    ],
)
def test_unbounded_and_infeasible_are_told_apart(
    model: Any, unbounded: bool, infeasible: bool
) -> None:
    one = session(shop(2))
    one.model, one.order = model, np.zeros(1, dtype=np.int64)
    one.solve(None)
    assert (one.run.proven_unbounded, one.run.proven_infeasible) == (unbounded, infeasible)
    assert one.run.best is None and one.run.termination == "finished"


class Stopped:
    """A HiGHS that ended in a given status with a given bound and nothing found."""

    def __init__(self, status: Any, bound: float = math.inf) -> None:
        self.status, self.bound = status, bound

    def getModelStatus(self) -> Any:
        return self.status

    def getInfo(self) -> Any:
        return SimpleNamespace(
            mip_node_count=-1, primal_solution_status=0, mip_dual_bound=self.bound
        )


class Undecided(Stopped):
    """A HiGHS that cannot tell infeasible from unbounded until it runs again without an
    objective.
    """

    def __init__(self, then: Any) -> None:
        super().__init__(highspy.HighsModelStatus.kUnboundedOrInfeasible, bound=0.0)
        self.then, self.calls = then, list[str]()

    def getNumCol(self) -> int:
        return 1

    def disableCallbacks(self) -> None:
        self.calls.append("quiet")

    def changeColsCost(self, count: int, columns: Any, costs: Any) -> None:
        assert count == len(columns) == len(costs) and not costs.any()
        self.calls.append("no objective")

    def run(self) -> None:
        self.calls.append("run")
        self.status = self.then


@pytest.mark.parametrize(
    ("then", "unbounded", "infeasible", "termination"),
    [
        ("kOptimal", True, False, "finished"),
        ("kInfeasible", False, True, "finished"),
        ("kTimeLimit", False, False, "time_limit"),
        ("kSolveError", False, False, "crashed"),
    ],
)
def test_unbounded_or_infeasible_is_looked_into(
    then: str, unbounded: bool, infeasible: bool, termination: str
) -> None:
    one, highs = session(shop(2)), Undecided(highspy.HighsModelStatus.__members__[then])
    one._settle(highs)
    assert (one.run.proven_unbounded, one.run.proven_infeasible, one.run.termination) == (
        unbounded,
        infeasible,
        termination,
    )
    assert highs.calls == ["quiet", "no objective", "run"] and one.run.bound is None


def test_every_status_of_highs_is_mapped() -> None:
    solved_ones = set(SOLVED)
    handled = solved_ones | {"kInfeasible", "kUnbounded"}
    for name, status in highspy.HighsModelStatus.__members__.items():
        one = session(shop(2))
        if name == "kUnboundedOrInfeasible":
            continue  # above
        one._settle(Stopped(status, bound=4.0 * one.scale))
        if name in handled:
            assert one.run.termination == "finished", name
        else:
            expected = STOPPED.get(name, "crashed")
            assert one.run.termination == (
                "time_limit" if expected == "interrupted" else expected
            ), name
        assert one.run.proven_infeasible == (name == "kInfeasible")
        assert one.run.proven_unbounded == (name == "kUnbounded")
        assert (one.run.bound == 4.0) == (name in {*STOPPED, *solved_ones}), (
            name
        )  # stopped for a reason that HiGHS names


def test_infeasible_against_a_schedule_is_handed_on_so_that_the_core_says_so_loudly() -> None:
    one = session(shop(2))
    one.run.report(serial(one.run.instance))
    one._settle(Stopped(highspy.HighsModelStatus.kInfeasible))
    assert str(one.run.infeasibility).startswith("Infeasibility(source='highs', proof='solver'")


def test_a_contradiction_inside_a_callback_comes_out() -> None:
    """An exception must not be lost in HiGHS: a bound above a verified objective stops the run
    loudly.
    """
    instance = shop(4)
    run = Run(instance)
    run.report_bound(15.0, "elsewhere", "combinatorial")  # the optimum is 14
    with pytest.raises(
        ContradictionError, match=r"bound 15.0 from elsewhere exceeds the verified objective 14"
    ):
        Highs("disjunctive", first=False).solve(instance, run)


@pytest.mark.parametrize(
    ("dual", "slack", "grain", "expected"),
    [
        (10.0, 1e-6, None, 10.0 - 1e-6 - 1e-8),
        (10.2, 1e-6, 1.0, 11.0),
        (10.0, 1e-6, 1.0, 10.0),
        (10.0 + 1e-7, 1e-6, 1.0, 10.0),
        (10.0, 1e-6, 1e-7, 10.0 - 1e-6 - 1e-8),
        (-0.4, 0.0, 0.5, 0.0),
    ],
)
def test_the_bound_is_below_the_dual_bound_by_the_slack(
    dual: float, slack: float, grain: float | None, expected: float
) -> None:
    assert safe_bound(dual, slack, grain) == pytest.approx(expected, abs=1e-12)
