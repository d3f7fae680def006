"""Locks that are released when their process ends, and the work folder in which a runner's jobs
write.

``flock`` locks are released when their process ends, for any reason, and a child does not inherit
them across ``exec``.
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
    """Another process is running the study."""


@contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    """Wait for the lock and hold it."""
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def study_lock(study: str, path: Path) -> Iterator[None]:
    """Hold a study, or raise StudyBusyError with the process that holds it."""
    with path.open("a+") as lock:
        if not _try(lock):
            lock.seek(0)
            holder = lock.read(100).strip() or "another process"
            raise StudyBusyError(
                f"study {study!r} is being run by {holder}; wait for it to end, or stop it: its "
                "finished cells are kept"
            )
        lock.truncate(0)
        lock.write(f"process {os.getpid()} since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC")
        lock.flush()
        yield
        lock.truncate(0)


@contextmanager
def work_folder(parent: Path, guard: Path) -> Iterator[Path]:
    """Create a folder for this runner in ``parent`` and remove it at the end; folders of dead
    runners are removed first.

    The lock ``guard`` is held meanwhile, so that no folder is mistaken for a dead runner's between
    its creation and its locking.
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
    """Remove the folders whose runner no longer runs."""
    for folder in parent.iterdir():
        if not _is_live(folder):
            remove_folder(folder)


def has_live_folder(parent: Path) -> bool:
    """Whether a runner that still runs has a folder in ``parent``."""
    return parent.is_dir() and any(map(_is_live, parent.iterdir()))


def _is_live(folder: Path) -> bool:
    try:
        with (folder / LOCK).open("a") as lock:
            return not _try(lock)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _try(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
