"""Grids: ``gpu_dag:tasks=[20,40],gpus=6`` as one spec per combination.

A list is a grid, unless the field takes lists itself: there a list of lists is one.
"""

from __future__ import annotations

import itertools
import types
import typing
from collections.abc import Mapping

from optbench.plugins import specs


def spread(name: str, params: Mapping[str, str], cls: type | None) -> list[dict[str, str]]:
    """Every combination of the parameters' values, the last parameter varying fastest."""
    hints = {} if cls is None else specs.hints_of(cls, f"plug-in {name!r}")
    axes = [[(key, value) for value in _values(text, _takes_lists(hints.get(key)))] for key, text in params.items()]
    return [dict(combination) for combination in itertools.product(*axes)]


def spec_text(name: str, params: Mapping[str, str]) -> str:
    """The spec of a name and its parameters."""
    inner = ",".join(f"{key}={value}" for key, value in params.items())
    return f"{name}:{inner}" if inner else name


def _values(text: str, takes_lists: bool) -> list[str]:
    """The values of one parameter: one, or those of its grid."""
    inner = _inside(text)
    if inner is None:
        return [text]
    parts = [part.strip() for part in specs.split(inner, text)]
    if not takes_lists:
        return parts
    return parts if parts and all(_inside(part) is not None for part in parts) else [text]


def _inside(text: str) -> str | None:
    text = text.strip()
    return text[1:-1] if text.startswith("[") and text.endswith("]") else None


def _takes_lists(hint: object) -> bool:
    options = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    return any(typing.get_origin(option) in (list, tuple, set, frozenset) or option in (list, tuple) for option in options)
