"""Charts of a search: marks of trials on two axes, and bars of importances."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from optbench.html import axes, colours, svg
from optbench.html.axes import Axis
from optbench.html.bar_rows import Bar, bar_row
from optbench.html.page import joined

LEFT, RIGHT, TOP, BAR_LEFT, BAR_ROW = 74.0, 18.0, 12.0, 170.0, 26.0
STYLES = ("tune.css",)
# Room around the marks, as a share of their range.
MARGIN = 0.06
# Values so many times as far above the median as the lowest is below it are outliers, if there
# are at least LEAST_TO_CUT values.
OUTLYING, LEAST_TO_CUT = 3.0, 8


@dataclass(frozen=True)
class Mark:
    """One trial: its values on both axes, its class (``done``, ``pruned``, ...), its tooltip."""

    x: float
    y: float
    look: str
    words: Sequence[str]


@dataclass(frozen=True)
class Quantity:
    """What an axis shows. ``names`` stand at 0, 1, ... where the values are no numbers. With
    ``cut``, outliers above are drawn at the edge, so that the other values keep their room."""

    title: str
    log: bool = False
    percent: bool = False
    whole: bool = False
    cut: bool = False
    names: Sequence[str] = ()

    def label(self, value: float) -> str:
        return f"{100 * value:.4g} %" if self.percent else f"{value:.4g}"


def scatter(
    marks: Sequence[Mark],
    x: Quantity,
    y: Quantity,
    size: tuple[float, float],
    line: Sequence[tuple[float, float]] = (),
) -> str:
    """Marks on two axes, the best above the others; ``line`` is a staircase through points."""
    if not marks:
        return ""
    width, height = size
    base = height - axes.FOOT
    across = _axis(x, [mark.x for mark in marks], LEFT, width - LEFT - RIGHT, 6)
    up = replace(_axis(y, [mark.y for mark in marks], base, TOP - base, 5), name="")
    parts = [axes.grid(across, up)]
    if line:
        xs, ys = [*(across.at(x) for x, _ in line), across.end], [up.at(y) for _, y in line]
        parts.append(svg.path(svg.steps(xs, ys), class_="best-line"))
    for mark in sorted(marks, key=lambda each: each.look == "best"):
        radius = 5.5 if mark.look == "best" else 3.6
        at, look = (across.at(mark.x), up.at(mark.y)), f"trial {mark.look}"
        parts.append(svg.circle(*at, radius, mark.words, class_=look))
    return svg.chart(parts, height, f"{y.title} against {x.title}", width, "chart small")


def standalone(drawn: str) -> list[str]:
    """The charts within some markup as files of their own, each with the style of the page."""
    style = f"<style>{joined('.css', __package__, STYLES)}</style>"
    found = re.findall(r"<svg (.*?)>(.*?</svg>)", drawn, re.DOTALL)
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" {head}>{style}{inside}' for head, inside in found
    ]


def bars(shares: Sequence[tuple[str, float]]) -> str:
    """Horizontal bars of shares of 1."""
    axis = Axis(BAR_LEFT, svg.WIDTH - BAR_LEFT - 90, 0.0, 1.0)
    parts = []
    for k, (name, share) in enumerate(shares):
        bar = Bar(0.0, share, colours.SOLVERS[0], f"{100 * share:.1f} %", thickness=16.0)
        parts.append(bar_row(name, [bar], axis, TOP + k * BAR_ROW))
    return svg.chart(parts, TOP + BAR_ROW * len(shares) + 4, "importance", class_="chart small")


def _axis(shown: Quantity, values: Sequence[float], start: float, length: float, most: int) -> Axis:
    if shown.names:
        last, names = len(shown.names) - 0.5, shown.names
        return Axis(
            start, length, -0.5, last, range(len(names)), lambda k: names[int(k)], shown.title
        )
    if shown.log:
        low, high = axes.padded([math.log10(value) for value in values], MARGIN)
        ticks = [10.0**power for power in axes.nice_ticks(high, most, low)]
        return Axis(
            start, length, 10.0**low, 10.0**high, ticks, shown.label, shown.title, math.log10
        )
    low, high = axes.padded(_without_outliers(values) if shown.cut else values, MARGIN)
    ticks = [
        tick for tick in axes.nice_ticks(high, most, low) if not shown.whole or tick == round(tick)
    ]
    return Axis(start, length, low, high, ticks, shown.label, shown.title)


def _without_outliers(values: Sequence[float]) -> Sequence[float]:
    """The values with outliers brought down to the limit above which they are outliers."""
    found = sorted(values)
    if len(found) < LEAST_TO_CUT:
        return found
    quarter, half = found[len(found) // 4], found[len(found) // 2]
    return [min(value, half + OUTLYING * max(half - quarter, half - found[0])) for value in found]
