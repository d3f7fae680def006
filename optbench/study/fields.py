"""Typed values of a study file; an error has the field, the value and what is allowed."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, NoReturn

from optbench.errors import FileFormatError, OptbenchError, nearest
from optbench.plugins import specs
from optbench.typed_values import is_number
from optbench.units import KB_PER_MB

# Units in MB of 1,024 × 1,024 bytes, as ``peak_memory_mb`` is measured, with or without an i.
MEMORY_MB = {"KB": 1 / KB_PER_MB, "MB": 1.0, "GB": float(KB_PER_MB), "TB": float(KB_PER_MB**2)}
_MEMORY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-z]*)")
NO_LIMIT = "none"
# Limit for threads and repetitions; a larger number is a mistake.
MOST = 1_000_000


def refuse(field: str, value: Any, allowed: str) -> NoReturn:
    """As of any value, but in full: what stands in a study file is short."""
    raise FileFormatError(f"{field} is {shown(value)}; it must be {allowed}")


def shown(value: Any, most: int = 120) -> str:
    """Return a value as received, in one line."""
    words = repr(value)
    return words if len(words) <= most else f"{words[:most]}..."


def text(value: Any, field: str, allowed: str = "text") -> str:
    if not isinstance(value, str) or not value.strip():
        refuse(field, value, allowed)
    return value.strip()


def texts(value: Any, field: str) -> tuple[str, ...]:
    """Return a text, or a list of them, as a tuple."""
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list) or not given:
        refuse(field, value, "a list of texts")
    return tuple(text(each, f"{field}[{k}]") for k, each in enumerate(given))


def word(value: Any, field: str, known: Collection[str]) -> str:
    """Return one of the known words."""
    if value not in known:
        raise FileFormatError(f"{field} is {shown(value)}; {nearest(str(value), known)}")
    return str(value)


def whole(
    value: Any, field: str, least: int, most: float = MOST, *, from_text: bool = False
) -> int:
    """Return a whole number within limits; also from text where that is allowed, as in specs."""
    number = value
    if from_text and isinstance(value, str):
        with suppress(ValueError):
            number = int(value)
    if not is_number(number) or not isinstance(number, int) or not least <= number <= most:
        limits = f"from {least} to {most:,}" if most < math.inf else f"of at least {least}"
        refuse(field, value, f"a whole number {limits}")
    return number


def real(value: Any) -> float:
    """Return a number, or the number in a text, as a float; NaN where there is none."""
    if not is_number(value) and not isinstance(value, str):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan


def positive(value: Any, field: str) -> float:
    """Return a finite number above 0."""
    number = real(value)
    if not 0 < number < math.inf:
        refuse(field, value, "a number above 0")
    return number


def duration(value: Any, field: str) -> float:
    """Return seconds, above 0."""
    allowed = "a duration above 0, such as 10s, 5m, 2h, 500ms or a number of seconds"
    try:
        seconds = specs.duration_s(value) if isinstance(value, str) else real(value)
    except OptbenchError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        refuse(field, value, allowed)
    return seconds


def is_none(value: Any) -> bool:
    return isinstance(value, str) and value.strip().lower() == NO_LIMIT


def memory(value: Any, field: str) -> float:
    """Return MB, above 0."""
    allowed = "an amount of memory above 0, such as 4GB or 500MB; a bare number is in MB"
    if not is_number(value) and not isinstance(value, str):
        refuse(field, value, allowed)
    match = _MEMORY.fullmatch(str(value).strip())
    factor = None if match is None else MEMORY_MB.get(match[2].upper().replace("IB", "B") or "MB")
    if match is None or factor is None or not 0 < float(match[1]) * factor < math.inf:
        refuse(field, value, allowed)
    return float(match[1]) * factor


def elements(value: Any, field: str, example: str) -> list[Any]:
    """Return a list that is not empty."""
    if not isinstance(value, list) or not value:
        refuse(field, value, f"a list with at least one entry, such as {example}")
    return value


def tables(value: Any, field: str) -> list[Mapping[str, Any]]:
    """Return an array of tables, ``[[field]]``."""
    if not isinstance(value, list) or not all(isinstance(each, Mapping) for each in value):
        refuse(field, value, f"an array of tables, each begun by [[{field}]]")
    return value
