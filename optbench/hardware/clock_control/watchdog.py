"""The watchdog: a process in a session of its own that restores clocks when their process dies.

It is started, and has answered, before the first journal is begun. It waits on a process handle
(pidfd) of its parent and on a pipe that the parent never closes while it lives: either ends
however the parent dies, after the parent's last system call, so that no lock can follow the
restoration. Then it restores every device that still has a journal, and those of which it was told
that they have been locked, although somebody removed their journals. It inherits the parent's locks
of the devices, so that nobody else takes one of them meanwhile. Ctrl-C, a hang-up and a termination
of the whole group are ignored: they reach the parent, which restores the clocks itself.

Through the pipe the parent says the number of a device, a byte each, before its first lock, and
STOP when all is restored.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from optbench.errors import OptbenchError
from optbench.hardware.clock_control.device_lock import DeviceLock
from optbench.hardware.clock_control.journal import ClockRange, boot_id
from optbench.hardware.clock_control.restoring import (
    RestoreOutcome,
    restore_all_unwritten,
    restore_journals,
)

# The parent's search path is used, so that the same optbench is imported; -P keeps the current
# folder out of it.
STARTER = (
    "import json, sys; told = json.loads(sys.argv[1]); sys.path[:] = told['path']; "
    "from optbench.hardware.clock_control.watchdog import watch; watch(told)"
)
# The folder that holds optbench, where it is found through the current folder alone.
ROOT = Path(__file__).parents[3]
READY, STOP = b"r", b"\xff"
START_S = 60.0
STOP_S = 30.0
# A driver that is being reloaded, or a device that comes back, needs a moment.
ATTEMPTS, PAUSE_S = 3, 1.0
LOG = "watchdog.log"
MOST_LOGGED = 1 << 20


class WatchdogError(OptbenchError):
    """The watchdog did not start; without one no clock is locked."""


class Watchdog:
    """A watchdog as its parent holds it."""

    def __init__(self, process: subprocess.Popen[bytes], alive: int, answer: int) -> None:
        self._process, self._alive, self._answer = process, alive, answer
        self._ready = self._stopped = False

    @classmethod
    def start(
        cls,
        folder: Path,
        locks: Sequence[DeviceLock],
        target: ClockRange | None = None,
        locked: Iterable[int] = (),
    ) -> Watchdog:
        """Start one that watches this process; ``await_answer`` returns when it does. ``target`` is
        the range that a restoration without a journal means, ``locked`` are the numbers of devices
        that have been locked already.
        """
        log = _open_log(folder)
        alive_read, alive = os.pipe()
        os.write(alive, bytes(locked))
        answer, answer_write = os.pipe()
        inherited = [alive_read, answer_write, *(lock.handle for lock in locks)]
        parent = _process_handle()
        told = {
            "path": [*filter(None, sys.path), str(ROOT)],
            "folder": str(folder),
            "uuids": [lock.uuid for lock in locks],
            "locks": [lock.handle for lock in locks],
            "target": None if target is None else [target.low_mhz, target.high_mhz],
            "alive": alive_read,
            "answer": answer_write,
            "parent": parent,
        }
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", STARTER, json.dumps(told)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                pass_fds=[*inherited, *([] if parent is None else [parent])],
                start_new_session=True,
            )
        except OSError as error:
            os.close(alive)
            os.close(answer)
            raise WatchdogError(
                f"the watchdog cannot be started ({error.strerror}); no clock is locked without it"
            ) from None
        finally:
            for handle in (log, alive_read, answer_write, *([] if parent is None else [parent])):
                os.close(handle)
        return cls(process, alive, answer)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def handle(self) -> int:
        """A file that becomes readable when the watchdog has answered, and when it has died."""
        return self._answer

    def await_answer(self, patience_s: float = START_S) -> bool:
        """Wait until it watches; False where it has died."""
        if not self._ready and not _readable([self._answer], patience_s):
            raise WatchdogError(
                f"the watchdog (process {self.pid}) did not start within {patience_s:g} s; no "
                "clock is locked without it. `optbench doctor` shows what is installed"
            )
        return not self.has_died()

    def has_died(self) -> bool:
        """Whether it has ended; the answer that it is ready is read on the way."""
        if not _readable([self._answer], 0.0):
            return False
        said = os.read(self._answer, 1)
        self._ready = self._ready or said == READY
        return said == b""

    def note_lock(self, number: int) -> None:
        """Say that the device of this number, in the order of the locks, is about to be locked."""
        with suppress(OSError):  # it has died, and the one that replaces it is told all
            os.write(self._alive, bytes([number]))

    def stop(self, patience_s: float = STOP_S) -> None:
        """Tell it that the work is done, and wait until it has ended; once is enough."""
        if self._stopped:
            return
        self._stopped = True
        with suppress(OSError):
            os.write(self._alive, STOP)
        os.close(self._alive)
        os.close(self._answer)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(patience_s)


def watch(told: dict[str, Any]) -> None:
    """The watchdog's work, from its start to its end."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    folder, uuids = Path(told["folder"]), tuple(told["uuids"])
    if not folder.is_absolute():
        raise WatchdogError(f"the folder of journals {told['folder']!r} is not absolute")
    os.chdir("/")
    # Loaded now: later there may be no memory or no file for it.
    import pynvml  # noqa: F401

    boot_id()

    with suppress(OSError):
        os.write(told["answer"], READY)
    touched = {uuids[number] for number in _locked_until_end(told["alive"], told["parent"])}
    locks = [DeviceLock(*each) for each in zip(uuids, told["locks"], strict=True)]
    target = None if told["target"] is None else ClockRange(*told["target"])
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE_S)
        # A device whose lock file was removed may be somebody else's by now.
        mine = [lock.uuid for lock in locks if lock.is_there(folder)]
        outcomes = restore_journals(folder, mine=mine, only=frozenset(uuids))
        outcomes += restore_all_unwritten(touched - {each.uuid for each in outcomes}, target)
        _log(outcomes)
        touched -= {each.uuid for each in outcomes if not each.kept}
        if not any(outcome.kept for outcome in outcomes):
            return


