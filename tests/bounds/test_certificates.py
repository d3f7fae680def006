"""Duals as fields of a certificate: they come back as they were written, up to the limits."""

from __future__ import annotations

import pytest

from optbench.bounds.lp.certificates import (
    MOST_DIGITS,
    MOST_SHIFT,
    CertificateError,
    dual_fields,
    lp_identity,
    read_duals,
)
from optbench.bounds.lp.exact_check import Certificate
from optbench.bounds.lp.linear_program import LinearProgram, LpColumns, LpRows, assemble


def programme(num_rows: int) -> LinearProgram:
    """One column between 0 and 1, at least 0 as often as wanted."""
    columns, rows = LpColumns(), LpRows()
    column = columns.add(1, 0.0, 1.0, 1.0)
    for _ in range(num_rows):
        rows.add("row", 0.0, (0, column, 1.0))
    rows.add("none", [])
    return assemble(columns, rows)


@pytest.mark.parametrize("shift", [0, 1, MOST_SHIFT])
@pytest.mark.parametrize("numerator", [(), (7,), (1, -2), (10 ** (MOST_DIGITS - 1),) * 3])
def test_duals_come_back_as_they_were_written(numerator: tuple[int, ...], shift: int) -> None:
    lp = programme(len(numerator))
    duals = Certificate(numerator, shift)
    assert read_duals(dual_fields(lp, duals), lp) == duals


def test_a_shift_or_digits_beyond_the_limits_are_refused() -> None:
    lp = programme(1)
    with pytest.raises(CertificateError, match=f"shift is {MOST_SHIFT + 1}"):
        read_duals(dual_fields(lp, Certificate((1,), MOST_SHIFT + 1)), lp)
    with pytest.raises(CertificateError, match="the certificate has 1 duals"):
        read_duals(dual_fields(lp, Certificate((10**MOST_DIGITS,), 0)), lp)


def test_duals_of_other_rows_are_refused() -> None:
    with pytest.raises(CertificateError, match="belong to other rows"):
        read_duals(dual_fields(programme(1), Certificate((1,), 0)), programme(2))
    assert lp_identity(programme(1)) == lp_identity(programme(1)) != lp_identity(programme(2))
    # 128 bits in hexadecimal digits.
    assert len(lp_identity(programme(1))) == 32
