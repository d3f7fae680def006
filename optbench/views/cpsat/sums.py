"""An affine sum of floats as an integer expression of the model (see scaling.py for the proof of its bounds)."""

from __future__ import annotations

import math
from fractions import Fraction

from optbench.model.timegrid import allowance
from optbench.views.cpsat.draft import Draft, Expression
from optbench.views.cpsat.metrics import Affine
from optbench.views.cpsat.scaling import Rounded, guard, scale_for, to_int

ZERO = Fraction(0)


def rounded(total: Affine, up: bool = False) -> tuple[Expression, Rounded]:
    """The sum scaled and rounded down (or up, for the inner rounding of a limit), without its constant."""
    terms = [(value, *total.variable[key]) for key, value in total.coefficient.items()]
    scale = scale_for([(value, upper) for value, _, upper in terms])
    charge = loss = ZERO
    integers: list[Expression] = []
    for value, variable, upper in terms:
        integer = to_int(value, scale, up)
        over = integer - Fraction(value) * scale
        charge, loss = charge + max(ZERO, over) * upper, loss + max(ZERO, -over) * upper
        if integer:
            integers.append(integer * variable)
    guard(sum(abs(value) * upper for value, _, upper in terms) * float(scale), "scaled sums")
    return sum(integers), Rounded(scale, total.constant, charge, loss)


def add_limit(draft: Draft, total: Affine, limit: float) -> None:
    """total ≤ limit."""
    expression, numbers = rounded(total, up=draft.inner)
    room = (Fraction(limit) - Fraction(total.constant)) * numbers.scale
    if draft.inner:
        allowed = math.floor(room - numbers.loss)
    else:
        allowed = math.floor(room + Fraction(allowance(limit)) * numbers.scale + numbers.charge)
    guard(abs(float(allowed)), "limits")
    draft.model.add(expression <= allowed)
