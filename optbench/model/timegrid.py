"""Conversion of seconds to whole ticks, and the tolerance of sums; defined here alone.

A time x in ticks, computed in float64, is put on the grid by

    whole = rint(x)
    up(x)   = whole where |x − whole| ≤ min(8 ulp(x), ¼), else ceil(x)
    down(x) = whole where |x − whole| ≤ min(8 ulp(x), ¼), else floor(x)

Durations, lags, latencies and releases go up, deadlines and horizons down,
so that 3 × 0.1 s are 300,000,000 ns. The result is the data: x is not used again.
``sim.kernel.spans`` holds the compiled twin, which gives the same integer bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optbench.units import GUARD_TICKS, GUARD_ULPS, LARGEST_ULP

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# No instance has a later time: float64 holds every whole number up to here, and half as much again.
HORIZON_TICKS = 2**52
# Sums of energy, power, cost and weighted time are compared with this share of the sum of their
# terms, none of them negative.
RELATIVE_TOLERANCE = 2.0**-40
# Temperatures are exponentials, integrated piece by piece: a million pieces lose 2^-32 of them.
TEMPERATURE_TOLERANCE = 2.0**-30
# Whole ticks are summed in two halves of at most 2^28 each: sums of 5 · 10^8 of them fit into
# int64.
HALF_BITS = 24
# The tick that ``tick_s="auto"`` chooses: 1 ns, or the next coarser power of ten that keeps the
# horizon below this.
FINEST_TICK_EXPONENT = -9
AUTO_HORIZON_TICKS = 2**48


def grid_up(ticks: Any) -> Any:
    """Round up to whole ticks; infinity is kept, as a float."""
    return _on_grid(ticks, np.ceil)


def grid_down(ticks: Any) -> Any:
    """Round down to whole ticks; infinity is kept, as a float."""
    return _on_grid(ticks, np.floor)


def is_on_grid(ticks: Any) -> Any:
    """Whether these times are whole ticks, up to the rounding of one product."""
    ticks = np.asarray(ticks, dtype=float)
    return np.isfinite(ticks) & _is_whole(ticks, np.rint(ticks))


def to_ints(ticks: Any) -> Ints:
    """Whole floats as integers; times beyond every horizon become one tick after it."""
    return np.asarray(np.minimum(ticks, float(HORIZON_TICKS + 1)), dtype=np.int64)


def _on_grid(ticks: Any, rounded: np.ufunc) -> Any:
    ticks = np.asarray(ticks, dtype=float)
    whole = np.rint(ticks)
    return np.where(_is_whole(ticks, whole) | ~np.isfinite(ticks), whole, rounded(ticks))


def _is_whole(ticks: Floats, whole: Floats) -> Any:
    with np.errstate(invalid="ignore"):
        off = np.abs(ticks - whole)
        # An ulp is at most 2^-52 of the value; exact ulps are computed only where that does not
        # decide.
        near = np.asarray(off <= np.minimum(GUARD_ULPS * LARGEST_ULP * np.abs(ticks), GUARD_TICKS))
    if near.any():
        near[near] = off[near] <= GUARD_ULPS * ulp(np.asarray(ticks)[near])
    return near


def ulp(values: Floats) -> Floats:
    """Distance from each number to the next larger in magnitude."""
    finite = np.where(np.isfinite(values), values, 0.0)
    return np.asarray(np.ldexp(1.0, np.maximum(np.frexp(finite)[1] - 53, -1074)), dtype=float)


def automatic_tick_s(horizon_s: float) -> float:
    """1 ns, or the next power of ten in which it is at most AUTO_HORIZON_TICKS."""
    exponent = FINEST_TICK_EXPONENT
    while horizon_s / tick_of(exponent) > AUTO_HORIZON_TICKS:
        exponent += 1
    return tick_of(exponent)


def tick_of(exponent: int) -> float:
    """The float64 nearest to a power of ten."""
    return float(f"1e{exponent}")


def rounded_sum(terms: Iterable[float] | Floats) -> float:
    """The sum, rounded once; inf if it is too large, nan for differences of such sums."""
    if isinstance(terms, np.ndarray):
        numbers = np.asarray(terms[terms != 0.0], dtype=float)
        if (
            len(numbers)
            and np.abs(numbers).max() <= HORIZON_TICKS
            and (numbers == np.rint(numbers)).all()
        ):
            return float(_whole_sum(numbers.astype(np.int64)))
        terms = numbers.tolist()
    try:
        return math.fsum(terms)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.nan


def _whole_sum(terms: Ints) -> int:
    """The sum of whole numbers up to 2^52, exactly: their halves fit into int64."""
    return (int((terms >> HALF_BITS).sum()) << HALF_BITS) + int(
        (terms & ((1 << HALF_BITS) - 1)).sum()
    )


def exceeds(value: float, limit: float) -> bool:
    """Whether a sum of non-negative terms exceeds a limit beyond rounding, or is not finite."""
    return not (math.isfinite(value) and value <= limit + RELATIVE_TOLERANCE * value)


def widened(limit: float) -> float:
    """The largest sum within a limit, for models and bounds: v ≤ limit / (1 − 2^-40)."""
    return limit * (1.0 + 2.0 * RELATIVE_TOLERANCE)


def allowance(limit: float) -> float:
    """The amount by which a sum may exceed a limit."""
    return widened(limit) - limit


def narrowed(limit: float) -> float:
    """A limit for sums of floats in any order: half of the tolerance is left for their rounding."""
    return limit * (1.0 + 0.5 * RELATIVE_TOLERANCE)
