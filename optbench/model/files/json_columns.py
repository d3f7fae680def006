"""Checked access to parsed JSON: every mistake is reported with its path, the value and what is
allowed.

Columns are checked as a whole, by the set of their types and by numpy, and searched for the culprit
only when one is known to exist: 100,000 rows take milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from optbench.errors import FileFormatError
from optbench.model.instance import Bools, Floats, Ints
from optbench.typed_values import check_keys, refuse
from optbench.units import EXACT


def table(
    value: Any, path: str, keys: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, Any]:
    """An object with exactly these keys, those of ``optional`` filled with null."""
    if not isinstance(value, dict):
        refuse(path or "the file", value, "an object")
    dot = f"{path}." if path else ""
    check_keys(value, [*keys, *optional], within=dot)
    for key in keys:
        if key not in value:
            raise FileFormatError(
                f"{dot}{key} is missing; {path or 'the file'} needs {', '.join(keys)}"
            )
    return {key: value.get(key) for key in (*keys, *optional)}


def header(data: dict[str, Any], expected: str, version: int, oldest: int | None = None) -> int:
    """Check the kind of file and its version, from ``oldest`` on; returns the version."""
    if "format" not in data:
        raise FileFormatError(
            f"not an optbench file: the key 'format' is missing; it must be {expected!r}"
        )
    if data["format"] != expected:
        refuse("format", data["format"], repr(expected))
    found, first = data.get("version"), version if oldest is None else oldest
    if type(found) is not int or not first <= found <= version:
        allowed = (
            f"{version}, the only version"
            if first == version
            else f"{first} to {version}, the versions"
        )
        refuse("version", found, f"{allowed} of {expected} that this optbench reads")
    return int(found)


def text(value: Any, path: str, allowed: Sequence[str] | None = None) -> str:
    if not isinstance(value, str):
        refuse(path, value, "a text")
    if allowed is not None and value not in allowed:
        refuse(path, value, " or ".join(map(repr, allowed)))
    check_encodable([value], lambda _: path)
    return value


def whole(value: Any, path: str) -> int:
    return int(ints([value], lambda _: path)[0])


def flag(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        refuse(path, value, "true or false")
    return value


def rows(value: Any, path: str, length: int | None = None) -> list[Any]:
    """A list, of ``length`` entries where one is given."""
    if not isinstance(value, list):
        refuse(path, value, "a list")
    if length is not None and len(value) != length:
        raise FileFormatError(f"{path} has {len(value):,} entries; it must have {length:,}")
    return value


Where = Callable[[int], str]


def indexed(path: str) -> Where:
    return lambda row: f"{path}[{row}]"


# Reads the entries of one column.
Reader = Callable[[list[Any], Where], Any]
Readers = Mapping[str, Reader]


def column(value: Any, path: str, reader: Reader, length: int | None = None) -> Any:
    """One column, of ``length`` entries where that is given."""
    return reader(rows(value, path, length), indexed(path))


def columns(
    value: Any,
    path: str,
    readers: Readers,
    length: int | None = None,
    *,
    others: Sequence[str] = (),
    optional: Sequence[str] = (),
) -> dict[str, Any]:
    """A table: columns of one length, that of the first by default, and other keys."""
    data = table(value, path, (*readers, *others), optional)
    for key, reader in readers.items():
        data[key] = column(data[key], f"{path}.{key}", reader, length)
        length = len(data[key])
    return data


def matrix(value: Any, path: str, height: int, width: int, null: float | None = None) -> Floats:
    """Numbers in ``height`` rows of ``width``."""
    every = enumerate(rows(value, path, height))
    flat = [entry for k, row in every for entry in rows(row, f"{path}[{k}]", width)]
    found = floats(flat, lambda i: f"{path}[{i // width}][{i % width}]", null)
    return found.reshape(height, width)


def check_index(values: Ints, path: str, size: int, allowed: str) -> None:
    """Refuse the first of these indices that is not among ``size``."""
    bad = np.flatnonzero((values < 0) | (values >= size))
    if len(bad):
        refuse(f"{path}[{bad[0]}]", int(values[bad[0]]), allowed)


def floats(values: list[Any], where: Where, null: float | None = None) -> Floats:
    """Finite numbers."""
    types = {int, float} if null is None else {int, float, type(None)}
    allowed = "a finite number" + ("" if null is None else " or null")
    check_types(values, types, where, allowed)
    plain = values if null is None else [null if value is None else value for value in values]
    try:
        out = np.asarray(plain, dtype=np.float64)
    except OverflowError:  # a whole number beyond the largest float
        row = next(
            row for row, value in enumerate(plain) if isinstance(value, int) and abs(value) > EXACT
        )
        refuse(where(row), values[row], allowed)
    for row in np.flatnonzero(~np.isfinite(out)).tolist():
        if values[row] is not None:
            refuse(where(row), values[row], allowed)
    return out


def ints(values: list[Any], where: Where) -> Ints:
    """Whole numbers between -2^53 and 2^53."""
    allowed = "a whole number between -2^53 and 2^53"
    check_types(values, {int}, where, allowed)
    if values and (min(values) < -EXACT or max(values) > EXACT):
        row = next(row for row, value in enumerate(values) if abs(value) > EXACT)
        refuse(where(row), values[row], allowed)
    return np.asarray(values, dtype=np.int64)


def whole_numbers(values: list[Any], where: Where, null: float) -> Floats:
    """Whole numbers as floats, with a number for null."""
    given = [row for row, entry in enumerate(values) if entry is not None]
    out = np.full(len(values), null)
    out[given] = ints([values[row] for row in given], lambda k: where(given[k]))
    return out


def bools(values: list[Any], where: Where) -> Bools:
    check_types(values, {bool}, where, "true or false")
    return np.asarray(values, dtype=bool)


def texts(values: list[Any], where: Where) -> tuple[str, ...]:
    check_types(values, {str}, where, "a text")
    check_encodable(values, where)
    return tuple(values)


def check_types(values: list[Any], types: Iterable[type], where: Where, allowed: str) -> None:
    if not set(map(type, values)) <= set(types):
        row = next(row for row, value in enumerate(values) if type(value) not in types)
        refuse(where(row), values[row], allowed)


def check_encodable(values: Sequence[str], where: Where) -> None:
    """Half a surrogate pair is valid in JSON but is no text, and could not be printed."""
    try:
        "".join(values).encode()
    except UnicodeEncodeError:
        for row, value in enumerate(values):
            if any("\ud800" <= letter <= "\udfff" for letter in value):
                refuse(where(row), value, "text without lone surrogates")
        raise
