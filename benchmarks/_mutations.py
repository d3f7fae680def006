"""Every change of one operator, constant or branch that can be made to a module."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
NAMES = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "floor": "ceil",
    "ceil": "floor",
    "any": "all",
    "all": "any",
    "argmin": "argmax",
    "argmax": "argmin",
}


@dataclass(frozen=True)
class Mutant:
    """One change: the n-th of its file."""

    file: str
    number: int
    line: int
    function: tuple[str, ...]
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {'.'.join(self.function)}: {self.what}"


class Changes(ast.NodeTransformer):
    """Walks a module in a fixed order and counts every possible change; makes the one that is asked
    for.
    """

    def __init__(self, file: str, wanted: int | None = None) -> None:
        self.file, self.wanted = file, wanted
        self.found: list[Mutant] = []
        self.path: tuple[str, ...] = ()

    def _note(self, node: Any, what: str) -> bool:
        number = len(self.found)
        self.found.append(Mutant(self.file, number, node.lineno, self.path, what))
        return number == self.wanted

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        outer, top = self.path, not self.path or self.path[-1].lstrip("_")[0].isupper()
        self.path = (*outer, node.name) if top else outer
        node.body = [entry for each in node.body if (entry := self.visit(each)) is not None]
        self.path = outer
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        outer, self.path = self.path, (*self.path, node.name)
        node.body = [
            self.visit(each) if isinstance(each, ast.FunctionDef) else each for each in node.body
        ]
        self.path = outer
        return node

    def visit_Raise(self, node: ast.Raise) -> Any:
        return node

    def visit_Assert(self, node: ast.Assert) -> Any:
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return node  # words of messages

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        for k, op in enumerate(node.ops):
            other = COMPARISONS.get(type(op))
            if (
                self.path
                and other is not None
                and self._note(node, f"{type(op).__name__} to {other.__name__}")
            ):
                node.ops[k] = other()
        return node

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        other = OPERATORS.get(type(node.op))
        if (
            self.path
            and other is not None
            and self._note(node, f"{type(node.op).__name__} to {other.__name__}")
        ):
            node.op = other()
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        self.generic_visit(node)
        if self.path and self._note(
            node, "and to or" if isinstance(node.op, ast.And) else "or to and"
        ):
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        if self.path and self._note(node, f"{type(node.op).__name__} removed"):
            return node.operand
        return node

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        if self.path and self._note(node, "if never"):
            node.test = ast.Constant(False)
        return node

    def visit_Constant(self, node: ast.Constant) -> Any:
        if not self.path or isinstance(node.value, (str, bytes, type(None), type(Ellipsis))):
            return node
        if isinstance(node.value, bool):
            changed: Any = not node.value
        else:
            changed = node.value + 1 if isinstance(node.value, int) else node.value * 2 or 1.0
        return (
            ast.copy_location(ast.Constant(changed), node)
            if self._note(node, f"{node.value!r} to {changed!r}")
            else node
        )

    def visit_Name(self, node: ast.Name) -> Any:
        if self.path and node.id in NAMES and self._note(node, f"{node.id} to {NAMES[node.id]}"):
            node.id = NAMES[node.id]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        self.generic_visit(node)
        if (
            self.path
            and node.attr in NAMES
            and self._note(node, f"{node.attr} to {NAMES[node.attr]}")
        ):
            node.attr = NAMES[node.attr]
        return node
