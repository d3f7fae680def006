"""Resolve a syntax tree to terms: names are looked up and kinds checked, so that every mistake is
found before anything is run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NoReturn

from optbench.errors import nearest
from optbench.study.formula_errors import FormulaError
from optbench.study.formula_names import CONDITIONS, RENAMED, Scope
from optbench.study.formula_syntax import COMPARISONS, Binary, Call, Name, Node, Number, Unary, parse
from optbench.study.formula_terms import (
    Absolute,
    Aggregate,
    Arithmetic,
    Comparison,
    ConditionTerm,
    Constant,
    Leaf,
    Logic,
    Negation,
    Negative,
    NumberTerm,
    Paired,
    Term,
    leaves,
)

# The signature of each function.
FUNCTIONS = {
    "mean": "mean(x, solver)",
    "sum": "sum(x, solver)",
    "median": "median(x, solver)",
    "max": "max(x, solver)",
    "min": "min(x, solver)",
    "p": "p(95, x, solver)",
    "gm": "gm(x, shift, solver)",
    "share": "share(condition, solver)",
    "count": "count(condition, solver)",
    "rel": "rel(x, a, b)",
    "ratio": "ratio(x, a, b)",
    "abs": "abs(x)",
}
ON_SHARES = ("mean", "sum")
# Metrics between 0 and 1, and functions whose value lies in the range of their cells.
SHARES = ("gap", "study_gap")
LIKE_CELLS = ("mean", "median", "max", "min", "p")
TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
CellKind = Literal["number", "condition"]


@dataclass(frozen=True)
class Formula:
    """A resolved formula; ``condition`` is true if it is a condition and false if it is a number.
    """

    source: str
    term: Term
    condition: bool

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        return tuple(leaves(self.term))

    @property
    def solvers(self) -> tuple[str, ...]:
        """Labels of all solvers that it reads, in order of occurrence."""
        return tuple(dict.fromkeys(label for leaf in self.leaves for label in leaf.labels))


def condition(source: str, scope: Scope) -> Formula:
    """Resolve a condition, such as ``gap <= 0.01``."""
    binder = _Binder(source, scope)
    return binder.over_cells(Formula(source, binder.condition(parse(source)), True))


def number(source: str, scope: Scope) -> Formula:
    """Resolve a formula with a value, such as ``rel(energy_j, heft, fcfs)``."""
    binder = _Binder(source, scope)
    return binder.over_cells(Formula(source, binder.number(parse(source)), False))


def cell_number(source: str, scope: Scope) -> Node:
    """Resolve an expression with a number for each cell, such as ``gap_frontier`` or ``energy_j /
    makespan_s``.
    """
    binder, node = _Binder(source, scope), parse(source)
    if binder.cell(node) != "number":
        binder.fail("this is true or false for each cell; a number is expected here", node)
    if not names_in(node):
        binder.fail("this does not read any cell: it names no metric", node)
    return node


def names_in(node: Node) -> tuple[str, ...]:
    """Return the metrics that an expression reads."""
    if isinstance(node, Name):
        return (node.text,)
    if isinstance(node, Call):
        parts: tuple[Node, ...] = node.args
    elif isinstance(node, Unary):
        parts = (node.operand,)
    else:
        parts = (node.left, node.right) if isinstance(node, Binary) else ()
    return tuple(name for part in parts for name in names_in(part))


class _Binder:
    def __init__(self, source: str, scope: Scope) -> None:
        self.source, self.scope = source, scope

    def fail(self, message: str, node: Node) -> NoReturn:
        raise FormulaError(message, self.source, node.at)

    def text(self, node: Node) -> str:
        return self.source[node.at : node.end]

    def over_cells(self, formula: Formula) -> Formula:
        if not formula.leaves:
            raise FormulaError("this does not read any cell: it names no metric", self.source, 0)
        return formula

    def condition(self, node: Node) -> ConditionTerm:
        if isinstance(node, Unary) and node.op == "not":
            return Negation(self.condition(node.operand))
        if isinstance(node, Binary) and node.op in ("and", "or"):
            return Logic(node.op, self.condition(node.left), self.condition(node.right))
        if isinstance(node, Binary) and node.op in COMPARISONS:
            found = Comparison(self.text(node), node.op, self.number(node.left), self.number(node.right))
            for term, other, op in ((found.left, node.right, node.op), (found.right, node.left, TURNED[node.op])):
                if isinstance(term, Aggregate) and (term.function == "share" or self.is_mean_of_share(term)):
                    self.says_something(node, term.text, op, other)
            return found
        self.number(node)  # a mistake inside gives the better message
        self.fail(f"{self.text(node)} is a number; a condition compares it with another, such as {self.text(node)} <= 0.1", node)

    def number(self, node: Node) -> NumberTerm:
        if isinstance(node, Number):
            return Constant(node.value)
        if isinstance(node, Name):
            self.metric(node)
            return self.aggregate("mean", node, node, ())
        if isinstance(node, Call):
            return self.call(node)
        if isinstance(node, Unary) and node.op == "-":
            return Negative(self.number(node.operand))
        if isinstance(node, Binary) and node.op in "+-*/":
            return Arithmetic(node.op, self.number(node.left), self.number(node.right))
        self.condition(node)
        self.fail("this is a condition where a number is expected; share(...) over cells turns a condition into a number", node)

    def call(self, node: Call) -> NumberTerm:
        name, args = node.name, node.args
        if name in self.scope.metrics:
            if len(args) != 1:
                self.fail(f"{name} takes one solver, as in {name}({self.example()})", node)
            metric = Name(node.at, node.at + len(name), 1, name)
            return self.aggregate("mean", node, metric, args)
        if name not in FUNCTIONS:
            self.fail(f"unknown function {name!r}; {nearest(name, [*FUNCTIONS, *self.scope.metrics])}", node)
        if name == "abs":
            self.arguments(node, 1, 1)
            return Absolute(self.number(args[0]))
        if name in ("rel", "ratio"):
            return self.paired(node)
        if name == "count":
            return self.counted(node)
        if name in ("p", "gm"):
            self.arguments(node, 2, 3)
            first, second, *rest = args
            of_cell, extra = (second, self.percentage(first)) if name == "p" else (first, self.constant(second, "shift"))
            return self.aggregate(name, node, of_cell, tuple(rest), extra)
        self.arguments(node, 1, 2)
        return self.aggregate(name, node, args[0], args[1:])

    def aggregate(self, function: str, node: Node, of_cell: Node, solver: tuple[Node, ...], extra: float = 0.0) -> Aggregate:
        kind = self.cell(of_cell)
        if function in ("share", "count") and kind == "number":
            text = self.text(of_cell)
            self.fail(f"{function} takes a condition for each cell, such as {text} <= 0.1; {text} is a number", of_cell)
        if function not in (*ON_SHARES, "share", "count") and kind == "condition":
            self.fail(f"{function} takes a number for each cell; {self.text(of_cell)} is true or false: use share", of_cell)
        label = self.solver(solver[0]) if solver else self.own(node, self.text(of_cell))
        return Aggregate(self.text(node), function, of_cell, label, extra)

    def counted(self, node: Call) -> Aggregate:
        """``count()``, ``count(heft)``, ``count(failed)``, ``count(failed, heft)``."""
        self.arguments(node, 0, 2)
        first = node.args[0] if node.args else None
        alone = first.text if isinstance(first, Name) and len(node.args) == 1 else None
        is_solver = alone is not None and alone not in self.scope.metrics and bool(self.scope.candidates(alone))
        if first is None or is_solver:
            return self.aggregate("count", node, ALWAYS, node.args)
        return self.aggregate("count", node, first, node.args[1:])

    def paired(self, node: Call) -> Paired:
        """``(x, b)``, ``(x, a, b)`` or ``(x, a, y, b)``."""
        self.arguments(node, 2, 4)
        x, *rest = node.args
        y = rest.pop(1) if len(rest) == 3 else x
        for each in (x, y):
            if self.cell(each) == "condition":
                self.fail(f"{node.name} takes a number for each cell; {self.text(each)} is true or false", each)
        a = self.solver(rest[0]) if len(rest) == 2 else self.own(node, self.text(x))
        b = self.solver(rest[-1])
        if a == b and x == y:
            self.fail(f"{a} is compared with itself", rest[-1])
        return Paired(self.text(node), node.name, x, a, y, b)

    def arguments(self, node: Call, least: int, most: int) -> None:
        if not least <= len(node.args) <= most:
            count = f"{len(node.args)} argument{'s' * (len(node.args) != 1)}"
            self.fail(f"{node.name} with {count}; it is written {FUNCTIONS[node.name]}", node)

    def constant(self, node: Node, what: str) -> float:
        if not isinstance(node, Number):
            self.fail(f"the {what} must be a number, such as 10s", node)
        return node.value

    def percentage(self, node: Node) -> float:
        value, hundredths = self.constant(node, "percentage"), self.text(node).endswith("%")
        if 0 < value < 1 and not hundredths:
            self.fail(f"the percentage is {value:g}; write {100 * value:g}% if that is meant, or {value:g}%", node)
        value = 100 * value if hundredths else value
        if not 0 <= value <= 100:
            self.fail(f"the percentage is {value:g}; it must be between 0 and 100", node)
        return value

    def solver(self, node: Node) -> str:
        if not isinstance(node, Name):
            self.fail(f"a solver is expected here, by its name or by its label in quotation marks: {self.listed()}", node)
        found = self.scope.candidates(node.text)
        if not found:
            self.fail(f"unknown solver {node.text!r}; {nearest(node.text, self.scope.all_names())}", node)
        if len(found) > 1:
            self.fail(f"{node.text!r} is ambiguous: {', '.join(map(repr, found))}; write the label in quotation marks", node)
        return found[0]

    def own(self, node: Node, text: str) -> str:
        if self.scope.own is None:
            self.fail(f"of which solver? Write {text}({self.example()}), or name it as the last argument: {self.listed()}", node)
        return self.scope.own

    def metric(self, node: Name) -> None:
        if node.quoted:
            self.fail("a name in quotation marks is a solver; a metric or a number is expected here", node)
        if node.text in self.scope.metrics:
            return
        if self.scope.candidates(node.text):
            self.fail(f"{node.text!r} is a solver; name a metric of it, such as gap({node.text})", node)
        if node.text in FUNCTIONS:
            self.fail(f"{node.text!r} is a function; it is written {FUNCTIONS[node.text]}", node)
        if node.text in RENAMED:
            new = RENAMED[node.text]
            self.fail(f"{node.text!r} is now called {new!r}; tables rank by 'study_gap'", node)
        hint = nearest(node.text, [*self.scope.metrics, *FUNCTIONS])
        self.fail(f"unknown metric {node.text!r}; {hint} (name it in `metrics` of the study if its family has this metric)", node)

    def cell(self, node: Node) -> CellKind:
        """Return the kind of what is computed for each cell."""
        if node is ALWAYS:
            return "condition"
        if isinstance(node, Number):
            return "number"
        if isinstance(node, Name):
            self.metric(node)
            return "condition" if node.text in CONDITIONS else "number"
        if isinstance(node, Call):
            return self.cell_call(node)
        if isinstance(node, Unary):
            return self.cell_part(node.operand, "number" if node.op == "-" else "condition")
        assert isinstance(node, Binary)
        wanted: CellKind = "condition" if node.op in ("and", "or") else "number"
        self.cell_part(node.left, wanted)
        self.cell_part(node.right, wanted)
        if node.op in COMPARISONS:
            for side, other, op in ((node.left, node.right, node.op), (node.right, node.left, TURNED[node.op])):
                if self.is_share(side):
                    self.says_something(node, self.text(side), op, other)
        return "number" if node.op in "+-*/" else "condition"

    def cell_part(self, node: Node, wanted: CellKind) -> CellKind:
        if self.cell(node) != wanted:
            is_now = "true or false" if wanted == "number" else "a number"
            must = "a number" if wanted == "number" else "a condition, such as gap <= 0.1"
            self.fail(f"{self.text(node)} is {is_now} for each cell; {must} is expected here", node)
        return wanted

    def cell_call(self, node: Call) -> CellKind:
        if node.name == "abs":
            self.arguments(node, 1, 1)
            return self.cell_part(node.args[0], "number")
        if node.name in self.scope.metrics:
            self.fail(f"within a function the solver is the last argument: mean({node.name}, {self.example()})", node)
        if node.name in FUNCTIONS:
            self.fail(f"{node.name} is computed over cells and cannot stand within another function over cells", node)
        self.fail(f"unknown function {node.name!r}; {nearest(node.name, FUNCTIONS)}", node)

    def is_share(self, node: Node) -> bool:
        """Whether the value is between 0 and 1 for each cell."""
        return isinstance(node, Name) and node.text in (*SHARES, *CONDITIONS)

    def is_mean_of_share(self, term: Aggregate) -> bool:
        return term.function in LIKE_CELLS and self.is_share(term.of_cell)

    def says_something(self, node: Node, text: str, op: str, other: Node) -> None:
        """Refuse a comparison of a share that always or never holds: 5 where 5% was meant."""
        if not isinstance(other, Number):
            return
        value = other.value
        if not 0 <= value <= 1 or (value, op) in ((1, "<="), (1, ">"), (0, ">="), (0, "<")):
            hint = f"; write {value:g}% for {'a hundredth' if value == 1 else f'{value:g} hundredths'}" if value >= 1 else ""
            self.fail(f"{text} is between 0 and 1, so that {self.text(node)} is always or never true{hint}", node)

    def example(self) -> str:
        label = self.scope.labels[0] if self.scope.labels else "solver"
        return label if label.isidentifier() else f'"{label}"'

    def listed(self) -> str:
        return f"there are {', '.join(self.scope.labels) or 'none'}"


# The condition that `count()` counts: every cell.
ALWAYS = Number(0, 0, 1, 1.0)
