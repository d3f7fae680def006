"""Linear programmes in rows: how they are put together, and what HiGHS is asked and answers, by
hand.
"""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np
import pytest

from optbench.bounds.lp import linear_program
from optbench.bounds.lp.linear_program import (
    LARGEST,
    LinearProgram,
    LpColumns,
    LpRows,
    assemble,
    solve,
    solve_in_units,
)


def small(coefficient: float = 1.0) -> LinearProgram:
    """min x + 2y + 3z with x + y ≥ 3, y − z = 0.5, x ≤ 2: x = 2, y = 1, z = 0.5 cost 5.5."""
    columns, rows = LpColumns(), LpRows()
    x = columns.add(1, 0.0, 2.0, 1.0)
    yz = columns.add(2, 0.0, np.inf, [2.0, 3.0])
    rows.add("sum", 3.0, (0, x, coefficient), (0, yz, [1.0, 0.0]))
    rows.add("difference", [0.5], (0, yz, [1.0, -1.0]), equal=True, of=[7])
    return assemble(columns, rows)


def test_blocks_become_compressed_rows_without_zeros() -> None:
    lp = small()
    assert (lp.num_columns, lp.num_rows) == (3, 2)
    assert lp.cost.tolist() == [1.0, 2.0, 3.0]
    assert lp.upper.tolist() == [2.0, np.inf, np.inf] and lp.lower.tolist() == [0.0] * 3
    assert lp.row_ptr.tolist() == [0, 2, 4] and lp.row.tolist() == [0, 0, 1, 1]
    assert lp.column.tolist() == [0, 1, 1, 2] and lp.value.tolist() == [1.0, 1.0, 1.0, -1.0]
    assert lp.right.tolist() == [3.0, 0.5] and lp.equal.tolist() == [False, True]
    assert lp.family == ("sum", "difference") and lp.of.tolist() == [0, 7]
    assert lp.times(np.array([2.0, 1.0, 0.25])).tolist() == [3.0, 0.75]


def test_a_programme_without_rows_is_one() -> None:
    columns = LpColumns()
    columns.add(2, 1.0, 4.0, [1.0, -1.0])
    rows = LpRows()
    rows.add("nothing", -1.0)
    found = solve(assemble(columns, rows), 5.0)
    assert found.value == pytest.approx(1.0 - 4.0) and found.primal.tolist() == [1.0, 4.0]


@pytest.mark.parametrize("scaled", [False, True])
def test_value_point_and_duals_are_those_derived_by_hand(scaled: bool) -> None:
    # More of the first right-hand side costs y and with it z, 2 + 3; of the second it takes z, 3
    # off the cost.
    lp = small()
    units = np.array([4.0, 0.5, 2.0]), np.array([2.0, 0.25]), 8.0
    found = solve_in_units(lp, *units, 5.0) if scaled else solve(lp, 5.0)
    assert found.status == "Optimal" and found.value == pytest.approx(5.5)
    assert found.primal == pytest.approx([2.0, 1.0, 0.5])
    assert found.dual == pytest.approx([5.0, -3.0])


def test_coefficients_that_the_solver_refuses_are_not_handed_to_it() -> None:
    found = solve(small(LARGEST), 5.0)
    assert (found.status, found.value, found.dual) == ("too large a coefficient", 0.0, None)
    assert found.primal.tolist() == [0.0] * 3
    assert solve(small(LARGEST / 4), 5.0).status == "Optimal"


def test_the_solver_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    solve(small(), 5.0)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("most", "method"), [(2, "ipm"), (3, None)])
def test_large_programmes_are_solved_by_the_interior_point_method(
    most: int, method: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The three columns are more than two; its answer may be no vertex, so that no crossover
    follows.
    """
    asked: dict[str, Any] = {}

    class Watched(highspy.Highs):  # type: ignore[misc]
        def setOptionValue(self, name: str, value: Any) -> Any:
            asked[name] = value
            return super().setOptionValue(name, value)

    monkeypatch.setattr(highspy, "Highs", Watched)
    monkeypatch.setattr(linear_program, "SIMPLEX_COLUMNS", most)
    assert solve(small(), 5.0).value == pytest.approx(5.5, rel=1e-6)
    assert asked.get("solver") == method
    assert asked.get("run_crossover") == (None if method is None else "off")
    assert asked["threads"] == 1 and asked["time_limit"] == 5.0


@pytest.mark.parametrize("step", ["passModel", "run"])
def test_an_error_of_the_solver_is_no_answer(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(highspy.Highs):  # type: ignore[misc]
        pass

    setattr(Failing, step, lambda *_: highspy.HighsStatus.kError)
    monkeypatch.setattr(highspy, "Highs", Failing)
    if step == "passModel":
        with pytest.raises(RuntimeError, match=r"refused .* of 2 rows and 3 columns"):
            solve(small(), 5.0)
    else:
        found = solve(small(), 5.0)
        assert (found.status, found.value, found.dual) == ("HiGHS gave up", 0.0, None)
        assert found.primal.tolist() == [0.0] * 3
