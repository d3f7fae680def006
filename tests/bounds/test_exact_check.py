"""The exact proof: right on a hand-made programme, safe whatever the duals, exact where floats are
not.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optbench.bounds.lp.exact_check import Certificate, certificate, proven_bound, round_down
from optbench.bounds.lp.linear_program import LinearProgram, LpColumns, LpRows, assemble, solve


def programme(right: float = 4.0) -> LinearProgram:
    """min 3 x + 2 y, x + y ≥ right, x − y = 1, 0 ≤ x, y ≤ 10: at right = 4, x = 2.5, y = 1.5, value
    10.5.
    """
    columns, rows = LpColumns(), LpRows()
    x, y = columns.add(2, 0.0, 10.0, [3.0, 2.0])
    rows.add("cover", right, (0, x, 1.0), (0, y, 1.0))
    rows.add("tie", 1.0, (0, x, 1.0), (0, y, -1.0), equal=True)
    return assemble(columns, rows)


def test_the_dual_of_a_solved_programme_proves_its_value() -> None:
    lp = programme()
    solution = solve(lp, 10.0)
    assert solution.dual is not None
    # Dual: cover 2.5, tie 0.5: 2.5 · 4 + 0.5 = 10.5.
    assert proven_bound(lp, certificate(lp, solution.dual)) == Fraction(21, 2)


def test_a_solve_with_more_threads_before_does_not_matter() -> None:
    import highspy

    highspy.Highs.resetGlobalScheduler(True)
    other = highspy.Highs()
    for name, value in {"output_flag": False, "threads": 2}.items():
        other.setOptionValue(name, value)
    other.addVar(0.0, 1.0)
    other.run()
    assert solve(programme(), 10.0).dual is not None


def test_a_refused_programme_is_an_error() -> None:
    lp = programme()
    broken = replace(lp, column=lp.column + 5)
    with pytest.raises(
        RuntimeError,
        match=r"HiGHS .* refused the linear programme of 2 rows and 2 columns: passModel",
    ):
        solve(broken, 10.0)


@given(st.lists(st.floats(-1e12, 1e12), min_size=2, max_size=2))
def test_no_dual_whatever_proves_more_than_the_optimum(dual: list[float]) -> None:
    lp = programme()
    proven = proven_bound(lp, certificate(lp, np.array(dual)))
    assert proven is not None
    assert proven <= Fraction(21, 2)


@given(st.integers(0, 10_000))
def test_perturbed_duals_never_exceed_the_value_at_a_feasible_point(seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns, rows = LpColumns(), LpRows()
    n, m = 6, 5
    col = columns.add(n, 0.0, rng.uniform(1, 5, n), rng.normal(size=n))
    point = rng.uniform(0, 1, n)
    for _ in range(m):
        a = rng.normal(size=n)
        rows.add("row", float(a @ point) - 1e-9, (0, col, a))
    lp = assemble(columns, rows)
    solution = solve(lp, 10.0)
    assert solution.dual is not None
    wild = solution.dual * rng.uniform(0.5, 1.5, m) + rng.normal(size=m) * rng.choice([0, 1e-6, 1])
    exact_cost = sum(
        Fraction(float(c)) * Fraction(float(x)) for c, x in zip(lp.cost, point, strict=True)
    )
    for dual in (solution.dual, wild):
        proven = proven_bound(lp, certificate(lp, dual))
        assert proven is not None
        assert proven <= exact_cost


def test_a_negative_dual_of_an_inequality_proves_nothing() -> None:
    lp = programme()
    assert proven_bound(lp, Certificate((-1, 0), 0)) is None


def test_not_a_number_and_infinite_duals_are_set_to_zero() -> None:
    lp = programme()
    # Nothing but the columns' lower bounds is left: 0.
    assert proven_bound(lp, certificate(lp, np.array([np.nan, np.inf]))) == 0


def test_columns_without_upper_bound_bear_no_more_dual_than_their_cost() -> None:
    columns, rows = LpColumns(), LpRows()
    f = columns.add(1, 0.0, np.inf, 1.0)
    rows.add("above", 5.0, (0, f, 1.0))
    lp = assemble(columns, rows)
    # A dual of 1 proves 5; 1.000001 would make the reduced cost negative with nothing to pay for
    # it.
    assert proven_bound(lp, certificate(lp, np.array([1.000001]))) == 5


def test_a_dual_that_an_unbounded_column_cannot_bear_proves_nothing() -> None:
    columns, rows = LpColumns(), LpRows()
    f = columns.add(1, 0.0, np.inf, 1.0)
    rows.add("above", 5.0, (0, f, 1.0))
    lp = assemble(columns, rows)
    # Reduced costs 1 − 1 and 1 − 2: the second can be made up for by no upper bound.
    assert proven_bound(lp, Certificate((1,), 0)) == 5
    assert proven_bound(lp, Certificate((2,), 0)) is None


def test_duals_keep_sixty_bits_beyond_the_largest_term() -> None:
    # The largest dual times its entry is 2.5 = 0.625 · 2^2, its entry 1 = 0.5 · 2^1: there are
    # 60 − (2 − 1) bits behind the point.
    assert certificate(programme(), np.array([2.5, 0.5])) == Certificate((5 * 2**58, 2**58), 59)
    # Of 2^70, 0.5 · 2^71, they are none: the shift is never negative.
    assert certificate(programme(), np.array([2.0**70, 0.5])) == Certificate((2**70, 0), 0)


def test_sums_are_exact_where_floats_absorb_the_small_term() -> None:
    columns, rows = LpColumns(), LpRows()
    big, small = columns.add(2, 0.0, 2.0**60, 1.0)
    rows.add("big", 2.0**53, (0, big, 1.0))
    rows.add("small", 1.0, (0, small, 1.0))
    lp = assemble(columns, rows)
    assert 2.0**53 + 1.0 == 2.0**53
    assert proven_bound(lp, Certificate((1, 1), 0)) == 2**53 + 1


def test_rounding_never_goes_up() -> None:
    third = Fraction(1, 3)
    assert Fraction(round_down(third)) <= third
    assert round_down(Fraction(1, 2)) == 0.5
    assert round_down(third) == pytest.approx(1 / 3, abs=1e-16)
