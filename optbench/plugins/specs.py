"""Plug-in specs as text, ``name:key=value,...`` or ``name[key=value,...]``, and their values by the
fields they fill.

A value is read by the type of its field: ``10s``, ``5m``, ``2h``, ``7d`` or ``100ms`` where the
field's name ends in ``_s``, ``[a,b]`` for lists and tuples, ``yes``/``no``/``true``/``false``,
``none`` where the field allows it.
"""

from __future__ import annotations

import numbers
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal

from optbench.errors import ParameterError, UnknownNameError
from optbench.units import SECONDS_PER

YES, NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
WORDS = {**dict.fromkeys(YES, True), **dict.fromkeys(NO, False)}
_DURATION = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(ms|s|m|h|d)")
_BEFORE_PARAMETERS = re.compile(r"[^:\[]*")
_SPEC = re.compile(r"(?P<name>[^:\[\]=,\s]+)\s*(?:\[(?P<inner>.*)\]|:(?P<tail>.*))?", re.DOTALL)


@dataclass(frozen=True)
class Parameter:
    """A field of a plug-in, for people: its type and default as text, None if there is none."""

    name: str
    type: str
    default: str | None


def parse(text: str) -> tuple[str, dict[str, str]]:
    """``gpu_dag:tasks=20,gpus=[2,4]`` as ``("gpu_dag", {"tasks": "20", "gpus": "[2,4]"})``."""
    match = _SPEC.fullmatch(text.strip())
    if match is None:
        raise ParameterError(
            f"spec {text!r} is not of the form 'name', 'name:key=value,...' or "
            "'name[key=value,...]'"
        )
    params: dict[str, str] = {}
    for part in split(match["inner"] or match["tail"] or "", text):
        key, equals, value = part.partition("=")
        key = key.strip()
        if not equals or not key.isidentifier():
            raise ParameterError(f"spec {text!r}: {part.strip()!r} is not of the form key=value")
        if key in params:
            raise ParameterError(f"spec {text!r} gives {key!r} twice")
        params[key] = value.strip()
    return match["name"], params


def name_of(text: str) -> str:
    """``gpu_dag`` of ``gpu_dag:tasks=20``; never an error, since a file's path may be given too."""
    match = _BEFORE_PARAMETERS.match(text)
    return match[0].strip() if match else ""


def split(text: str, where: str) -> list[str]:
    """Parts between the commas that stand outside of brackets."""
    if not text.strip():
        return []
    parts, depth = [""], 0
    for char in text:
        depth += (char == "[") - (char == "]")
        if depth < 0:
            break
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    if depth != 0:
        raise ParameterError(f"spec {where!r}: brackets do not match")
    return parts


def duration_s(text: str) -> float:
    """``10s``, ``1.5h``, ``7d``, ``100ms`` or a plain number of seconds."""
    match = _DURATION.fullmatch(text.strip())
    try:
        return float(match[1]) * SECONDS_PER[match[2]] if match else float(text)
    except ValueError:
        raise ParameterError(
            f"{text!r} is no duration; write 10s, 5m, 2h, 7d, 100ms or a number of seconds"
        ) from None


def parameters(cls: type) -> tuple[Parameter, ...]:
    """The fields a plug-in class takes."""
    return tuple(
        Parameter(entry.name, _type_text(entry), _default_text(entry)) for entry in _fields(cls)
    )


def values_of(plugin: Any) -> dict[str, Any]:
    """The parameters of a plug-in object."""
    return {entry.name: getattr(plugin, entry.name) for entry in _fields(type(plugin))}


def build(cls: type, what: str, given: Mapping[str, Any]) -> Any:
    """An object of the plug-in class from values or text; ``what`` names it in messages."""
    hints = hints_of(cls, what)
    known = {entry.name: entry for entry in _fields(cls)}
    values: dict[str, Any] = {}
    for key, value in given.items():
        name = key if key in known or f"{key}_s" not in known else f"{key}_s"
        if name not in known:
            raise UnknownNameError(f"parameter of {what}", key, known)
        if name in values:
            raise ParameterError(f"{what}: {key} is given twice")
        values[name] = convert(value, hints[name], name, what)
    missing = [
        entry.name
        for entry in known.values()
        if entry.name not in values and _default_text(entry) is None
    ]
    if missing:
        raise ParameterError(f"{what} needs {', '.join(missing)}; give it as {missing[0]}=VALUE")
    try:
        return cls(**values)
    except (ValueError, TypeError) as error:
        raise ParameterError(f"{what} refuses {values}: {error}") from error


def hints_of(cls: type, what: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls)
    except NameError as error:
        raise ParameterError(
            f"{what}: an annotation of {cls.__name__} cannot be read at run time: {error}"
        ) from error


