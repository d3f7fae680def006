"""Which failures of a cell may lie in the machine as well as in the solver: a second node has to
confirm them, at least the first few of each kind of work and node.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from optbench.execute.base import Job, JobOutcome

# A solver that crashes, ends or cannot be imported on one node and answers on another is not at
# fault. The first of these is always confirmed, the others this often for its work on a node.
SIGNAL = "signal"
DOUBTFUL = (SIGNAL, "crashed", "exited", "unavailable")
CONFIRMED = 3


@dataclass(frozen=True)
class CellWork:
    """What should work or fail alike on one node: jobs of one kind, of a solver with its
    parameters.
    """

    kind: str
    solver: str = ""
    params: str = ""

    @classmethod
    def of(cls, job: Job) -> CellWork:
        params = json.dumps(job.payload.get("params", {}), sort_keys=True, default=str)
        return cls(job.kind, str(job.payload.get("solver", "")), params)


class Confirmations:
    """Counts the failures that two nodes have agreed on, by work and node."""

    def __init__(self) -> None:
        self._agreed: Counter[tuple[CellWork, str]] = Counter()

    def agreed(self, work: CellWork, node_id: str) -> None:
        """Note that another node has confirmed a failure that a node had reported."""
        self._agreed[work, node_id] += 1

    def needed(self, kind: str, work: CellWork, node_id: str) -> bool:
        """Whether a failure of this kind should be confirmed by another node."""
        return kind == SIGNAL or (kind in DOUBTFUL and self._agreed[work, node_id] < CONFIRMED)


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
