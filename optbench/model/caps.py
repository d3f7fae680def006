"""The arithmetic of power caps: the idle power of a place, the power that a running mode adds, and
the highest sum of simultaneous powers.

    base_q   = Σ_{r under q} rest_r count_r
    net_qk   = power_k [primary_k under q] − Σ_{r under q} rest_r n_kr        own power less
                                                        the idle power of its devices

so that the power at q is base_q plus net_qk of everything that runs. The verifier adds the declared
numbers up as fractions, and finds the peak by a sweep in integers on a binary grid.
``net_power_w`` and ``resting_power_w`` are rounded once (``fsum``): integer models scale them
exactly, and a difference in the last place would cost them a factor of the scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from optbench.model.instance import Floats, Instance, Ints

# Sums of this many bits fit into int64 with room for a sign; wider ones are added as Python
# integers.
INT64_BITS = 62


def exact_resting_w(instance: Instance, place: int) -> Fraction:
    """base_q, exactly: the power at a place while no task runs."""
    pools, under = instance.pools, instance.under[place]
    rest_w, count = pools.rest_w[under].tolist(), pools.count[under].tolist()
    return sum(
        (Fraction(watts) * devices for watts, devices in zip(rest_w, count, strict=True)),
        Fraction(0),
    )


def exact_added_w(instance: Instance, place: int, mode: int) -> Fraction:
    """net_qk of one mode, exactly."""
    modes, under = instance.modes, instance.under[place]
    primary = int(modes.primary[mode])
    own = Fraction(float(modes.power_w[mode])) if primary >= 0 and under[primary] else Fraction(0)
    for row in range(int(modes.req_ptr[mode]), int(modes.req_ptr[mode + 1])):
        pool = int(modes.req_pool[row])
        if under[pool]:
            own -= Fraction(float(instance.pools.rest_w[pool])) * int(modes.req_count[row])
    return own


def exact_saved_w(instance: Instance, place: int) -> list[Fraction]:
    """By how much less than at rest a device of each pool draws asleep; 0 where it is elsewhere."""
    pools = instance.pools
    rows = zip(instance.under[place].tolist(), pools.rest_w.tolist(), pools.sleep_w.tolist())
    return [
        Fraction(rest) - Fraction(asleep) if here else Fraction(0) for here, rest, asleep in rows
    ]


def resting_power_w(instance: Instance, place: int) -> float:
    """base_q, rounded once."""
    return rounded(exact_resting_w(instance, place))


def net_power_w(instance: Instance, place: int) -> Floats:
    """net_qk of every mode; negative where a mode draws less than its devices while idle."""
    modes, under = instance.modes, instance.under[place]
    own = np.where((modes.primary >= 0) & under[np.maximum(modes.primary, 0)], modes.power_w, 0.0)
    freed = np.where(under, instance.pools.rest_w, 0.0)[modes.req_pool] * modes.req_count
    return np.asarray(own - _sums(modes.req_ptr, freed), dtype=np.float64)


def _sums(ptr: Ints, values: Any) -> Any:
    """Sum of the values of each row, rounded once; a single addition always is."""
    size = np.diff(ptr)
    out = np.zeros(len(size))
    some = size > 0
    if some.any():
        out[some] = np.add.reduceat(values, ptr[:-1][some])
    for row in np.flatnonzero((size > 2) & (out != 0)).tolist():
        out[row] = math.fsum(values[ptr[row] : ptr[row + 1]].tolist())
    return out


@dataclass(frozen=True)
class Peak:
    """The highest power, correctly rounded, and the first time at which it is drawn."""

    watts: float
    at: float


def exact_peak(
    start: Ints, end: Ints, which: Ints, added_w: Sequence[Fraction], base_w: Fraction
) -> Peak:
    """The highest of base + Σ added of segments [start, end), of which segment s adds
    ``added_w[which[s]]``.
    """
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
