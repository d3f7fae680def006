"""Strict JSON: no NaN, no key twice, no endless nesting; written in readable rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from optbench.errors import FileFormatError
from optbench.files import replacing
from optbench.model.files.json_fields import shown


def parse_json(text: str) -> Any:
    """The value in a text, or a FileFormatError with line and column."""
    try:
        return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=unique_keys)
    except json.JSONDecodeError as error:
        end = " (the file ends there: is it cut off?)" if error.pos >= len(text.rstrip()) else ""
        raise FileFormatError(
            f"line {error.lineno}, column {error.colno}: not JSON: {error.msg}{end}"
        ) from None
    except RecursionError:
        raise FileFormatError(
            "not an optbench file: lists or objects nested hundreds deep"
        ) from None
    except ValueError:  # Python converts no decimal of more than 4,300 digits
        raise FileFormatError(
            "a whole number of more than 4,300 digits; numbers up to 2^53 are allowed"
        ) from None


def refuse_constant(name: str) -> NoReturn:
    raise FileFormatError(f"{name} is not JSON; write null where there is no number")


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise FileFormatError(f"key {twice!r} stands twice in one object")
    return out


def jsonable(value: Any) -> Any:
    """Plain JSON values: what is not finite as null, anything unknown by its text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return float(value) if np.isfinite(value) else None
    if isinstance(value, (np.ndarray, np.generic)):
        return jsonable(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): jsonable(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [jsonable(entry) for entry in value]
    return str(value)


def render(data: Mapping[str, Any]) -> str:
    """One line per entry, and one per entry of an object within, so that a column is a line."""
    lines = []
    for key, value in data.items():
        if isinstance(value, Mapping) and value:
            inner = ",\n".join(
                f"  {json.dumps(name)}: {json.dumps(entry, allow_nan=False)}"
                for name, entry in value.items()
            )
            lines.append(f" {json.dumps(key)}: {{\n{inner}\n }}")
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(value, allow_nan=False)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all, in a folder that must exist."""
    try:
        with replacing(path) as fresh:
            fresh.write_text(text, encoding="utf-8")
    except OSError as error:
        raise FileFormatError(
            f"{shown(path)}: cannot be written: {error.strerror or error}"
        ) from None
