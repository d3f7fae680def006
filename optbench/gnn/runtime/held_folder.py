"""A training's folder belongs to one command, and its processes end with that command.

The command holds an exclusive lock on a file beside the folder (``.NAME.lock``, which holds its
number). The processes that it starts inherit the lock, so that it is free once the last of them has
ended. Each process watches its parent and the command: a command that is killed, even by SIGKILL,
leaves nothing that goes on training.
"""

from __future__ import annotations

import fcntl
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from optbench.errors import OptbenchError

# The number of the command's process, in the environment of those that it starts.
COMMAND = "OPTBENCH_COMMAND"
WATCH_S = 0.1
# Processes of a command that was killed may take so long to end.
PATIENCE_S = 2.0
# What a process exits with when its command has ended.
ABANDONED = 4


class FolderInUseError(OptbenchError):
    """A folder in which another command trains."""


@contextmanager
def held(folder: Path) -> Iterator[int]:
    """Keep other commands from the folder; yield the descriptor that processes inherit."""
    path = folder.parent / f".{folder.name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = _locked(path, folder)
    try:
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        yield lock
    finally:
        with suppress(FileNotFoundError):
            path.unlink()
        os.close(lock)


def _locked(path: Path, folder: Path) -> int:
    """A descriptor of the file at ``path`` with an exclusive lock."""
    end = time.monotonic() + PATIENCE_S
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(lock, 32, 0).decode(errors="replace") or "of unknown number"
            os.close(lock)
            if time.monotonic() > end:
                raise FolderInUseError(
                    f"{folder}: process {holder} trains in this folder; one command at a time may. "
                    f"Wait for it, end it (kill {holder}), or name another folder (--files)"
                ) from None
            time.sleep(WATCH_S)
            continue
        # Who held it before may have removed the file meanwhile: a lock on that keeps nobody out.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), path.stat()):
                return lock
        os.close(lock)


def end_with_the_command() -> None:
    """End this process as soon as its parent, or the command that is named, has ended."""
    parent, command = os.getppid(), int(os.environ.get(COMMAND, "0"))
    direct = "TORCHELASTIC_RUN_ID" not in os.environ
    if command and (not _runs(command) or (direct and parent != command)):
        _end(parent)
    watcher = threading.Thread(target=_watch, args=(parent, command), daemon=True)
    watcher.start()


def _watch(parent: int, command: int) -> None:
    while os.getppid() == parent and (not command or _runs(command)):
        time.sleep(WATCH_S)
    _end(parent)


def _end(parent: int) -> None:
    """Leave at once; ``torchrun``, if it stands between, shall not start this process again."""
    if os.getppid() == parent and "TORCHELASTIC_RUN_ID" in os.environ:
        with suppress(ProcessLookupError):
            os.kill(parent, signal.SIGTERM)
    os._exit(ABANDONED)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
