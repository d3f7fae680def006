"""The highest sum of simultaneous powers, rounded once: a sweep in integers on a binary grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from optbench.model.instance import Ints

# Sums of this many bits fit into int64 with room for a sign; wider ones are added as Python integers.
INT64_BITS = 62


@dataclass(frozen=True)
class Peak:
    """The highest power, correctly rounded, and the first time at which it is drawn."""

    watts: float
    at: float


def exact_peak(start: Ints, end: Ints, which: Ints, added_w: Sequence[Fraction], base_w: Fraction) -> Peak:
    """The highest of base + Σ added of segments [start, end), of which segment s adds ``added_w[which[s]]``."""
    if len(start) == 0:
        return Peak(rounded(base_w), 0.0)
    # Floats are whole multiples of powers of two; all numbers here are multiples of the finest one.
    grid = math.lcm(*(watts.denominator for watts in added_w))
    whole = [int(watts * grid) for watts in added_w]
    largest = max(abs(number) for number in whole) * len(start)
    dtype: Any = np.int64 if largest.bit_length() < INT64_BITS else object
    change = np.array(whole, dtype=dtype)[which]
    t = np.concatenate((start, end))
    order = np.argsort(t, kind="stable")
    t, level = t[order], np.cumsum(np.concatenate((change, -change))[order])
    last = np.flatnonzero(np.concatenate((t[1:] != t[:-1], [True])))
    top = int(last[np.argmax(level[last])])
    if int(level[top]) <= 0:
        return Peak(rounded(base_w), 0.0)
    return Peak(rounded(base_w + Fraction(int(level[top]), grid)), float(t[top]))


def rounded(number: Fraction) -> float:
    """The nearest float; inf if it is too large."""
    try:
        return float(number)
    except OverflowError:
        return math.inf
