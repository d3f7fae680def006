"""What a runner asks of an executor: jobs in, outcomes out. Everything that crosses is plain JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol

from optbench.store.records import Reason
from optbench.study.declared import CellBudget

JobKind = Literal["instance", "bound", "solve"]


@dataclass(frozen=True)
class Job:
    """One call of a function of ``tasks`` in a fresh process that may write in ``folder`` only."""

    key: str
    kind: JobKind
    payload: Mapping[str, Any]
    budget: CellBudget
    folder: Path


@dataclass(frozen=True)
class JobOutcome:
    """What became of a job: its answer (``answer.json``, as parsed), or the reason why there is none.

    ``left`` counts processes that were still running when the job had answered; they are gone now.
    """

    key: str
    answer: Mapping[str, Any] | None
    reason: Reason | None = None
    total_s: float = 0.0
    cpu_s: float = 0.0
    peak_memory_mb: float = 0.0
    output: str = ""
    left: int = 0
    sandbox: Mapping[str, Any] = field(default_factory=dict)


class Executor(Protocol):
    """Use as a context: on leaving it, nothing that it started is alive."""

    def run(self, jobs: Iterable[Job], stop: Callable[[], bool] = ...) -> Iterator[JobOutcome]:
        """Outcomes in the order in which jobs end; after ``stop()`` the jobs at work are killed and yield nothing."""
        ...

    def __enter__(self) -> Executor: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
