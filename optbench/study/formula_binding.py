"""Resolve a syntax tree: every name is looked up and every kind checked before anything is run.

The resolved tree has the leaves of ``formula_syntax.Leaf`` in place of metrics and functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NoReturn, TypeGuard

from optbench.errors import nearest
from optbench.study import formula_syntax as syntax
from optbench.study.formula_lexer import FormulaError
from optbench.study.formula_names import CONDITIONS, LAST_LEVEL, RENAMED, Scope
from optbench.study.formula_syntax import Aggregate, Binary, Call, Name, Node, Number, Paired, Unary

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
SHARES = ("gap", "study_gap", LAST_LEVEL)
LIKE_CELLS = ("mean", "median", "max", "min", "p")
TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
# The condition that `count()` counts: every cell.
ALWAYS = Number(1.0)
CellKind = Literal["number", "condition"]


@dataclass(frozen=True)
class Formula:
    """A resolved formula: a condition, or else a number."""

    source: str
    term: Node
    condition: bool

    @property
    def leaves(self) -> tuple[syntax.Leaf, ...]:
        return syntax.leaves(self.term)

    @property
    def solvers(self) -> tuple[str, ...]:
        """Labels of all solvers that it reads, in order of occurrence."""
        return tuple(dict.fromkeys(label for leaf in self.leaves for label in leaf.labels))


def condition(source: str, scope: Scope) -> Formula:
    """Resolve a condition, such as ``gap <= 0.01``."""
    binder = _Binder(source, scope)
    return binder.over_cells(Formula(source, binder.condition(syntax.parse(source)), True))


def number(source: str, scope: Scope) -> Formula:
    """Resolve a formula with a value, such as ``rel(energy_j, heft, fcfs)``."""
    binder = _Binder(source, scope)
    return binder.over_cells(Formula(source, binder.number(syntax.parse(source)), False))


def cell_number(source: str, scope: Scope) -> Node:
    """Resolve an expression with a number for each cell, such as ``energy_j / makespan_s``."""
    binder, node = _Binder(source, scope), syntax.parse(source)
    if binder.cell(node) != "number":
        binder.fail("this is true or false for each cell; a number is expected here", node)
    if not syntax.names_in(node):
        binder.fail("this does not read any cell: it names no metric", node)
    return node


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

    def condition(self, node: Node) -> Node:
        if isinstance(node, Unary) and node.op == "not":
            return replace(node, operand=self.condition(node.operand))
        if isinstance(node, Binary) and node.op in ("and", "or"):
            return replace(node, left=self.condition(node.left), right=self.condition(node.right))
        if isinstance(node, Binary) and node.op in syntax.COMPARISONS:
            found = replace(node, left=self.number(node.left), right=self.number(node.right))
            self.check_sides(found)
            return found
        self.number(node)  # a mistake inside gives the better message
        text = self.text(node)
        words = f"a condition compares it with another, such as {text} <= 0.1"
        self.fail(f"{text} is a number; {words}", node)

    def number(self, node: Node) -> Node:
        if isinstance(node, Number):
            return node
        if isinstance(node, Name):
            self.metric(node)
            return self.aggregate("mean", node, node)
        if isinstance(node, Call):
            return self.call(node)
        if isinstance(node, Unary) and node.op == "-":
            return replace(node, operand=self.number(node.operand))
        if isinstance(node, Binary) and node.op in "+-*/":
            return replace(node, left=self.number(node.left), right=self.number(node.right))
        self.condition(node)
        words = "share(...) over cells turns a condition into a number"
        self.fail(f"this is a condition where a number is expected; {words}", node)

    def call(self, node: Call) -> Node:
        name, args = node.name, node.args
        if name in self.scope.metrics:
            if len(args) != 1:
                self.fail(f"{name} takes one solver, as in {name}({self.example()})", node)
            metric = Name(name, at=node.at, end=node.at + len(name))
            return self.aggregate("mean", node, metric, args)
        if name not in FUNCTIONS:
            hint = nearest(name, [*FUNCTIONS, *self.scope.metrics])
            self.fail(f"unknown function {name!r}; {hint}", node)
        if name == "abs":
            self.arguments(node, 1, 1)
            return replace(node, args=(self.number(args[0]),))
        if name in ("rel", "ratio"):
            return self.paired(node)
        if name == "count":
            return self.counted(node)
        if name == "p":
            self.arguments(node, 2, 3)
            return self.aggregate(name, node, args[1], args[2:], self.percentage(args[0]))
        if name == "gm":
            self.arguments(node, 2, 3)
            return self.aggregate(name, node, args[0], args[2:], self.constant(args[1], "shift"))
        self.arguments(node, 1, 2)
        return self.aggregate(name, node, args[0], args[1:])

    def aggregate(
        self, name: str, node: Node, cell: Node, solver: Sequence[Node] = (), extra: float = 0.0
    ) -> Aggregate:
        """Return a function over the cells of one solver, or of the formula's own."""
        kind, text = self.cell(cell), self.text(cell)
        if name in ("share", "count") and kind == "number":
            words = f"a condition for each cell, such as {text} <= 0.1; {text} is a number"
            self.fail(f"{name} takes {words}", cell)
        if name not in (*ON_SHARES, "share", "count") and kind == "condition":
            words = f"{text} is true or false: use share"
            self.fail(f"{name} takes a number for each cell; {words}", cell)
        label = self.solver(solver[0]) if solver else self.own(node, text)
        return Aggregate(self.text(node), name, cell, label, extra)

    def counted(self, node: Call) -> Aggregate:
        """``count()``, ``count(heft)``, ``count(failed)``, ``count(failed, heft)``."""
        self.arguments(node, 0, 2)
        first = node.args[0] if node.args else None
        alone = first.text if isinstance(first, Name) and len(node.args) == 1 else ""
        is_solver = alone not in self.scope.metrics and bool(self.scope.candidates(alone))
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
                words = f"{self.text(each)} is true or false"
                self.fail(f"{node.name} takes a number for each cell; {words}", each)
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
            words = f"write {100 * value:g}% if that is meant, or {value:g}%"
            self.fail(f"the percentage is {value:g}; {words}", node)
        value = 100 * value if hundredths else value
        if not 0 <= value <= 100:
            self.fail(f"the percentage is {value:g}; it must be between 0 and 100", node)
        return value

    def solver(self, node: Node) -> str:
        if not isinstance(node, Name):
            words = f"by its name or by its label in quotation marks: {self.listed()}"
            self.fail(f"a solver is expected here, {words}", node)
        found = self.scope.candidates(node.text)
        if not found:
            hint = nearest(node.text, self.scope.all_names())
            self.fail(f"unknown solver {node.text!r}; {hint}", node)
        if len(found) > 1:
            words = f"{', '.join(map(repr, found))}; write the label in quotation marks"
            self.fail(f"{node.text!r} is ambiguous: {words}", node)
        return found[0]

    def own(self, node: Node, text: str) -> str:
        if self.scope.own is None:
            words = f"or name it as the last argument: {self.listed()}"
            self.fail(f"of which solver? Write {text}({self.example()}), {words}", node)
        return self.scope.own

    def metric(self, node: Name) -> None:
        name = node.text
        if node.quoted:
            words = "a metric or a number is expected here"
            self.fail(f"a name in quotation marks is a solver; {words}", node)
        if name in self.scope.metrics:
            return
        if self.scope.candidates(name):
            self.fail(f"{name!r} is a solver; name a metric of it, such as gap({name})", node)
        if name in FUNCTIONS:
            self.fail(f"{name!r} is a function; it is written {FUNCTIONS[name]}", node)
        if name in RENAMED:
            words = f"is now called {RENAMED[name]!r}; tables rank by 'study_gap'"
            self.fail(f"{name!r} {words}", node)
        hint = nearest(name, [*self.scope.metrics, *FUNCTIONS])
        words = "name it in `metrics` of the study if its family has this metric"
        self.fail(f"unknown metric {name!r}; {hint} ({words})", node)

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
        if node.op in syntax.COMPARISONS:
            self.check_sides(node)
        return "number" if node.op in "+-*/" else "condition"

    def cell_part(self, node: Node, wanted: CellKind) -> CellKind:
        if self.cell(node) != wanted:
            is_now = "true or false" if wanted == "number" else "a number"
            must = "a number" if wanted == "number" else "a condition, such as gap <= 0.1"
            self.fail(f"{self.text(node)} is {is_now} for each cell; {must} is expected here", node)
        return wanted

    def cell_call(self, node: Call) -> CellKind:
        name = node.name
        if name == "abs":
            self.arguments(node, 1, 1)
            return self.cell_part(node.args[0], "number")
        if name in self.scope.metrics:
            words = f"the solver is the last argument: mean({name}, {self.example()})"
            self.fail(f"within a function {words}", node)
        if name in FUNCTIONS:
            words = "cannot stand within another function over cells"
            self.fail(f"{name} is computed over cells and {words}", node)
        self.fail(f"unknown function {name!r}; {nearest(name, FUNCTIONS)}", node)

    def check_sides(self, node: Binary) -> None:
        """Refuse a comparison of a share that always or never holds: 5 where 5% was meant."""
        sides = ((node.left, node.op, node.right), (node.right, TURNED[node.op], node.left))
        for side, op, other in sides:
            if not (is_share(side) and isinstance(other, Number)):
                continue
            value = other.value
            always = (value, op) in ((1, "<="), (1, ">"), (0, ">="), (0, "<"))
            if not 0 <= value <= 1 or always:
                meant = "a hundredth" if value == 1 else f"{value:g} hundredths"
                hint = f"; write {value:g}% for {meant}" if value >= 1 else ""
                words = f"so that {self.text(node)} is always or never true{hint}"
                self.fail(f"{side.text} is between 0 and 1, {words}", node)

    def example(self) -> str:
        label = self.scope.labels[0] if self.scope.labels else "solver"
        return label if label.isidentifier() else f'"{label}"'

    def listed(self) -> str:
        return f"there are {', '.join(self.scope.labels) or 'none'}"


def is_share(node: Node) -> TypeGuard[Name | Aggregate]:
    """Whether a value of each cell, or over cells, is between 0 and 1."""
    if isinstance(node, Aggregate):
        return node.function == "share" or (node.function in LIKE_CELLS and is_share(node.of_cell))
    return isinstance(node, Name) and node.text in (*SHARES, *CONDITIONS)
