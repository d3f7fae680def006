"""An affine sum of floats as an integer expression of the model (see scaling.py for the proof of
its bounds).

**Digits.** Rounding a coefficient of a wide variable costs up to its width. After stage 0 v is
written as v = d_0 + 64 d_1 + 64² d_2 + ..., with h_k = floor(v / 64^k) and d_k = h_k − 64 h_k+1,
and each digit has a coefficient of its own, floor(S c 64^k): an error of 64 per digit. With C_k =
floor(S c 64^k) the sum Σ C_k d_k is

    C_0 v + Σ_k≥1 (C_k − 64 C_k−1) h_k

whose further coefficients lie in [0, 64): no number of the model becomes larger.

**Cutoff.** With a known schedule of value U, no variable whose coefficient c alone would exceed 2
(U − f_0), f_0 the least sum, can differ from its least value l in a schedule that is no worse. Its
coefficient may then be 2 (U − f_0) instead, with a constant that keeps its value at l."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from ortools.sat.python import cp_model

from optbench.model.timegrid import widened
from optbench.views.cpsat.draft import Draft, Expression
from optbench.views.cpsat.metric_terms import Affine
from optbench.views.cpsat.scaling import Rounded, guard, scale_for, to_int

ZERO = Fraction(0)
# Base of the digits of wide variables.
BASE = 64


class Term(NamedTuple):
    """Coefficient, variable, the range that counts, and the end of its domain."""

    value: Fraction
    variable: cp_model.IntVar
    low: int
    high: int
    upper: int


@dataclass
class _Sum:
    """An integer sum under construction, and how far it can lie above and below the true one."""

    scale: Fraction
    up: bool
    largest: float = 0.0
    charge: Fraction = ZERO
    loss: Fraction = ZERO

    def integer(self, value: Fraction, low: int, high: int) -> int:
        """Return the coefficient of a variable in [low, high], and record its possible rounding
        error.
        """
        out = to_int(value, self.scale, self.up, self.largest)
        over = out - value * self.scale
        self.charge, self.loss = (
            self.charge + max(over * low, over * high),
            self.loss - min(over * low, over * high),
        )
        return out


def rounded(
    draft: Draft, total: Affine, up: bool = False, stage: int = 0, cutoff: float = math.inf
) -> tuple[Expression, Rounded]:
    """Return the sum scaled and rounded down (or up, for the inner rounding of a limit), without
    its constant and its least value.

    ``cutoff`` is the value of a known schedule; only schedules that are no worse matter.
    """
    terms = _terms(total, cutoff)
    scale = scale_for([(float(term.value), term.upper) for term in terms], stage)
    largest = max((abs(float(term.value)) for term in terms), default=0.0)
    out, least, most = _Sum(scale, up, largest), 0, 0.0
    integers: list[Expression] = []
    for value, variable, low, high, upper in terms:
        if stage and high - low > BASE and _is_rounded(value, scale, largest):
            integer, further = _digits(draft, out, value, variable, low, high)
            integers += further
        else:
            integer = out.integer(value, low, high)
        if integer or (stage and high - low > BASE):
            integers.append(integer * variable)
        lowest = max(0, int(variable.domain.min()))
        least += min(integer * lowest, integer * upper)
        most += abs(float(value)) * upper
    guard(most * float(scale), "scaled sums")
    # The part of the least values of variables that clipped coefficients no longer count.
    clipped = sum((total.coefficient[t.variable.index] - t.value) * t.low for t in terms)
    return sum(integers) - least, Rounded(
        scale, total.constant + clipped, out.charge, out.loss, least, cutoff
    )


def _is_rounded(value: Fraction, scale: Fraction, largest: float) -> bool:
    """Whether the coefficient is more than the float of an integer."""
    return abs(to_int(value, scale, largest=largest) - value * scale) > Fraction(1, 2**20)


def _digits(
    draft: Draft, out: _Sum, value: Fraction, variable: cp_model.IntVar, low: int, high: int
) -> tuple[int, list[Expression]]:
    """Return the coefficient of the variable itself, and the terms of its further digits: see the
    module.
    """
    first = last = out.integer(value, 0, BASE - 1)
    further: list[Expression] = []
    top, rest, size, holds = int(variable.domain.max()), variable, BASE, draft.value_of(variable)
    while top >= BASE:
        top //= BASE
        one_more = top >= BASE
        factor = out.integer(
            value * size,
            0 if one_more else low // size,
            BASE - 1 if one_more else max(high, low) // size,
        )
        digit = draft.integer(0, top, f"{variable.name}_{size}", lambda d, s=size: holds(d) // s)  # type: ignore[misc]
        draft.model.add_linear_constraint(rest - BASE * digit, 0, BASE - 1)
        if factor != BASE * last:
            further.append((factor - BASE * last) * digit)
        last, rest, size = factor, digit, size * BASE
    return first, further


def _terms(total: Affine, cutoff: float) -> list[Term]:
    """Return the terms, with coefficients and ranges cut off where the sum alone would exceed the
    cutoff.
    """
    terms = []
    for key, value in total.coefficient.items():
        variable, upper = total.variable[key]
        terms.append(
            Term(value, variable, min(upper, max(0, int(variable.domain.min()))), upper, upper)
        )
    if not math.isfinite(cutoff):
        return terms
    least = total.constant + sum(min(t.value * t.low, t.value * t.high) for t in terms)
    spare = Fraction(cutoff) - least
    # A millionth more than that: the sum and the cutoff are floats.
    spare += abs(spare) / 10**6 + (abs(Fraction(cutoff)) + abs(least)) / 10**9
    if spare <= 0:
        return terms
    return [_cut(term, spare) for term in terms]


def _cut(term: Term, spare: Fraction) -> Term:
    """Limit a term to ``spare`` above its least value."""
    if term.value > 0:
        high = min(term.high, term.low + math.floor(spare / term.value))
        return term._replace(value=min(term.value, 2 * spare), high=high)
    if term.value < 0:
        return term._replace(low=max(term.low, term.high - math.floor(spare / -term.value)))
    return term


def add_limit(draft: Draft, total: Affine, limit: float, stage: int = 0) -> None:
    """Add total ≤ limit. After stage 0, terms that exceed the limit by themselves are cut off: the
    limit is the cutoff of its own sum.
    """
    top = widened(limit)
    expression, numbers = rounded(
        draft, total, draft.inner, stage, top if stage and not draft.inner else math.inf
    )
    room = (Fraction(limit) - numbers.constant) * numbers.scale - numbers.least
    if draft.inner:
        allowed = math.floor(room - numbers.loss)
    else:
        allowed = math.floor(
            room + (Fraction(top) - Fraction(limit)) * numbers.scale + numbers.charge
        )
    guard(abs(float(allowed)), "limits")
    draft.model.add(expression <= allowed)
