"""Axes and grids of all charts: scales from values to pixels, ticks, and the grid of two axes.

An axis maps [low, high] to pixels, linearly or through a monotone ``warp`` w:

    pixel(v) = start + length (w(v) − w(low)) / (w(high) − w(low))

Values beyond the ends are drawn at the ends. A vertical axis starts at the bottom of its chart and
has a negative length.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from optbench.html import svg
from optbench.html.quantities import clock, plain

STEPS = (1, 2, 2.5, 5, 10)
CLOCK_STEPS = (
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200),
    *(86_400, 172_800, 604_800),
)  # fmt: skip
SECONDS = (0.001, 0.01, 0.1, 1.0, 10.0, 60.0, 600.0, 3600.0, 36_000.0, 360_000.0)
NAMES = ("1 ms", "10 ms", "0.1 s", "1 s", "10 s", "1 min", "10 min", "1 h", "10 h", "100 h")
DECADES = dict(zip(SECONDS, NAMES, strict=True))
MOST_TICKS = 10
# An axis of gaps is linear below this gap and logarithmic above it.
LINEAR_GAP = 1e-3
GAPS = {
    0.0: "0",
    0.001: "0.1 %",
    0.01: "1 %",
    0.1: "10 %",
    1.0: "100 %",
    10.0: "1,000 %",
    100.0: "10,000 %",
}
# Pixels from the grid to labels of ticks and names of axes, and the height of both below the grid.
TICK_BELOW, TICK_LEFT, NAME_BELOW, NAME_LEFT, FOOT = 18.0, 10.0, 40.0, 84.0, 48.0

Write = Callable[[float], str]


@dataclass(frozen=True)
class Axis:
    """Values on pixels, with ticks, the function that writes a value, and the name of the axis."""

    start: float
    length: float
    low: float
    high: float
    ticks: Sequence[float] = ()
    write: Write = plain
    name: str = ""
    warp: Callable[[float], float] = float

    @property
    def end(self) -> float:
        return self.start + self.length

    def at(self, value: float) -> float:
        low, high = self.warp(self.low), self.warp(self.high)
        return self.start + self.length * (
            self.warp(min(max(value, self.low), self.high)) - low
        ) / (high - low)


def linear(
    start: float,
    length: float,
    low: float,
    high: float,
    most: int = 5,
    write: Write = plain,
    name: str = "",
) -> Axis:
    """An axis with at most ``most`` + 1 round ticks."""
    return Axis(start, length, low, high, nice_ticks(high, most, low), write, name)


def shares(start: float, length: float) -> Axis:
    """Shares from 0 to 1, with a tick at every quarter."""
    return Axis(
        start, length, 0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0), lambda share: f"{100 * share:.0f} %"
    )


def gaps(start: float, length: float, high: float = 1.0, name: str = "") -> Axis:
    """Gaps from 0 to ``high``: linear near 0, so that a gap of 0 has a place, then logarithmic."""
    ticks = [gap for gap in GAPS if gap <= high * (1 + 1e-9)]

    def warp(gap: float) -> float:
        return math.asinh(gap / LINEAR_GAP)

    return Axis(start, length, 0.0, high, ticks, GAPS.__getitem__, name, warp)


def decades(start: float, length: float, low: float, high: float, name: str = "") -> Axis:
    """Seconds by their logarithm, from milliseconds to days."""
    ticks = [t for t in DECADES if low <= t <= high]
    return Axis(start, length, low, high, ticks, DECADES.__getitem__, name, math.log)


def clock_times(start: float, length: float, low: float, high: float, name: str = "") -> Axis:
    """Seconds by their logarithm, with ticks close enough for a range of less than a decade."""
    ticks = [t for t in CLOCK_STEPS if low <= t <= high]
    return Axis(
        start, length, low, high, ticks[:: 1 + len(ticks) // MOST_TICKS], clock, name, math.log
    )


def times(
    start: float, length: float, end: float, tick_s: float | None, most: int = MOST_TICKS
) -> Axis:
    """Time from 0 to ``end`` in ticks of ``tick_s`` seconds, which is None where time has
    no unit.
    """
    if tick_s is None:
        return Axis(start, length, 0.0, end, nice_ticks(end, most), lambda t: f"{t:,.10g}")
    whole = end * tick_s
    step = next((s for s in CLOCK_STEPS if whole / s <= most), None) if whole > most else None
    seconds = nice_ticks(whole, most)
    if step is not None:
        seconds = [k * step for k in range(math.floor(whole / step + 1e-9) + 1)]
    return Axis(start, length, 0.0, end, [s / tick_s for s in seconds], lambda t: clock(t * tick_s))


def padded(values: Sequence[float], share: float) -> tuple[float, float]:
    """The ends of an axis that leaves room around the values, as a share of their range."""
    low, high = min(values), max(values)
    room = share * max(high - low, 1e-3 * abs(high), 1e-9)
    return low - room, high + room


def nice_ticks(high: float, most: int = 5, low: float = 0.0) -> list[float]:
    """At most ``most`` + 1 multiples of 1, 2, 2.5 or 5 times a power of ten within [low, high]."""
    span = high - low
    if span <= 0 or not math.isfinite(span):
        return [low]
    raw = span / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(s * power for s in STEPS if s * power >= raw * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def grid(x: Axis, y: Axis) -> str:
    """Background, grid lines, labels of ticks, and names of both axes."""
    lane = svg.rect(x.start, y.end, x.length, -y.length, class_="lane")
    return lane + columns(x, y.end, y.start, y.start + TICK_BELOW) + _rows(x, y) + _names(x, y)


def chart(x: Axis, y: Axis, parts: Iterable[str], label: str) -> str:
    """A whole picture of marks on the grid of two axes."""
    return svg.chart([grid(x, y), *parts], y.start + FOOT, label)


def columns(x: Axis, top: float, base: float, label_y: float) -> str:
    """Vertical grid lines from ``top`` to ``base`` with their labels at ``label_y``."""
    out = []
    for tick in x.ticks:
        at = x.at(tick)
        out.append(svg.line(at, top, at, base, class_="grid"))
        out.append(svg.text(at, label_y, x.write(tick), class_="tick"))
    return "".join(out)


def _rows(x: Axis, y: Axis) -> str:
    out = []
    for tick in y.ticks:
        at = y.at(tick)
        out.append(svg.line(x.start, at, x.end, at, class_="grid"))
        out.append(svg.text(x.start - TICK_LEFT, at + 4, y.write(tick), class_="watts"))
    return "".join(out)


def _names(x: Axis, y: Axis) -> str:
    out = ""
    if x.name:
        out = svg.text(x.start + x.length / 2, y.start + NAME_BELOW, x.name, class_="axis-name")
    if y.name:
        turned = f"translate({x.start - NAME_LEFT:g} {y.start + y.length / 2:g}) rotate(-90)"
        out += svg.tag("text", svg.escape(y.name), class_="axis-name", transform=turned)
    return out
