"""MPS files, fixed and free: ROWS, COLUMNS with integer markers, RHS, RANGES, BOUNDS, OBJSENSE.

Conventions are those of HiGHS. Integer columns without bounds are binary. An upper bound below 0
without a lower one makes the lower side −∞. The right side of the objective is minus its constant.
A range r on an equation means [b, b + r] for r ≥ 0 and [b + r, b] otherwise, on other rows |r|.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from optbench.errors import FileFormatError, nearest
from optbench.shapes.milp.program import LARGEST, Milp, Sense, added, milp

SECTIONS = (
    *("NAME", "OBJSENSE", "OBJNAME", "ROWS", "COLUMNS", "RHS", "RANGES", "BOUNDS", "ENDATA"),
    *("OBJSENSE MAX", "OBJSENSE MIN"),
)
NOT_LINEAR = ("QUADOBJ", "QMATRIX", "QSECTION", "QCMATRIX", "SOS", "CSECTION", "INDICATORS")
SENSES: dict[str, Sense] = {"MAX": "max", "MAXIMIZE": "max", "MIN": "min", "MINIMIZE": "min"}
# Bounds with and without a value.
VALUED, VALUELESS = ("UP", "LO", "FX", "LI", "UI"), ("FR", "MI", "PL", "BV")
INFINITE = 1e20
# Python reads more than this as a number: 1_000, nan, and digits of other scripts.
NUMBER = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|(?i:inf(?:inity)?))")


@dataclass(slots=True)
class _Row:
    kind: str
    right: float = 0.0
    span: float | None = None


@dataclass(slots=True)
class _Column:
    integer: bool
    entries: dict[str, float] = field(default_factory=dict)
    lower: float | None = None
    upper: float | None = None
    bounds: tuple[str, ...] = ()


@dataclass
class _Reader:
    """The state while lines are read; errors name the line."""

    name: str = ""
    sense: Sense = "min"
    objective: str | None = None
    constant: float = 0.0
    rows: dict[str, _Row] = field(default_factory=dict)
    columns: dict[str, _Column] = field(default_factory=dict)
    integer: bool = False
    section: str = ""
    line: int = 0
    # The set of right sides, ranges and bounds that each section has.
    sets: dict[str, str] = field(default_factory=dict)
    right_sides: set[str] = field(default_factory=set)

    def fail(self, reason: str) -> FileFormatError:
        return FileFormatError(f"line {self.line}: {reason}")

    def number(self, text: str) -> float:
        if NUMBER.fullmatch(text) is None:
            raise self.fail(f"{text[:40]!r} is not a number")
        return float(text)

    def finite(self, text: str) -> float:
        value = self.number(text)
        if abs(value) > LARGEST:
            raise self.fail(f"{text[:40]} must be finite and at most {LARGEST:g} in size")
        return value

    def side(self, text: str) -> float:
        value = self.number(text)
        return math.copysign(math.inf, value) if abs(value) >= INFINITE else value

    def row(self, name: str) -> _Row:
        if name not in self.rows:
            raise self.fail(f"no row {name[:60]!r}; {nearest(name, self.rows)}")
        return self.rows[name]

    def column(self, name: str) -> _Column:
        if name not in self.columns:
            raise self.fail(f"no column {name[:60]!r}; {nearest(name, self.columns)}")
        return self.columns[name]


def read_mps(text: str, name: str) -> Milp:
    """Read a programme; a FileFormatError names the line and the reason."""
    reader = _Reader(name=name)
    for number, line in enumerate(text.split("\n"), 1):
        reader.line = number
        line = line.rstrip("\r")
        if not line.strip() or line.startswith("*"):
            continue
        if reader.section == "ENDATA":
            raise reader.fail("there is text after ENDATA")
        if not line[0].isspace():
            _begin_section(reader, line)
        else:
            _read_line(reader, line.split())
    if reader.section != "ENDATA":
        raise FileFormatError("the file ends without ENDATA: is it cut off?")
    return _programme(reader)


def _begin_section(reader: _Reader, line: str) -> None:
    words = line.split()
    section = words[0].upper()
    if section.startswith(NOT_LINEAR):
        raise reader.fail(f"section {section}: only linear programmes with integers can be read")
    if section not in SECTIONS:
        raise reader.fail(f"unknown section {words[0][:40]!r}; {nearest(section, SECTIONS)}")
    if section != "NAME" and section in reader.sets:
        raise reader.fail(f"section {section} stands twice")
    if section in ("COLUMNS", "RHS", "RANGES", "BOUNDS") and not reader.rows:
        raise reader.fail(f"section {section} comes before any row")
    reader.sets[section] = ""
    reader.section = section
    if section == "NAME" and len(words) > 1:
        reader.name = words[1]
    if section == "OBJSENSE" and len(words) > 1:
        _sense(reader, words[1:])


def _read_line(reader: _Reader, words: list[str]) -> None:
    read = READERS.get(reader.section)
    if read is None:
        where = f"in section {reader.section}" if reader.section else "before the first section"
        raise reader.fail(f"{' '.join(words)[:60]!r} {where}, which has no lines")
    read(reader, words)


def _sense(reader: _Reader, words: list[str]) -> None:
    sense = SENSES.get(words[0].upper())
    if sense is None or len(words) > 1:
        raise reader.fail(f"objective sense {' '.join(words)[:40]!r}; it must be MAX or MIN")
    reader.sense = sense


def _objective_name(reader: _Reader, words: list[str]) -> None:
    if reader.rows:
        raise reader.fail("OBJNAME must come before ROWS")
    reader.objective = words[0]


def _row(reader: _Reader, words: list[str]) -> None:
    if len(words) != 2 or words[0].upper() not in ("N", "L", "G", "E"):
        raise reader.fail(f"{' '.join(words)[:60]!r}; a row is one of N, L, G, E and a name")
    kind, name = words[0].upper(), words[1]
    if name in reader.rows:
        raise reader.fail(f"row {name[:60]!r} stands twice")
    reader.rows[name] = _Row(kind)
    if kind == "N" and reader.objective is None:
        reader.objective = name


def _column(reader: _Reader, words: list[str]) -> None:
    if len(words) >= 3 and words[1].strip("'\"").upper() == "MARKER":
        mark = words[2].strip("'\"").upper()
        if mark not in ("INTORG", "INTEND"):
            raise reader.fail(f"marker {words[2][:40]!r}; it must be 'INTORG' or 'INTEND'")
        reader.integer = mark == "INTORG"
        return
    name = words[0]
    column = reader.columns.setdefault(name, _Column(reader.integer))
    for row, value in _pairs(reader, words[1:]):
        reader.row(row)
        if row in column.entries:
            raise reader.fail(f"column {name[:60]!r} has two entries in row {row[:60]!r}")
        column.entries[row] = reader.finite(value)


def _pairs(reader: _Reader, words: list[str]) -> Iterator[tuple[str, str]]:
    if not words or len(words) % 2:
        raise reader.fail(f"{' '.join(words)[:60]!r}; expected pairs of a name and a number")
    yield from zip(words[::2], words[1::2], strict=True)


def _rows_of_set(reader: _Reader, words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield (row, value) of a line of RHS or RANGES; a set's name in front is optional."""
    named = words[0] if len(words) % 2 else ""
    _check_set(reader, named or " ")
    yield from _pairs(reader, words[1:] if named else words)


