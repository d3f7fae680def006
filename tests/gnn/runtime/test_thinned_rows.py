"""Many samples of a device become few, with the same sums."""

from __future__ import annotations

from typing import Any

import pytest

from optbench.gnn.runtime.thinned_rows import MOST_ROWS, thinned


def sample(k: int) -> dict[str, Any]:
    """One second of step k, in which the device computed in a quarter or in half of the time."""
    busy = 0.25 if k % 2 else 0.5
    return {
        "device": 3,
        "step": k,
        "at_s": float(k),
        "seconds": 1.0,
        "busy_s": busy,
        "waited_s": 0.125,
        "utilisation": busy,
        "memory_mb": float(k % 2),
        "sent_mb": 2.0,
    }


def test_neighbours_are_joined() -> None:
    rows = [sample(k) for k in range(2 * MOST_ROWS)]
    found = thinned(rows)
    # Pairs: 1/2 + 1/4 of two seconds; the mean of 0 and 1 MB; 2 + 2 MB sent.
    assert len(found) == MOST_ROWS and found[0] == {
        "device": 3,
        "step": 1,
        "at_s": 1.0,
        "seconds": 2.0,
        "busy_s": 0.75,
        "waited_s": 0.25,
        "utilisation": 0.375,
        "memory_mb": 0.5,
        "sent_mb": 4.0,
    }
    assert found[-1]["step"] == 2 * MOST_ROWS - 1


@pytest.mark.parametrize(("given", "left"), [(0, 0), (1, 1), (3, 3), (4, 2), (7, 3)])
def test_no_more_than_asked_for(given: int, left: int) -> None:
    """Of 4 rows two are joined, of 7 three: 3 + 3 + 1."""
    rows = [sample(k) for k in range(given)]
    found = thinned(rows, 3)
    assert len(found) == left and sum(each["seconds"] for each in found) == given
    assert given > 3 or found == rows
