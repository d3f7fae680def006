"""The cells to look at when a condition does not hold: those that move it most."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from optbench.evaluate.cell_columns import CellColumns
from optbench.evaluate.formula_values import Sample, UnknownValueError, holds, relative_difference
from optbench.study.cells import Cell
from optbench.study.formula_binding import Formula
from optbench.study.formula_names import CONDITIONS, MEASURES
from optbench.study.formula_syntax import Aggregate, Binary, Call, Leaf, Name, Node, Number, Unary

SHOWN = 5
# The direction in which the left side of a comparison must move for it to hold: down is -1.
WANTED = {"<": -1, "<=": -1, ">": 1, ">=": 1, "==": 0, "!=": 0}
# Metrics of schedules that may be negative, and measures that are never negative, whatever the
# shape.
DIFFERENCES = ("rpd", "regret", "cost_usd")
POSITIVE = (set(MEASURES) | set(CONDITIONS)) - {"objective", "bound", "rpd", "regret"}
# Functions that are sums; a cell is compared with their mean over the cells.
OVER_ALL = ("sum", "count")


@dataclass(frozen=True)
class WorstCell:
    """``value`` is that of ``text``, a part of the formula; where it is None, ``why`` says why."""

    cell: Cell
    text: str
    value: float | None
    why: str = ""


def worst_cells(formula: Formula, columns: CellColumns, most: int = SHOWN) -> tuple[WorstCell, ...]:
    """Return the cells without a value first, then the worst ones."""
    if not formula.condition:
        return ()
    found: dict[str, WorstCell] = {}
    sample = Sample.whole(columns)
    for leaf, wanted in _failing_leaves(formula.term, sample, True):
        for each in _worst(leaf, wanted, columns, most):
            found.setdefault(each.cell.key, each)
    ranked = sorted(found.values(), key=lambda each: each.value is not None)
    return tuple(ranked[:most])


def _failing_leaves(term: Node, sample: Sample, asked: bool) -> Iterator[tuple[Leaf, int]]:
    """Yield what is read in comparisons that fail, with the direction in which it should move."""
    if isinstance(term, Unary):
        yield from _failing_leaves(term.operand, sample, not asked)
    elif isinstance(term, Binary) and term.op in ("and", "or"):
        yield from _failing_leaves(term.left, sample, asked)
        yield from _failing_leaves(term.right, sample, asked)
    elif isinstance(term, Binary) and holds(term, sample) is not asked:
        wanted = WANTED[term.op] * (1 if asked else -1)
        signed = sample.columns.signed
        yield from _leaves_with_direction(term.left, wanted, signed)
        yield from _leaves_with_direction(term.right, -wanted, signed)


def _leaves_with_direction(term: Node, wanted: int, signed: bool) -> Iterator[tuple[Leaf, int]]:
    """Yield what is read from cells with the direction in which it should move, 0 if unknown."""
    if isinstance(term, Leaf):
        yield term, wanted
    elif isinstance(term, Unary):
        yield from _leaves_with_direction(term.operand, -wanted, signed)
    elif isinstance(term, Call):
        yield from _leaves_with_direction(term.args[0], 0, signed)
    elif isinstance(term, Binary):
        left, right = direction(term, signed)
        yield from _leaves_with_direction(term.left, wanted * left, signed)
        yield from _leaves_with_direction(term.right, wanted * right, signed)


def direction(term: Binary, signed: bool = False) -> tuple[int, int]:
    """Return whether a result rises (1) or falls (-1) with its left and its right side.

    It is 0 where that depends on the values; ``signed``: objectives and metrics may be negative.
    """
    if term.op in "+-":
        return 1, 1 if term.op == "+" else -1
    left, right = _sign(term.left, signed), _sign(term.right, signed)
    return (right, left) if term.op == "*" else (right, -left)


def _sign(term: Node, signed: bool) -> int:
    """Return the sign of a number; 0 where it depends on the cells."""
    if isinstance(term, Number):
        return int(np.sign(term.value))
    if isinstance(term, Unary):
        return -_sign(term.operand, signed)
    if isinstance(term, Binary):
        left, right = _sign(term.left, signed), _sign(term.right, signed)
        if term.op in "*/":
            return left * right
        right = right if term.op == "+" else -right
        return left if left == right else 0
    if isinstance(term, Call):
        return 1
    assert isinstance(term, Leaf)
    if isinstance(term, Aggregate):
        return int(_is_never_negative(term.of_cell, signed))
    never = _is_never_negative(term.x, signed) and _is_never_negative(term.y, signed)
    return int(term.function == "ratio" and never)


def _is_never_negative(node: Node, signed: bool) -> bool:
    """Whether the value computed for each cell is never negative."""
    if isinstance(node, Binary) and node.op in "+*/":
        return _is_never_negative(node.left, signed) and _is_never_negative(node.right, signed)
    if isinstance(node, Name):
        return node.text in POSITIVE if signed else node.text not in DIFFERENCES
    return not isinstance(node, (Unary, Binary))


def _worst(leaf: Leaf, wanted: int, columns: CellColumns, most: int) -> Iterator[WorstCell]:
    rows = columns.rows(leaf.labels[0])
    if isinstance(leaf, Aggregate):
        values = columns.vector(leaf.label, leaf.of_cell)
    else:
        values = relative_difference(columns.vector(leaf.a, leaf.x), columns.vector(leaf.b, leaf.y))
    around = _value(leaf, columns)
    order = np.lexsort((-values if wanted <= 0 else values, ~np.isnan(values)))
    for k in order[:most].tolist():
        row, value = rows[k], float(values[k])
        if row is None:
            continue
        if np.isnan(value):
            yield WorstCell(row.cell, leaf.text, None, _why(leaf, columns, k))
        elif around is not None and (value <= around if wanted > 0 else value >= around):
            yield WorstCell(row.cell, leaf.text, value)


def _value(leaf: Leaf, columns: CellColumns) -> float | None:
    """Return the value that cells are compared with: better cells move a mean as required."""
    try:
        value = float(Sample.whole(columns).leaf(leaf)[0])
    except UnknownValueError:
        return None
    if isinstance(leaf, Aggregate) and leaf.function in OVER_ALL:
        return value / max(1, len(columns.units))
    return value - 1.0 if leaf.function == "ratio" else value


def _why(leaf: Leaf, columns: CellColumns, unit: int) -> str:
    """Explain why a cell or a pair has no value."""
    if isinstance(leaf, Aggregate):
        return columns.missing(leaf.label, unit, leaf.of_cell)
    for label, node in ((leaf.a, leaf.x), (leaf.b, leaf.y)):
        if np.isnan(columns.vector(label, node)[unit]):
            return f"{label} {columns.missing(label, unit, node)}"
    return f"{leaf.b} is 0"
