"""Axes: where the ticks go and how times and amounts are written."""

from __future__ import annotations

import math
from dataclasses import dataclass

STEPS = (1, 2, 2.5, 5, 10)
CLOCK_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800)
PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


@dataclass(frozen=True)
class TimeScale:
    """Time of the instance's domain to pixels. ``step_s`` is None where time has no physical unit (a classical job shop)."""

    end: float
    left: float
    width: float
    step_s: float | None

    def x(self, t: float) -> float:
        return self.left + self.width * t / self.end

    def ticks(self, most: int = 10) -> list[float]:
        if self.step_s is None:
            return nice_ticks(self.end, most)
        whole = self.end * self.step_s
        step = next((s for s in CLOCK_STEPS if whole / s <= most), None) if whole > most else None
        if step is None:
            return [t / self.step_s for t in nice_ticks(whole, most)]
        return [k * step / self.step_s for k in range(math.floor(whole / step + 1e-9) + 1)]

    def label(self, t: float) -> str:
        return f"{t:,.10g}" if self.step_s is None else clock(t * self.step_s)


def nice_ticks(top: float, most: int = 5, bottom: float = 0.0) -> list[float]:
    """Multiples of 1, 2, 2.5 or 5 times a power of ten within [bottom, top], at most ``most`` + 1 of them."""
    span = top - bottom
    if span <= 0 or not math.isfinite(span):
        return [bottom]
    raw = span / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(s * power for s in STEPS if s * power >= raw * (1 - 1e-9))
    first = math.ceil(bottom / step - 1e-9)
    return [k * step for k in range(first, math.floor(top / step + 1e-9) + 1)]


def clock(seconds: float) -> str:
    """``0``, ``0.25 s``, ``45 s``, ``12:30``, ``1:05:00``, ``2 d 03:00:00``."""
    if seconds < 60 or seconds != round(seconds):
        return "0" if seconds == 0 else f"{seconds:.4g} s" if seconds < 60 else _colons(round(seconds))
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
        return f"{value:,.0f}"
    digits = max(0, 5 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{min(digits, 6)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
