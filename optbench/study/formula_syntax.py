"""Parse tokens to a syntax tree. The grammar, from the lowest precedence:

formula = conjunction { "or" conjunction }
conjunction = negation { "and" negation }
negation = "not" negation | comparison
comparison = sum [ ("<" | "<=" | ">" | ">=" | "==" | "!=") sum ]
sum = product { ("+" | "-") product }
product = unary { ("*" | "/") unary }
unary = "-" unary | atom
atom = number | name | string | name "(" [ formula { "," formula } ] ")" | "(" formula ")"
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from optbench.study.formula_lexer import FormulaError, Token, tokens

MAX_DEPTH = 40
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


@dataclass(frozen=True, kw_only=True)
class Node:
    """``at`` and ``end`` are offsets in the formula, ``depth`` counts the levels from here down."""

    at: int = 0
    end: int = 0
    depth: int = 1


@dataclass(frozen=True)
class Number(Node):
    value: float


@dataclass(frozen=True)
class Name(Node):
    """``quoted`` if it is in quotation marks: a solver's label."""

    text: str
    quoted: bool = False


@dataclass(frozen=True)
class Call(Node):
    name: str
    args: tuple[Node, ...]


@dataclass(frozen=True)
class Unary(Node):
    """``-`` or ``not``."""

    op: str
    operand: Node


@dataclass(frozen=True)
class Binary(Node):
    """An arithmetic operator, a comparison, ``and`` or ``or``."""

    op: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Aggregate(Node):
    """A function over one solver's cells; ``extra`` is the percentage of p and the shift of gm."""

    text: str
    function: str
    of_cell: Node
    label: str
    extra: float = 0.0

    @property
    def labels(self) -> tuple[str, ...]:
        return (self.label,)


@dataclass(frozen=True)
class Paired(Node):
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


# What is computed over cells: the leaves of a formula whose names are resolved.
Leaf = Aggregate | Paired


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all nodes below it, from left to right."""
    yield node
    if isinstance(node, Call):
        parts: tuple[Node, ...] = node.args
    elif isinstance(node, Unary):
        parts = (node.operand,)
    else:
        parts = (node.left, node.right) if isinstance(node, Binary) else ()
    for part in parts:
        yield from walk(part)


def names_in(node: Node) -> tuple[str, ...]:
    """Return the metrics that an expression reads."""
    return tuple(each.text for each in walk(node) if isinstance(each, Name))


def leaves(term: Node) -> tuple[Leaf, ...]:
    """Return everything that a resolved formula computes over cells, from left to right."""
    return tuple(each for each in walk(term) if isinstance(each, (Aggregate, Paired)))


def parse(source: str) -> Node:
    """Return the syntax tree of a formula; names are not resolved."""
    parser = _Parser(source)
    if len(parser.words) == 1:
        raise FormulaError("an empty formula; write one such as gap <= 0.01", source, 0)
    node = parser.formula()
    if parser.place < len(parser.words) - 1:
        raise parser.error(f"{_shown(parser.here)} is not allowed here")
    return node


class _Parser:
    """A position among the tokens; each method parses one rule of the grammar."""

    def __init__(self, source: str) -> None:
        self.source, self.words, self.place, self.nesting = source, tokens(source), 0, 0

    @property
    def here(self) -> Token:
        return self.words[self.place]

    def error(self, message: str, at: int | None = None) -> FormulaError:
        return FormulaError(message, self.source, self.here.at if at is None else at)

    def take(self, *texts: str) -> Token | None:
        """Return and pass the current operator if it is one of these."""
        if self.here.kind != "operator" or self.here.text not in texts:
            return None
        self.place += 1
        return self.words[self.place - 1]

    def formula(self) -> Node:
        self.nesting += 1
        if self.nesting > MAX_DEPTH:
            raise self.error(f"more than {MAX_DEPTH} nested levels")
        node = self.chain(self.conjunction, "or")
        self.nesting -= 1
        return node

    def chain(self, operand: Callable[[], Node], *ops: str) -> Node:
        """Parse operands that are joined by operators of one precedence."""
        node = operand()
        while (op := self.take(*ops)) is not None:
            node = self.binary(op.text, node, operand())
        return node

    def conjunction(self) -> Node:
        return self.chain(self.negation, "and")

    def negation(self) -> Node:
        signs = []
        while (sign := self.take("not")) is not None:
            signs.append(sign)
        return self.prefixed(signs, self.comparison())

    def comparison(self) -> Node:
        node = self.sum()
        op = self.take(*COMPARISONS)
        if op is None:
            return node
        node = self.binary(op.text, node, self.sum())
        if self.here.kind == "operator" and self.here.text in COMPARISONS:
            raise self.error("comparisons cannot be chained; write a <= b and b <= c")
        return node

    def sum(self) -> Node:
        return self.chain(self.product, "+", "-")

    def product(self) -> Node:
        return self.chain(self.unary, "*", "/")

    def unary(self) -> Node:
        signs = []
        while (sign := self.take("-", "+")) is not None:
            if sign.text == "-":
                signs.append(sign)
        return self.prefixed(signs, self.atom())

    def prefixed(self, signs: list[Token], node: Node) -> Node:
        for sign in reversed(signs):
            depth = self.deeper(sign.at, node)
            node = Unary(sign.text, node, at=sign.at, end=node.end, depth=depth)
        return node

    def binary(self, op: str, left: Node, right: Node) -> Node:
        depth = self.deeper(left.at, left, right)
        return Binary(op, left, right, at=left.at, end=right.end, depth=depth)

    def deeper(self, at: int, *nodes: Node) -> int:
        depth = 1 + max((node.depth for node in nodes), default=0)
        if depth > MAX_DEPTH:
            raise self.error(
                f"more than {MAX_DEPTH} nested levels; split it into several formulas", at
            )
        return depth

    def atom(self) -> Node:
        token = self.here
        if token.kind in ("number", "string", "name"):
            self.place += 1
        if token.kind == "number":
            return Number(token.value, at=token.at, end=token.end)
        if token.kind == "name" and self.take("("):
            return self.call(token)
        if token.kind in ("string", "name"):
            return Name(token.text, token.kind == "string", at=token.at, end=token.end)
        if self.take("("):
            node = self.formula()
            self.close(token)
            return node
        what = "the formula ends here" if token.kind == "end" else f"{_shown(token)} is here"
        raise self.error(f"{what}, but a number, a metric or a function is expected")

    def call(self, name: Token) -> Node:
        args: list[Node] = []
        opening = self.words[self.place - 1]
        if self.take(")") is None:
            args.append(self.formula())
            while self.take(","):
                args.append(self.formula())
            self.close(opening)
        end = self.words[self.place - 1].end
        depth = self.deeper(name.at, *args)
        return Call(name.text, tuple(args), at=name.at, end=end, depth=depth)

    def close(self, opening: Token) -> None:
        if self.take(")") is None:
            if self.here.kind == "end":
                raise self.error("this parenthesis is never closed", opening.at)
            raise self.error(
                f"{_shown(self.here)} is here, but an operator, a comma or ')' is expected"
            )


def _shown(token: Token) -> str:
    return "the end" if token.kind == "end" else repr(token.text)
