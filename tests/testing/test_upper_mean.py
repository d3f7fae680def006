"""The upper limit of a mean: Student's where values lie even, above it where they are skewed."""

from __future__ import annotations

import math

import pytest

from optbench.testing.upper_mean import upper_mean


def test_even_values_have_students_limit() -> None:
    # Mean 3, s² = 2.5, no third moment; t at 0.95 with four degrees is 2.131847 (tables).
    assert upper_mean([1, 2, 3, 4, 5], 0.95) == pytest.approx(
        3 + 2.131847 * math.sqrt(2.5 / 5), abs=1e-5
    )


def test_one_large_value_raises_the_limit_and_one_small_value_does_not_lower_it() -> None:
    # Deviations −1, −1, −1, 3: s² = 12/3 = 4, m3 = (27 − 3)·4/(3·2) = 16; t at 0.95 with three
    # degrees is 2.353363.
    q = 2.353363
    student = q * math.sqrt(4 / 4)
    assert upper_mean([0, 0, 0, 4], 0.95) == pytest.approx(
        1 + student + 16 / (4 * 4) * (1 / 6 + q * q / 3), abs=1e-5
    )
    assert upper_mean([4, 4, 4, 0], 0.95) == pytest.approx(3 + student, abs=1e-5)


def test_two_values_have_no_skew() -> None:
    # t at 0.95 with one degree is 6.313752; s = 1/√2.
    assert upper_mean([0.0, 1.0], 0.95) == pytest.approx(
        0.5 + 6.313752 * math.sqrt(0.5 / 2), abs=1e-5
    )
    assert upper_mean([0.0, 1.0], 0.95, most=1.0) == 1.0


def test_equal_values_have_their_value_and_one_value_says_nothing() -> None:
    assert upper_mean([0.1, 0.1, 0.1], 0.99) == pytest.approx(0.1)
    assert upper_mean([0.0], 0.95) == math.inf
    assert upper_mean([0.0], 0.95, most=1.0) == 1.0


def test_more_confidence_never_lowers_the_limit() -> None:
    values = [0.0, 0.01, 0.0, 0.2, 0.03]
    found = [upper_mean(values, level) for level in (0.5, 0.8, 0.9, 0.95, 0.99)]
    assert found == sorted(found) and found[0] >= sum(values) / 5
