"""A formula that means nothing, with a caret under the place."""

from __future__ import annotations

from optbench.errors import OptbenchError

# Of a longer formula only the part around the place is shown.
WIDTH, BEFORE = 100, 60


class FormulaError(OptbenchError):
    """Says the column (from 1), and shows the formula with a caret below it."""

    def __init__(self, message: str, source: str, at: int) -> None:
        self.message, self.source, self.column = message, source, at + 1
        first = 0 if len(source) <= WIDTH else max(0, at - BEFORE)
        line = "".join(char if char.isprintable() else " " for char in source[first : first + WIDTH])
        super().__init__(f"column {self.column}: {message}\n  {line}\n  {' ' * (at - first)}^")
