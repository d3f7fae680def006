"""Tokens of a formula: numbers with units, names, quoted names, operators."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from optbench.errors import OptbenchError, nearest
from optbench.units import KB_PER_MB, SECONDS_PER

MAX_LENGTH = 1000
# In an error, longer formulas are shown only around its place.
WIDTH, BEFORE = 100, 60
# Factors of units: seconds for times, as in metrics; megabytes for memory; a per cent is a
# hundredth.
UNITS = {**SECONDS_PER, "%": 0.01, "MB": 1.0, "GB": float(KB_PER_MB)}
KEYWORDS = ("and", "or", "not")
# What is written instead of characters that start no token.
MEANT = dict(zip("=&|!≤≥≠×^", ("==", "and", "or", "not", "<=", ">=", "!=", "*", "a * a")))
_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_UNIT = re.compile(r"[A-Za-z_]\w*|\s*%", re.ASCII)
# What is measured is named by ``measured.`` and its metric.
_NAME = re.compile(r"measured\.[A-Za-z_]\w*|[A-Za-z_]\w*", re.ASCII)
_OPERATOR = re.compile(r"<=|>=|==|!=|[-+*/(),<>]")
_BLANK = re.compile(r"\s+")

Kind = Literal["number", "name", "string", "operator", "end"]


class FormulaError(OptbenchError):
    """The message has the column (from 1) and the formula with a caret below it."""

    def __init__(self, message: str, source: str, at: int) -> None:
        self.message, self.source, self.column = message, source, at + 1
        first = 0 if len(source) <= WIDTH else max(0, at - BEFORE)
        shown = source[first : first + WIDTH]
        line = "".join(char if char.isprintable() else " " for char in shown)
        super().__init__(f"column {self.column}: {message}\n  {line}\n  {' ' * (at - first)}^")


@dataclass(frozen=True)
class Token:
    """``at`` and ``end`` are offsets in the formula."""

    kind: Kind
    text: str
    at: int
    end: int
    value: float = math.nan


def tokens(source: str) -> list[Token]:
    """Return the tokens, with an end marker after the last."""
    if len(source) > MAX_LENGTH:
        raise FormulaError(
            f"{len(source):,} characters; a formula has at most {MAX_LENGTH:,}", source, MAX_LENGTH
        )
    return [*_tokens(source), Token("end", "", len(source), len(source))]


def _tokens(source: str) -> Iterator[Token]:
    at = 0
    while at < len(source):
        if blank := _BLANK.match(source, at):
            at = blank.end()
            continue
        token = _token(source, at)
        yield token
        at = token.end


def _token(source: str, at: int) -> Token:
    if match := _NUMBER.match(source, at):
        return _number(source, at, match)
    if match := _NAME.match(source, at):
        kind: Kind = "operator" if match[0] in KEYWORDS else "name"
        return Token(kind, match[0], at, match.end())
    if match := _OPERATOR.match(source, at):
        return Token("operator", match[0], at, match.end())
    if source[at] in "\"'":
        return _string(source, at)
    raise FormulaError(_stray(source, at), source, at)


def _number(source: str, at: int, match: re.Match[str]) -> Token:
    value, end = float(match[0]), match.end()
    if unit := _UNIT.match(source, end):
        word = unit[0].strip()
        if word not in UNITS:
            raise FormulaError(f"unknown unit {word!r}; {nearest(word, UNITS)}", source, end)
        value, end = value * UNITS[word], unit.end()
    if not math.isfinite(value):
        raise FormulaError(f"{match[0]} is too large a number", source, at)
    return Token("number", source[at:end], at, end, value)


def _string(source: str, at: int) -> Token:
    close = source.find(source[at], at + 1)
    if close < 0:
        raise FormulaError("this quotation mark is never closed", source, at)
    return Token("string", source[at + 1 : close], at, close + 1)


def _stray(source: str, at: int) -> str:
    """Return the message for a character that starts no token."""
    char = source[at]
    if char in MEANT:
        return f"{char!r} is not allowed here; write {MEANT[char]}"
    if char == ".":
        return "'.' is not allowed here: formulas have no attributes"
    if char == ":":
        return "':' is not allowed here; put a label such as 'random_rules:k=8' in quotation marks"
    return f"{char!r} is not allowed here"
