"""Resolved formulas: what is computed over cells, and the operations on the results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from optbench.study.formula_syntax import Node


@dataclass(frozen=True)
class Constant:
    value: float


@dataclass(frozen=True)
class Aggregate:
    """A function over the cells of one solver; ``extra`` is the percentage of p and the shift of
    gm.
    """

    text: str
    function: str
    of_cell: Node
    label: str
    extra: float = 0.0

    @property
    def labels(self) -> tuple[str, ...]:
        return (self.label,)


@dataclass(frozen=True)
class Paired:
    """A function of pairs of cells with equal instance, seed and repetition.

    ``rel`` is the mean of (x of a - y of b) / |y of b|, ``ratio`` the mean of x of a / the mean of
    y of b.
    """

    text: str
    function: str
    x: Node
    a: str
    y: Node
    b: str

    @property
    def labels(self) -> tuple[str, ...]:
        return (self.a, self.b)


@dataclass(frozen=True)
class Arithmetic:
    op: str
    left: NumberTerm
    right: NumberTerm


@dataclass(frozen=True)
class Negative:
    operand: NumberTerm


@dataclass(frozen=True)
class Absolute:
    operand: NumberTerm


@dataclass(frozen=True)
class Comparison:
    """``text`` is the comparison as written, for messages."""

    text: str
    op: str
    left: NumberTerm
    right: NumberTerm


@dataclass(frozen=True)
class Logic:
    """``and`` or ``or``."""

    op: str
    left: ConditionTerm
    right: ConditionTerm


@dataclass(frozen=True)
class Negation:
    operand: ConditionTerm


Leaf = Aggregate | Paired
NumberTerm = Constant | Aggregate | Paired | Arithmetic | Negative | Absolute
ConditionTerm = Comparison | Logic | Negation
Term = NumberTerm | ConditionTerm


def leaves(term: Term) -> Iterator[Leaf]:
    """Yield everything computed over cells, from left to right."""
    if isinstance(term, (Aggregate, Paired)):
        yield term
    elif isinstance(term, (Negative, Absolute, Negation)):
        yield from leaves(term.operand)
    elif not isinstance(term, Constant):
        yield from leaves(term.left)
        yield from leaves(term.right)
