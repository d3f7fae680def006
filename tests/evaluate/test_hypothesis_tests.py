"""Hypothesis tests against values worked out by hand, and against scipy's where tables end."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from optbench.evaluate.hypothesis_tests import (
    UntestableError,
    blocked_anova,
    equivalence_test,
    holm,
    linear_regression,
    one_way_anova,
    paired_t_test,
)


def test_a_paired_t_test_by_hand() -> None:
    # Differences 1, 2, 3: mean 2, s = 1, standard error 1/√3, t = 2√3. Student's t with two degrees
    # of freedom has P(T > t) = 1/2 − t / (2 √(t² + 2)) = 1/2 − √12 / (2 √14).
    found = paired_t_test([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    assert (found.count, found.difference) == (3, 2.0)
    assert found.standard_error == pytest.approx(3**-0.5)
    assert found.statistic == pytest.approx(2 * 3**0.5)
    assert found.p_value == pytest.approx(1 - (12 / 14) ** 0.5)
    # The 97.5 % quantile with two degrees is 4.302653.
    assert found.low == pytest.approx(2 - 4.302653 / 3**0.5, abs=1e-6)
    assert found.high == pytest.approx(2 + 4.302653 / 3**0.5, abs=1e-6)


def test_swapping_the_samples_turns_the_sign_and_keeps_p() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=8), rng.normal(size=8)
    there, back = paired_t_test(a, b), paired_t_test(b, a)
    assert there.statistic == pytest.approx(-back.statistic)
    assert there.p_value == pytest.approx(back.p_value)


def test_equal_samples_do_not_differ_and_are_equivalent() -> None:
    assert paired_t_test([0.8, 0.9], [0.8, 0.9]).p_value == 1.0
    assert equivalence_test([0.8, 0.9], [0.8, 0.9], 0.01).p_value == 0.0
    # 0.1 + 0.2 is 0.3 but for rounding.
    assert paired_t_test([0.1 + 0.2, 1.0], [0.3, 1.0]).p_value == 1.0


def test_equivalence_is_two_one_sided_tests() -> None:
    # Differences 1, 2, 3 as above, margin 4: (2 + 4)√3 = 6√3 and (2 − 4)√3 = −2√3. With two degrees
    # P(T > t) = 1/2 − t / (2 √(t² + 2)); t² is 108 and 12.
    found = equivalence_test([2.0, 4.0, 6.0], [1.0, 2.0, 3.0], 4.0)
    assert found.p_above == pytest.approx(0.5 - 0.5 * (108 / 110) ** 0.5)
    assert found.p_below == pytest.approx(0.5 - 0.5 * (12 / 14) ** 0.5)
    assert found.p_value == found.p_below
    # A mean on the margin is as likely within as outside.
    assert equivalence_test([2.0, 4.0, 6.0], [1.0, 2.0, 3.0], 2.0).p_value == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ([1.0], [2.0], "1 pairs; a paired test needs two or more"),
        ([1.0, 2.0], [2.0], "a has 2 values, b has 1"),
        ([1.0, np.nan], [2.0, 3.0], r"a\[1\] is nan"),
        ([1.5, 2.5, 3.5], [1.0, 2.0, 3.0], "all 3 differences are 0.5"),
        # 0.3 − 0.2 and 0.4 − 0.3 differ by rounding alone.
        ([0.3, 0.4], [0.2, 0.3], "all 2 differences are 0.1"),
    ],
)
def test_pairs_that_say_nothing_are_refused(a: list[float], b: list[float], words: str) -> None:
    with pytest.raises(UntestableError, match=words):
        paired_t_test(a, b)
    with pytest.raises(UntestableError, match=words):
        equivalence_test(a, b, 1.0)


def test_a_margin_is_positive() -> None:
    with pytest.raises(UntestableError, match="margin is -1"):
        equivalence_test([1.0, 2.0], [1.0, 3.0], -1)


def test_holm_by_hand() -> None:
    # Ascending 0.01, 0.02, 0.04, 0.3 times 4, 3, 2, 1: 0.04, 0.06, 0.08, 0.3.
    assert holm([0.3, 0.01, 0.04, 0.02]) == pytest.approx((0.3, 0.04, 0.08, 0.06))
    # Ascending 0.01, 0.02, 0.021 times 3, 2, 1: 0.03, 0.04, and 0.021 is raised to the one before.
    assert holm([0.01, 0.02, 0.021]) == pytest.approx((0.03, 0.04, 0.04))
    assert holm([0.6, 0.9]) == (1.0, 1.0)
    assert holm([]) == ()
    with pytest.raises(UntestableError, match=r"p_values\[1\] is 1.5"):
        holm([0.5, 1.5])


def test_a_one_way_anova_by_hand() -> None:
    # Means 2, 3, 7 and 4 overall: between 3 (4 + 1 + 9) = 42, within 2 + 2 + 2 = 6;
    # F = (42 / 2) / (6 / 6) = 21 with 2 and 6 degrees; P(F > 21) = (1 + 21 · 2 / 6)⁻³ = 1/512.
    found = one_way_anova([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0], [6.0, 7.0, 8.0]])
    assert (found.groups, found.count) == (3, 9)
    assert (found.between_freedom, found.within_freedom) == (2, 6)
    assert found.statistic == pytest.approx(21.0)
    assert found.p_value == pytest.approx(1 / 512)
    assert found.explained == pytest.approx(42 / 48)


def test_an_anova_of_two_groups_is_a_squared_t_test() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=7), rng.normal(size=9)
    found, twin = one_way_anova([a, b]), stats.ttest_ind(a, b)
    assert found.statistic == pytest.approx(float(twin.statistic) ** 2)
    assert found.p_value == pytest.approx(float(twin.pvalue))


def test_blocks_take_the_differences_of_instances_away() -> None:
    # Two columns: F is the square of the paired t, however far the rows lie apart.
    a, b = [1.0, 102.0, 1003.0], [2.0, 104.0, 1006.0]
    paired = paired_t_test(a, b)
    found = blocked_anova(list(zip(a, b, strict=True)))
    assert found.statistic == pytest.approx(paired.statistic**2)
    assert found.p_value == pytest.approx(paired.p_value)
    assert (found.between_freedom, found.within_freedom) == (1, 2)
    # Without blocks the instances drown it.
    assert one_way_anova([a, b]).p_value > 0.9


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([[1.0, 2.0]], "needs two groups with values; there are 1"),
        ([[1.0, 2.0], []], "group 1 of 2 has none"),
        ([[1.0], [2.0]], "2 values in 2 groups"),
        ([[1.0, 1.0], [2.0, 2.0]], "within the groups are all the same"),
        ([[1.0, np.inf], [2.0, 2.0]], r"group 0\[1\] is inf"),
    ],
)
def test_groups_that_say_nothing_are_refused(groups: list[list[float]], words: str) -> None:
    with pytest.raises(UntestableError, match=words):
        one_way_anova(groups)


def test_blocks_have_rows_of_one_length() -> None:
    with pytest.raises(UntestableError, match=r"2 rows of \[1, 2\] values"):
        blocked_anova([[1.0, 2.0], [1.0]])


def test_a_regression_on_one_column_by_hand() -> None:
    # x = 0, 1, 2, 3 and y = 1, 2, 4, 5: x̄ = 1.5, ȳ = 3, Sxx = 5, Sxy = 7, slope 1.4, constant 0.9.
    # Residuals 0.1, −0.3, 0.3, −0.1: 0.2 in squares, variance 0.1; se(slope) = √(0.1 / 5),
    # se(constant) = √(0.1 (1/4 + 2.25/5)) = √0.07; R² = 1 − 0.2 / 10.
    found = linear_regression({"x": [0.0, 1.0, 2.0, 3.0]}, [1.0, 2.0, 4.0, 5.0])
    constant, slope = found.coefficients
    assert (constant.name, slope.name) == ("constant", "x")
    assert slope.value == pytest.approx(1.4)
    assert slope.standard_error == pytest.approx(0.02**0.5)
    assert constant.value == pytest.approx(0.9)
    assert constant.standard_error == pytest.approx(0.07**0.5)
    assert found.r_squared == pytest.approx(0.98)
    assert found.adjusted_r_squared == pytest.approx(1 - 0.02 * 3 / 2)
    # With one column the overall F is t², and the standardised slope is the correlation.
    assert found.statistic == pytest.approx(slope.statistic**2)
    assert found.p_value == pytest.approx(slope.p_value)
    assert slope.standardised == pytest.approx(0.98**0.5)


def test_a_regression_on_columns_of_unlike_sizes_agrees_with_the_normal_equations() -> None:
    rng = np.random.default_rng(11)
    edges, devices = rng.uniform(1e3, 1e6, size=30), rng.integers(1, 9, size=30).astype(float)
    y = 0.1 + 2e-6 * edges - 0.05 * devices + rng.normal(scale=0.1, size=30)
    found = linear_regression({"edges": edges, "devices": devices}, y)
    x = np.stack([np.ones(30), edges, devices], axis=1)
    inverse = np.linalg.inv(x.T @ x)
    beta = inverse @ x.T @ y
    left = y - x @ beta
    error = np.sqrt(np.diag(inverse) * (left @ left) / 27)
    assert [each.value for each in found.coefficients] == pytest.approx(beta.tolist())
    assert [each.standard_error for each in found.coefficients] == pytest.approx(error.tolist())
    p = [2 * float(stats.t.sf(abs(b / e), 27)) for b, e in zip(beta, error, strict=True)]
    assert [each.p_value for each in found.coefficients] == pytest.approx(p)


def test_columns_that_carry_the_same_inflate_each_other() -> None:
    # With two columns 1 − R² is 1 − r². n = 0, 1, 2, 3 and m = 0, 1, 2, 4: Snn = 5, Smm = 8.75,
    # Snm = 6.5, r² = 42.25 / 43.75, and 1 / (1 − r²) = 43.75 / 1.5.
    columns = {"n": [0.0, 1.0, 2.0, 3.0], "m": [0.0, 1.0, 2.0, 4.0]}
    found = linear_regression(columns, [1.0, 2.0, 4.0, 3.0])
    constant, n, m = found.coefficients
    assert constant.inflation == 1.0
    assert n.inflation == pytest.approx(43.75 / 1.5) and m.inflation == pytest.approx(43.75 / 1.5)


@pytest.mark.parametrize(
    ("columns", "y", "words"),
    [
        ({}, [1.0, 2.0], "at least one column"),
        ({"n": [1.0, 2.0]}, [1.0, 2.0], "2 values for 1 columns; a regression needs at least 3"),
        ({"n": [1.0, 2.0]}, [1.0, 2.0, 4.0], "column 'n' has 2 values, y has 3"),
        ({"n": [7.0, 7.0, 7.0]}, [1.0, 2.0, 4.0], "column 'n' is 7 everywhere"),
        ({"n": [1.0, 2.0, 3.0]}, [4.0, 4.0, 4.0], "y has the same value everywhere"),
        ({"n": [1.0, 2.0, 3.0]}, [2.0, 4.0, 6.0], "the columns explain y exactly"),
        (
            {"n": [1.0, 2.0, 3.0, 5.0], "m": [3.0, 5.0, 7.0, 11.0]},
            [1.0, 2.0, 4.0, 3.0],
            "is a linear combination of the others: 'm', 'n'",
        ),
    ],
)
def test_regressions_that_say_nothing_are_refused(
    columns: dict[str, list[float]], y: list[float], words: str
) -> None:
    with pytest.raises(UntestableError, match=words):
        linear_regression(columns, y)