def _locked_until_end(alive: int, parent: int | None) -> frozenset[int]:
    """Wait until the parent has ended; return the numbers of devices that it locked and did not
    restore.
    """
    os.set_blocking(alive, False)
    locked: set[int] = set()
    while True:
        _readable([alive, *([] if parent is None else [parent])])
        ended = parent is not None and _readable([parent], 0.0)
        try:
            while said := os.read(alive, 1 << 10):
                if STOP in said:
                    return frozenset()
                locked |= set(said)
            return frozenset(locked)
        except BlockingIOError:
            if ended:
                return frozenset(locked)


def _readable(handles: Sequence[int], patience_s: float | None = None) -> bool:
    """Wait until one of these can be read, or has ended."""
    poll = select.poll()
    for handle in handles:
        poll.register(handle, select.POLLIN | select.POLLHUP)
    return bool(poll.poll(None if patience_s is None else patience_s * 1e3))


def _process_handle() -> int | None:
    """A pidfd of this process; None where the system has none: the pipe tells then."""
    if not hasattr(os, "pidfd_open"):
        return None
    with suppress(OSError):
        return os.pidfd_open(os.getpid())
    return None


def _open_log(folder: Path) -> int:
    """The watchdog's log: what it restored, and why it could not; no terminal may be left."""
    path = folder / LOG
    with suppress(OSError):
        if path.stat().st_size > MOST_LOGGED:
            path.unlink()
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    except OSError:  # a log is not worth a lock without a watchdog
        return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)


def _log(outcomes: Iterable[RestoreOutcome]) -> None:
    with suppress(OSError):
        for outcome in outcomes:
            sys.stderr.write(
                f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC  {outcome.uuid}  {outcome.state}: "
                f"{outcome.words}\n"
            )
        sys.stderr.flush()
