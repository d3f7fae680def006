"""Axes of the report's charts: excesses from nothing to a hundredfold, times by decades; marks told apart by their shapes."""

from __future__ import annotations

import colorsys
import math
from dataclasses import dataclass

from optbench.html import colours, svg

WIDTH, LEFT, RIGHT = 1200.0, 210.0, 100.0
# Where names stand right of a chart.
NAMES = 170.0
# Below this the scale of excesses is linear, above it logarithmic.
LINEAR = 1e-3
EXCESSES = (0.0, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
EXCESS_NAMES = ("0", "0.1 %", "1 %", "10 %", "100 %", "1,000 %", "10,000 %")
DECADES = (0.001, 0.01, 0.1, 1.0, 10.0, 60.0, 600.0, 3600.0, 36000.0, 360000.0)
DECADE_NAMES = ("1 ms", "10 ms", "0.1 s", "1 s", "10 s", "1 min", "10 min", "1 h", "10 h", "100 h")
DASHES = (None, "8 4", "3 3", "12 3 3 3", "6 2", "16 4")
LONGEST_NAME = 24
# Lightness that lines and marks need on a light page and on a dark one.
DEPTH = 0.5


@dataclass(frozen=True)
class ExcessScale:
    """Fractions from 0 to ``top`` on pixels from ``start`` on: linear near 0, so that nothing has a place, then logarithmic."""

    start: float
    length: float
    top: float = 1.0

    def at(self, value: float) -> float:
        clipped = min(max(value, 0.0), self.top)
        return self.start + self.length * math.asinh(clipped / LINEAR) / math.asinh(self.top / LINEAR)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        return [(value, name) for value, name in zip(EXCESSES, EXCESS_NAMES) if value <= self.top * (1 + 1e-9)]


@dataclass(frozen=True)
class TimeAxis:
    """Seconds by their logarithm."""

    start: float
    length: float
    low: float
    high: float

    def at(self, value: float) -> float:
        clipped = min(max(value, self.low), self.high)
        return self.start + self.length * math.log(clipped / self.low) / math.log(self.high / self.low)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        return [(value, name) for value, name in zip(DECADES, DECADE_NAMES) if self.low <= value <= self.high]


def colour(k: int) -> str:
    """Of the k-th solver; past the named ones hues apart by the golden section, as dark as those."""
    if k < len(colours.SOLVERS):
        return colours.SOLVERS[k]
    parts = colorsys.hls_to_rgb((k * colours.GOLDEN) % 1.0, DEPTH, 0.55)
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)


def mark(k: int, x: float, y: float, size: float, content: str = "") -> str:
    """The k-th solver's mark: shapes and colours go round with different periods."""
    h, w = svg.num, size
    shapes = (
        f"M{h(x - w)} {h(y)}a{h(w)} {h(w)} 0 1 0 {h(2 * w)} 0a{h(w)} {h(w)} 0 1 0 {h(-2 * w)} 0Z",
        f"M{h(x - w)} {h(y - w)}h{h(2 * w)}v{h(2 * w)}h{h(-2 * w)}Z",
        f"M{h(x)} {h(y - 1.3 * w)}L{h(x + 1.3 * w)} {h(y)}L{h(x)} {h(y + 1.3 * w)}L{h(x - 1.3 * w)} {h(y)}Z",
        f"M{h(x)} {h(y - 1.2 * w)}L{h(x + 1.2 * w)} {h(y + w)}H{h(x - 1.2 * w)}Z",
        f"M{h(x)} {h(y + 1.2 * w)}L{h(x + 1.2 * w)} {h(y - w)}H{h(x - 1.2 * w)}Z",
    )
    return svg.tag("path", content, d=shapes[k % len(shapes)], fill=colour(k), class_="mark")


def key(k: int) -> str:
    """The mark by itself, for tables and legends."""
    return f'<svg class="mark-key" viewBox="0 0 14 14" width="14" height="14" aria-hidden="true">{mark(k, 7.0, 7.0, 5.0)}</svg>'


def cross(x: float, y: float, size: float, content: str = "") -> str:
    """What has no gap."""
    h, w = svg.num, size
    path = f"M{h(x - w)} {h(y - w)}l{h(2 * w)} {h(2 * w)}M{h(x + w)} {h(y - w)}l{h(-2 * w)} {h(2 * w)}"
    return svg.tag("path", content, d=path, class_="cross")


def short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def chart(parts: list[str], height: float, label: str) -> str:
    return svg.tag(
        "svg", "".join(parts), viewBox=f"0 0 {WIDTH:g} {svg.num(height)}", class_="chart", role="img", aria_label=label
    )
