"""Exit codes, the same for every verb."""

from __future__ import annotations

DONE = 0
INTERNAL = 1  # an internal error or a crashed solver, never bad input
USAGE = 2
NO_SOLUTION = 3  # No schedule within the budget, or the instance is proven infeasible or unbounded.
NOT_VERIFIED = 4
CELLS_FAILED = 5
NOT_HELD = 6
INTERRUPTED = 130
