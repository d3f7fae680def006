"""What is written as TOML is read as the same."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optbench.tune.toml_writer import render

KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False)
)
PLAIN = st.one_of(st.booleans(), NUMBERS, KEYS)
VALUES = st.one_of(PLAIN, st.lists(PLAIN, max_size=30))


@given(
    st.dictionaries(
        KEYS,
        st.one_of(VALUES, st.dictionaries(KEYS, st.one_of(VALUES, st.dictionaries(KEYS, PLAIN)))),
    )
)
def test_round_trip(document: dict[str, Any]) -> None:
    assert tomllib.loads(render(document)) == document


def test_what_toml_has_no_word_for() -> None:
    read = tomllib.loads(
        render(
            {
                "a": None,
                "b": np.float64(0.5),
                "c": np.int64(3),
                "d": Path("x/y"),
                "e": (1, 2),
                "f": {3, 1},
            }
        )
    )
    assert read == {"a": "none", "b": 0.5, "c": 3, "d": "x/y", "e": [1, 2], "f": [1, 3]}
    assert tomllib.loads(render({"a": float("inf")})) == {"a": float("inf")}
    with pytest.raises(TypeError, match="object"):
        render({"a": object()})
