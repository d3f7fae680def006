"""An affine sum of floats as an integer expression of the model (see scaling.py for the proof of its bounds)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ortools.sat.python import cp_model

from optbench.model.metrics import slack
from optbench.views.cpsat.draft import Decision, Draft, Expression
from optbench.views.cpsat.metrics import Affine, Curve, Piece
from optbench.views.cpsat.scaling import Rounded, guard, scale_for, to_int

ZERO = Fraction(0)


@dataclass(frozen=True)
class Line:
    """base + slope · t in integers, for first ≤ t ≤ last."""

    first: int
    last: int
    base: int
    slope: int

    def at(self, t: int) -> int:
        return self.base + self.slope * t

    @property
    def least(self) -> int:
        return min(self.at(self.first), self.at(self.last))

    @property
    def most(self) -> int:
        return max(self.at(self.first), self.at(self.last))


def rounded(draft: Draft, total: Affine, up: bool = False) -> tuple[Expression, Rounded]:
    """The sum scaled and rounded down (or up, for the inner rounding of a limit), without its constant."""
    scale, largest = _scale(total)
    guard(largest * float(scale), "scaled sums")
    charge = loss = ZERO
    terms: list[Expression] = []
    for key, value in total.coefficient.items():
        variable, upper = total.variable[key]
        integer = to_int(value, scale, up)
        over = integer - Fraction(value) * scale
        charge, loss = charge + max(ZERO, over) * upper, loss + max(ZERO, -over) * upper
        if integer:
            terms.append(integer * variable)
    for weight, curve in total.curves:
        pairs = [(piece, line_of(piece, weight, scale, up)) for piece in curve.pieces]
        off = [line.at(t) - _exact(weight, value, scale) for piece, line in pairs for t, value in _ends(piece)]
        charge, loss = charge + max(ZERO, *off), loss + max(ZERO, *(-value for value in off))
        terms.append(_curve(draft, curve, [line for _, line in pairs]))
    return sum(terms), Rounded(scale, total.constant, charge, loss, charge == loss == 0)


def add_limit(draft: Draft, total: Affine, limit: float) -> None:
    """total ≤ limit."""
    expression, numbers = rounded(draft, total, up=draft.inner)
    room = Fraction(limit) - Fraction(total.constant)
    if not draft.inner:
        room += Fraction(slack(limit))
    allowed = room * numbers.scale + (-numbers.loss if draft.inner else numbers.charge)
    draft.model.add(expression <= allowed.__floor__())


def _scale(total: Affine) -> tuple[Fraction, float]:
    """Scale, and the largest absolute value of the unscaled sum."""
    values = [value for value in total.coefficient.values() if value]
    largest = sum(abs(value) * total.variable[key][1] for key, value in total.coefficient.items())
    for weight, curve in total.curves:
        ends = [weight * value for piece in curve.pieces for _, value in _ends(piece)]
        values += ends
        largest += max(map(abs, ends))
    return scale_for(values, max(largest, abs(total.constant)))[0], largest


def _ends(piece: Piece) -> tuple[tuple[int, float], tuple[int, float]]:
    return (piece.first, piece.low), (piece.last, piece.high)


def _exact(weight: float, value: float, scale: Fraction) -> Fraction:
    return Fraction(weight * value) * scale


def line_of(piece: Piece, weight: float, scale: Fraction, up: bool) -> Line:
    """An integer line that is below scale · weight · piece at both ends (above it where ``up``), but for the float."""
    low, high = to_int(weight * piece.low, scale, up), to_int(weight * piece.high, scale, up)
    length = piece.last - piece.first
    slope = 0 if length == 0 else -((low - high) // length) if up else (high - low) // length
    return Line(piece.first, piece.last, low - slope * piece.first, slope)


def _curve(draft: Draft, curve: Curve, lines: list[Line]) -> Expression:
    """The curve's value: one literal per line, and a variable above the line where lines have a slope."""
    model = draft.model
    chosen: list[Expression] = []
    literals: list[cp_model.IntVar | None] = []
    for k, line in enumerate(lines):
        literal = curve.literal
        if len(lines) > 1:
            literal = draft.literal(
                f"{curve.name}_p{k}",
                lambda d, a=line.first, b=line.last: int(bool(curve.counts(d)) and a <= curve.time(d) <= b),  # type: ignore[misc]
            )
            domain = cp_model.Domain(line.first, line.last)
            model.add_linear_expression_in_domain(curve.argument, domain).only_enforce_if(literal)
        literals.append(literal)
        chosen.append(1 if literal is None else literal)
    if len(lines) > 1:
        model.add(sum(chosen) == (1 if curve.literal is None else curve.literal))
    least = sum(line.least * literal for line, literal in zip(lines, chosen, strict=True))
    if all(line.slope == 0 for line in lines):
        return least
    low, high = min(line.least for line in lines), max(line.most for line in lines)
    value = draft.integer(min(0, low), max(0, high), curve.name, lambda d: _value(curve, lines, d))
    model.add(value >= least)
    for line, literal in zip(lines, literals, strict=True):
        if line.slope:
            bound = model.add(value >= line.base + line.slope * curve.argument)
            if literal is not None:
                bound.only_enforce_if(literal)
    return value


def _value(curve: Curve, lines: list[Line], decision: Decision) -> int:
    if not curve.counts(decision):
        return 0
    t = curve.time(decision)
    return next(line.at(t) for line in lines if line.first <= t <= line.last)
