"""The linear relaxation of a programme, solved by HiGHS: status, duals and the basis."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from optbench.shapes.milp.program import Milp

# Where a column or the activity of a row is in the basic solution that HiGHS returns.
Place = Literal["basic", "lower", "upper"]


@dataclass(frozen=True)
class SolvedRelaxation:
    """What HiGHS says of the minimisation; without a basis ``columns`` and ``rows`` are empty."""

    status: str
    duals: tuple[float, ...]
    columns: tuple[Place, ...]
    rows: tuple[Place, ...]


def relax(program: Milp, time_limit_s: float = math.inf) -> SolvedRelaxation:
    """Solve the linear relaxation as a minimisation, by the simplex method."""
    import highspy

    model = highspy.Highs()
    model.silent()
    model.setOptionValue("solver", "simplex")
    if time_limit_s != math.inf:
        model.setOptionValue("time_limit", max(0.0, float(time_limit_s)))
    model.passModel(highs_model(program, whole=False))
    model.run()
    status, basis = model.getModelStatus(), model.getBasis()
    words = {
        highspy.HighsModelStatus.kOptimal: "optimal",
        highspy.HighsModelStatus.kInfeasible: "infeasible",
        highspy.HighsModelStatus.kUnbounded: "unbounded",
    }
    places = ([], []) if not basis.valid else (basis.col_status, basis.row_status)
    columns, rows = (tuple(_place(state) for state in each) for each in places)
    return SolvedRelaxation(
        words.get(status, "unknown"), tuple(model.getSolution().row_dual), columns, rows
    )


def _place(state: Any) -> Place:
    import highspy

    kinds = highspy.HighsBasisStatus
    return "basic" if state == kinds.kBasic else "upper" if state == kinds.kUpper else "lower"


def highs_model(program: Milp, whole: bool) -> Any:
    """Return the minimisation as HiGHS takes it; with ``whole`` integers stay integers."""
    import highspy

    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = program.num_columns, program.num_rows
    lp.col_cost_ = program.cost if program.sense == "min" else -program.cost
    lp.col_lower_, lp.col_upper_ = program.lower, program.upper
    lp.row_lower_, lp.row_upper_ = program.row_lower, program.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = program.row_ptr
    lp.a_matrix_.index_ = program.index
    lp.a_matrix_.value_ = program.value
    if whole and program.integer.any():
        kinds = highspy.HighsVarType
        lp.integrality_ = [
            kinds.kInteger if each else kinds.kContinuous for each in program.integer
        ]
    return lp
