"""Which failures of a cell may lie in the machine as well as in the solver: a second node has to
confirm them, at least the first few of each solver and node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from optbench.execute.base import JobOutcome

# A solver that crashes, ends or cannot be imported on one node and answers on another is not at
# fault. The first of these is always confirmed, the others this often for a solver and node.
SIGNAL = "signal"
DOUBTFUL = (SIGNAL, "crashed", "exited", "unavailable")
CONFIRMED = 3


class Confirmations:
    """Counts the failures that two nodes have agreed on, by solver and node."""

    def __init__(self) -> None:
        self._agreed: Counter[tuple[str, str]] = Counter()

    def agreed(self, solver: str, node_id: str) -> None:
        """Note that another node has confirmed a failure that a node had reported."""
        self._agreed[solver, node_id] += 1

    def needed(self, kind: str, solver: str, node_id: str) -> bool:
        """Whether a failure of this kind should be confirmed by another node."""
        return kind == SIGNAL or (kind in DOUBTFUL and self._agreed[solver, node_id] < CONFIRMED)


def failure_of(outcome: JobOutcome) -> str:
    """Return the kind of a failure, a key of ``records.REASONS``; empty for an answer."""
    return _failure(outcome)[0]


def failure_words(outcome: JobOutcome) -> str:
    return ": ".join(_failure(outcome))


def _failure(outcome: JobOutcome) -> tuple[str, str]:
    if outcome.reason is not None:
        return outcome.reason.kind, outcome.reason.message
    answer: Mapping[str, Any] = outcome.answer or {}
    if "refusal" in answer:
        return str(answer["refusal"]), str(answer.get("message", ""))
    result = answer.get("result")
    if isinstance(result, Mapping) and result.get("status") == "error":
        return "crashed", str(result.get("message", ""))
    return "", ""
