"""Claims: a published figure, the study's figure, and what the certified bounds allow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from optbench.evaluate.cell_columns import CellColumns
from optbench.evaluate.formula_values import evaluate, interval
from optbench.evaluate.hardware_models import unequal_words
from optbench.evaluate.worst_cells import direction
from optbench.study.declared import Claim, Study
from optbench.study.expectations import claim_formulas
from optbench.study.formula_binding import Formula
from optbench.study.formula_syntax import (
    Aggregate,
    Binary,
    Leaf,
    Name,
    Node,
    Number,
    Paired,
    Unary,
    names_in,
    walk,
)
from optbench.units import EQUAL

Verdict = Literal["holds", "not reproduced", "no data", "not checked"]


@dataclass(frozen=True)
class ClaimResult:
    """The result of checking a claim.

    ``bound`` is the best figure that the certified bounds allow: no decisions give a lower one, or
    a higher one where the objective is maximised. ``mean_gap`` is the mean study gap of the solvers
    that the study's figure reads.
    """

    study: str
    claim: Claim
    verdict: Verdict
    ours: float | None
    interval: tuple[float, float] | None = None
    bound: float | None = None
    mean_gap: float | None = None
    solvers: tuple[str, ...] = ()
    why: tuple[str, ...] = ()
    remark: str = ""

    @property
    def holds(self) -> bool:
        return self.verdict == "holds"

    def to_dict(self) -> dict[str, Any]:
        claim = self.claim
        return {
            "study": self.study,
            "text": claim.text,
            "source": claim.source,
            "paper": claim.paper,
            "ours": self.ours,
            "interval": self.interval,
            "bound": self.bound,
            "mean_gap": self.mean_gap,
            "verdict": self.verdict,
            "expression": claim.ours,
            "better": claim.better,
            "tolerance": claim.tolerance,
            "solvers": self.solvers,
            "why": self.why,
            "remark": self.remark or None,
        }


def judge_claim(study: Study, claim: Claim, columns: CellColumns) -> ClaimResult:
    """Compare the study's figure with the paper's; the interval does not decide."""
    if claim.left_to:
        return ClaimResult(
            study.name, claim, "not checked", None, why=(f"left to {claim.left_to}",)
        )
    formula, asked_bound = claim_formulas(study, claim)
    found = evaluate(formula, columns)
    gap = mean_gap(formula, columns)
    if found.value is None:
        return ClaimResult(
            study.name, claim, "no data", None, mean_gap=gap, solvers=formula.solvers, why=found.why
        )
    ours, spread = float(found.value), interval(formula, columns)
    verdict: Verdict = "holds" if is_as_good(claim, ours) else "not reproduced"
    best = asked_bound
    if best is None and columns.senses in ({"min"}, {"max"}):
        opposite = "higher" if columns.senses == {"min"} else "lower"
        best = None if claim.better == opposite else at_bound(formula, columns.signed)
    bound = None if best is None else evaluate(best, columns).value
    remarks = [] if spread is None else [_remark(claim, ours, spread)]
    if claim.better == "lower" and rises_with_maximum(formula, columns):
        remarks.append('the objective is maximised, and less counts as better: better = "higher"?')
    remarks.append(unequal_words([columns.cells(label) for label in formula.solvers]))
    remark = "; ".join(filter(None, remarks))
    return ClaimResult(
        study.name, claim, verdict, ours, spread, bound, gap, formula.solvers, remark=remark
    )


def is_as_good(claim: Claim, ours: float) -> bool:
    """Whether a figure is as good as the paper's, within the tolerance."""
    slack = margin(claim)
    slack += EQUAL * abs(claim.paper)
    if claim.better == "equal":
        return abs(ours - claim.paper) <= slack
    return ours <= claim.paper + slack if claim.better == "lower" else ours >= claim.paper - slack


def margin(claim: Claim) -> float:
    """Return the allowed deviation: a share of the figure, absolute where that is 0."""
    return claim.tolerance * (abs(claim.paper) if claim.paper else 1.0)


def _remark(claim: Claim, ours: float, spread: tuple[float, float]) -> str:
    """Return a remark if the interval disagrees with the verdict."""
    held = is_as_good(claim, ours)
    if all(is_as_good(claim, end) is held for end in spread):
        return ""
    return "the interval contains the threshold: more seeds or instances would decide"


def rises_with_maximum(formula: Formula, columns: CellColumns) -> bool:
    """Whether a formula reads an objective that is maximised, by name or as its metric, and turns
    no sign.
    """
    if columns.senses != {"max"} or any(isinstance(each, Unary) for each in walk(formula.term)):
        return False
    rows = [row for label in formula.solvers for row in columns.rows(label)]
    solved = [row for row in rows if row is not None and row.objective is not None]
    return any(
        all(columns.measure(row, name) == columns.measure(row, "objective") for row in solved)
        for name in {name for leaf in formula.leaves for name in names_in(leaf_values(leaf))}
    )


def leaf_values(leaf: Leaf) -> Node:
    """Return what a leaf computes for each cell of its first solver."""
    return leaf.of_cell if isinstance(leaf, Aggregate) else leaf.x


def mean_gap(formula: Formula, columns: CellColumns) -> float | None:
    """Return the mean study gap over the cells that a formula reads; None if one has not run."""
    gaps = [
        columns.measure(row, "study_gap")
        for label in formula.solvers
        for row in columns.rows(label)
    ]
    return float(np.mean(gaps)) if gaps and np.isfinite(gaps).all() else None


def at_bound(formula: Formula, signed: bool = False) -> Formula | None:
    """Return a formula whose value no decisions of the first solver can be below (above, where the
    objective is maximised).

    None if the formula does not read that solver's objective, or could fall while the objective
    rises. ``signed``: objectives and metrics may be negative.
    """
    subject = formula.solvers[0]
    term = _at_bound(formula.term, subject, 1, signed)
    return None if term is None or term == formula.term else replace(formula, term=term)


def _at_bound(term: Node, subject: str, way: int, signed: bool) -> Node | None:
    """Replace the subject's objective by its bound; None where the result is no bound.

    ``way`` is 1 where the formula rises with the term, -1 where it falls, 0 where neither is known.
    """
    if isinstance(term, Number):
        return term
    if isinstance(term, (Aggregate, Paired)) and subject not in term.labels:
        return term
    if isinstance(term, Aggregate):
        no_bound = way != 1 or term.function in ("share", "count")
        lowered = None if no_bound else _bound_of(term.of_cell)
        return None if lowered is None else replace(term, of_cell=lowered)
    if isinstance(term, Paired):
        # A ratio of means falls with its first side where the second is negative.
        no_bound = way != 1 or term.b == subject or (signed and term.function == "ratio")
        lowered = None if no_bound else _bound_of(term.x)
        return None if lowered is None else replace(term, x=lowered)
    if isinstance(term, Binary) and term.op in "+-*/":
        left_way, right_way = direction(term, signed)
        left = _at_bound(term.left, subject, way * left_way, signed)
        right = _at_bound(term.right, subject, way * right_way, signed)
        return None if left is None or right is None else replace(term, left=left, right=right)
    if isinstance(term, Unary) and term.op == "-":
        operand = _at_bound(term.operand, subject, -way, signed)
        return None if operand is None else replace(term, operand=operand)
    return None


def _bound_of(node: Node) -> Node | None:
    if isinstance(node, Name) and node.text == "objective":
        return replace(node, text="bound")
    return None
