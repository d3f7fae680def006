"""Workers of a pool that are processes of this machine; they end when their pipe does."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import platform
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, ClassVar

from optbench.errors import OptbenchError
from optbench.execute.worker_pools.pool_worker import PoolAnswer, PoolCalls, PoolWorker
from optbench.execute.worker_pools.worker_pool import WorkerLostError

LEAVE_S = 5.0


@dataclass(frozen=True)
class ProcessStaff:
    """Starts processes that load ``kernels`` first."""

    elsewhere: ClassVar[bool] = False

    kernels: tuple[str, ...] = ()

    def hire(self) -> ProcessMember:
        return ProcessMember(self.kernels)


class ProcessMember:
    """A process that makes calls."""

    def __init__(self, kernels: tuple[str, ...]) -> None:
        self.kernels = kernels
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(
            target=serve, args=(theirs,), name="optbench-pool", daemon=True
        )
        self.process.start()
        theirs.close()

    @property
    def node(self) -> str:
        return platform.node()

    def start(self) -> None:
        self._ask(("prepare", self.kernels))

    def answer(self, calls: PoolCalls) -> PoolAnswer:
        found: PoolAnswer = self._ask(("answer", calls))
        return found

    def _ask(self, message: tuple[str, Any]) -> Any:
        try:
            self.pipe.send(message)
            found, error = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(LEAVE_S)
            raise WorkerLostError(
                f"worker {self.process.pid} has ended (exit code {self.process.exitcode})"
            ) from None
        if error is not None:
            raise error
        return found

    def end(self) -> None:
        """Close the pipe; a process that still makes a call is killed."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def serve(pipe: Connection) -> None:
    """Body of a worker's process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the driver decides
    worker = PoolWorker()
    methods: dict[str, Callable[[Any], Any]] = {"prepare": worker.prepare, "answer": worker.answer}
    with ThreadPoolExecutor(1) as thread:
        while True:
            try:
                name, given = pipe.recv()
            except (EOFError, OSError):
                os._exit(0)
            done = thread.submit(partial(methods[name], given))
            error = done.exception()
            pipe.send((None, sendable(error)) if error is not None else (done.result(), None))


def sendable(error: BaseException) -> BaseException:
    """Return the exception, or one with its words where it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except (pickle.PicklingError, TypeError, AttributeError, ValueError):
        return OptbenchError(f"{type(error).__name__}: {error}")
    return error
