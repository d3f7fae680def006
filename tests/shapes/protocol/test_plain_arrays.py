"""Arrays as JSON: written in one step, with the values that element by element would give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from optbench.errors import FileFormatError
from optbench.shapes.protocol.plain_data import from_plain, to_plain


@pytest.mark.parametrize(
    "array",
    [
        np.array([3, -1, 2**40]),
        np.array([[1, 2], [3, 4]], dtype=np.int32),
        np.array([True, False]),
        np.array([0.1, 1e300, -0.0]),
        np.array([0.1, 0.2], dtype=np.float32),
        np.zeros((0, 3)),
        np.array(5),
        np.array(["a", "b"]),
    ],
)
def test_arrays_are_written_as_their_lists(array: Any) -> None:
    """The same values and types as those of the nested lists, which are written one by one."""
    found, slowly = to_plain(array), to_plain(array.tolist())
    assert repr(found) == repr(slowly)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_json_lacks_are_refused_in_arrays(value: float) -> None:
    with pytest.raises(FileFormatError, match=f"{value!r} cannot be written"):
        to_plain(np.array([[1.0, value]]))


def test_arrays_are_read_again() -> None:
    array = np.arange(12, dtype=np.int64).reshape(3, 4)
    assert (from_plain(np.ndarray, to_plain(array)) == array).all()
