"""Floats as the integers of a CP model, rounded so that no bound can be wrong.

Let an objective be f = c0 + Σ c_j v_j with integer variables 0 ≤ v_j ≤ u_j. With a scale S > 0 the model minimises

    F = Σ C_j v_j,    C_j = floor(S c_j).

Then F ≤ S (f − c0), whatever the signs of the c_j (floor rounds down, v_j ≥ 0), so F ≥ B proves f ≥ c0 + B/S. Where S c_j
is an integer but for the float (S = 10, c_j = 0.3), C_j is that integer, and what it exceeds S c_j by is charged in rational
arithmetic: with charge = Σ max(0, C_j − S c_j) u_j, F ≥ B proves f ≥ c0 + (B − charge)/S. If every c_j is an integer, S = 1,
nothing is charged and nothing is lost. The other way round f ≥ L implies F ≥ S (L − c0) − loss, with
loss = Σ max(0, S c_j − C_j) u_j: that is how a bound known beforehand becomes a floor of F.

A limit f ≤ r becomes F ≤ floor(S (r + slack − c0) + charge): it cuts off no schedule that the verifier accepts. The inner
rounding goes the other way: whatever satisfies it is accepted, though some schedule may be missed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from optbench.errors import UnsupportedError

# Sums of the model stay below this, far from the ends of 64-bit integers.
MAX_SUM = 2.0**58
# Total that a scaled sum aims at where no exact scale is found. CP-SAT 9.15 was caught cutting off optima where two
# coefficients had a product beyond 64 bits, so that sums stay below 2^31.
TARGET_SUM = 2.0**31
MAX_EXACT = 2.0**31
# A product this near (relatively) to an integer is that integer but for the float.
NEAR = 1e-12
DECIMALS = tuple(10**k for k in range(7))


def scale_for(terms: Sequence[tuple[float, int]]) -> Fraction:
    """A scale for the sum of terms (coefficient, upper bound of the variable).

    An exact one where there is one: the smallest power of ten to 1e6, or one over the least coefficient. Otherwise what
    brings the sum to TARGET_SUM, a little less so that the coefficient whose rounding would weigh most becomes an integer.
    """
    sizes = [(abs(value), upper) for value, upper in terms if value != 0]
    if not sizes:
        return Fraction(1)
    largest = max(math.fsum(value * upper for value, upper in sizes), 1e-250)
    numbers = sorted({value for value, _ in sizes})
    for scale in [*(Fraction(power) for power in DECIMALS), 1 / Fraction(numbers[0])]:
        if float(scale) * largest < MAX_EXACT and all(_near(number, scale) is not None for number in numbers):
            return scale
    scale = Fraction(2) ** (math.frexp(TARGET_SUM / largest)[1] - 1)
    widest = max(sizes, key=lambda term: (term[1], term[0]))[0]
    whole = math.floor(Fraction(widest) * scale)
    return whole / Fraction(widest) if whole else scale


def to_int(value: float, scale: Fraction, up: bool = False) -> int:
    """scale · value as an integer: the nearest where it is one but for the float, else rounded down (or up)."""
    near = _near(value, scale)
    if near is not None:
        return near
    product = Fraction(value) * scale
    return math.ceil(product) if up else math.floor(product)


def _near(value: float, scale: Fraction) -> int | None:
    product = Fraction(value) * scale
    nearest = round(product)
    if nearest == 0:
        return 0 if product == 0 else None
    return nearest if abs(product - nearest) <= NEAR * abs(nearest) else None


@dataclass(frozen=True)
class Rounded:
    """How the integer sum F stands to the true f: see the module."""

    scale: Fraction
    constant: float
    charge: Fraction
    loss: Fraction

    def bound(self, total: float) -> float:
        """The lower bound on f that F ≥ total proves, as a float that is not above it. No metric is negative."""
        true = Fraction(self.constant) + (Fraction(total) - self.charge) / self.scale
        value = float(true)
        return max(0.0, value if Fraction(value) <= true else math.nextafter(value, -math.inf))

    def floor(self, bound: float) -> int:
        """The integer that F cannot be below when f ≥ bound is known (1e-6 of a unit allows for the bound's float)."""
        return math.ceil((Fraction(bound) - Fraction(self.constant)) * self.scale - self.loss - Fraction(1, 10**6))


def guard(total: float, what: str) -> None:
    """Refuse numbers whose sums would leave 64-bit integers."""
    if not total < MAX_SUM:
        raise UnsupportedError(
            f"the CP model needs {what} up to {total:.3g}, beyond 64-bit integers; use a coarser tick (tick_s) or larger units"
        )
