"""The zygote: a process that has loaded what cells need, and forks slots on the runner's word; single-threaded, to be forked."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from optbench.compiling.compile_meter import announcing, compiled_s
from optbench.execute.preload import preload
from optbench.execute.slot import run_slot
from optbench.execute.wire import Wire
from optbench.sandbox import process_tree
from optbench.sandbox.system_calls import IS_LINUX, PR_SET_CHILD_SUBREAPER, prctl

# Slots end by themselves when the runner is gone, killing their cells; so long they may take.
SLOTS_END_S = 5.0
# Libraries that start threads when they are imported, told not to: a fork would leave the locks that they hold.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "passive",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}


@dataclass
class Zygote:
    """Slots by process id; the control wire brings new ones, each with the end of the socket by which the runner talks to it."""

    control: socket.socket
    slots: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.wire = Wire(self.control)
        self.bell, self.ring = os.pipe()
        for end in (self.bell, self.ring):
            os.set_blocking(end, False)

    def prepare(self, solvers: list[str], problems: list[str], load: bool) -> None:
        """Load, and say so."""
        began = time.monotonic()
        with self._ending_with_the_runner(), announcing(self._say):
            loaded = preload(solvers, problems) if load else []
        gc.disable()
        gc.freeze()  # collections in cells leave what is shared alone
        threads = _threads()
        spent = {"seconds": round(time.monotonic() - began, 3), "compile_s": round(compiled_s(), 3)}
        self.wire.send({"ready": {"modules": len(loaded), "threads": threads, **spent}})

    def _say(self, words: str) -> None:
        """For the runner to say."""
        self.wire.send({"said": words})

    @contextlib.contextmanager
    def _ending_with_the_runner(self) -> Iterator[None]:
        """Nobody reads the wire while libraries are loaded, so the kernel signals that something has happened to it."""
        flags = fcntl.fcntl(self.control, fcntl.F_GETFL)
        signal.signal(signal.SIGIO, lambda number, frame: self._leave_if_alone())
        fcntl.fcntl(self.control, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(self.control, fcntl.F_SETFL, flags | os.O_ASYNC)
        self._leave_if_alone()
        try:
            yield
        finally:
            fcntl.fcntl(self.control, fcntl.F_SETFL, flags)
            signal.signal(signal.SIGIO, signal.SIG_IGN)

    def _leave_if_alone(self) -> None:
        poller = select.poll()
        poller.register(self.control, select.POLLIN)
        if any(event & select.POLLHUP for _, event in poller.poll(0)):
            os._exit(0)

    def serve(self) -> None:
        """Until the runner's end closes."""
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self.ring, warn_on_full_buffer=False)
        while True:
            control = self.control.fileno()
            ready, _, _ = select.select([control, self.bell], [], [])
            if self.bell in ready:
                self._bury()
            if control in ready and not self._take():
                return

    def _take(self) -> bool:
        """New slots; whether the runner is still there."""
        try:
            text, ends, _, _ = socket.recv_fds(self.control, 1 << 16, 64)
        except ConnectionResetError:
            return False
        for line, end in zip(text.splitlines(), ends, strict=True):
            self._fork(json.loads(line)["slot"], socket.socket(fileno=end))
        return bool(text)

    def _fork(self, name: int, end: socket.socket) -> None:
        me = os.getpid()
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self.control.close()
            for file in (self.bell, self.ring):
                os.close(file)
            run_slot(end, me)
        end.close()
        self.slots[pid] = name
        self.wire.send({"slot": name, "pid": pid})

    def _bury(self) -> None:
        """Slots that have ended, and what they left: a cell may have killed its slot."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.bell, 4096)
        for child in process_tree.reap() or ():
            self._gone(child)

    def _gone(self, child: process_tree.Ended) -> None:
        name = self.slots.pop(child.pid, None)
        if name is None:
            return
        ended, _ = process_tree.kill_tree(self.slots)
        self.wire.send({"gone": name, "status": child.status})
        for other in ended:
            self._gone(other)

    def close(self) -> None:
        """Nothing is left when this returns."""
        deadline = time.monotonic() + SLOTS_END_S
        while process_tree.reap() is not None and time.monotonic() < deadline:
            time.sleep(0.002)
        process_tree.kill_tree()


def _threads() -> list[str]:
    """Names of threads beside the main one."""
    if not IS_LINUX:
        return []
    others = [name for name in os.listdir("/proc/self/task") if int(name) != os.getpid()]
    return [process_tree.read(f"/proc/self/task/{name}/comm").strip() for name in others]


def main(control: int, told: dict[str, Any]) -> None:
    """Entry of the process that the runner starts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the runner decides what Ctrl-C means
    if IS_LINUX:
        prctl(PR_SET_CHILD_SUBREAPER, 1)
    zygote = Zygote(socket.socket(fileno=control))
    try:
        zygote.prepare(told["solvers"], told["problems"], told["preload"])
        zygote.serve()
    finally:
        zygote.close()
        sys.stdout.flush()
