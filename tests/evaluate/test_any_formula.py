"""Any formula over any study comes to a value, or to nothing with a reason: no exception, no
warning, no NaN.
"""

from __future__ import annotations

import warnings

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from optbench.evaluate.cell_columns import CellColumns
from optbench.evaluate.claim_ledger import at_bound
from optbench.evaluate.formula_values import evaluate, interval
from optbench.evaluate.rows import table
from optbench.evaluate.worst_cells import worst_cells
from optbench.study.formula_binding import Formula, condition, number
from optbench.study.formula_lexer import FormulaError
from optbench.study.formula_names import Scope
from tests.evaluate.studies_by_hand import failure, record, records_of, study_of

SCOPE = Scope((("a", "a"), ("b", "b")), "a")
METRICS = st.sampled_from(
    ["gap", "energy_j", "objective", "bound", "rpd", "wall_s", "0", "1", "10s"]
)
SIGNS, COMPARISONS = st.sampled_from("+-*/"), st.sampled_from(["<", "<=", "==", "!=", ">=", ">"])
SOLVER = st.sampled_from(["", ",a", ",b"])
OF_CELL = st.recursive(
    METRICS,
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, SIGNS, inner), inner.map("abs({})".format)
    ),
    max_leaves=3,
)
CASES = st.one_of(
    st.sampled_from(["failed", "optimal"]),
    st.builds("{} {} {}".format, OF_CELL, COMPARISONS, OF_CELL),
)
OVER_CELLS = st.one_of(
    st.builds(
        "{}({}{})".format, st.sampled_from(["mean", "sum", "median", "max", "min"]), OF_CELL, SOLVER
    ),
    st.builds("{}({}{})".format, st.sampled_from(["share", "count"]), CASES, SOLVER),
    st.builds("p({},{}{})".format, st.integers(0, 100), OF_CELL, SOLVER),
    st.builds("gm({},{}{})".format, OF_CELL, st.sampled_from(["0", "10s"]), SOLVER),
    st.builds("{}({},a,b)".format, st.sampled_from(["rel", "ratio"]), OF_CELL),
)
NUMBERS = st.recursive(
    OVER_CELLS, lambda inner: st.builds("({} {} {})".format, inner, SIGNS, inner), max_leaves=3
)
CONDITIONS = st.recursive(
    st.builds("{} {} {}".format, NUMBERS, COMPARISONS, NUMBERS),
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner), st.builds("not ({})".format, inner)
    ),
    max_leaves=3,
)
VALUES = st.one_of(
    st.none(), st.just("failed"), st.sampled_from([0.0, 1.0, 2.5, 7.0, 1e-300, 1e300])
)


@st.composite
def studies(draw: st.DrawFn) -> CellColumns:
    plan = study_of(["a", "b"], ["x", "y"], seeds=range(draw(st.integers(1, 3))))
    records = records_of(
        plan, {(cell.label, cell.instance): (None, 0.0) for cell in plan.bounding.values()}
    )
    for cell in plan.solving:
        value = draw(VALUES)
        if value == "failed":
            records[cell.key] = failure(cell, "crashed")
        elif isinstance(value, float):
            records[cell.key] = record(cell, value, metrics={"energy_j": value})
    return CellColumns(table(plan, records).rows)


def told(formula: Formula, columns: CellColumns) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = evaluate(formula, columns)
        assert (found.value is None) == bool(found.why)
        assert found.value is None or np.isfinite(found.value)
        assert all(part.value is None or np.isfinite(part.value) for part in found.parts)
        if formula.condition:
            assert found.value is True or all(
                each.value is not None or each.why for each in worst_cells(formula, columns)
            )
            return
        spread, lowest = interval(formula, columns), at_bound(formula)
        assert spread is None or spread[0] <= spread[1]
        if lowest is not None:
            evaluate(lowest, columns)


@given(NUMBERS, studies())
def test_any_number(source: str, columns: CellColumns) -> None:
    try:
        formula = number(source, SCOPE)
    except FormulaError as error:
        assert "levels" in error.message or "says nothing" in error.message
    else:
        told(formula, columns)


@given(CONDITIONS, studies())
def test_any_condition(source: str, columns: CellColumns) -> None:
    try:
        formula = condition(source, SCOPE)
    except FormulaError as error:
        assert "levels" in error.message or "says nothing" in error.message
    else:
        told(formula, columns)
