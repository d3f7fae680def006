"""Reading what a cell's process left in its folder: never more than a bounded, regular file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from optbench.errors import OptbenchError

MAX_FILE_MB = 256


class NotReadable(OptbenchError):
    """A file that a cell left, and that is not to be read."""


def read_left(path: Path, most_mb: int = MAX_FILE_MB) -> bytes:
    """The folder was the cell's to fill: it may hold a link out of it, a pipe that blocks its reader, or too much."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise NotReadable(f"{path.name} cannot be read: {error.strerror}") from None
    with os.fdopen(file, "rb") as stream:
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode):
            raise NotReadable(f"{path.name} is no regular file")
        if facts.st_size > most_mb << 20:
            raise NotReadable(f"{path.name} has {facts.st_size >> 20} MB; {most_mb} MB are allowed")
        return stream.read()
