"""An error in a formula, shown with a caret below its place."""

from __future__ import annotations

from optbench.errors import OptbenchError

# Longer formulas are shown only around the place of the error.
WIDTH, BEFORE = 100, 60


class FormulaError(OptbenchError):
    """The message has the column (from 1) and the formula with a caret below it."""

    def __init__(self, message: str, source: str, at: int) -> None:
        self.message, self.source, self.column = message, source, at + 1
        first = 0 if len(source) <= WIDTH else max(0, at - BEFORE)
        line = "".join(char if char.isprintable() else " " for char in source[first : first + WIDTH])
        super().__init__(f"column {self.column}: {message}\n  {line}\n  {' ' * (at - first)}^")
