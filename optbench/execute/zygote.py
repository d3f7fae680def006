"""The zygote: a single-threaded process that has loaded what cells need and forks slots."""

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
from optbench.execute.message_channel import MessageChannel
from optbench.execute.preload import preload
from optbench.execute.slot import run_slot
from optbench.sandbox import process_tree
from optbench.sandbox.system_calls import IS_LINUX, PR_SET_CHILD_SUBREAPER, prctl

# Seconds that slots may take to kill their cells and end when the runner is gone.
SLOTS_END_S = 5.0
# Settings that keep libraries from starting threads on import: a fork would inherit locks that
# those threads hold.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "passive",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}


@dataclass
class Zygote:
    """``slots`` maps process ids to slots; the control channel brings a socket for each new one."""

    control: socket.socket
    slots: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.channel = MessageChannel(self.control)
        self.bell, self.ring = os.pipe()
        for end in (self.bell, self.ring):
            os.set_blocking(end, False)

    def prepare(self, solvers: list[str], problems: list[str], load: bool) -> None:
        """Load what the plug-ins need and report it to the runner."""
        began = time.monotonic()
        with self._ends_with_runner(), announcing(self._send_words):
            loaded = preload(solvers, problems) if load else []
        gc.disable()
        gc.freeze()  # garbage collection in cells then does not touch shared pages
        threads = _threads()
        spent = {"seconds": round(time.monotonic() - began, 3), "compile_s": round(compiled_s(), 3)}
        self.channel.send({"ready": {"modules": len(loaded), "threads": threads, **spent}})

    def _send_words(self, words: str) -> None:
        """Send words for the runner to print."""
        self.channel.send({"said": words})

    @contextlib.contextmanager
    def _ends_with_runner(self) -> Iterator[None]:
        """End with the runner during loading, when only a signal can interrupt."""
        flags = fcntl.fcntl(self.control, fcntl.F_GETFL)
        signal.signal(signal.SIGIO, lambda number, frame: self._exit_if_alone())
        fcntl.fcntl(self.control, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(self.control, fcntl.F_SETFL, flags | os.O_ASYNC)
        self._exit_if_alone()
        try:
            yield
        finally:
            fcntl.fcntl(self.control, fcntl.F_SETFL, flags)
            signal.signal(signal.SIGIO, signal.SIG_IGN)

    def _exit_if_alone(self) -> None:
        poller = select.poll()
        poller.register(self.control, select.POLLIN)
        if any(event & select.POLLHUP for _, event in poller.poll(0)):
            os._exit(0)

    def serve(self) -> None:
        """Fork slots until the runner's end closes."""
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self.ring, warn_on_full_buffer=False)
        while True:
            control = self.control.fileno()
            ready, _, _ = select.select([control, self.bell], [], [])
            if self.bell in ready:
                self._reap_slots()
            if control in ready and not self._fork_requested():
                return

    def _fork_requested(self) -> bool:
        """Fork the requested slots; return whether the runner is still there."""
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
        self.channel.send({"slot": name, "pid": pid})

    def _reap_slots(self) -> None:
        """Reap ended slots and kill what they left: a cell may have killed its slot."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.bell, 4096)
        for child in process_tree.reap() or ():
            self._report_end(child)

    def _report_end(self, child: process_tree.EndedProcess) -> None:
        name = self.slots.pop(child.pid, None)
        if name is None:
            return
        ended, _ = process_tree.kill_tree(self.slots)
        self.channel.send({"gone": name, "status": child.status})
        for other in ended:
            self._report_end(other)

    def close(self) -> None:
        """End every slot and process; none is left on return."""
        deadline = time.monotonic() + SLOTS_END_S
        while process_tree.reap() is not None and time.monotonic() < deadline:
            time.sleep(0.002)
        process_tree.kill_tree()


def _threads() -> list[str]:
    """Return the names of all threads except the main one."""
    if not IS_LINUX:
        return []
    others = [name for name in os.listdir("/proc/self/task") if int(name) != os.getpid()]
    return [process_tree.read_proc(f"/proc/self/task/{name}/comm").strip() for name in others]


def main(control: int, settings: dict[str, Any]) -> None:
    """Entry point of the process that the runner starts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the runner handles Ctrl-C
    if IS_LINUX:
        prctl(PR_SET_CHILD_SUBREAPER, 1)
    zygote = Zygote(socket.socket(fileno=control))
    try:
        zygote.prepare(settings["solvers"], settings["problems"], settings["preload"])
        zygote.serve()
    finally:
        zygote.close()
        sys.stdout.flush()
