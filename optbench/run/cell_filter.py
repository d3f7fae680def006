"""``--only``: select the part of a study's cells to run.

A filter is ``FIELD=VALUE``, where ``*`` matches any text, the beginning of a cell's key, or text
that occurs in ``solver | instance | seed``. Filters of one field widen the selection, filters of
different fields narrow it. The bounding of an instance is selected with any of its solves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from optbench.errors import OptbenchError, nearest
from optbench.study.cells import Cell

# By field, the words of a cell that a value is compared with.
FIELDS: dict[str, Callable[[Cell], tuple[str, ...]]] = {
    "solver": lambda cell: (cell.label, cell.solver),
    "target": lambda cell: (cell.target, re.split(r"[:\[]", cell.target)[0]),
    "instance": lambda cell: (cell.instance,),
    "seed": lambda cell: (
        str(cell.instance_seed),
        *([str(cell.seed)] if cell.kind == "solve" else []),
    ),
    "repetition": lambda cell: (str(cell.repetition),),
}
TEXT = "text"
KEY_START = re.compile(r"[0-9a-f]{6,32}")


class SelectionError(OptbenchError):
    """No cell matches a filter."""


def select(cells: Sequence[Cell], filters: Sequence[str]) -> tuple[Cell, ...]:
    """Return the cells that match all filters, and the bounding of their instances."""
    if not filters:
        return tuple(cells)
    groups: dict[str, set[str]] = {}
    for words in filters:
        field, found = _matches(cells, words)
        groups.setdefault(field, set()).update(found)
    keys = set.intersection(*groups.values())
    if not keys:
        raise SelectionError(
            f"--only: each of {', '.join(map(repr, filters))} matches cells, but no cell matches "
            "all of them"
        )
    instances = {cell.instance_hash for cell in cells if cell.key in keys}
    return tuple(
        cell
        for cell in cells
        if cell.key in keys or (cell.kind == "bound" and cell.instance_hash in instances)
    )


def _answers(word: str, value: str) -> bool:
    """Whether a word matches a value; ``*`` matches any text: ``target=jobshop/*``."""
    return word == value or ("*" in value and fnmatchcase(word, value.replace("[", "[[]")))


def _matches(cells: Sequence[Cell], words: str) -> tuple[str, set[str]]:
    """Return the field of a filter and the keys of the cells that it matches."""
    field, equals, value = (part.strip() for part in words.partition("="))
    if equals and field in FIELDS:
        found = {
            cell.key for cell in cells if any(_answers(word, value) for word in FIELDS[field](cell))
        }
        if not found:
            known = {word for cell in cells for word in FIELDS[field](cell)}
            raise SelectionError(
                f"--only {words!r}: no cell has {field} {value!r}; {nearest(value, known)}"
            )
        return field, found
    text = words.strip()
    found = {cell.key for cell in cells if text and text in cell.title}
    if not found and KEY_START.fullmatch(text):
        found = {cell.key for cell in cells if cell.key.startswith(text)}
    if found:
        return TEXT, found
    if equals and field.isidentifier():
        what = f"--only {words!r}: no cell contains that text, and {field!r} is not a field"
        raise SelectionError(f"{what}; {nearest(field, FIELDS)}")
    parts = {word for cell in cells for word in (cell.label, cell.solver, cell.instance)}
    fields = f"Fields: {', '.join(FIELDS)}, as in solver=cpsat"
    raise SelectionError(f"--only {words!r} occurs in no cell; {nearest(text, parts)} {fields}")
