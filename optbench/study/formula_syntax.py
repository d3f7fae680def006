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

from dataclasses import dataclass

from optbench.study.formula_errors import FormulaError
from optbench.study.formula_lexer import Token, tokens

MAX_DEPTH = 40
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


@dataclass(frozen=True)
class Node:
    """``at`` and ``end`` are offsets in the formula, ``depth`` counts the levels below and
    including this one.
    """

    at: int
    end: int
    depth: int


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
        node = self.conjunction()
        while self.take("or"):
            node = self.binary("or", node, self.conjunction())
        self.nesting -= 1
        return node

    def conjunction(self) -> Node:
        node = self.negation()
        while self.take("and"):
            node = self.binary("and", node, self.negation())
        return node

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
        node = self.product()
        while (op := self.take("+", "-")) is not None:
            node = self.binary(op.text, node, self.product())
        return node

    def product(self) -> Node:
        node = self.unary()
        while (op := self.take("*", "/")) is not None:
            node = self.binary(op.text, node, self.unary())
        return node

    def unary(self) -> Node:
        signs = []
        while (sign := self.take("-", "+")) is not None:
            if sign.text == "-":
                signs.append(sign)
        return self.prefixed(signs, self.atom())

    def prefixed(self, signs: list[Token], node: Node) -> Node:
        for sign in reversed(signs):
            node = Unary(sign.at, node.end, self.deeper(sign.at, node), sign.text, node)
        return node

    def binary(self, op: str, left: Node, right: Node) -> Node:
        return Binary(left.at, right.end, self.deeper(left.at, left, right), op, left, right)

    def deeper(self, at: int, *nodes: Node) -> int:
        depth = 1 + max((node.depth for node in nodes), default=0)
        if depth > MAX_DEPTH:
            raise self.error(f"more than {MAX_DEPTH} nested levels; split it into several formulas", at)
        return depth

    def atom(self) -> Node:
        token = self.here
        if token.kind == "number":
            self.place += 1
            return Number(token.at, token.end, 1, token.value)
        if token.kind == "string":
            self.place += 1
            return Name(token.at, token.end, 1, token.text, True)
        if token.kind == "name":
            self.place += 1
            return self.call(token) if self.take("(") else Name(token.at, token.end, 1, token.text)
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
        return Call(name.at, end, self.deeper(name.at, *args), name.text, tuple(args))

    def close(self, opening: Token) -> None:
        if self.take(")") is None:
            if self.here.kind == "end":
                raise self.error("this parenthesis is never closed", opening.at)
            raise self.error(f"{_shown(self.here)} is here, but an operator, a comma or ')' is expected")


def _shown(token: Token) -> str:
    return "the end" if token.kind == "end" else repr(token.text)
