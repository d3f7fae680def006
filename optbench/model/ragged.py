"""Ranges of different lengths, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from optbench.model.instance import Ints


def ragged(first: Any, size: Any) -> tuple[Ints, Ints]:
    """Return the ranges first[r] .. first[r] + size[r] - 1 one after the other: the index r, and
    the value.
    """
    size = np.asarray(size, dtype=np.int64)
    which = np.repeat(np.arange(len(size)), size)
    begin = np.cumsum(size) - size
    return which, np.arange(len(which)) + (np.asarray(first, dtype=np.int64) - begin)[which]
