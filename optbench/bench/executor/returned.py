"""Reading what a cell's process left: never more than a bounded, regular file of strict JSON."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from optbench.bench.executor.tasks import ANSWER
from optbench.bench.records import Reason
from optbench.errors import FileFormatError
from optbench.model.files.strict_json import parse_json

MAX_ANSWER_MB = 256


class NotReadable(Exception):
    """A file that a cell left, and that is not to be read."""


def read_answer(folder: Path) -> dict[str, Any] | Reason:
    """The answer, or why it is none."""
    try:
        answer = parse_json(read_left(folder / ANSWER).decode("utf-8"))
    except (NotReadable, FileFormatError, UnicodeDecodeError) as error:
        return Reason("nonsense", f"its answer cannot be read: {error}")
    if not isinstance(answer, dict):
        return Reason("nonsense", f"its answer is a {type(answer).__name__}, not an object")
    return answer


def read_left(path: Path, most_mb: int = MAX_ANSWER_MB) -> bytes:
    """A file of a cell's folder, which was the cell's to fill: it may hold a link, a pipe, or too much."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise NotReadable(str(error.strerror)) from None
    with os.fdopen(file, "rb") as stream:
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode):
            raise NotReadable("it is no regular file")
        if facts.st_size > most_mb << 20:
            raise NotReadable(f"it has {facts.st_size >> 20} MB; {most_mb} MB are allowed")
        return stream.read()
