"""Evaluate what the certified bounds allow: a formula with the objective of its first solver
replaced by the bound.
"""

from __future__ import annotations

from dataclasses import replace

from optbench.evaluate.worst_cells import direction
from optbench.study.formula_binding import Formula
from optbench.study.formula_syntax import Name, Node
from optbench.study.formula_terms import (
    Absolute,
    Aggregate,
    Arithmetic,
    Comparison,
    Constant,
    Logic,
    Negation,
    Negative,
    NumberTerm,
    Paired,
    Term,
)


def at_bound(formula: Formula) -> Formula | None:
    """Return a formula whose value no schedules of the first solver can be below.

    None if the formula does not read that solver's objective, or could fall while the objective
    rises.
    """
    subject = formula.solvers[0]
    term = _lowered(formula.term, subject, 1)
    return None if term is None or term == formula.term else replace(formula, term=term)


def _lowered(term: Term, subject: str, direction_here: int) -> NumberTerm | None:
    """Replace the subject's objective by its bound in a term; None where the result is not a lower
    bound.
    """
    if isinstance(term, Constant) or (isinstance(term, (Aggregate, Paired)) and subject not in term.labels):
        return term
    if isinstance(term, Aggregate):
        lowered = None if direction_here != 1 else _bound_of(term.of_cell)
        return None if lowered is None or term.function in ("share", "count") else replace(term, of_cell=lowered)
    if isinstance(term, Paired):
        lowered = None if direction_here != 1 or term.b == subject else _bound_of(term.x)
        return None if lowered is None else replace(term, x=lowered)
    if isinstance(term, Arithmetic):
        left_way, right_way = direction(term)
        left = _lowered(term.left, subject, direction_here * left_way)
        right = _lowered(term.right, subject, direction_here * right_way)
        if left is None or right is None:
            return None
        return replace(term, left=left, right=right)
    if isinstance(term, Negative):
        operand = _lowered(term.operand, subject, -direction_here)
        return None if operand is None else Negative(operand)
    assert isinstance(term, (Absolute, Comparison, Logic, Negation))
    return None


def _bound_of(node: Node) -> Node | None:
    return replace(node, text="bound") if isinstance(node, Name) and node.text == "objective" else None
