"""Output to stdout: tables, or one JSON object with --json. Progress and errors go to stderr.
Output files are checked before the work starts, and saved elsewhere if writing fails.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from optbench.cli.terminal.parser import UsageError
from optbench.errors import FileFormatError
from optbench.html import quantities

if TYPE_CHECKING:
    from rich.console import Console

T = TypeVar("T")
GOOD, BAD, DIM = "green", "bold red", "dim"
# The path that means standard output.
STDOUT = "-"


def emit(text: str) -> None:
    """Write to stdout; a closed pipe (``optbench list | head``) is not an error."""
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes stdout once more at exit, which must not fail either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def emit_json(document: Any) -> None:
    emit(json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False))


def plain(value: Any) -> Any:
    """A value in JSON's types; numbers that JSON cannot represent (NaN, infinity) become null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [
            plain(item)
            for item in (sorted(value) if isinstance(value, (set, frozenset)) else value)
        ]
    if hasattr(value, "tolist"):  # numpy's scalars and arrays
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def attributes(thing: object, *names: str) -> dict[str, Any]:
    """Return attributes under their own names, as a part of a JSON object."""
    return {name: getattr(thing, name) for name in names}


def show(*parts: Any) -> None:
    """Print rich renderables and markup to stdout, with colours on a terminal."""
    console = console_for(sys.stdout)
    with console.capture() as captured:
        for part in parts:
            console.print(part, soft_wrap=isinstance(part, str))
    text = captured.get()
    emit(text if sys.stdout.isatty() else "\n".join(line.rstrip() for line in text.split("\n")))


def console_for(stream: IO[str]) -> Console:
    """A console on a stream; 140 columns where the stream is no terminal, so that logs are not
    squeezed.
    """
    from rich.console import Console

    return Console(file=stream, width=None if stream.isatty() else 140, highlight=False)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[str] = ()) -> Any:
    """A table with few lines; ``right`` names the columns of numbers."""
    from rich import box
    from rich.table import Table

    numbers = set(right)
    out = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in columns:
        out.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    for row in rows:
        out.add_row(*row)
    return out


def table_of(
    things: Iterable[T], columns: Mapping[str, Callable[[T], str]], left: Iterable[str] = ()
) -> Any:
    """A table with a row per thing. ``columns`` maps heads to functions that write a cell; those in
    ``left`` are text, the others numbers.
    """
    rows = [[cell(each) for cell in columns.values()] for each in things]
    return table(list(columns), rows, right=set(columns).difference(left))


def joined(*parts: str | float | None) -> str:
    """The parts that are not empty, with commas."""
    return ", ".join(str(part) for part in parts if part)


def escape(text: str) -> str:
    """Escape text, so that rich does not read it as markup."""
    from rich.markup import escape as rich_escape

    return rich_escape(text)


def figure(value: Any) -> str:
    """Format a number with separated thousands and about six significant digits; ``-`` for None."""
    if value is None:
        return "-"
    if isinstance(value, (tuple, list)):
        return " , ".join(figure(item) for item in value)
    number = float(value)
    if not math.isfinite(number):
        return "-" if math.isnan(number) else "∞" if number > 0 else "-∞"
    return quantities.plain(number)


def percent(value: Any) -> str:
    """Format a gap as a percentage."""
    if value is None:
        return "-"
    if isinstance(value, (tuple, list)):
        return " , ".join(percent(item) for item in value)
    return quantities.percent(value)


def length(value_s: float) -> str:
    """Format the clock of work in progress, or a limit: two decimals, so that it moves."""
    if value_s < 10:
        return f"{value_s:.2f} s"
    if value_s < quantities.MINUTES_FROM_S:
        return f"{value_s:.1f} s"
    return quantities.duration(value_s)


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
