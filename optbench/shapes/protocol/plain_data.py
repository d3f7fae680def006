"""Dataclasses of a user's shape as JSON and back, by the types of their fields."""

from __future__ import annotations

import math
import types
import typing
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from optbench.errors import FileFormatError


def to_plain(value: Any) -> Any:
    """Return lists, objects, numbers and texts."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {str(key): to_plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise FileFormatError(f"{value!r} cannot be written to JSON; leave it out or use None")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        return to_plain(value.item())
    if hasattr(value, "tolist"):
        return to_plain(value.tolist())
    kinds = "numbers, texts, lists, tuples, dicts with texts as keys, and dataclasses of these"
    raise FileFormatError(f"a {type(value).__name__} cannot be written to JSON; use {kinds}")


def from_plain(kind: Any, value: Any, where: str = "") -> Any:
    """Return the value of a type; an error names the place."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return value
    if origin in (typing.Union, types.UnionType):
        return _of_union(arguments, value, where)
    if is_dataclass(kind) and isinstance(kind, type):
        return _of_dataclass(kind, value, where)
    if origin in (tuple, list):
        items = _checked(value, list, "a list", where)
        if origin is tuple and arguments and arguments[-1] is not Ellipsis:
            if len(items) != len(arguments):
                raise _wrong(where, value, f"a list of {len(arguments)}")
            each = list(arguments)
        else:
            each = [arguments[0] if arguments else Any] * len(items)
        pairs = zip(each, items, strict=True)
        return origin(from_plain(k, v, f"{where}[{i}]") for i, (k, v) in enumerate(pairs))
    if origin is dict:
        items = _checked(value, dict, "an object", where)
        return {k: from_plain(arguments[1], v, f"{where}.{k}") for k, v in items.items()}
    return _of_scalar(kind, value, where)


def _of_union(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    for kind in (kind for kind in kinds if kind is not type(None)):
        try:
            return from_plain(kind, value, where)
        except FileFormatError as error:
            last = error
    raise last


def _of_dataclass(kind: Any, value: Any, where: str) -> Any:
    items = _checked(value, dict, "an object", where)
    hints = typing.get_type_hints(kind)
    known = {field.name: field for field in fields(kind)}
    for name in items:
        if name not in known:
            raise _wrong(f"{where}.{name}", items[name], f"one of the keys {', '.join(known)}")
    out = {}
    for name, field in known.items():
        if name in items:
            out[name] = from_plain(hints[name], items[name], f"{where}.{name}")
        elif field.default is MISSING and field.default_factory is MISSING:
            raise FileFormatError(f"{f'{where}.{name}'.lstrip('.')} is missing")
    return kind(**out)


def _of_scalar(kind: Any, value: Any, where: str) -> Any:
    words = {float: "a number", int: "a whole number", str: "a text", bool: "true or false"}
    if kind not in words:
        raise FileFormatError(f"{where.lstrip('.')}: no JSON form is known for the type {kind!r}")
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise _wrong(where, value, words[kind])
    return value


def _checked(value: Any, kind: type, words: str, where: str) -> Any:
    if not isinstance(value, kind):
        raise _wrong(where, value, words)
    return value


def _wrong(where: str, value: Any, words: str) -> FileFormatError:
    place = where.lstrip(".") or "the document"
    return FileFormatError(f"{place} is {value!r:.60}; it must be {words}")
