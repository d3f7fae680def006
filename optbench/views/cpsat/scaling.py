"""Floats as the integers of a CP model, rounded so that every bound is valid.

Let an objective be f = c0 + Σ c_j v_j with integer variables l_j ≤ v_j ≤ u_j. With a scale S > 0
the model minimises

    F = Σ C_j v_j − F_0,    C_j = floor(S c_j),    F_0 = Σ min(C_j l_j, C_j u_j)

F_0 is a lower bound for every choice of variables, so that F ≥ 0 holds without any search: 0, which
CP-SAT returns as a bound where it has proved nothing, is valid. With o_j = C_j − S c_j, F + F_0 − S
(f − c0) = Σ o_j v_j lies between −loss and charge,

    charge = Σ max(o_j l_j, o_j u_j),    loss = −Σ min(o_j l_j, o_j u_j),

so that F ≥ B proves f ≥ c0 + (B + F_0 − charge)/S, and f ≥ L implies F ≥ S (L − c0) − F_0 − loss. A
finished search leaves no more than (charge + loss)/S = Σ |o_j| (u_j − l_j)/S between the least F
and the f of its schedule: the stated error. Where every S c_j is an integer but for the float (S =
10, c_j = 0.3), the error is that of the floats, below 2^-44 of the sum.

Where a schedule with f = U is known, only those with f ≤ U matter, and a variable with c_j > 0 may
be taken to lie below l_j + (U − c0 − Σ min(c_j l_j, c_j u_j))/c_j. Its error is then 1/C_j of that
excess, however wide it was: bounds are then min(U, ·). What rounding of wide variables still costs,
digits save (sums.py).

A limit f ≤ r becomes F ≤ floor(S (r + slack − c0) − F_0 + charge): it cuts off no schedule that the
verifier accepts. The inner rounding goes the other way: whatever satisfies it is accepted, though
some schedule may be missed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from optbench.errors import UnsupportedError

# Sums of the model stay below this, far from the limits of 64-bit integers.
MAX_SUM = 2.0**58
# Sums and coefficients of an exact scale stay below these.
MAX_EXACT_SUM, MAX_EXACT_COEFFICIENT = 2.0**54, 2.0**31
# In the coarse scale sums aim at this and exact ones stay below it, unless coefficients are small:
# small numbers are searched faster, by factors of a thousand where prices vary over millions of
# ticks.
TARGET_SUM, SMALL_COEFFICIENT = 2.0**31, 2.0**12
# An exact scale whose sums exceed the aim by no more than this is searched as fast as the coarse
# one, and nothing has to be searched again.
NEAR_TARGET = 2.0**6
# Largest coefficients of the scales after the coarse one. CP-SAT 9.15 cut off optima where products
# of two coefficients exceeded 64 bits.
FINER = (2.0**20, 2.0**26, 2.0**31)
# A product this close to an integer, as a share of it or of the largest coefficient (differences of
# floats have the rounding of their operands), equals that integer up to the float.
NEAR = 2.0**-44
# Denominators up to this are tried for the ratios of coefficients.
MOST_DENOMINATOR = 10**6


def scale_for(terms: Sequence[tuple[float, int]], stage: int = 0) -> Fraction:
    """Return a scale for the sum of terms (coefficient, upper bound of the variable).

    It is the least exact scale whose numbers are small enough, if there is one. Otherwise in stage
    0 it brings the sum to TARGET_SUM, in later stages the coefficients to FINER.
    """
    sizes = [(abs(value), max(1, upper)) for value, upper in terms if value != 0]
    if not sizes:
        return Fraction(1)
    largest = max(value for value, _ in sizes)
    total = max(math.fsum(value * upper for value, upper in sizes), 1e-250)
    exact = exact_scale(value for value, _ in sizes)
    if exact is not None and _is_small(float(exact) * largest, float(exact) * total, stage):
        return exact
    if stage:
        return _power_below(min(FINER[stage - 1] / largest, MAX_SUM / 2 / total))
    scale = _power_below(TARGET_SUM / total)
    # A little less, so that the coefficient whose rounding would weigh most becomes an integer; or
    # as much as makes it 1.
    widest = max(sizes, key=lambda term: (term[1], term[0]))[0]
    whole = math.floor(Fraction(widest) * scale)
    if whole or (largest < MAX_EXACT_COEFFICIENT * widest and total < MAX_EXACT_SUM * widest):
        return max(1, whole) / Fraction(widest)
    return scale


def _is_small(coefficient: float, total: float, stage: int) -> bool:
    """Whether numbers of this size are searched in this stage."""
    if stage == 0 and total >= TARGET_SUM * NEAR_TARGET:
        return coefficient < SMALL_COEFFICIENT and total < MAX_EXACT_SUM
    return (
        coefficient < (MAX_EXACT_COEFFICIENT if stage in (0, len(FINER)) else FINER[stage - 1])
        and total < MAX_EXACT_SUM
    )


def exact_scale(values: Iterable[float]) -> Fraction | None:
    """The least scale at which all values are integers up to the float; None where there is no
    small one.

    With b the least value and every v/b = p_v/q_v in lowest terms, it is lcm(q_v) / (b gcd(p_v lcm
    / q_v))."""
    sizes: list[float] = [abs(value) for value in values]
    noise = Fraction(NEAR) * Fraction(max(sizes)) / 2
    # A float stands for a decimal: 0.3 for 3/10, whose scale is 10 and not 1/0.3.
    numbers = sorted({_simplest(value, noise) for value in {*sizes} if value > noise})
    base, common = numbers[0], 1
    ratios = []
    for number in numbers:
        true = number / base
        ratio = true.limit_denominator(MOST_DENOMINATOR)
        if abs(ratio - true) > NEAR * true / 2:
            return None
        ratios.append(ratio)
        common = math.lcm(common, ratio.denominator)
        if common * float(ratios[-1]) > MAX_EXACT_COEFFICIENT:
            return None
    divisor = math.gcd(*(int(ratio * common) for ratio in ratios))
    return Fraction(common, divisor) / base


def _simplest(value: float, noise: Fraction) -> Fraction:
    """Return the fraction of small denominator that equals the value up to noise; the value where
    there is none.
    """
    near = Fraction(value).limit_denominator(MOST_DENOMINATOR)
    return near if near > 0 and abs(near - Fraction(value)) <= noise else Fraction(value)


def _power_below(value: float) -> Fraction:
    return Fraction(2) ** (math.frexp(value)[1] - 1)


def to_int(value: float | Fraction, scale: Fraction, up: bool = False, largest: float = 0.0) -> int:
    """Return scale · value as an integer: the nearest where it is one up to the float, else rounded
    down (or up). ``largest`` is the largest of the values beside it.
    """
    near = _near(value, scale, largest)
    if near is not None:
        return near
    product = Fraction(value) * scale
    return math.ceil(product) if up else math.floor(product)


def _near(value: float | Fraction, scale: Fraction, largest: float) -> int | None:
    product = Fraction(value) * scale
    nearest = round(product)
    noise = Fraction(NEAR) * max(Fraction(abs(nearest)), Fraction(largest) * scale)
    return nearest if abs(product - nearest) <= noise else None


@dataclass(frozen=True)
class Rounded:
    """The relation of the integer sum F to the true f: see the module."""

    scale: Fraction
    constant: Fraction
    charge: Fraction
    loss: Fraction
    least: int = 0
    cutoff: float = math.inf

    @property
    def error(self) -> float:
        """Return the largest gap that a finished search can leave between its bound and the
        objective of its best schedule.
        """
        return math.nextafter(float((self.charge + self.loss) / self.scale), math.inf)

    def bound(self, total: float) -> float:
        """Return the lower bound on f that F ≥ total proves, as a float that is not above it. No
        metric is negative.
        """
        true = self.constant + (Fraction(total) + self.least - self.charge) / self.scale
        value = float(true)
        return max(
            0.0,
            min(
                self.cutoff, value if Fraction(value) <= true else math.nextafter(value, -math.inf)
            ),
        )

    def floor(self, bound: float) -> int:
        """Return an integer that F cannot be below when f ≥ bound (1e-6 of a unit allows for the
        bound's float).
        """
        known = (Fraction(bound) - self.constant) * self.scale - self.least - self.loss
        return max(0, math.ceil(known - Fraction(1, 10**6)))


def guard(total: float, what: str) -> None:
    """Refuse numbers whose sums would exceed 64-bit integers."""
    if not total < MAX_SUM:
        raise UnsupportedError(
            f"the CP model needs {what} up to {total:.3g}, beyond 64-bit integers; use a coarser "
            "tick (tick_s) or larger units"
        )