def _check_set(reader: _Reader, named: str) -> None:
    """Refuse a second set of values in a section: only one of them can be meant."""
    first = reader.sets[reader.section] or named
    reader.sets[reader.section] = first
    if named != first:
        both = " and ".join(
            repr(each[:40]) if each.strip() else "one without a name" for each in (first, named)
        )
        raise reader.fail(f"two sets in section {reader.section}, {both}; keep one of them")


def _right(reader: _Reader, words: list[str]) -> None:
    for name, value in _rows_of_set(reader, words):
        row = reader.row(name)
        if name in reader.right_sides:
            raise reader.fail(f"row {name[:60]!r} has two right-hand sides")
        reader.right_sides.add(name)
        if name == reader.objective:
            reader.constant = -reader.finite(value)
        else:
            row.right = reader.finite(value)


def _range(reader: _Reader, words: list[str]) -> None:
    for name, value in _rows_of_set(reader, words):
        row = reader.row(name)
        if row.kind == "N":
            raise reader.fail(f"a range on row {name[:60]!r}, which has no sides (N)")
        if row.span is not None:
            raise reader.fail(f"row {name[:60]!r} has two ranges")
        row.span = reader.finite(value)


def _bound(reader: _Reader, words: list[str]) -> None:
    kind = words[0].upper()
    if kind not in (*VALUED, *VALUELESS):
        known = ", ".join((*VALUED, *VALUELESS))
        raise reader.fail(f"bound {words[0][:40]!r}; it must be one of {known}")
    size = 3 if kind in VALUED else 2
    # A set's name is optional; FR, MI, PL and BV may carry a value, which says nothing.
    if len(words) == size:
        named, rest = " ", words[1:]
    elif len(words) == size + 1 and (kind in VALUED or words[1] not in reader.columns):
        named, rest = words[1], words[2:]
    elif kind in VALUELESS and len(words) in (3, 4):
        named, rest = (words[1], words[2:3]) if len(words) == 4 else (" ", words[1:2])
    else:
        raise reader.fail(f"{' '.join(words)[:60]!r}; a bound is a kind, a set, a column, a value")
    _check_set(reader, named)
    column = reader.column(rest[0])
    if kind in column.bounds:
        raise reader.fail(f"column {rest[0][:60]!r} has two bounds of kind {kind}")
    column.bounds += (kind,)
    _set_bound(reader, column, kind, reader.side(rest[1]) if kind in VALUED else 0.0)


