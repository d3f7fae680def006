"""SVG elements as strings, with coordinates at a tenth of a pixel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape as escape
from typing import Any

# Width of a chart that fills the page.
WIDTH = 1200.0


def num(value: float) -> str:
    """A coordinate."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def tag(name: str, content: str = "", /, **attributes: Any) -> str:
    """``<name ...>content</name>``; underscores in attributes become hyphens, trailing ones go."""
    words = [name]
    for key, value in attributes.items():
        if value is not None:
            shown = num(value) if isinstance(value, float) else escape(str(value))
            words.append(f'{key.rstrip("_").replace("_", "-")}="{shown}"')
    opening = " ".join(words)
    return f"<{opening}>{content}</{name}>" if content else f"<{opening}/>"


def text(x: float, y: float, words: str, **attributes: Any) -> str:
    return tag("text", escape(words), x=float(x), y=float(y), **attributes)


def title(lines: Iterable[str]) -> str:
    """A tooltip, one line each, or none; browsers show it even without the script."""
    words = escape("\n".join(lines))
    return f"<title>{words}</title>" if words else ""


def path(d: str, tip: Iterable[str] = (), **attributes: Any) -> str:
    return tag("path", title(tip), d=d, **attributes)


def circle(x: float, y: float, r: float, tip: Iterable[str] = (), **attributes: Any) -> str:
    return tag("circle", title(tip), cx=x, cy=y, r=r, **attributes)


def rect(
    x: float, y: float, width: float, height: float, tip: Iterable[str] = (), **attributes: Any
) -> str:
    return tag("rect", title(tip), x=x, y=y, width=width, height=height, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, **attributes: Any) -> str:
    return path(f"M{num(x1)} {num(y1)}L{num(x2)} {num(y2)}", **attributes)


def polyline(points: Iterable[tuple[float, float]]) -> str:
    """Path data of straight lines through the points."""
    return "M" + "L".join(f"{num(x)} {num(y)}" for x, y in points)


def chart(
    parts: Iterable[str], height: float, label: str, width: float = WIDTH, class_: str = "chart"
) -> str:
    """A whole picture; ``label`` describes it to readers who do not see it."""
    box = f"0 0 {width:g} {num(height)}"
    return tag("svg", "".join(parts), viewBox=box, class_=class_, role="img", aria_label=label)


def steps(xs: Sequence[float], ys: Sequence[float]) -> str:
    """Path data of a staircase: ``ys[k]`` holds from ``xs[k]`` to ``xs[k + 1]``."""
    parts = [f"M{num(xs[0])} {num(ys[0])}"]
    for k in range(len(ys)):
        if k:
            parts.append(f"V{num(ys[k])}")
        parts.append(f"H{num(xs[k + 1])}")
    return "".join(parts)


def band(xs: Sequence[float], top: Sequence[float], bottom: Sequence[float]) -> str:
    """Path data of the area between two staircases."""
    back = [f"V{num(bottom[-1])}"]
    for k in range(len(bottom) - 1, -1, -1):
        back.append(f"H{num(xs[k])}")
        if k:
            back.append(f"V{num(bottom[k - 1])}")
    return steps(xs, top) + "".join(back) + "Z"