def convert(value: Any, hint: Any, name: str, what: str) -> Any:
    """``value`` as the type of its field; text is read, anything else must already fit."""
    found, converted = _read_any(value, hint, name)
    if found:
        return converted
    raise ParameterError(
        f"{what}: {name} is {value!r}; it must be {' or '.join(map(_describe, _options(hint)))}"
    )


def _read_any(value: Any, hint: Any, name: str) -> tuple[bool, Any]:
    """The same of the first alternative that fits."""
    tries = (_read(value, option, name) for option in _options(hint))
    return next((found for found in tries if found[0]), (False, None))


def _read(value: Any, hint: Any, name: str) -> tuple[bool, Any]:
    """Whether ``value`` fits one alternative of a type, and what it is then."""
    origin = typing.get_origin(hint)
    if hint is None or hint is type(None):
        text = value.lower() if isinstance(value, str) else None
        return value is None or text in ("none", "null", ""), None
    if origin is Literal:
        allowed = typing.get_args(hint)
        match = [each for each in allowed if value == each or str(value) == str(each)]
        return bool(match), match[0] if match else None
    if origin in (list, tuple, set, frozenset):
        return _read_list(value, hint, name)
    if hint is bool:
        word = WORDS.get(value.lower()) if isinstance(value, str) else value
        return isinstance(word, bool), word
    if hint in (int, float):
        return _read_number(value, hint, name)
    if hint in (str, Path):
        fits = isinstance(value, (str, Path))
        return fits, hint(value) if fits else None
    return hint is Any or (isinstance(hint, type) and isinstance(value, hint)), value


def _read_number(value: Any, hint: type[int] | type[float], name: str) -> tuple[bool, Any]:
    if isinstance(value, str):
        try:
            if (
                hint is int
                and "." not in value
                and "e" not in value.lower()
                and not _DURATION.fullmatch(value.strip())
            ):
                return True, int(value)
            value = duration_s(value) if name.endswith("_s") else float(value)
        except (ValueError, ParameterError):
            return False, None
    if isinstance(value, bool) or not isinstance(value, (float, numbers.Real)) or value != value:
        return False, None
    if isinstance(value, numbers.Integral):
        return True, hint(int(value))
    number = float(value)
    if hint is int:
        return number.is_integer(), int(number) if number.is_integer() else None
    return True, number


def _read_list(value: Any, hint: Any, name: str) -> tuple[bool, Any]:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(value, str):
        inner = value.strip()
        inner = inner[1:-1] if inner.startswith("[") and inner.endswith("]") else inner
        value = [part.strip() for part in split(inner, value)]
    if not isinstance(value, (list, tuple, set, frozenset)):
        return False, None
    fixed = origin is tuple and not (len(args) == 2 and args[1] is ...)
    if fixed and len(args) != len(value):
        return False, None
    kinds = args if fixed else (args[0] if args else Any,) * len(value)
    items = [_read_any(item, kind, name) for item, kind in zip(value, kinds, strict=True)]
    fits = all(found for found, _ in items)
    return fits, origin(converted for _, converted in items) if fits else None


def _options(hint: Any) -> list[Any]:
    """The alternatives of a union: ``none`` first, and text, which takes anything, last."""
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return [hint]
    rank = {type(None): 0, int: 1, float: 2, bool: 3, str: 9}
    return sorted(typing.get_args(hint), key=lambda option: rank.get(option, 4))


def _describe(hint: Any) -> str:
    if hint is type(None):
        return "none"
    if typing.get_origin(hint) is Literal:
        return "one of " + ", ".join(map(str, typing.get_args(hint)))
    names = {
        int: "an integer",
        float: "a number",
        bool: "true or false",
        str: "text",
        Path: "a path",
    }
    if typing.get_origin(hint) in (list, tuple, set, frozenset):
        inner = typing.get_args(hint)[:1]
        return "a list [a,b,...]" + (f" of {_describe(inner[0])} each" if inner else "")
    return names.get(hint, getattr(hint, "__name__", str(hint)))


def _fields(cls: type) -> list[Field[Any]]:
    return [entry for entry in fields(cls) if entry.init] if is_dataclass(cls) else []


def _type_text(entry: Field[Any]) -> str:
    return (
        entry.type
        if isinstance(entry.type, str)
        else getattr(entry.type, "__name__", str(entry.type))
    )


def _default_text(entry: Field[Any]) -> str | None:
    if entry.default is not MISSING:
        return as_text(entry.default)
    if entry.default_factory is not MISSING:
        return as_text(entry.default_factory())
    return None


def as_text(value: Any) -> str:
    """A value as one would write it in a spec."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return f"[{','.join(map(as_text, value))}]"
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)
