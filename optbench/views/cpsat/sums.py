"""An affine sum of floats as an integer expression of the model (see scaling.py for the proof of its bounds)."""

from __future__ import annotations

import math
from fractions import Fraction

from optbench.model.timegrid import allowance
from ortools.sat.python import cp_model

from optbench.views.cpsat.draft import Draft, Expression
from optbench.views.cpsat.metrics import Affine
from optbench.views.cpsat.scaling import Rounded, guard, scale_for, to_int

ZERO = Fraction(0)
# Coefficient, variable, and the range that counts.
Term = tuple[float, cp_model.IntVar, int, int]


def rounded(total: Affine, up: bool = False, fine: bool = False, cutoff: float = math.inf) -> tuple[Expression, Rounded]:
    """The sum scaled and rounded down (or up, for the inner rounding of a limit), without its constant and its least value.

    ``cutoff``: the sum of a known schedule; only those that are no worse matter.
    """
    terms = _terms(total, cutoff)
    scale = scale_for([(value, total.variable[key][1]) for key, value in total.coefficient.items()], fine)
    charge = loss = ZERO
    least = 0
    integers: list[Expression] = []
    for value, variable, low, high in terms:
        integer = to_int(value, scale, up)
        over = integer - Fraction(value) * scale
        charge, loss = charge + max(over * low, over * high), loss - min(over * low, over * high)
        if integer:
            integers.append(integer * variable)
            least += min(integer * low, integer * high)
    guard(sum(abs(value) * total.variable[variable.index][1] for value, variable, _, _ in terms) * float(scale), "scaled sums")
    return sum(integers) - least, Rounded(scale, total.constant, charge, loss, least, cutoff)


def _terms(total: Affine, cutoff: float) -> list[Term]:
    """The terms with the ranges of their variables, cut off where the sum alone would exceed the cutoff."""
    terms: list[Term] = []
    for key, value in total.coefficient.items():
        variable, high = total.variable[key]
        low = min(high, max(0, int(variable.domain.min())))
        terms.append((value, variable, low, high))
    if math.isfinite(cutoff):
        least = Fraction(total.constant) + sum(min(Fraction(c) * low, Fraction(c) * high) for c, _, low, high in terms)
        spare = Fraction(cutoff) - least
        # A millionth more than that: the sum and the cutoff are floats.
        spare += abs(spare) / 10**6 + (abs(Fraction(cutoff)) + abs(least)) / 10**9
        terms = [
            (c, v, low, min(high, low + math.ceil(spare / Fraction(c))) if c > 0 and spare >= 0 else high)
            for c, v, low, high in terms
        ]
    return terms


def add_limit(draft: Draft, total: Affine, limit: float) -> None:
    """total ≤ limit."""
    expression, numbers = rounded(total, up=draft.inner)
    room = (Fraction(limit) - Fraction(total.constant)) * numbers.scale - numbers.least
    if draft.inner:
        allowed = math.floor(room - numbers.loss)
    else:
        allowed = math.floor(room + Fraction(allowance(limit)) * numbers.scale + numbers.charge)
    guard(abs(float(allowed)), "limits")
    draft.model.add(expression <= allowed)
