"""An executor that starts with its first job, so that a finished study starts no process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import chain
from types import TracebackType

from optbench.execute.base import Executor, Job, JobOutcome


class OnDemandExecutor:
    """Enters ``executor`` at the first job and leaves it with this context."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self._stack = ExitStack()
        self._is_started = False

    def __enter__(self) -> OnDemandExecutor:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.__exit__(kind, error, trace)

    def run(self, jobs: Iterable[Job], stop: Callable[[], bool] = lambda: False) -> Iterator[JobOutcome]:
        waiting = iter(jobs)
        first = next(waiting, None)
        if first is None or stop():
            return
        if not self._is_started:
            self._stack.enter_context(self.executor)
            self._is_started = True
        yield from self.executor.run(chain([first], waiting), stop)
