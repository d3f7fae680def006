"""Files that appear whole or not at all: the only place that writes beside a path and renames;
and the part of a file of lines that was written whole."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

# File systems allow 255 bytes in a name; this many characters leave room for what is added.
KEPT_CHARACTERS = 50


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a new path beside ``path``; the file written there replaces ``path`` at the end.

    After an exception it is removed, and ``path`` is as it was.
    """
    unique = f"{os.getpid()}-{os.urandom(4).hex()}"
    fresh = path.with_name(f"{_beginning(path)}{unique}")
    try:
        yield fresh
        os.replace(fresh, path)
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)  # there is one after an exception only


def unfinished(path: Path) -> Iterator[tuple[Path, int]]:
    """Files beside ``path`` that ``replacing`` has not renamed yet, and the process of each: it
    writes still, or was killed."""
    name = re.compile(re.escape(_beginning(path)) + r"(\d+)-[0-9a-f]{8}")
    for entry in os.scandir(path.parent):
        if (found := name.fullmatch(entry.name)) is not None:
            yield Path(entry.path), int(found[1])


def _beginning(path: Path) -> str:
    return f".{path.name[:KEPT_CHARACTERS]}."


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file, text as UTF-8; its folder is made if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as fresh:
        fresh.write_bytes(content.encode() if isinstance(content, str) else content)


def end_of_whole_lines(file: BinaryIO, chunk: int = 1 << 16) -> int:
    """Return the offset at which the last complete line ends."""
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        begin = max(0, end - chunk)
        file.seek(begin)
        found = file.read(end - begin).rfind(b"\n") + 1
        if found > 0:
            return begin + found
        end = begin
    return 0
