"""A slot: one job at a time, each in a child of its own, with nothing left of the child before the next."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import Any

from optbench.execute.cell_process import live
from optbench.execute.limit_watch import Baseline, LimitWatch, ProcessLimits
from optbench.execute.wire import Wire
from optbench.sandbox import process_tree
from optbench.sandbox.confine import holds, most_threads, take_precedence
from optbench.sandbox.job_folder import remove
from optbench.sandbox.system_calls import IS_LINUX, PR_SET_CHILD_SUBREAPER, prctl

OUTPUT = "output.txt"
# A process that cannot be started now, since another cell has taken what there was, may be in so long.
START_S, AGAIN_S = 3.0, 0.1


class Slot:
    """Single-threaded. It ends when the runner's end of the wire closes, or the zygote is gone, and ends its cell first."""

    def __init__(self, wire: Wire, zygote: int) -> None:
        self.wire, self.zygote = wire, zygote
        self.user_threads = most_threads()
        take_precedence()
        if IS_LINUX:
            prctl(PR_SET_CHILD_SUBREAPER, 1)

    def serve(self) -> None:
        """Until nobody asks any more."""
        while (messages := self.wire.receive()) is not None:
            stopped = any("stop" in message for message in messages)
            for job in (message["job"] for message in messages if "job" in message):
                if not (self.wire.send({"stopped": job["key"]}) if stopped else self._run(job)):
                    return

    def _run(self, job: dict[str, Any]) -> bool:
        """Whether there is anybody left to work for."""
        folder = Path(job["folder"])
        began = self._begin(job, folder)
        if isinstance(began, str):
            return self.wire.send({"key": job["key"], "not_started": began})
        watch, output = began
        try:
            wanted = True
            while wanted and not watch.look():
                for _ in watch.wait():
                    wanted = False  # whatever the runner says meanwhile means: stop
                wanted = wanted and os.getppid() == self.zygote
            outcome = watch.finish()
            watch.close()
        finally:
            os.close(output)
        if not wanted:
            messages = self.wire.receive()
            if messages is None or os.getppid() != self.zygote:
                return False
            return self.wire.send({"stopped": job["key"]})
        return self.wire.send({"key": job["key"], **outcome, "memory": _memory(outcome, job), "sandbox": holds(job["landlock"])})

    def _begin(self, job: dict[str, Any], folder: Path) -> tuple[LimitWatch, int] | str:
        """The cell's watch and its output, or why the machine cannot start one."""
        deadline = time.monotonic() + START_S
        while True:
            output = None
            try:
                output = _fresh(folder)
                return self._start(job, folder, output), output
            except OSError as error:
                if output is not None:
                    os.close(output)
                if time.monotonic() > deadline:
                    return str(error)
                time.sleep(AGAIN_S)

    def _start(self, job: dict[str, Any], folder: Path, output: int) -> LimitWatch:
        me = os.getpid()
        baseline = Baseline(process_tree.own_memory_mb(me), process_tree.rss_mb(me))
        child = os.fork()
        if child == 0:
            live({**job, "user_threads": self.user_threads}, output, me)
        return LimitWatch(child, folder, output, ProcessLimits(**job["limits"]), baseline, [self.wire.fileno()])


def _memory(outcome: dict[str, Any], job: dict[str, Any]) -> str:
    return f"{outcome['peak_memory_mb']:.0f} MB were used, {job['limits']['memory_mb']:.0f} MB are allowed"


def _fresh(folder: Path) -> int:
    """An empty folder for a job, and in it the file of its output."""
    remove(folder)
    folder.mkdir(parents=True)
    return os.open(folder / OUTPUT, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def run_slot(end: socket.socket, zygote: int) -> None:
    """What the zygote's child does; never returns."""
    try:
        Slot(Wire(end), zygote).serve()
    finally:
        process_tree.kill_tree()
        os._exit(0)
