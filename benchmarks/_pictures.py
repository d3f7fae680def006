"""Pictures of the pages of hgnn: marks, curves and certified lines on two axes, as an SVG file that
needs nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from optbench.html import axes, colours, marks, svg
from optbench.html.axes import Axis

LEFT, RIGHT, TOP, HEIGHT = 120.0, 230.0, 16.0, 420.0
STYLE = (
    ".chart text{fill:#1b2230}.lane{fill:#f4f6f9}.grid{stroke:#dfe3ea}"
    ".chart .tick{text-anchor:middle;fill:#667085;font-size:11px}"
    ".chart .watts{text-anchor:end;fill:#667085;font-size:11px}"
    ".curve{fill:none;stroke-width:1.8}.impossible{fill:#667085;opacity:.16}"
    ".axis-name{text-anchor:middle;font-size:12.5px;font-weight:600}"
)


@dataclass(frozen=True)
class Row:
    """The points of one method, joined in the order given where ``joined``."""

    name: str
    points: Sequence[tuple[float, float]]
    joined: bool = True


def picture(
    rows: Sequence[Row],
    x: Axis,
    y: Axis,
    label: str,
    below: Sequence[tuple[float, float]] = (),
) -> str:
    """Return the whole file. Nothing can lie below the points ``below``, from left to right."""
    parts = [axes.grid(x, y)]
    if below:
        ends = [(x.at(below[0][0]), y.start), *((x.at(a), y.at(b)) for a, b in below)]
        parts.append(svg.path(svg.polyline([*ends, (ends[-1][0], y.start)]), class_="impossible"))
    for k, row in enumerate(rows):
        at = [(x.at(a), y.at(b)) for a, b in row.points]
        if row.joined and len(at) > 1:
            parts.append(marks.curve(k, svg.polyline(at)))
        tips = (f"{row.name}: {x.write(a)}, {y.write(b)}" for a, b in row.points)
        parts += [marks.mark(k, *place, 4.5, [tip]) for place, tip in zip(at, tips, strict=True)]
    parts += legend([row.name for row in rows], x.end + 24, bool(below))
    drawn = svg.chart(parts, y.start + axes.FOOT, label)
    head = '<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="12" '
    return drawn.replace("<svg ", head, 1).replace(">", f"><style>{STYLE}</style>", 1) + "\n"


def legend(names: Iterable[str], left: float, floor: bool) -> list[str]:
    """Return one line per method, and one for what is certified to be impossible."""
    out, at = [], TOP + 12.0
    for k, name in enumerate(names):
        out.append(marks.mark(k, left, at, 4.5))
        out.append(svg.text(left + 12, at + 4, name))
        at += 18.0
    if floor:
        out.append(svg.rect(left - 5, at - 5, 10.0, 10.0, class_="impossible"))
        out.append(svg.text(left + 12, at + 4, "impossible (certified)"))
    return out


def across(low: float, high: float, name: str) -> Axis:
    """Return the lower axis of a picture, linear."""
    return axes.linear(LEFT, svg.WIDTH - LEFT - RIGHT, low, high, 8, name=name)


def upward(low: float, high: float, name: str) -> Axis:
    """Return the left axis of a picture, linear."""
    return axes.linear(TOP + HEIGHT, -HEIGHT, low, high, 6, name=name)


def logarithmic(axis: Axis, ticks: Sequence[float]) -> Axis:
    """Return the axis with a logarithmic scale and these ticks."""
    import math
    from dataclasses import replace

    return replace(axis, ticks=ticks, warp=math.log)


__all__ = ["Row", "across", "colours", "logarithmic", "picture", "upward"]
