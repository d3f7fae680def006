"""Dataclasses of a user's shape as JSON and back, by the types of their fields."""

from __future__ import annotations

import math
import types
import typing
from dataclasses import MISSING, Field, fields, is_dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from optbench.errors import FileFormatError, ModelError, nearest
from optbench.model.files.json_columns import check_encodable
from optbench.typed_values import describe
from optbench.units import EXACT

# Metadata of a field that files leave out where it has its default: one that came to a dataclass
# later, so that what was written before keeps its form and its hash.
LEFT_OUT_BY_DEFAULT = MappingProxyType({"left_out_by_default": True})


def to_plain(value: Any) -> Any:
    """Return lists, objects, numbers and texts."""
    if is_dataclass(value) and not isinstance(value, type):
        named = (
            field.name for field in fields(value) if field.init and not _left_out(field, value)
        )
        return {name: to_plain(getattr(value, name)) for name in named}
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
    if isinstance(value, np.ndarray) and _is_plain_array(value):
        return value.tolist()
    if hasattr(value, "tolist"):
        return to_plain(value.tolist())
    kinds = "numbers, texts, lists, tuples, dicts with texts as keys, and dataclasses of these"
    raise FileFormatError(f"a {type(value).__name__} cannot be written to JSON; use {kinds}")


def _left_out(field: Field[Any], owner: Any) -> bool:
    """Whether a field is left out where it has its default, and has it."""
    if "left_out_by_default" not in field.metadata:
        return False
    factory = field.default_factory
    default: Any = field.default if factory is MISSING else factory()
    return bool(np.array_equal(getattr(owner, field.name), default))


def _is_plain_array(value: Any) -> bool:
    """Whether the elements of an array are numbers that can be written as they are."""
    return value.dtype.kind in "bi" or (value.dtype == np.float64 and np.isfinite(value).all())


def from_plain(kind: Any, value: Any, where: str = "") -> Any:
    """Return the value of a type; an error names the place."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return value
    if origin is typing.Literal:
        if value not in arguments:
            raise _wrong(where, value, f"one of {', '.join(map(repr, arguments))}")
        return value
    if kind is np.ndarray or origin is np.ndarray:
        return _of_array(arguments, value, where)
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
        keys, values = arguments or (str, Any)
        return {
            _key(keys, k, where): from_plain(values, v, f"{where}.{k}") for k, v in items.items()
        }
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


def _key(kind: Any, key: str, where: str) -> Any:
    """JSON has texts as keys; those of a dict of whole numbers are read again."""
    if kind is not int:
        return from_plain(kind, key, where)
    try:
        return from_plain(int, int(key), f"{where}.{key}")
    except ValueError:
        raise _wrong(where, key, "an object whose keys are whole numbers") from None


def _of_array(arguments: tuple[Any, ...], value: Any, where: str) -> Any:
    """An array of numbers or truth values, of any number of dimensions."""
    names = typing.get_args(arguments[1]) if len(arguments) == 2 else ()
    items = _checked(value, list, "a list", where)
    try:
        found = np.array(items)
    except (ValueError, OverflowError):
        raise _wrong(where, value, "a list of numbers, or lists of one length") from None
    if not items:
        found = found.astype(names[0] if names else float)
    kinds = {"b": np.bool_, "i": np.int64, "f": np.float64}
    wanted = np.dtype(names[0] if names else kinds.get(found.dtype.kind, np.float64))
    fits = found.dtype.kind == wanted.kind or (found.dtype.kind, wanted.kind) == ("i", "f")
    if not fits or not np.isfinite(found).all():
        raise _wrong(where, value, f"a list of finite numbers of type {wanted}")
    return found.astype(wanted)


def _of_dataclass(kind: Any, value: Any, where: str) -> Any:
    items = _checked(value, dict, "an object", where)
    try:
        hints = typing.get_type_hints(kind)
    except NameError as error:
        raise FileFormatError(
            f"{where.lstrip('.')}: an annotation of {kind.__name__} cannot be read: {error}"
        ) from None
    known = {field.name: field for field in fields(kind) if field.init}
    for name in items:
        if name not in known:
            raise FileFormatError(
                f"{f'{where}.{name}'.lstrip('.')} is unknown; {nearest(name, known)}"
            )
    out = {}
    for name, field in known.items():
        if name in items:
            out[name] = from_plain(hints[name], items[name], f"{where}.{name}")
        elif field.default is MISSING and field.default_factory is MISSING:
            raise FileFormatError(f"{f'{where}.{name}'.lstrip('.')} is missing")
    try:
        return kind(**out)
    except (ValueError, TypeError, ModelError) as error:  # what its __post_init__ refuses
        raise FileFormatError(f"{where.lstrip('.') or 'the document'}: {error}") from None


def _of_scalar(kind: Any, value: Any, where: str) -> Any:
    words = {float: "a number", int: "a whole number", str: "a text", bool: "true or false"}
    if kind not in words:
        raise FileFormatError(f"{where.lstrip('.')}: no JSON form is known for the type {kind!r}")
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value) if abs(value) < 10**300 else math.inf
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise _wrong(where, value, words[kind])
    if isinstance(value, float) and not math.isfinite(value):
        raise _wrong(where, value, "a finite number")
    if kind is int and abs(value) > EXACT:
        raise _wrong(where, value, "a whole number between -2^53 and 2^53")
    if kind is str:
        check_encodable([value], lambda _: where.lstrip("."))
    return value


def _checked(value: Any, kind: type, words: str, where: str) -> Any:
    if not isinstance(value, kind):
        raise _wrong(where, value, words)
    return value


def _wrong(where: str, value: Any, words: str) -> FileFormatError:
    place = where.lstrip(".") or "the document"
    return FileFormatError(f"{place} is {describe(value)}; it must be {words}")
