"""Standard output while a cluster is joined: what Ray's own threads write goes to a file.

Ray prints what its nodes report, whole dumps of a lost raylet's state included, into the progress
of the command. optbench says in a line of its own what matters of that.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, TextIO, cast

from optbench.workspace import store

# How the threads of Ray's driver are named.
THREADS = "ray_"
FILE_NAME = "ray_messages.log"


class _Sorted:
    """A stream that keeps Ray's lines in a file and passes all else to standard error."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, text: str) -> int:
        if not threading.current_thread().name.startswith(THREADS):
            return sys.stderr.write(text)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            return file.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)


@contextmanager
def ray_messages_in_a_file() -> Iterator[Path]:
    """Send what is printed to standard error, for standard output is for results; what Ray prints
    goes to a file beside the store, which begins anew.
    """
    path = store() / FILE_NAME
    path.unlink(missing_ok=True)
    with redirect_stdout(cast(TextIO, _Sorted(path))):
        yield path
