"""Horizontal bars in rows with their names on the left and their values on the right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from optbench.html import svg
from optbench.html.axes import Axis


@dataclass(frozen=True)
class Bar:
    """A bar from ``low`` to ``high`` on the axis, ``below`` pixels from the top of its row."""

    low: float
    high: float
    fill: str
    value: str
    tip: Sequence[str] = ()
    thickness: float = 24.0
    below: float = 0.0
    class_: str | None = None


def text_y(bars: Sequence[Bar]) -> float:
    """Where text stands in a row, from its top, to be in the middle of its bars."""
    return max(bar.below + bar.thickness for bar in bars) / 2 + 4


def bar_row(name: str, bars: Sequence[Bar], axis: Axis, top: float) -> str:
    """One row from ``top`` on."""
    out = [svg.text(axis.start - 12, top + text_y(bars), name, class_="pool")]
    for bar in bars:
        x, end = axis.at(bar.low), axis.at(bar.high)
        y, width = top + bar.below, max(1.0, end - x)
        place = (x, y, width, bar.thickness)
        out.append(svg.rect(*place, bar.tip, rx=2.0, fill=bar.fill, class_=bar.class_))
        if bar.value:
            middle = y + bar.thickness / 2 + 4
            out.append(svg.text(max(end, x + 1) + 8, middle, bar.value, class_="tick-left"))
    return "".join(out)
