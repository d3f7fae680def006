"""Single values of JSON and TOML: what is taken, and what the refusal says."""

from __future__ import annotations

import math
from typing import Any

import pytest

from optbench.errors import FileFormatError
from optbench.typed_values import LARGEST, check_keys, describe, number


@pytest.mark.parametrize("value", [0, -3, 2.5, LARGEST, -LARGEST])
def test_numbers_are_taken_as_floats(value: float) -> None:
    found = number(value, "x")
    assert found == value and type(found) is float


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, "true"),
        (None, "null"),
        ("1", "'1'"),
        (math.nan, "nan"),
        (math.inf, "inf"),
        (10**400, "a huge whole number"),  # more than any float
        ([1], "a list of 1"),
    ],
)
def test_what_is_no_finite_number_is_refused(value: Any, shown: str) -> None:
    with pytest.raises(FileFormatError, match=f"^a.b is {shown}; it must be a finite number$"):
        number(value, "a.b")


@pytest.mark.parametrize(("value", "fits"), [(0, True), (24, True), (-1, False), (24.5, False)])
def test_the_ends_of_a_range_belong_to_it(value: float, fits: bool) -> None:
    if fits:
        assert number(value, "h", 0, 24) == value
        return
    with pytest.raises(FileFormatError, match=f"h is {value}; it must be from 0 to 24"):
        number(value, "h", 0, 24, "from 0 to 24")


def test_an_unknown_key_is_named_with_its_path_and_the_nearest() -> None:
    check_keys({"seeds": 1}, ("seeds", "solver"))
    with pytest.raises(
        FileFormatError, match=r"^f: unknown key 'tune\.sovler'; did you mean 'solver'"
    ):
        check_keys({"seeds": 1, "sovler": 2}, ("seeds", "solver"), "f: ", "tune.")


def test_a_long_value_is_cut() -> None:
    # 57 characters, of which the first is the quote, and three dots.
    assert describe("x" * 100) == "'" + "x" * 56 + "..."
    assert describe("x" * 58) == "'" + "x" * 58 + "'"