def _set_bound(reader: _Reader, column: _Column, kind: str, value: float) -> None:
    if kind in ("UI", "LI", "BV"):
        column.integer = True
    if kind == "BV":
        column.lower = 0.0 if column.lower is None else column.lower
        column.upper = 1.0 if column.upper is None else column.upper
    elif kind in ("UP", "UI"):
        column.upper = value
        if value < 0 and column.lower is None:
            column.lower = -math.inf
    elif kind in ("LO", "LI"):
        column.lower = value
    elif kind == "FX":
        column.lower = column.upper = reader.finite(repr(value))
    elif kind == "FR":
        column.lower, column.upper = -math.inf, math.inf
    elif kind == "MI":
        column.lower = -math.inf
    elif kind == "PL":
        column.upper = math.inf
    if "BV" in column.bounds and not (column.lower in (0.0, 1.0) and column.upper in (0.0, 1.0)):
        raise reader.fail("a binary column (BV) whose bounds are not 0 and 1")
    if column.lower == math.inf or column.upper == -math.inf:
        raise reader.fail("a lower side of +infinity or an upper side of -infinity")


READERS: dict[str, Callable[[_Reader, list[str]], None]] = {
    "OBJSENSE": _sense,
    "OBJNAME": _objective_name,
    "ROWS": _row,
    "COLUMNS": _column,
    "RHS": _right,
    "RANGES": _range,
    "BOUNDS": _bound,
}


def _programme(reader: _Reader) -> Milp:
    if reader.objective is None:
        raise FileFormatError("section ROWS has no objective (a row of kind N)")
    if reader.objective not in reader.rows:
        raise FileFormatError(f"OBJNAME names {reader.objective[:60]!r}, which is no row")
    kept = [name for name, row in reader.rows.items() if row.kind != "N"]
    number = {name: k for k, name in enumerate(kept)}
    sides = [_sides(reader.rows[name]) for name in kept]
    triplets = [
        (number[row], k, value)
        for k, column in enumerate(reader.columns.values())
        for row, value in column.entries.items()
        if row in number
    ]
    row, index, value = zip(*triplets, strict=True) if triplets else ((), (), ())
    columns = list(reader.columns.values())
    bounds = [_column_sides(column) for column in columns]
    return milp(
        reader.name,
        reader.sense,
        list(reader.columns),
        [column.entries.get(reader.objective, 0.0) for column in columns],
        [low for low, _ in bounds],
        [high for _, high in bounds],
        [column.integer for column in columns],
        kept,
        [low for low, _ in sides],
        [high for _, high in sides],
        (row, index, value),
        reader.constant,
    )


def _sides(row: _Row) -> tuple[float, float]:
    right, span = row.right, row.span
    if row.kind == "E":
        other = right if span is None else added(right, span)
        return min(right, other), max(right, other)
    if row.kind == "L":
        return (-math.inf if span is None else added(right, -abs(span))), right
    return right, (math.inf if span is None else added(right, abs(span)))


def _column_sides(column: _Column) -> tuple[float, float]:
    if column.integer and column.lower is None and column.upper is None:
        return 0.0, 1.0
    lower = 0.0 if column.lower is None else column.lower
    return lower, math.inf if column.upper is None else column.upper
