"""The interface between a runner and an executor: plain JSON data in jobs and outcomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol

from optbench.store.records import Reason
from optbench.study.declared import CellBudget

JobKind = Literal["instance", "bound", "solve", "verify"]


@dataclass(frozen=True)
class Job:
    """One call of a function of ``tasks`` in a fresh process that may write in ``folder`` only.

    ``then`` makes a second job from the outcome, under the same key: it runs in a process of its
    own once no process of the first is left, and its outcome is ``check`` of the first's.
    """

    key: str
    kind: JobKind
    payload: Mapping[str, Any]
    budget: CellBudget
    folder: Path
    then: Callable[[JobOutcome], Job | None] | None = None


@dataclass(frozen=True)
class CellPlacement:
    """Where on its machine a cell runs: cores and devices of its own. None: wherever there is
    room, as any other process; an empty tuple of ``gpus``: it sees none.

    Without ``network`` it makes no sockets but pairs of its own, where the kernel can prevent it.
    """

    cores: tuple[int, ...] | None = None
    gpus: tuple[str, ...] | None = None
    network: bool = True

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class JobOutcome:
    """The result of a job: its answer (``answer.json``, parsed), or the reason why there is none.

    ``left_processes`` counts the processes that were still running after the job had answered and
    were killed. ``energy`` is what the job's processes drew (``hardware.run_energy``), measured
    outside of them; empty where the job was lost. ``machine`` describes where it ran; empty: on the
    runner's machine.
    """

    key: str
    answer: Mapping[str, Any] | None
    reason: Reason | None = None
    total_s: float = 0.0
    cpu_s: float = 0.0
    peak_memory_mb: float = 0.0
    output: str = ""
    left_processes: int = 0
    sandbox: Mapping[str, Any] = field(default_factory=dict)
    energy: Mapping[str, Any] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)
    check: JobOutcome | None = None


class Executor(Protocol):
    """Runs jobs. It is a context manager: on exit, every process that it started has ended."""

    @property
    def jobs(self) -> int:
        """Cells at a time."""
        ...

    @property
    def compile_s(self) -> float:
        """Seconds of compiling before the first job."""
        ...

    def admit(self, budgets: Iterable[CellBudget]) -> None:
        """Raise if a job with one of these budgets could never run."""
        ...

    def run(self, jobs: Iterable[Job], stop: Callable[[], bool] = ...) -> Iterator[JobOutcome]:
        """Yield outcomes as jobs end; after ``stop()`` running jobs are killed and yield none."""
        ...

    def __enter__(self) -> Executor: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
