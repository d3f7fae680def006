"""Charts of a search: small SVGs of marks on two axes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from optbench.html import svg
from optbench.html.axis_scale import nice_ticks

LEFT, RIGHT, TOP, FOOT = 74.0, 18.0, 12.0, 48.0
# Room around the marks, as a share of their range.
MARGIN = 0.06
# Values this many times as far above the median as the lowest is below it are outlying.
OUTLYING, LEAST_TO_CUT = 3.0, 8
STYLE = (
    "text{font:12px sans-serif;fill:#1b2230}.lane{fill:#f4f6f9}.grid{stroke:#dfe3ea}.tick{text-anchor:middle;font-size:11px}"
    ".watts{text-anchor:end;font-size:11px}.axis-name{font-weight:600}.axis-name.x{text-anchor:middle}.trial{fill:#3f7fe0;stroke:#fff}"
    ".trial.pruned{fill:none;stroke:#667085}.trial.broken{fill:#667085;opacity:.5}.trial.on-front{fill:#11845b}"
    ".trial.best{fill:#c4320a}.best-line{fill:none;stroke:#c4320a}.share{fill:#3f7fe0}"
)


@dataclass(frozen=True)
class Mark:
    """One trial: where it stands, how it looks (``done``, ``pruned``, ``best``), and what is said of it."""

    x: float
    y: float
    look: str
    words: Sequence[str]


@dataclass(frozen=True)
class Axis:
    """``names`` stand at 0, 1, ... where the values are no numbers. With ``cut``, values far above the others are drawn at the
    edge, so that they do not squeeze what matters."""

    title: str
    log: bool = False
    percent: bool = False
    whole: bool = False
    cut: bool = False
    names: Sequence[str] = ()

    def label(self, value: float) -> str:
        return f"{100 * value:.4g} %" if self.percent else f"{value:.4g}"


def scatter(marks: Sequence[Mark], x: Axis, y: Axis, size: tuple[float, float], line: Sequence[tuple[float, float]] = ()) -> str:
    """Marks on two axes, the best above the others; ``line`` is a staircase through points."""
    if not marks:
        return ""
    width, height = size
    across = _scale(x, [mark.x for mark in marks], LEFT, width - RIGHT)
    up = _scale(y, [mark.y for mark in marks], height - FOOT, TOP)
    parts = [svg.tag("rect", x=LEFT, y=TOP, width=width - LEFT - RIGHT, height=height - TOP - FOOT, class_="lane")]
    for value, text in _ticks(x, [mark.x for mark in marks], 6):
        parts.append(svg.line(across(value), TOP, across(value), height - FOOT, class_="grid"))
        parts.append(svg.text(across(value), height - FOOT + 16, text, class_="tick"))
    for value, text in _ticks(y, [mark.y for mark in marks], 5):
        parts.append(svg.line(LEFT, up(value), width - RIGHT, up(value), class_="grid"))
        parts.append(svg.text(LEFT - 8, up(value) + 4, text, class_="watts"))
    parts.append(svg.text((LEFT + width - RIGHT) / 2, height - 10, x.title, class_="axis-name x"))
    if line:
        xs = [across(point[0]) for point in line] + [width - RIGHT]
        parts.append(svg.tag("path", d=svg.steps(xs, [up(point[1]) for point in line]), class_="best-line"))
    for mark in sorted(marks, key=lambda each: each.look == "best"):
        radius = 5.5 if mark.look == "best" else 3.6
        words, look = svg.title(mark.words), f"trial {mark.look}"
        parts.append(svg.tag("circle", words, cx=across(mark.x), cy=up(mark.y), r=radius, class_=look))
    return _svg(parts, width, height, f"{y.title} against {x.title}")


def standalone(drawn: str) -> list[str]:
    """The charts within some markup as files of their own, which have no page's style."""
    return [chart.replace(">", f"><style>{STYLE}</style>", 1) for chart in re.findall(r"<svg .*?</svg>", drawn, re.DOTALL)]


def bars(shares: Sequence[tuple[str, float]], width: float) -> str:
    """Horizontal bars of shares of 1."""
    row, left = 26.0, 170.0
    parts = []
    for k, (name, share) in enumerate(shares):
        top = TOP + k * row
        parts.append(svg.text(left - 10, top + 14, name, class_="watts"))
        parts.append(svg.tag("rect", x=left, y=top + 2, width=max(1.0, (width - left - 90) * share), height=16.0, class_="share"))
        parts.append(svg.text(left + (width - left - 90) * share + 8, top + 14, f"{100 * share:.1f} %", class_="share-name"))
    return _svg(parts, width, TOP + row * len(shares) + 4, "importance")


def _svg(parts: Sequence[str], width: float, height: float, words: str) -> str:
    box = f"0 0 {width:g} {height:g}"
    named = {"xmlns": "http://www.w3.org/2000/svg", "viewBox": box, "class_": "chart small", "role": "img", "aria_label": words}
    return svg.tag("svg", "".join(parts), **named)


def _scale(axis: Axis, values: Sequence[float], begin: float, end: float) -> Callable[[float], float]:
    low, high = _range(axis, values)

    def place(value: float) -> float:
        at = math.log10(value) if axis.log else value
        return begin + (end - begin) * (min(max(at, low), high) - low) / (high - low)

    return place


def _range(axis: Axis, values: Sequence[float]) -> tuple[float, float]:
    """Of logarithms on a logarithmic axis."""
    if axis.names:
        return -0.5, len(axis.names) - 0.5
    found = sorted(math.log10(value) if axis.log else value for value in values)
    if axis.cut and len(found) >= LEAST_TO_CUT:
        quarter, half = found[len(found) // 4], found[len(found) // 2]
        found = [min(value, half + OUTLYING * max(half - quarter, half - found[0])) for value in found]
    room = MARGIN * max(max(found) - min(found), 1e-3 * abs(max(found)), 1e-9)
    return min(found) - room, max(found) + room


def _ticks(axis: Axis, values: Sequence[float], most: int) -> list[tuple[float, str]]:
    if axis.names:
        return [(float(k), name) for k, name in enumerate(axis.names)]
    low, high = _range(axis, values)
    if axis.log:
        return [(10.0**value, axis.label(10.0**value)) for value in nice_ticks(high, most, low)]
    return [(value, axis.label(value)) for value in nice_ticks(high, most, low) if not axis.whole or value == round(value)]
