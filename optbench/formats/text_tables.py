"""Tables of text with a header: columns by name; errors name the line."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from optbench.errors import FileFormatError, nearest
from optbench.formats.text import shorten
from optbench.model.instance import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class TextTable:
    """``columns`` by name, all of one length; ``line`` says where each row stands in the file."""

    where: str
    columns: Mapping[str, Sequence[str]]
    line: Ints

    @property
    def size(self) -> int:
        return len(self.line)

    def wrong(self, row: int, what: str) -> FileFormatError:
        """Make the error of a row."""
        return FileFormatError(f"{self.where}, line {self.line[row]}: {what}")

    def rows(self, which: Bools) -> TextTable:
        """Only these rows."""
        at = np.flatnonzero(which).tolist()
        return TextTable(
            self.where,
            {name: [column[i] for i in at] for name, column in self.columns.items()},
            self.line[at],
        )

    def filled(self, name: str) -> Bools:
        """Rows in which a column is not empty."""
        return np.array([bool(value.strip()) for value in self.columns[name]], dtype=bool)

    def numbers(self, name: str, least: float = 0.0) -> Floats:
        """A column of finite numbers, none below ``least``."""
        values = self.columns[name]
        try:
            out = np.array(values, dtype=float)
        except ValueError:
            row = next(i for i, value in enumerate(values) if not _is_number(value))
            said = f"is {shorten(values[row])}" if values[row].strip() else "is empty"
            raise self.wrong(row, f"{name} {said}; it must be a number") from None
        bad = np.flatnonzero(~(np.isfinite(out) & (out >= least)))
        if len(bad):
            raise self.wrong(
                int(bad[0]),
                f"{name} is {shorten(values[bad[0]])}; it must be finite and at least {least:g}",
            )
        return out

    def whole(self, name: str) -> Ints:
        """A column of whole numbers, none below 0."""
        out = self.numbers(name)
        bad = np.flatnonzero(out != np.floor(out))
        if len(bad):
            raise self.wrong(
                int(bad[0]),
                f"{name} is {shorten(self.columns[name][bad[0]])}; it must be a whole number",
            )
        return out.astype(np.int64)

    def in_order(self, name: str) -> Floats:
        """``numbers`` in ascending order."""
        out = self.numbers(name)
        back = np.flatnonzero(np.diff(out) < 0)
        if len(back):
            row = int(back[0]) + 1
            raise self.wrong(
                row,
                (
                    f"{name} is {out[row]:.10g}, after {out[row - 1]:.10g}; arrivals must stand in "
                    "order of time"
                ),
            )
        return out

    def choices(self, name: str, known: Mapping[str, int]) -> Ints:
        """A column of known words, as their indices."""
        values = [value.strip() for value in self.columns[name]]
        bad = next((i for i, value in enumerate(values) if value not in known), None)
        if bad is not None:
            said = f"is {shorten(values[bad])}" if values[bad] else "is empty"
            raise self.wrong(
                bad, f"{name} {said}; {nearest(values[bad], [word for word in known if word])}"
            )
        return np.array([known[value] for value in values], dtype=np.int64)


def read_table(
    text: str, where: str, separator: str = ",", names: Sequence[str] | None = None
) -> TextTable:
    """The table in a text; ``names`` are those of its columns where the text has no header."""
    try:
        read = csv.reader(io.StringIO(text), delimiter=separator)
        rows = [(read.line_num, row) for row in read if row]
    except csv.Error as error:
        raise FileFormatError(f"{where}: no table: {error}") from None
    if names is None:
        names = [name.strip() for name in rows[0][1]] if rows else []
        twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
        if twice is not None:
            raise FileFormatError(f"{where}, line 1: the column {twice!r} stands twice")
        rows = rows[1:]
    if not rows:
        raise FileFormatError(f"{where}: no row but the header")
    for number, row in rows:
        if len(row) != len(names):
            raise FileFormatError(
                f"{where}, line {number}: {len(row)} fields, where there are {len(names)} columns"
            )
    line = np.array([number for number, _ in rows], dtype=np.int64)
    return TextTable(
        where, {name: [row[k] for _, row in rows] for k, name in enumerate(names)}, line
    )


def require_columns(table: TextTable, needed: Sequence[str], allowed: str) -> None:
    """Raise an error that names the first missing column and the existing ones."""
    for name in needed:
        if name not in table.columns:
            there = ", ".join(list(table.columns)[:12])
            raise FileFormatError(
                f"{table.where}: column {name!r} is missing; {allowed}. There are: "
                f"{shorten(there)[1:-1]}"
            )


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True
