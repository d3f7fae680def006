"""Locks that end with their holder, and the work folder that a runner's jobs write in.

``flock`` locks are gone the moment their process is, however it ended, and a child does not inherit them across ``exec``.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from optbench.errors import OptbenchError
from optbench.sandbox.job_folder import remove_folder

LOCK = "lock"


class StudyBusyError(OptbenchError):
    """A study that another process is running."""


@contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    """Wait for the lock, and hold it."""
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def study_lock(study: str, path: Path) -> Iterator[None]:
    """Hold a study, or say who does."""
    with path.open("a+") as lock:
        if not _try(lock):
            lock.seek(0)
            holder = lock.read(100).strip() or "another process"
            raise StudyBusyError(
                f"study {study!r} is being run by {holder}; wait for it to end, or stop it: what it has finished is kept"
            )
        lock.truncate(0)
        lock.write(f"process {os.getpid()} since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC")
        lock.flush()
        yield
        lock.truncate(0)


@contextmanager
def work_folder(parent: Path, guard: Path) -> Iterator[Path]:
    """A folder of this runner's own in ``parent``, gone at the end; what dead runners left there goes at the beginning.

    Under the lock ``guard``, so that no folder is taken for a dead runner's between its making and its locking.
    """
    with exclusive_lock(guard):
        remove_dead_folders(parent)
        folder = parent / f"{os.getpid()}-{os.urandom(3).hex()}"
        folder.mkdir()
        lock = (folder / LOCK).open("a")
        fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        with lock:
            yield folder
    finally:
        remove_folder(folder)


def remove_dead_folders(parent: Path) -> None:
    """Remove the folders whose runner is no longer alive."""
    for folder in parent.iterdir():
        try:
            with (folder / LOCK).open("a") as lock:
                dead = _try(lock)
        except (FileNotFoundError, NotADirectoryError):
            dead = True
        if dead:
            remove_folder(folder)


def _try(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
