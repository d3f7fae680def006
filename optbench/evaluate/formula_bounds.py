"""What the certified bounds allow: a formula with its first solver's objective at the bound."""

from __future__ import annotations

from dataclasses import replace

from optbench.evaluate.worst_cells import direction
from optbench.study.formula_binding import Formula
from optbench.study.formula_syntax import Aggregate, Binary, Name, Node, Number, Paired, Unary


def at_bound(formula: Formula) -> Formula | None:
    """Return a formula whose value no schedules of the first solver can be below.

    None if the formula does not read that solver's objective, or could fall while the objective
    rises.
    """
    subject = formula.solvers[0]
    term = _lowered(formula.term, subject, 1)
    return None if term is None or term == formula.term else replace(formula, term=term)


def _lowered(term: Node, subject: str, way: int) -> Node | None:
    """Replace the subject's objective by its bound; None where the result is no lower bound.

    ``way`` is 1 where the formula rises with the term, -1 where it falls, 0 where neither is known.
    """
    if isinstance(term, Number):
        return term
    if isinstance(term, (Aggregate, Paired)) and subject not in term.labels:
        return term
    if isinstance(term, Aggregate):
        lowered = None if way != 1 or term.function in ("share", "count") else _bound_of(term.of_cell)
        return None if lowered is None else replace(term, of_cell=lowered)
    if isinstance(term, Paired):
        lowered = None if way != 1 or term.b == subject else _bound_of(term.x)
        return None if lowered is None else replace(term, x=lowered)
    if isinstance(term, Binary) and term.op in "+-*/":
        left_way, right_way = direction(term)
        left = _lowered(term.left, subject, way * left_way)
        right = _lowered(term.right, subject, way * right_way)
        return None if left is None or right is None else replace(term, left=left, right=right)
    if isinstance(term, Unary) and term.op == "-":
        operand = _lowered(term.operand, subject, -way)
        return None if operand is None else replace(term, operand=operand)
    return None


def _bound_of(node: Node) -> Node | None:
    if isinstance(node, Name) and node.text == "objective":
        return replace(node, text="bound")
    return None
