"""LP files, the readable format of CPLEX and others: Minimize, Subject To, Bounds, General, Binary.

An expression is a sum of signed terms ``3 x``; a row ``name: 1 <= x + 2 y <= 4``. Sides of columns
default to [0, ∞). Quadratic terms, SOS, semi-continuous columns and indicators are refused.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from optbench.errors import FileFormatError
from optbench.shapes.milp.program import LARGEST, Milp, Sense, added, milp

SENSES: dict[str, Sense] = {
    **dict.fromkeys(("max", "maximize", "maximise", "maximum"), "max"),
    **dict.fromkeys(("min", "minimize", "minimise", "minimum"), "min"),
}
INTEGERS = ("general", "generals", "gen", "integer", "integers", "int")
BINARIES = ("binary", "binaries", "bin")
UNREADABLE = ("semi-continuous", "semis", "semi", "sos", "sos1", "sos2", "pwlobj")
NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
TITLES = {
    *(*SENSES, *INTEGERS, *BINARIES, *UNREADABLE),
    *("subject", "such", "st", "s.t.", "bounds", "bound", "end"),
}
# What a name may hold in this format, beyond letters and digits.
NAME = r"[A-Za-z!\"#$%&()/,;?@_`'{}|~\[\]][\w!\"#$%&()/,.;?@`'{}|~\[\]]*"
TOKEN = re.compile(
    rf"\s*(?:(?P<number>{NUMBER})|(?P<op><=|=<|>=|=>|<|>|=)|(?P<sign>[+-])|(?P<colon>:)|(?P<bad>[\^*])|(?P<name>{NAME}))"
)
RELATIONS = {"<=": "<=", "=<": "<=", "<": "<=", ">=": ">=", "=>": ">=", ">": ">=", "=": "="}
INFINITY = ("inf", "infinity")


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    line: int

    def is_word(self, *words: str) -> bool:
        return self.kind == "name" and self.text.lower() in words


@dataclass
class _Parts:
    """What was read so far; columns in the order of their first use."""

    sense: Sense = "min"
    columns: dict[str, int] = field(default_factory=dict)
    cost: dict[str, float] = field(default_factory=dict)
    constant: float = 0.0
    rows: list[tuple[str, dict[str, float], float, float]] = field(default_factory=list)
    lower: dict[str, float] = field(default_factory=dict)
    upper: dict[str, float] = field(default_factory=dict)
    integer: set[str] = field(default_factory=set)
    binary: set[str] = field(default_factory=set)
    row_names: set[str] = field(default_factory=set)


def _tokens(text: str) -> Iterator[_Token]:
    for number, raw in enumerate(text.split("\n"), 1):
        line, at = raw.split("\\", 1)[0].rstrip(), 0
        while at < len(line):
            found = TOKEN.match(line, at)
            if found is None:
                raise FileFormatError(f"line {number}: unexpected {line[at:].strip()[:20]!r}")
            kind = str(found.lastgroup)
            if kind == "bad":
                raise FileFormatError(
                    f"line {number}: {found[kind]!r}: only linear terms can be read"
                )
            yield _Token(kind, found[kind], number)
            at = found.end()


class _Cursor:
    """Tokens with a look ahead, read as they are needed; errors name the line."""

    def __init__(self, text: str) -> None:
        self.waiting = _tokens(text)
        self.ahead: deque[_Token] = deque()
        self.line = 0  # of the token that was taken last
        self.last = 1  # of the token that was read last

    def peek(self, ahead: int = 0) -> _Token:
        while len(self.ahead) <= ahead:
            token = next(self.waiting, None)
            if token is None:
                return _Token("end", "", self.last)
            self.ahead.append(token)
            self.last = token.line
        return self.ahead[ahead]

    def take(self) -> _Token:
        token = self.peek()
        if self.ahead:
            self.ahead.popleft()
        self.line = token.line
        return token

    def fail(self, expected: str) -> FileFormatError:
        token = self.peek()
        found = repr(token.text[:40]) if token.text else "the end of the file"
        return FileFormatError(f"line {token.line}: {found}; expected {expected}")

    def section(self) -> str | None:
        """The section that begins here, in lower case."""
        token = self.peek()
        word = token.text.lower()
        if token.kind != "name" or word not in TITLES:
            return None
        after = self.peek(1)
        if after.kind == "colon":
            return None
        if word in ("subject", "such") and after.is_word("to", "that"):
            return "subject to"
        # "st" and "free" may be columns elsewhere: a section stands at the beginning of its line.
        begins = self.line != token.line
        alone = after.kind == "end" or after.line != token.line
        known = word not in ("subject", "such")
        return word if begins and known and (alone or word in SENSES or word == "st") else None


def read_lp(text: str, name: str) -> Milp:
    """Read a programme; a FileFormatError names the line and the reason."""
    cursor, parts = _Cursor(text), _Parts()
    section = cursor.section()
    if section not in SENSES:
        raise cursor.fail("Minimize or Maximize")
    cursor.take()
    parts.sense = SENSES[section]
    _objective(cursor, parts)
    while (section := _next_section(cursor)) != "end":
        if section in ("subject to", "st", "s.t."):
            _rows(cursor, parts)
        elif section in ("bounds", "bound"):
            _bounds(cursor, parts)
        elif section in INTEGERS or section in BINARIES:
            _kinds(cursor, parts, section in BINARIES)
        else:
            raise FileFormatError(f"line {cursor.peek().line}: section {section!r} cannot be read")
    if cursor.peek().kind != "end":
        raise cursor.fail("nothing after End")
    return _programme(name, parts)


def _next_section(cursor: _Cursor) -> str:
    section = cursor.section()
    if section is None:
        what = "End: is the file cut off?" if cursor.peek().kind == "end" else "a section"
        raise cursor.fail(what)
    if section in UNREADABLE or section in SENSES:
        raise cursor.fail("a section of a linear programme")
    cursor.take()
    if section == "subject to":
        cursor.take()
    return section


def _label(cursor: _Cursor) -> str | None:
    if cursor.peek().kind == "name" and cursor.peek(1).kind == "colon":
        name = cursor.take().text
        cursor.take()
        return name
    return None


def _expression(cursor: _Cursor, parts: _Parts) -> tuple[dict[str, float], float]:
    """Read signed terms; return coefficients by column and the constant."""
    terms: dict[str, float] = {}
    constant, first = 0.0, True
    while True:
        token = cursor.peek()
        if token.kind not in ("sign", "number", "name") or cursor.section() is not None:
            break
        if _starts_label(cursor) or (not first and token.kind != "sign"):
            break
        sign = _signs(cursor)
        value, name = _term(cursor)
        if name is None:
            constant = added(constant, sign * value)
        else:
            parts.columns.setdefault(name, len(parts.columns))
            terms[name] = added(terms.get(name, 0.0), sign * value)
        first = False
    return terms, constant


def _starts_label(cursor: _Cursor) -> bool:
    return cursor.peek().kind == "name" and cursor.peek(1).kind == "colon"


def _signs(cursor: _Cursor) -> float:
    sign = 1.0
    while cursor.peek().kind == "sign":
        sign *= -1.0 if cursor.take().text == "-" else 1.0
    return sign


def _term(cursor: _Cursor) -> tuple[float, str | None]:
    token = cursor.peek()
    if token.kind == "number":
        value = _finite(cursor)
        follows = cursor.peek()
        is_name = (
            follows.kind == "name" and follows.line == token.line and not _starts_label(cursor)
        )
        return value, cursor.take().text if is_name else None
    if token.kind == "name":
        return 1.0, cursor.take().text
    raise cursor.fail("a number or a column")


def _finite(cursor: _Cursor) -> float:
    token = cursor.take()
    value = float(token.text)
    if value > LARGEST:
        reason = f"{token.text[:40]} must be finite and at most {LARGEST:g} in size"
        raise FileFormatError(f"line {token.line}: {reason}")
    return value


def _side(cursor: _Cursor) -> float:
    """Read a signed number or an infinity."""
    sign = _signs(cursor)
    if cursor.peek().is_word(*INFINITY):
        cursor.take()
        return sign * math.inf
    if cursor.peek().kind != "number":
        raise cursor.fail("a number")
    value = float(cursor.take().text)
    return sign * (math.inf if value >= 1e20 else value)


def _is_side(cursor: _Cursor) -> bool:
    """Whether a number (or an infinity) and then a relation follow."""
    k = 0
    while cursor.peek(k).kind == "sign":
        k += 1
    token = cursor.peek(k)
    return (token.kind == "number" or token.is_word(*INFINITY)) and cursor.peek(k + 1).kind == "op"


def _objective(cursor: _Cursor, parts: _Parts) -> None:
    _label(cursor)
    parts.cost, parts.constant = _expression(cursor, parts)


def _rows(cursor: _Cursor, parts: _Parts) -> None:
    while cursor.peek().kind != "end" and cursor.section() is None:
        line = cursor.peek().line
        name = _label(cursor) or f"row{len(parts.rows) + 1}"
        if name in parts.row_names:
            raise FileFormatError(f"line {line}: row {name[:60]!r} stands twice")
        parts.row_names.add(name)
        before = (_side(cursor), _relation(cursor)) if _is_side(cursor) else None
        terms, constant = _expression(cursor, parts)
        if not terms:
            raise cursor.fail(f"columns in row {name!r}")
        low, high = -math.inf, math.inf
        if before is not None:
            low, high = _with_side(low, high, before[0], FLIPPED[before[1]])
        if before is None or cursor.peek().kind == "op":
            if before is not None and cursor.peek().kind == "op":
                _check_pair(cursor, before[1])
            relation = _relation(cursor)
            low, high = _with_side(low, high, _side(cursor), relation)
        if constant:
            low, high = (
                added(side, -constant) if math.isfinite(side) else side for side in (low, high)
            )
        if low == math.inf or high == -math.inf:
            raise FileFormatError(
                f"line {line}: the sides of row {name!r} are {low!r} and {high!r}"
            )
        parts.rows.append((name, terms, low, high))


FLIPPED = {"<=": ">=", ">=": "<=", "=": "="}


def _relation(cursor: _Cursor) -> str:
    if cursor.peek().kind != "op":
        raise cursor.fail("<=, >= or =")
    return RELATIONS[cursor.take().text]


def _check_pair(cursor: _Cursor, first: str) -> None:
    """Refuse a second relation that does not continue the first: 1 <= x >= 2, or 1 <= x = 2."""
    if first == "=" or RELATIONS[cursor.peek().text] != first:
        raise cursor.fail(f"{first!r} again, or nothing" if first != "=" else "nothing after it")


def _with_side(low: float, high: float, side: float, relation: str) -> tuple[float, float]:
    if relation == "=":
        return side, side
    return (low, side) if relation == "<=" else (side, high)


def _bounds(cursor: _Cursor, parts: _Parts) -> None:
    while cursor.peek().kind != "end" and cursor.section() is None:
        before = (_side(cursor), _relation(cursor)) if _is_side(cursor) else None
        if cursor.peek().kind != "name":
            raise cursor.fail("a column")
        token = cursor.take()
        name = token.text
        parts.columns.setdefault(name, len(parts.columns))
        if before is not None:
            _bound(parts, token, before[0], FLIPPED[before[1]])
        elif cursor.peek().is_word("free"):
            cursor.take()
            parts.lower[name], parts.upper[name] = -math.inf, math.inf
            continue
        if before is None or cursor.peek().kind == "op":
            if before is not None:
                _check_pair(cursor, before[1])
            relation = _relation(cursor)
            _bound(parts, token, _side(cursor), relation)


def _bound(parts: _Parts, token: _Token, side: float, relation: str) -> None:
    name = token.text
    if relation in (">=", "="):
        parts.lower[name] = side
    if relation in ("<=", "="):
        parts.upper[name] = side
    _check_binary(parts, token)
    if parts.lower.get(name) == math.inf or parts.upper.get(name) == -math.inf:
        raise FileFormatError(f"line {token.line}: column {name!r} has no finite value")


def _check_binary(parts: _Parts, token: _Token) -> None:
    """Refuse bounds of a binary column beside 0 and 1: one of the two lines is wrong."""
    low, high = parts.lower.get(token.text, 0.0), parts.upper.get(token.text, 1.0)
    if token.text in parts.binary and not 0.0 <= low <= high <= 1.0:
        raise FileFormatError(
            f"line {token.line}: column {token.text[:60]!r} is binary, and its bounds are {low!r} "
            f"and {high!r}"
        )


def _kinds(cursor: _Cursor, parts: _Parts, binary: bool) -> None:
    while cursor.peek().kind == "name" and cursor.section() is None:
        token = cursor.take()
        name = token.text
        parts.columns.setdefault(name, len(parts.columns))
        parts.integer.add(name)
        if binary:
            parts.binary.add(name)
            parts.lower.setdefault(name, 0.0)
            parts.upper.setdefault(name, 1.0)
            _check_binary(parts, token)


def _programme(name: str, parts: _Parts) -> Milp:
    triplets = [
        (i, parts.columns[column], value)
        for i, (_, terms, _, _) in enumerate(parts.rows)
        for column, value in terms.items()
    ]
    row, index, value = zip(*triplets, strict=True) if triplets else ((), (), ())
    columns = list(parts.columns)
    return milp(
        name,
        parts.sense,
        columns,
        [parts.cost.get(each, 0.0) for each in columns],
        [parts.lower.get(each, 0.0) for each in columns],
        [parts.upper.get(each, math.inf) for each in columns],
        [each in parts.integer for each in columns],
        [each for each, *_ in parts.rows],
        [low for _, _, low, _ in parts.rows],
        [high for _, _, _, high in parts.rows],
        (row, index, value),
        parts.constant,
    )
