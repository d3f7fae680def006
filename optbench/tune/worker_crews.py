"""Who runs the workers of a search: processes of this machine, or another engine with the same
interface.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Protocol

from optbench.execute.base import Executor
from optbench.execute.local import LocalExecutor
from optbench.study.declared import Study
from optbench.tune.trial_evaluation import Evaluator
from optbench.tune.trials import Trials
from optbench.tune.worker import WorkerOrders, work

# For a worker that was told to stop to end its cell and leave.
LEAVE_S = 20.0


@dataclass(frozen=True)
class FallenWorker:
    """A worker that ended before the search did. ``by_node`` says that its whole node was lost,
    which is no sign of a worker that cannot do its work.
    """

    words: str
    by_node: bool = False


class WorkerCrew(Protocol):
    """Workers, each of which claims trials until there is none left."""

    @property
    def size(self) -> int:
        """Workers that are at work or about to start."""
        ...

    def fill(self, wanted: int) -> None:
        """Start workers until there are so many, or as many as can be started now."""
        ...

    def serve(self, seconds: float) -> list[FallenWorker]:
        """Do what workers need for so long, or until the search is stopped; return those that have
        fallen.
        """
        ...

    def end(self) -> None:
        """Have all workers end their cells and leave."""
        ...


class TuneEngine(Protocol):
    """Where a search is done. ``jobs`` is the number of workers."""

    @property
    def jobs(self) -> int: ...

    def storage(self, url: str) -> str:
        """Return the storage as all workers may use it, or refuse it."""
        ...

    def executor(self, study: Study) -> Executor:
        """Return what runs the cells of defaults and validation."""
        ...

    def crew(self, orders: WorkerOrders, known: Trials, evaluator: Evaluator) -> WorkerCrew:
        """Return a crew without workers; ``evaluator`` plans and keeps cells where the search was
        started.
        """
        ...


@dataclass(frozen=True)
class OneMachine:
    """The engine of this machine."""

    jobs: int = 1

    def storage(self, url: str) -> str:
        return url

    def executor(self, study: Study) -> Executor:
        return LocalExecutor.for_study(study, self.jobs)

    def crew(self, orders: WorkerOrders, known: Trials, evaluator: Evaluator) -> WorkerCrew:
        return ProcessCrew(orders, evaluator.stop)


@dataclass
class ProcessCrew:
    """Processes that share the files of the search with this one."""

    orders: WorkerOrders
    stop: threading.Event
    workers: list[tuple[BaseProcess, Connection]] = field(default_factory=list)

    @property
    def size(self) -> int:
        return len(self.workers)

    def fill(self, wanted: int) -> None:
        while self.size < wanted:
            self._add()

    def _add(self) -> None:
        context = multiprocessing.get_context("spawn")
        theirs, ours = context.Pipe(duplex=False)
        process = context.Process(target=work, args=(self.orders, theirs), name="optbench-tune")
        process.start()
        theirs.close()
        self.workers.append((process, ours))

    def serve(self, seconds: float) -> list[FallenWorker]:
        self.stop.wait(seconds)
        ended = [process for process, _ in self.workers if not process.is_alive()]
        self.workers = [worker for worker in self.workers if worker[0] not in ended]
        return [FallenWorker(f"exit code {each.exitcode}") for each in ended if each.exitcode != 0]

    def end(self) -> None:
        """Close the pipes, on which the workers stop, and wait for them."""
        for _, pipe in self.workers:
            pipe.close()
        deadline = time.monotonic() + LEAVE_S
        for process, _ in self.workers:
            process.join(max(0.1, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
