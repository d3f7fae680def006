"""Run jobs on this machine, in a pool of processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from optbench.errors import OptbenchError
from optbench.execute.base import Job, JobOutcome
from optbench.execute.cell_pool import LOOK_S, CellPool, EndedJob, PreloadReport
from optbench.execute.following_jobs import FollowingJobs
from optbench.plugins.specs import name_of
from optbench.study.declared import CellBudget, Study


class LocalExecutor:
    """Runs ``jobs`` cells at a time. What the named plug-ins import is loaded once, when the first
    job has to be run: a finished study starts no process.

    ``sharing`` is the number of cells that share the machine's memory, including those of other
    executors. Without ``landlock`` cells are confined as on a kernel that lacks it.
    """

    def __init__(
        self,
        jobs: int = 1,
        solvers: Iterable[str] = (),
        problems: Iterable[str] = (),
        landlock: bool = True,
        sharing: int | None = None,
    ) -> None:
        self.jobs = jobs
        self.pool = CellPool(solvers, problems, landlock, max(jobs, sharing or 1))
        self.trouble = ""
        self.following = FollowingJobs()

    @classmethod
    def for_study(cls, study: Study, jobs: int = 1, **options: Any) -> LocalExecutor:
        """Create an executor that loads what the plug-ins of a study need."""
        solvers = {entry.name for entry in study.solvers}
        return cls(jobs, solvers, set(map(name_of, study.problems)), **options)

    @property
    def loaded(self) -> PreloadReport | None:
        return self.pool.loaded

    @property
    def compile_s(self) -> float:
        return 0.0 if self.pool.loaded is None else self.pool.loaded.compile_s

    def __enter__(self) -> LocalExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.end()

    def admit(self, budgets: Iterable[CellBudget]) -> None:
        """Take every budget: the limits of a cell are enforced, whatever the machine has."""

    def run(
        self, jobs: Iterable[Job], stop: Callable[[], bool] = lambda: False
    ) -> Iterator[JobOutcome]:
        waiting = iter(jobs)
        first = next(waiting, None)
        if first is None or stop():
            return
        self._start()
        waiting = chain([first], waiting)
        ended: list[JobOutcome] = []
        self.trouble = ""
        try:
            while True:
                # New jobs are sent to idle slots before the runner judges the jobs that ended.
                for slot in self.pool.slots.values():
                    if slot.job is None and not stop():
                        second = self.following.waiting
                        job = second.pop(0) if second else next(waiting, None)
                        if job is not None:
                            self.following.began(job)
                            self.pool.send(slot, job)
                yield from ended
                self._raise_if_failed()
                if stop() or not self.pool.busy:
                    return
                ended = [
                    found
                    for each in self.pool.read(LOOK_S)
                    if (found := self._outcome_of(each)) is not None
                ]
        finally:
            self.pool.stop()
            self.following.clear()

    def _start(self) -> None:
        if self.pool.process is None:
            self.pool.start()
            for _ in range(self.jobs):
                self.pool.add_slot()

    def _outcome_of(self, ended: EndedJob) -> JobOutcome | None:
        """Return the outcome of an ended job; None where it was not started or another follows."""
        if ended.not_started:
            self.trouble = ended.not_started
            return None
        return self.following.complete(ended.outcome())

    def _raise_if_failed(self) -> None:
        """Raise when the machine starts no process, which is not a failure of a cell."""
        if self.trouble:
            raise OptbenchError(
                f"no cell can be started: {self.trouble}; finished cells are kept, and the same "
                "command continues from there"
            )
