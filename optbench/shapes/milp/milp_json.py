"""Programmes as JSON, version 1: the canonical form, whose hash is the instance's identity."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from optbench.errors import FileFormatError, ModelError
from optbench.shapes.milp.program import Milp, milp

FORMAT, VERSION = "optbench-milp", 1
KEYS = (
    *("format", "version", "name", "sense", "constant", "columns", "cost", "lower", "upper"),
    *("integer", "rows", "row_lower", "row_upper", "row_ptr", "index", "value"),
)


def read_program(data: Mapping[str, Any]) -> Milp:
    """Return the programme; a FileFormatError names the key."""
    missing = [key for key in KEYS if key not in data]
    unknown = [key for key in data if key not in KEYS]
    if missing or unknown:
        words = f"key {missing[0]!r} is missing" if missing else f"unknown key {unknown[0]!r}"
        raise FileFormatError(words)
    if data["version"] != VERSION:
        raise FileFormatError(f"version {data['version']!r:.20}; this optbench reads {VERSION}")
    if data["sense"] not in ("min", "max"):
        raise FileFormatError(f"sense is {data['sense']!r:.40}; it must be 'min' or 'max'")
    columns, rows = _texts(data, "columns"), _texts(data, "rows")
    ptr, index = _wholes(data, "row_ptr"), _wholes(data, "index")
    value = _numbers(data, "value", len(index))
    if len(ptr) != len(rows) + 1 or ptr[0] != 0 or ptr[-1] != len(index) or ptr != sorted(ptr):
        raise FileFormatError(f"row_ptr must rise from 0 to {len(index)}, with one more than rows")
    if any(not 0 <= j < len(columns) for j in index):
        raise FileFormatError(f"index: every entry must be from 0 to {len(columns) - 1}")
    row = [i for i in range(len(rows)) for _ in range(ptr[i + 1] - ptr[i])]
    n, m = len(columns), len(rows)
    try:
        return milp(
            str(data["name"]), data["sense"], columns, _numbers(data, "cost", n),
            _sides(data, "lower", n, -math.inf), _sides(data, "upper", n, math.inf),
            _flags(data, "integer", n), rows, _sides(data, "row_lower", m, -math.inf),
            _sides(data, "row_upper", m, math.inf), (row, index, value),
            _numbers({"constant": [data["constant"]]}, "constant", 1)[0],
        )  # fmt: skip
    except ModelError as error:
        raise FileFormatError(str(error)) from None


def _list(data: Mapping[str, Any], key: str, size: int | None = None) -> list[Any]:
    found = data[key]
    if not isinstance(found, list) or (size is not None and len(found) != size):
        raise FileFormatError(f"{key} must be a list" + ("" if size is None else f" of {size}"))
    return found


def _checked(data: Mapping[str, Any], key: str, size: int | None, kinds: Any, what: str) -> Any:
    found = _list(data, key, size)
    for k, each in enumerate(found):
        if not isinstance(each, kinds) or (isinstance(each, bool) and kinds is not bool):
            raise FileFormatError(f"{key}[{k}] is {each!r:.40}; it must be {what}")
    return found


def _texts(data: Mapping[str, Any], key: str) -> list[str]:
    found: list[str] = _checked(data, key, None, str, "a text")
    return found


def _wholes(data: Mapping[str, Any], key: str) -> list[int]:
    found: list[int] = _checked(data, key, None, int, "a whole number")
    return found


def _flags(data: Mapping[str, Any], key: str, size: int) -> list[bool]:
    found: list[bool] = _checked(data, key, size, bool, "true or false")
    return found


def _numbers(data: Mapping[str, Any], key: str, size: int) -> list[float]:
    found = _checked(data, key, size, (int, float), "a number")
    return [_float(each, key) for each in found]


def _sides(data: Mapping[str, Any], key: str, size: int, missing: float) -> list[float]:
    found = _checked(data, key, size, (int, float, type(None)), "a number or null")
    return [missing if each is None else _float(each, key) for each in found]


def _float(value: float, key: str) -> float:
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if not math.isfinite(found):
        raise FileFormatError(
            f"{key}: {str(value)[:20]} is too large; where there is no side, null"
        )
    return found


def sides(values: Any) -> list[float | None]:
    """Infinite sides are null in JSON."""
    return [value if math.isfinite(value) else None for value in values.tolist()]


def write_program(program: Milp, name: str) -> dict[str, Any]:
    """Return the canonical form."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": name,
        "sense": program.sense,
        "constant": program.constant,
        "columns": list(program.columns),
        "cost": program.cost.tolist(),
        "lower": sides(program.lower),
        "upper": sides(program.upper),
        "integer": program.integer.tolist(),
        "rows": list(program.rows),
        "row_lower": sides(program.row_lower),
        "row_upper": sides(program.row_upper),
        "row_ptr": program.row_ptr.tolist(),
        "index": program.index.tolist(),
        "value": program.value.tolist(),
    }
