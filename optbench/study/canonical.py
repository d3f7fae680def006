"""Canonical text of values, so that hashes of it are equal in every process."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from pathlib import PurePath
from typing import Any


def canonical(value: Any) -> str:
    """Return text with sorted keys; a tuple counts as a list, 1.0 as 1, a path as its text."""
    return json.dumps(
        _plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True
    )


def digest(value: Any) -> str:
    """Return the SHA-256 of the canonical text."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            return {"float": repr(value)}
        return int(value) if value.is_integer() else value
    if isinstance(value, PurePath):
        return value.as_posix()
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(entry) for entry in value), key=canonical)
    if hasattr(value, "tolist"):  # numpy's scalars and arrays
        return _plain(value.tolist())
    kind = type(value).__name__
    raise TypeError(
        f"{kind} {value!r} has no canonical text; parameters are numbers, text, paths and lists "
        "of them"
    )
