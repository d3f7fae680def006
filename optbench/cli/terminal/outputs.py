"""Output files of a verb: checked before the work starts, and saved elsewhere if writing fails."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from optbench.cli.terminal.output import emit
from optbench.cli.terminal.parser import UsageError
from optbench.errors import FileFormatError

STDOUT = "-"


def check_writable(option: str, path: str | None) -> None:
    """Refuse a path that cannot be written, before the work starts."""
    if path is None or path == STDOUT:
        return
    target = Path(path)
    if target.is_dir():
        raise UsageError(f"{option} {path!r} is a folder; give the path of a file")
    if not target.parent.is_dir():
        raise UsageError(
            f"{option} {path!r}: there is no folder {str(target.parent)!r}; make it first"
        )
    if target.exists() and not os.access(target, os.W_OK):
        raise UsageError(f"{option} {path!r} exists and may not be written; choose another path")
    if target.exists() and not target.is_file():
        return
    try:
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        raise UsageError(
            f"{option} {path!r}: the folder {str(target.parent)!r} cannot be written: "
            f"{error.strerror}"
        ) from None


def save(text: str, path: str) -> str:
    """Write a file, or to stdout for ``-``, or a temporary file if that fails; return which."""
    from optbench.model.files.strict_json import write_text

    if path == STDOUT:
        emit(text)
        return path
    target = Path(path)
    try:
        # A pipe or a device must not be replaced by a file.
        if target.exists() and not target.is_file():
            with target.open("w", encoding="utf-8") as file:
                file.write(text)
        else:
            write_text(target, text)
        return path
    except (OSError, FileFormatError) as error:
        handle, rescue = tempfile.mkstemp(prefix="optbench-", suffix=target.suffix)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        sys.stderr.write(f"optbench: {error}; saved as {rescue} instead\n")
        return rescue
