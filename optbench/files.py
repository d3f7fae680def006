"""Files that appear whole or not at all: the only place that writes beside a path and renames."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# File systems allow 255 bytes in a name; this many characters leave room for what is added.
KEPT_CHARACTERS = 50


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a new path beside ``path``; the file written there replaces ``path`` at the end.

    After an exception it is removed, and ``path`` is as it was.
    """
    unique = f"{os.getpid()}-{os.urandom(4).hex()}"
    fresh = path.with_name(f".{path.name[:KEPT_CHARACTERS]}.{unique}")
    try:
        yield fresh
        os.replace(fresh, path)
    except BaseException:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file, text as UTF-8; its folder is made if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as fresh:
        fresh.write_bytes(content.encode() if isinstance(content, str) else content)
