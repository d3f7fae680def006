"""TOML, written: the standard library only reads it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")
WIDTH = 100


def render(document: Mapping[str, Any]) -> str:
    """Plain values first, then a table per mapping; None is the text "none", which every optional parameter takes."""
    plain = {key: value for key, value in document.items() if not isinstance(value, Mapping)}
    parts = [_lines(plain)] if plain else []
    for key, table in document.items():
        if isinstance(table, Mapping):
            parts.append(f"[{_key(key)}]\n{_lines(table)}")
    return "\n".join(parts)


def _lines(table: Mapping[str, Any]) -> str:
    return "".join(f"{_key(key)} = {_value(value)}\n" for key, value in table.items())


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _text(value: str) -> str:
    """JSON's text is TOML's, but for one sign that TOML wants escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(float(value)) if math.isfinite(value) else str(float(value))
    if isinstance(value, int):
        return str(value)
    if value is None:
        return '"none"'
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(key)} = {_value(each)}' for key, each in value.items())} }}"
    if isinstance(value, (list, tuple, set, frozenset)):
        return _list([_value(each) for each in (sorted(value) if isinstance(value, (set, frozenset)) else value)])
    if isinstance(value, (str, PurePath)):
        return _text(str(value))
    if hasattr(value, "item"):  # numpy's numbers
        return _value(value.item())
    raise TypeError(f"{value!r} cannot be written as TOML")


def _list(items: list[str]) -> str:
    one = f"[{', '.join(items)}]"
    return one if len(one) <= WIDTH else "[\n" + "".join(f"    {item},\n" for item in items) + "]"
