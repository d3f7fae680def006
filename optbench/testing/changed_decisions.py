"""Decisions with one or two values changed, to see what ``verify`` says of them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

# A place in a document: keys and indices from its root.
Path = tuple[str | int, ...]


def changed(decision: Any, count: int, seed: int = 0) -> Iterator[Any]:
    """Yield changed copies of the JSON of a decision; the same seed yields the same copies."""
    rng = np.random.default_rng(seed)
    for k in range(count):
        out = copy.deepcopy(decision)
        for _ in range(1 + k % 2):
            out = _once(out, rng)
        yield out


def _once(document: Any, rng: np.random.Generator) -> Any:
    places = list(_places(document, ()))
    if not places:
        return document
    path = places[int(rng.integers(len(places)))]
    value = _at(document, path)
    return _with(document, path, _other(value, document, rng))


def _places(value: Any, path: Path) -> Iterator[Path]:
    """Yield the places of all values, the root aside."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _places(each, (*path, key))
    elif isinstance(value, list):
        for k, each in enumerate(value):
            yield from _places(each, (*path, k))


def _at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def _with(document: Any, path: Path, value: Any) -> Any:
    owner = _at(document, path[:-1])
    owner[path[-1]] = value
    return document


def _other(value: Any, document: Any, rng: np.random.Generator) -> Any:
    """Return another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        kin = [_at(document, path) for path in _places(document, ())]
        same = [each for each in kin if type(each) is type(value)]
        near = (value + 1, value - 1, type(value)(0), 2 * value, -value, 1000 * value + 1000)
        return (*near, *same)[int(rng.integers(len(near) + len(same)))]
    if isinstance(value, list) and value:
        k = int(rng.integers(len(value)))
        ways: tuple[list[Any], ...] = (
            value[:k] + value[k + 1 :],
            [*value, copy.deepcopy(value[k])],
            [copy.deepcopy(value[k]) for _ in value],
            value[::-1],
            [],
        )
        return ways[int(rng.integers(len(ways)))]
    if isinstance(value, dict) and value:
        dropped = list(value)[int(rng.integers(len(value)))]
        return {key: each for key, each in value.items() if key != dropped}
    if isinstance(value, str):
        return value + "?"
    return value
