"""Prove the bound of a linear programme in exact arithmetic from any dual vector, independent of
its origin.

For A v ≥ b (= b on some rows), lower ≤ v ≤ upper and any y that is ≥ 0 on the inequalities,

    c·v ≥ c·v − y·(A v − b) = y·b + Σ_j r_j v_j
        ≥ y·b + Σ_j (r_j ≥ 0 ? r_j lower_j : r_j upper_j),      r = c − Aᵀ y

so a dual solution need be neither feasible nor optimal: wrong signs are set to zero, and the
remaining reduced costs are charged at the columns' finite bounds. A float is a dyadic rational m ·
2^e, the duals are rounded to one power of two, and everything below is integers over a common power
of two: no rounding takes place.

Where a row says Σ_k x_k = n with x ≥ 0, its dual may be raised by the least reduced cost of its
columns, r = min_k r_k: n r is gained, and n Σ_k min(r_k, 0) ≥ n r no longer paid when r is
negative. So ``repriced`` never loses, however rough the duals.

The coefficients themselves are exact where they are data or products of integers; where the
formulation computed one in floating point, it has already rounded it outward, to the side that can
only enlarge the feasible set (``fluid``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optbench.bounds.lp.linear_program import LinearProgram
from optbench.model.instance import Floats, Ints

# Bits kept of the largest term, a dual times an entry of its row: the loss is far below the
# verifier's tolerance.
DUAL_BITS = 60
Objects = NDArray[Any]


@dataclass(frozen=True)
class Certificate:
    """Rational duals ``numerator / 2^shift``, one per row, which together with the LP prove the
    bound.
    """

    numerator: tuple[int, ...]
    shift: int


def certificate(lp: LinearProgram, dual: Floats) -> Certificate:
    """Convert floating-point duals to rational ones: wrong signs are removed, and duals are limited
    for columns without an upper bound.
    """
    dual = np.where(np.isfinite(dual), dual, 0.0)
    dual = np.where(lp.equal, dual, np.maximum(dual, 0.0))
    shift = max(0, DUAL_BITS - _exponent_of_terms(lp, dual))
    # Multiplying by a power of two is exact; rint gives integers that Python represents exactly.
    numerator = [int(x) for x in np.rint(np.ldexp(dual, shift)).tolist()]
    _lower_for_unbounded(lp, numerator, shift)
    return Certificate(tuple(numerator), shift)


def _exponent_of_terms(lp: LinearProgram, dual: Floats) -> int:
    """Return the exponent of the largest dual times entry, less that of the largest entry: rows in
    ticks of 1 ns have duals of 1e-9.
    """
    entry = np.zeros(lp.num_rows)
    np.maximum.at(entry, lp.row, np.abs(lp.value))
    used = dual != 0
    if not (entry[used] > 0).any():
        return 0
    return int(
        math.frexp(float((np.abs(dual) * entry)[used].max()))[1]
        - math.frexp(float(entry[used].max()))[1]
    )


def proven_bound(lp: LinearProgram, proof: Certificate) -> Fraction | None:
    """Return the exact bound that these duals prove; None when they prove nothing finite."""
    y = np.array(proof.numerator, dtype=object)
    if len(y) != lp.num_rows or any(v < 0 for v in y[~lp.equal].tolist()):
        return None
    reduced, scale = reduced_costs(lp, proof)
    side_scale = bits_of(lp.right, lp.lower, lp.upper[np.isfinite(lp.upper)])
    if any(r < 0 for r in reduced[np.isinf(lp.upper)].tolist()):
        return None
    total = sum((reduced * integers(paid_side(lp, reduced), side_scale)).tolist())
    total += sum((y * integers(lp.right, side_scale)).tolist()) << scale
    return Fraction(total, 2 ** (proof.shift + scale + side_scale))


def reduced_costs(lp: LinearProgram, proof: Certificate) -> tuple[Objects, int]:
    """Return c − Aᵀ y as integers over 2^(scale + proof.shift), and the scale."""
    scale = bits_of(lp.value, lp.cost)
    reduced = integers(lp.cost, scale + proof.shift)
    y = np.array(proof.numerator, dtype=object)
    np.subtract.at(reduced, lp.column, integers(lp.value, scale) * y[lp.row])
    return reduced, scale


def paid_side(lp: LinearProgram, reduced: Objects) -> Floats:
    """Return the bound of each column at which its reduced cost is charged."""
    negative = np.array([r < 0 for r in reduced.tolist()], dtype=bool)
    return np.where(negative, lp.upper, lp.lower)


@dataclass(frozen=True, eq=False)
class Excess:
    """c·v less the proven bound, per column r_j (v_j − side_j) and per row y_i (A v − b)_i, in
    units of 2^−bits.
    """

    column: Objects
    row: Objects
    reduced: Objects
    dual: Objects
    bits: int
    price_bits: int

    def of(self, terms: Objects) -> Fraction:
        return Fraction(sum(terms.tolist()), 2**self.bits)

    def price(self, number: int) -> Fraction:
        """Return a dual or a reduced cost."""
        return Fraction(number, 2**self.price_bits)


def excess(lp: LinearProgram, proof: Certificate, point: Floats) -> Excess:
    """Return the terms whose sum is exactly the cost of a point less the bound that the duals
    prove, for any point.
    """
    reduced, scale = reduced_costs(lp, proof)
    side = paid_side(lp, reduced)
    bits = bits_of(point, lp.lower, lp.upper[np.isfinite(lp.upper)], lp.right)
    at = integers(point, bits)
    slack = -(integers(lp.right, bits) << scale)
    np.add.at(slack, lp.row, integers(lp.value, scale) * at[lp.column])
    dual = np.array(proof.numerator, dtype=object)
    column = reduced * (at - integers(side, bits))
    total = scale + proof.shift + bits
    return Excess(column, dual * slack, reduced, dual << scale, total, scale + proof.shift)


def repriced(lp: LinearProgram, proof: Certificate, rows: Ints) -> Certificate:
    """Raise the duals of these rows to the least reduced cost of their columns: Σ x = n,
    coefficients 1, lower bounds 0.
    """
    if len(rows) == 0 or len(proof.numerator) != lp.num_rows:
        return proof
    reduced, scale = reduced_costs(lp, proof)
    count = np.diff(lp.row_ptr)[rows]
    first = np.cumsum(count) - count
    entry = np.repeat(lp.row_ptr[rows] - first, count) + np.arange(int(count.sum()))
    least = np.minimum.reduceat(reduced[lp.column[entry]], first)
    numerator = np.array(proof.numerator, dtype=object)
    numerator[rows] += least >> scale
    return Certificate(tuple(numerator.tolist()), proof.shift)


def round_down(value: Fraction) -> float:
    """Return the largest float not above the value."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def _lower_for_unbounded(lp: LinearProgram, numerator: list[int], shift: int) -> None:
    """Lower the duals of rows until no column without upper bound has a negative reduced cost (all
    its entries are ≥ 0).
    """
    row = lp.row
    for column in np.flatnonzero(np.isinf(lp.upper)).tolist():
        entries = np.flatnonzero(lp.column == column)
        reduced = Fraction(float(lp.cost[column])) * Fraction(2) ** shift
        for entry in entries.tolist():
            share, r = Fraction(float(lp.value[entry])), int(row[entry])
            if share > 0:
                numerator[r] = max(0, min(numerator[r], math.floor(reduced / share)))
            reduced -= share * numerator[r]


def bits_of(*arrays: Floats) -> int:
    """Return the least power of two, at least 0, that makes every value an integer."""
    return max((_bits(values) for values in arrays), default=0)


def _bits(values: Floats) -> int:
    mantissa, exponent = _split(values[values != 0])
    if len(mantissa) == 0:
        return 0
    # Trailing zeros of the mantissa are not needed: an integer needs no scaling at all.
    low = np.log2((mantissa & -mantissa).astype(float)).astype(np.int64)
    return max(0, -int((exponent + low).min()))


def integers(values: Floats, scale: int) -> Objects:
    """Return values · 2^scale as Python integers; exact when scale is at least their bits."""
    mantissa, exponent = _split(values)
    shift = exponent + scale
    left = mantissa.astype(object) << np.maximum(shift, 0).astype(object)
    return np.asarray(left >> np.maximum(-shift, 0).astype(object), dtype=object)


def _split(values: Floats) -> tuple[Ints, Ints]:
    """Return mantissa and exponent, value = mantissa · 2^exponent, with an integer mantissa of at
    most 53 bits.
    """
    fraction, exponent = np.frexp(values)
    return np.ldexp(fraction, 53).astype(np.int64), exponent.astype(np.int64) - 53
