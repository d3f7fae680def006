"""Values of parsed JSON and TOML, checked one by one: an error has the place, the value and what is
allowed.

The readers of each format are built on these: columns of instances, fields of studies, profiles,
files of sites, records of workflows and the answers of cells.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable
from typing import Any, NoReturn, TypeGuard

from optbench.errors import FileFormatError, nearest

LARGEST = sys.float_info.max
# Characters of a value that a message shows.
MOST_SHOWN = 60


def refuse(where: str, value: Any, allowed: str) -> NoReturn:
    raise FileFormatError(f"{where} is {describe(value)}; it must be {allowed}")


def describe(value: Any) -> str:
    """A value as it may stand in a message."""
    if isinstance(value, list):
        return f"a list of {len(value):,}"
    if isinstance(value, dict):
        return f"an object with {len(value):,} keys"
    if isinstance(value, int) and abs(value) > 10**40:
        return "a huge whole number"
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    shown = repr(value)
    return shown if len(shown) <= MOST_SHOWN else shown[: MOST_SHOWN - 3] + "..."


def is_number(value: Any) -> TypeGuard[int | float]:
    """Whether a value is a number; true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def number(
    value: Any,
    where: str,
    least: float = -LARGEST,
    most: float = LARGEST,
    allowed: str = "a finite number",
) -> float:
    """A finite number within a range."""
    if not is_number(value) or not least <= value <= most:
        refuse(where, value, allowed)
    return float(value)


def check_keys(
    table: Iterable[str], known: Collection[str], where: str = "", within: str = ""
) -> None:
    """Refuse the first unknown key.

    ``where`` precedes the message; ``within`` is the path of the table, written before the key.
    """
    for key in table:
        if key not in known:
            raise FileFormatError(
                f"{where}unknown key {describe(within + key)}; {nearest(key, known)}"
            )
