"""Numbers written for people, on terminals and pages alike: gaps, times, clock times, amounts."""

from __future__ import annotations

import math
from typing import Any

# A gap up to here is rounding, and written as 0: OPTIMAL_GAP of model/measures.py, whose import
# would make `--help` slow.
NO_GAP = 1e-6
MINUTES_FROM_S = 600.0
PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def percent(share: float) -> str:
    """One decimal, below 1 % two digits: ``0 %``, ``0.0042 %``, ``1.4 %``, ``100 %``."""
    return f"{hundredths(share)} %"


def hundredths(share: float) -> str:
    """A percentage without its sign."""
    if abs(share) <= NO_GAP:
        return "0"
    size = abs(100 * share)
    text = f"{size:,.0f}" if size >= 99.95 else f"{size:.1f}" if size >= 1 else f"{size:.2g}"
    return f"−{text}" if share < 0 else text


def duration(value_s: float) -> str:
    """What something took: ``0.42 ms``, ``250 ms``, ``4.8 s``, ``123 s``, ``20 min 34 s``."""
    if value_s < 1:
        return f"{1000 * value_s:.0f} ms" if value_s >= 0.01 else f"{1000 * value_s:.2g} ms"
    if value_s < MINUTES_FROM_S:
        return f"{value_s:.1f} s" if value_s < 100 else f"{value_s:.0f} s"
    minutes, seconds = divmod(round(value_s), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"


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


def amount(value: float, unit: str = "") -> str:
    """Four digits with an SI prefix: ``1.234 MJ``, ``874 W``."""
    scale, prefix = next(((s, p) for s, p in PREFIXES if abs(value) >= s), (1.0, ""))
    return f"{value / scale:.4g} {prefix}{unit}".strip()


def plain(value: float) -> str:
    """Thousands separated, about six digits."""
    if value == round(value):
        return f"{value + 0.0:,.0f}"  # -0.0 is 0
    digits = max(0, 5 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{min(digits, 9)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def levels(value: Any) -> tuple[Any, ...]:
    """A value by level of the objective."""
    return value if isinstance(value, tuple) else (value,)


def percents(value: object) -> str:
    """The gap of each level: ``3.2 %``, ``0 %, 8.1 %``."""
    return ", ".join("-" if gap is None else percent(gap) for gap in levels(value))
