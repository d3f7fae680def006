"""Read what a cell left, if it is a regular file of limited size, and remove its folder."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from optbench.errors import OptbenchError

MAX_FILE_MB = 256


class UnreadableFileError(OptbenchError):
    """A file that a cell left is not safe to read."""


def read_bounded_file(path: Path, max_mb: int = MAX_FILE_MB) -> bytes:
    """Read a regular file of at most ``max_mb`` MiB that untrusted code left; raise
    UnreadableFileError for a link, a pipe or a larger file.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UnreadableFileError(f"{path.name} cannot be read: {error.strerror}") from None
    with os.fdopen(file, "rb") as stream:
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode):
            raise UnreadableFileError(f"{path.name} is not a regular file")
        if facts.st_size > max_mb << 20:
            raise UnreadableFileError(
                f"{path.name} has {facts.st_size >> 20} MB; {max_mb} MB are allowed"
            )
        return stream.read()


def remove_folder(folder: Path) -> None:
    """Remove a folder as far as possible, ignoring errors.

    The content of nested folders is moved to the top before the folder is removed: a call or an
    open file per level, as in ``shutil.rmtree``, fails at thousands of levels.
    """
    with contextlib.suppress(OSError):
        if folder.is_symlink() or not folder.is_dir():
            folder.unlink()
            return
    prefix, moved = secrets.token_hex(8), 0
    waiting = [folder]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if not entry.is_dir(follow_symlinks=False):
                        os.unlink(entry.path)
                        continue
                    os.chmod(entry.path, 0o700)
                    waiting.append(folder / f"{prefix}-{moved}")
                    os.rename(entry.path, waiting[-1])
                    moved += 1
    for k in range(moved):
        with contextlib.suppress(OSError):
            os.rmdir(folder / f"{prefix}-{k}")
    with contextlib.suppress(OSError):
        os.rmdir(folder)
