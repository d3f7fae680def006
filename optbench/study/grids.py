"""Grids: ``gpu_dag:tasks=[20,40],gpus=6`` stands for one spec per combination.

A list is a grid, unless the field itself takes lists: then a list of lists is a grid.
"""

from __future__ import annotations

import itertools
import math
import types
import typing
from collections.abc import Mapping

from optbench.errors import ParameterError
from optbench.plugins import specs

MOST = 10_000


def expand_grid(name: str, params: Mapping[str, str], cls: type | None) -> list[dict[str, str]]:
    """Return every combination of the parameters' values, the last parameter varying fastest."""
    hints = {} if cls is None else specs.hints_of(cls, f"plug-in {name!r}")
    axes = []
    for key, text in params.items():
        values = _values(text, _takes_lists(hints.get(key, hints.get(f"{key}_s"))))
        if not all(values) or not values:
            raise ParameterError(
                f"{name}: {key} is {text!r}; a list needs at least one value, and no value may "
                "be empty"
            )
        axes.append([(key, value) for value in values])
    if math.prod(map(len, axes)) > MOST:
        raise ParameterError(
            f"{name}: its lists make {math.prod(map(len, axes)):,} combinations; at most "
            f"{MOST:,} are allowed"
        )
    return [dict(combination) for combination in itertools.product(*axes)]


def spec_text(name: str, params: Mapping[str, str]) -> str:
    """Return the spec of a name and its parameters."""
    inner = ",".join(f"{key}={value}" for key, value in params.items())
    return f"{name}:{inner}" if inner else name


def _values(text: str, takes_lists: bool) -> list[str]:
    """Return the values of one parameter: one, or those of its grid."""
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
    options = (
        typing.get_args(hint)
        if typing.get_origin(hint) in (typing.Union, types.UnionType)
        else (hint,)
    )
    return any(
        typing.get_origin(option) in (list, tuple, set, frozenset) or option in (list, tuple)
        for option in options
    )
