"""Read the file of records: an index of its lines by key, each parsed on first access.

A damaged line costs one cell and not the file: it is skipped with a warning that names it, and an
earlier record of the same key counts; without one the cell is missing and will be run again.
"""

from __future__ import annotations

import json
import re
import threading
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

from optbench.errors import FileFormatError
from optbench.store.records import FORMAT, Record

# The beginning of a record, as ``Record.to_dict`` writes it.
HEAD = re.compile(rb'\{"format": "%s", "version": \d+, "key": "([^"\\]+)"' % FORMAT.encode())


class DamagedRecordWarning(UserWarning):
    """A line of the store is not a record."""


class Records(Mapping[str, Record]):
    """Records by their key, parsed only when they are accessed."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._mutex = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._read_to = self._file_number = 0
        self._places: dict[str, list[tuple[int, int]]] = {}
        self._parsed: dict[str, Record] = {}

    def refresh(self) -> None:
        """Index appended lines; a file that was replaced or has become shorter is indexed again."""
        with self._mutex:
            self._refresh()

    def _refresh(self) -> None:
        found = self.file.stat() if self.file.exists() else None
        size, number = (found.st_size, found.st_ino) if found is not None else (0, 0)
        if size < self._read_to or number != self._file_number:
            self._forget()
            self._file_number = number
        if size == self._read_to:
            return
        with self.file.open("rb") as file:
            file.seek(self._read_to)
            text = file.read()
        begin = 0
        while (end := text.find(b"\n", begin) + 1) > 0:
            self._note(text[begin:end], self._read_to + begin)
            begin = end
        self._read_to += begin

    def _note(self, line: bytes, offset: int) -> None:
        head = HEAD.match(line)
        key = head[1].decode() if head is not None else None
        if key is None:
            try:
                key = Record.from_dict(json.loads(line)).key
            except (ValueError, KeyError, TypeError, AttributeError, FileFormatError) as error:
                self._warn(line, offset, error)
                return
        self._places.setdefault(key, []).append((offset, len(line)))
        self._parsed.pop(key, None)

    def __getitem__(self, key: str) -> Record:
        if key in self._parsed:
            return self._parsed[key]
        places = self._places.get(key, [])
        while places:
            offset, size = places[-1]
            with self.file.open("rb") as file:
                file.seek(offset)
                line = file.read(size)
            try:
                self._parsed[key] = Record.from_dict(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError, FileFormatError) as error:
                self._warn(line, offset, error)
                places.pop()
            else:
                return self._parsed[key]
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.get(key) is not None

    def __iter__(self) -> Iterator[str]:
        """Keys of what can be read, in the order in which the cells were first run."""
        return (key for key in list(self._places) if key in self)

    def __len__(self) -> int:
        """Every record is parsed to count those that can be read."""
        return sum(1 for _ in self)

    def places(self) -> dict[str, list[tuple[int, int]]]:
        """Return the offset and the bytes of every line of each key."""
        return {key: list(places) for key, places in self._places.items()}

    def sizes(self) -> dict[str, int]:
        """Return the bytes of all lines of each key."""
        return {key: sum(size for _, size in places) for key, places in self._places.items()}

    def _warn(self, line: bytes, offset: int, error: Exception) -> None:
        with self.file.open("rb") as file:
            number = file.read(offset).count(b"\n") + 1
        what = (
            f"{self.file}, line {number}: not a record, skipped ({type(error).__name__}: "
            f"{error}): {line[:60]!r}"
        )
        warnings.warn(DamagedRecordWarning(what), stacklevel=2)
