"""Jobs on this machine: a forkserver's child each."""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType

from optbench.bench.executor.base import Job, Outcome
from optbench.bench.executor.tasks import ANSWER, perform
from optbench.bench.records import Reason


class LocalExecutor:
    """So many jobs at a time."""

    def __init__(self, jobs: int = 1, preload: Iterable[str] = ()) -> None:
        self.jobs = jobs
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["optbench.bench.executor.tasks", *preload])

    def __enter__(self) -> LocalExecutor:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return None

    def run(self, jobs: Iterable[Job], stop: Callable[[], bool] = lambda: False) -> Iterator[Outcome]:
        for job in jobs:
            if stop():
                return
            yield self._one(job)

    def _one(self, job: Job) -> Outcome:
        began = time.perf_counter()
        job.folder.mkdir(parents=True, exist_ok=True)
        child = self.context.Process(target=perform, args=(job.kind, dict(job.payload), job.folder))
        child.start()
        child.join(job.budget.hard_wall_s)
        reason = None
        if child.is_alive():
            child.kill()
            child.join()
            reason = Reason("time_limit", f"still at work after {job.budget.hard_wall_s:g} s")
        total_s = time.perf_counter() - began
        answer = job.folder / ANSWER
        if reason is None and not answer.exists():
            reason = Reason("exited", f"ended with exit code {child.exitcode}, without an answer")
        return Outcome(job.key, json.loads(answer.read_text()) if reason is None else None, reason, total_s)
