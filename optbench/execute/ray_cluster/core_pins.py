"""Cores of this machine that belong to one cell at a time: a locked file per core.

The locks are shared by everybody on the machine who pins cells, whatever cluster or user they
belong to, and end with the process that holds them, for any reason.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from optbench.errors import OptbenchError

# Where the files lie, if not in the machine's folder of temporary files: containers that share
# cores must share this folder.
VARIABLE = "OPTBENCH_CORE_LOCKS"
FOLDER = "optbench-core-locks"
# A file may be written by everybody and read by nobody, its owner included: a cell, which may
# write in its own folder only, can open no such file, and so not lock it.
LOCKABLE = 0o222
# Seconds between two looks for free cores.
AGAIN_S = 0.02


class CorePins:
    """Cores held by this process: closing it gives them back."""

    def __init__(self, folder: Path | None = None) -> None:
        named = os.environ.get(VARIABLE)
        self.folder = folder or Path(named or Path(tempfile.gettempdir()) / FOLDER)
        self.files: dict[int, int] = {}
        _make_shared(self.folder)

    @property
    def cores(self) -> tuple[int, ...]:
        return tuple(sorted(self.files))

    def take(self, number: int, among: Sequence[int]) -> bool:
        """Hold ``number`` free cores, or none; return whether there were enough."""
        if number > len(among):
            raise OptbenchError(
                f"{number} cores are needed, but this machine lets its processes use {len(among)} "
                "only; give the study fewer threads, or start the node with fewer CPUs"
            )
        for core in among:
            if len(self.files) == number:
                break
            file = _open_shared(self.folder / str(core))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
                continue
            self.files[core] = file
        if len(self.files) < number:
            self.close()
        return len(self.files) == number

    def close(self) -> None:
        for file in self.files.values():
            os.close(file)
        self.files.clear()

    def __enter__(self) -> CorePins:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def free_cores(among: Sequence[int], folder: Path | None = None) -> Iterator[int]:
    """Yield the cores that nobody holds at this moment."""
    for core in among:
        with CorePins(folder) as pins:
            if pins.take(1, [core]):
                yield core


def _make_shared(folder: Path) -> None:
    """Make a folder in which every user of the machine may lock."""
    with contextlib.suppress(FileExistsError):
        folder.mkdir(parents=True)
        folder.chmod(0o1777)


def _open_shared(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    with contextlib.suppress(FileNotFoundError):  # a sticky folder forbids O_CREAT on others' files
        return os.open(path, flags)
    file = os.open(path, flags | os.O_CREAT, LOCKABLE)
    with contextlib.suppress(PermissionError):  # another user has made it in the meantime
        os.fchmod(file, LOCKABLE)
    return file
