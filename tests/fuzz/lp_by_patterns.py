"""A second reading of LP files by regular expressions, for files of the usual form alone.

It knows one spelling of each section, labels before all rows, and one statement per line of bounds.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
NAME = r"[A-Za-z_\"][A-Za-z0-9_.\"~\[\]]*"
SIDE = rf"[+-]?\s*(?:{NUMBER}|inf)"
TERM = re.compile(rf"\s*([+-][\s+-]*)?({NUMBER})?[^\S\n]*({NAME})?")
TITLES = r"(?im)^[^\S\n]*(minimize|maximize|subject to|bounds|general|binary|end)[^\S\n]*$"
ROW = re.compile(rf"\s*(?:({SIDE})\s*<=)?(.*?)(<=|>=|=)\s*({SIDE})\s*", re.DOTALL)
BOUND = re.compile(rf"\s*(?:({SIDE})\s*<=\s*)?({NAME})\s*(?:(<=|>=|=)\s*({SIDE})|free)?\s*")
# The rows of all second readings leave smaller coefficients out, as HiGHS does.
SMALL = Fraction(1, 10**9)


class UnusualError(Exception):
    """The file is not of the usual form; this reading says nothing of it."""


def lp_by_patterns(text: str) -> dict[str, Any]:
    """The programme that a text says, with floats as numbers."""
    parts = re.split(TITLES, re.sub(r"\\.*", "", text))
    titles = [title.lower() for title in parts[1::2]]
    _need(not parts[0].strip() and len(set(titles)) == len(titles) and titles[-1] == "end")
    _need(titles[0] in ("minimize", "maximize") and not parts[-1].strip())
    said = dict(zip(titles, parts[2::2], strict=True))
    columns: dict[str, None] = {}
    objective = (
        said[titles[0]].partition(":") if ":" in said[titles[0]] else ("", "", said[titles[0]])
    )
    cost, constant = _terms(objective[2], columns)
    rows = dict(_rows(said.get("subject to", ""), columns))
    sides: dict[str, list[float | None]] = {}
    for line in said.get("bounds", "").splitlines():
        if line.strip():
            _bound(line, sides, columns)
    whole = (said.get("general", "") + " " + said.get("binary", "")).split()
    for name in whole:
        _need(re.fullmatch(NAME, name) is not None)
        columns.setdefault(name)
    for name in said.get("binary", "").split():
        low, high = sides.get(name, [0.0, None])
        sides[name] = [low, 1.0 if high is None else high]
    return {
        "sense": "max" if titles[0] == "maximize" else "min",
        "constant": float(constant),
        "columns": {
            name: (float(cost.get(name, 0)), *sides.get(name, [0.0, None]), name in whole)
            for name in columns
        },
        "rows": {name: row for name, row in rows.items() if row[:2] != (None, None)},
    }


def _need(usual: bool) -> None:
    if not usual:
        raise UnusualError


def _terms(text: str, columns: dict[str, None]) -> tuple[dict[str, Fraction], Fraction]:
    """Coefficients by column, and the constant."""
    out: dict[str, Fraction] = {}
    constant, at, text = Fraction(0), 0, text.rstrip()
    while at < len(text):
        found = TERM.match(text, at)
        _need(found is not None and found.end() > at)
        assert found is not None
        sign, number, name = found.groups()
        _need((number is not None or name is not None) and (at == 0 or sign is not None))
        _need(len(number or "") < 400)
        value = Fraction(number or 1) * (-1) ** (sign or "").count("-")
        if name is None:
            constant += value
        else:
            columns.setdefault(name)
            out[name] = out.get(name, Fraction(0)) + value
        at = found.end()
    return out, constant


def _rows(text: str, columns: dict[str, None]) -> Any:
    pieces = re.split(rf"({NAME})\s*:", text)
    _need(not pieces[0].strip() and len(set(pieces[1::2])) == len(pieces[1::2]))
    for name, body in zip(pieces[1::2], pieces[2::2], strict=True):
        found = ROW.fullmatch(body)
        _need(found is not None)
        assert found is not None
        terms, constant = _terms(found[2], columns)
        _need(bool(terms) and (found[1] is None or found[3] == "<="))
        first, last = _side(found[1]), _side(found[4])
        low = last if found[3] in (">=", "=") else first
        high = last if found[3] in ("<=", "=") else None
        shifted = [
            None if each is None else float(Fraction(repr(each)) - constant) for each in (low, high)
        ]
        yield (
            name,
            (*shifted, {key: float(value) for key, value in terms.items() if abs(value) > SMALL}),
        )


def _side(text: str | None) -> float | None:
    if text is None or "inf" in text:
        return None
    _need(len(text) < 400)
    value = Fraction(re.sub(r"\s", "", text))
    return None if abs(value) >= 10**20 else float(value)


def _bound(line: str, sides: dict[str, list[float | None]], columns: dict[str, None]) -> None:
    found = BOUND.fullmatch(line)
    _need(found is not None)
    assert found is not None
    first, name, relation, last = found.groups()
    columns.setdefault(name)
    low, high = sides.get(name, [0.0, None])
    if relation is None and first is None:
        low = high = None
    if first is not None:
        _need(relation in (None, "<="))
        low = _side(first)
    if relation in (">=", "="):
        low = _side(last)
    if relation in ("<=", "="):
        high = _side(last)
    sides[name] = [low, high]
