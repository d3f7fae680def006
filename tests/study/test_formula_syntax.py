"""The grammar: what is read, what is refused and where; nothing but a tree or a clean error ever
comes of a text.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optbench.errors import OptbenchError
from optbench.study.formula_binding import condition, number
from optbench.study.formula_lexer import MAX_LENGTH, FormulaError, tokens
from optbench.study.formula_names import Scope
from optbench.study.formula_syntax import MAX_DEPTH, Binary, Call, Name, Node, Number, Unary, parse

SCOPE = Scope(
    (("heft", "heft"), ("rules:k=8", "rules"), ("rules:k=16", "rules")), "heft", ("j_per_job",)
)
BY_SIGN: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
BY_NAME: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
}  # fmt: skip
WORDS = [
    "gap",
    "energy_j",
    "objective",
    "failed",
    "heft",
    "'rules:k=8'",
    "rules",
    "mean",
    "p",
    "rel",
    "share",
    "count",
    "gm",
    "abs",
    "(",
    ")",
    ",",
    "+",
    "-",
    "*",
    "/",
    "<",
    "<=",
    "==",
    "!=",
    "and",
    "or",
    "not",
    "0",
    "95",
    "5%",
    "10s",
    "1e9",
    ".5",
    "x",
    '"',
]


def written(node: Node) -> str:
    """The tree, every level in parentheses."""
    if isinstance(node, Number):
        return f"{node.value:g}"
    if isinstance(node, Name):
        return f"<{node.text}>" if node.quoted else node.text
    if isinstance(node, Call):
        return f"{node.name}[{' '.join(map(written, node.args))}]"
    if isinstance(node, Unary):
        return f"({node.op} {written(node.operand)})"
    assert isinstance(node, Binary)
    return f"({written(node.left)} {node.op} {written(node.right)})"


@pytest.mark.parametrize(
    ("source", "tree"),
    [
        ("gap <= 0.01", "(gap <= 0.01)"),
        ("1 - 2 - 3", "((1 - 2) - 3)"),
        ("8 / 4 / 2", "((8 / 4) / 2)"),
        ("1 + 2 * 3", "(1 + (2 * 3))"),
        ("(1 + 2) * 3", "((1 + 2) * 3)"),
        ("-1 - -2", "((- 1) - (- 2))"),
        ("--1", "(- (- 1))"),
        ("+1", "1"),
        ("-a * b", "((- a) * b)"),
        ("a < 1 or b < 2 and c < 3", "((a < 1) or ((b < 2) and (c < 3)))"),
        ("not a < 1 and b < 2", "((not (a < 1)) and (b < 2))"),
        ("not not a < 1", "(not (not (a < 1)))"),
        ("a - b <= c + d", "((a - b) <= (c + d))"),
        ("mean(gap, 'k=8')", "mean[gap <k=8>]"),
        ("f()", "f[]"),
        ("f(g(1, 2), \"x y\")", "f[g[1 2] <x y>]"),
        ("10s + 2m + 1.5h + 100ms + 1d", "((((10 + 120) + 5400) + 0.1) + 86400)"),
        ("5% + 5 % + 2.5e1%", "((0.05 + 0.05) + 0.25)"),
        ("4GB - 500MB", "(4096 - 500)"),
        (".5 + 1. + 1e3", "((0.5 + 1) + 1000)"),
        ("a==b", "(a == b)"),
        ("  gap\n<=\t1 ", "(gap <= 1)"),
    ],
)  # fmt: skip
def test_trees(source: str, tree: str) -> None:
    assert written(parse(source)) == tree


@pytest.mark.parametrize(
    ("source", "column", "words"),
    [
        ("", 1, "an empty formula"),
        ("   ", 1, "an empty formula"),
        ("gap <=", 7, "the formula ends here"),
        ("gap <= )", 8, "')' is here"),
        ("(gap <= 1", 1, "this parenthesis is never closed"),
        ("mean(gap", 5, "this parenthesis is never closed"),
        ("mean(gap heft)", 10, "'heft' is here, but an operator, a comma"),
        ("gap <= 1 2", 10, "'2' is not allowed here"),
        ("gap <= 1)", 9, "')' is not allowed here"),
        ("1 < gap < 2", 9, "comparisons cannot be chained"),
        ("gap = 1", 5, "write =="),
        ("gap & 1", 5, "write and"),
        ("gap ≤ 1", 5, "write <="),
        ("gap.real <= 1", 4, "no attributes"),
        ("rules:k=8", 6, "quotation marks"),
        ("'heft", 1, "never closed"),
        ("10 + 3x", 7, "unknown unit 'x'"),
        ("10sec", 3, "known: %, GB"),
        ("1e999", 1, "too large"),
        ("a $ b", 3, "'$' is not allowed here"),
        ("__import__('os')[0]", 17, "'[' is not allowed here"),
        ("lambda: 1", 7, "':' is not allowed here"),
        ("and 1", 1, "'and' is here"),
    ],
)
def test_what_is_refused_is_shown_in_its_place(source: str, column: int, words: str) -> None:
    with pytest.raises(FormulaError) as error:
        parse(source)
    assert error.value.column == column
    assert words in str(error.value)
    *_, shown, caret = str(error.value).split("\n")
    assert shown == f"  {source}"
    assert caret == " " * (2 + column - 1) + "^"


def test_a_long_formula_is_shown_around_the_place() -> None:
    source = "gap + " * 20 + "$"
    with pytest.raises(FormulaError) as error:
        parse(source)
    *_, shown, caret = str(error.value).split("\n")
    assert shown[caret.index("^")] == "$"
    assert len(shown) < 110


def test_length_and_depth_are_bounded() -> None:
    with pytest.raises(FormulaError, match="at most 1,000"):
        parse("1" * (MAX_LENGTH + 1))
    for deep in (
        "(" * 300 + "1" + ")" * 300,
        "-" * 300 + "1",
        "not " * 200 + "a < 1",
        "1" + "+1" * 300,
        "f(" * 200 + ")" * 200,
    ):
        with pytest.raises(FormulaError, match=f"more than {MAX_DEPTH} nested levels"):
            parse(deep)
    parse("(" * (MAX_DEPTH - 1) + "gap" + ")" * (MAX_DEPTH - 1))


def computed(source: str) -> None:
    """A tree, terms, or an error of ours: anything else fails the test."""
    for read in (condition, number):
        for scope in (SCOPE, Scope(SCOPE.solvers)):
            try:
                formula = read(source, scope)
            except OptbenchError as error:
                assert "column" in str(error)
            else:
                assert formula.leaves and set(formula.solvers) <= set(scope.labels)


@given(st.lists(st.sampled_from(WORDS), max_size=30))
def test_any_sequence_of_words_is_a_formula_or_a_clean_error(words: list[str]) -> None:
    computed(" ".join(words))


@given(st.text(max_size=80))
def test_any_text_is_a_formula_or_a_clean_error(text: str) -> None:
    computed(text)


@given(st.text(alphabet="()-+,not gap1<'\" ", max_size=400))
def test_nested_text_is_a_formula_or_a_clean_error(text: str) -> None:
    computed(text)


@given(st.text(alphabet="0123456789.eE%smhdGMB _", max_size=20))
def test_numbers_are_finite_or_refused(text: str) -> None:
    try:
        found = tokens(text)
    except FormulaError:
        return
    assert all(token.value < float("inf") for token in found if token.kind == "number")


def trees(leaf: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Arithmetic in full parentheses, which Python reads alike."""
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from("+-*"), inner).map(
                lambda t: f"({t[0]} {t[1]} {t[2]})"
            ),
            inner.map(lambda text: f"(-{text})"),
        ),
        max_leaves=8,
    )


@given(trees(st.integers(0, 99).map(str)))
def test_arithmetic_means_what_it_means_to_python(text: str) -> None:
    assert value(parse(text)) == in_python(ast.parse(text, mode="eval").body)


def value(node: Node) -> float:
    if isinstance(node, Number):
        return node.value
    if isinstance(node, Unary):
        return -value(node.operand)
    assert isinstance(node, Binary)
    return BY_SIGN[node.op](value(node.left), value(node.right))


def in_python(node: ast.expr) -> float:
    if isinstance(node, ast.UnaryOp):
        return -in_python(node.operand)
    if isinstance(node, ast.BinOp):
        return BY_NAME[type(node.op)](in_python(node.left), in_python(node.right))
    assert isinstance(node, ast.Constant) and isinstance(node.value, int)
    return float(node.value)
