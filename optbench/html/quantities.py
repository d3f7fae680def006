"""Times and amounts written for people: clock times, SI prefixes, separated thousands."""

from __future__ import annotations

import math
from typing import Any

from optbench.model.measures import OPTIMAL_GAP

PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def clock(seconds: float) -> str:
    """``0``, ``0.25 s``, ``45 s``, ``12:30``, ``1:05:00``, ``2 d 03:00:00``."""
    if seconds < 60 or seconds != round(seconds):
        return (
            "0" if seconds == 0 else f"{seconds:.4g} s" if seconds < 60 else _colons(round(seconds))
        )
    return _colons(int(seconds))


def _colons(seconds: int) -> str:
    days, rest = divmod(seconds, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, left = divmod(rest, 60)
    text = f"{hours}:{minutes:02d}:{left:02d}" if hours or days else f"{minutes}:{left:02d}"
    return f"{days} d {text}" if days else text


def span(seconds: float) -> str:
    """The time that something took: ``12.3 s``, ``250 ms``."""
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1000 * seconds:.0f} ms"


def amount(value: float, unit: str = "") -> str:
    """Four digits with an SI prefix: ``1.234 MJ``, ``874 W``."""
    scale, prefix = next(((s, p) for s, p in PREFIXES if abs(value) >= s), (1.0, ""))
    return f"{value / scale:.4g} {prefix}{unit}".strip()


def plain(value: float) -> str:
    """Thousands separated, about six digits."""
    if value == round(value):
        return f"{value:,.0f}"
    digits = max(0, 5 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{min(digits, 6)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def levels(value: Any) -> tuple[Any, ...]:
    """A value by level of the objective."""
    return value if isinstance(value, tuple) else (value,)


def percents(value: object) -> str:
    """The gap of each level: ``3.2 %``, ``0 %, 8.1 %``."""
    return ", ".join(
        "-" if gap is None else "0 %" if gap <= OPTIMAL_GAP else f"{100 * gap:.2g} %"
        for gap in levels(value)
    )
