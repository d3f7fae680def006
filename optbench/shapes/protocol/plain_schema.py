"""JSON Schemas of dataclasses, by the types of their fields (``plain_data`` reads the same)."""

from __future__ import annotations

import types
import typing
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import numpy as np

SCALARS = {float: "number", int: "integer", str: "string", bool: "boolean"}


def document_schema(title: str, header: dict[str, str], body: str, kind: type) -> dict[str, Any]:
    """Return the schema of a file: a header of constants, and a body by the type of its fields."""
    constants: dict[str, Any] = {key: {"const": value} for key, value in header.items()}
    constants["version"] = {"const": 1}
    texts = ("name", "problem") if body == "data" else ("instance_hash",)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "type": "object",
        "properties": {
            **constants,
            **{key: {"type": "string"} for key in texts},
            body: schema_of(kind),
        },
        "required": [*constants, *(["name"] if body == "data" else []), body],
        "additionalProperties": False,
    }


def schema_of(kind: Any) -> dict[str, Any]:
    """Return the schema of a type; what is not known here may be anything."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind in SCALARS:
        return {"type": SCALARS[kind]}
    if kind is type(None):
        return {"type": "null"}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [schema_of(each) for each in arguments]}
    if is_dataclass(kind) and isinstance(kind, type):
        return _of_fields(kind)
    if kind is np.ndarray or origin is np.ndarray:
        return {"type": "array"}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(arguments[1])}
    if origin is tuple and arguments[-1] is not Ellipsis:
        parts = [schema_of(each) for each in arguments]
        return {"type": "array", "prefixItems": parts, "items": False, "minItems": len(parts)}
    if origin in (tuple, list):
        return {"type": "array", "items": schema_of(arguments[0])}
    return {}


def _of_fields(kind: type) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    known: list[Any] = [each for each in fields(kind) if each.init]
    out: dict[str, Any] = {"type": "object"}
    words = (kind.__doc__ or "").strip()
    if words and not words.startswith(f"{kind.__name__}("):
        out["description"] = words
    out["properties"] = {each.name: schema_of(hints[each.name]) for each in known}
    out["required"] = [
        each.name for each in known if each.default is MISSING and each.default_factory is MISSING
    ]
    return {**out, "additionalProperties": False}
