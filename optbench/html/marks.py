"""Marks, dashes and labels that tell solvers apart in a chart, by shape as well as by colour."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from optbench.html import colours, svg

DASHES = (None, "8 4", "3 3", "12 3 3 3", "6 2", "16 4")
LONGEST_NAME = 24
# Height of a line of labels, and the width of a letter.
LINE, LETTER = 15.0, 7.0


def mark(k: int, x: float, y: float, size: float, tip: Iterable[str] = ()) -> str:
    """The k-th solver's mark: shapes and colours repeat with different periods."""
    h, w = svg.num, size
    shapes = (
        f"M{h(x - w)} {h(y)}a{h(w)} {h(w)} 0 1 0 {h(2 * w)} 0a{h(w)} {h(w)} 0 1 0 {h(-2 * w)} 0Z",
        f"M{h(x - w)} {h(y - w)}h{h(2 * w)}v{h(2 * w)}h{h(-2 * w)}Z",
        (
            f"M{h(x)} {h(y - 1.3 * w)}L{h(x + 1.3 * w)} {h(y)}L{h(x)} "
            f"{h(y + 1.3 * w)}L{h(x - 1.3 * w)} {h(y)}Z"
        ),
        f"M{h(x)} {h(y - 1.2 * w)}L{h(x + 1.2 * w)} {h(y + w)}H{h(x - 1.2 * w)}Z",
        f"M{h(x)} {h(y + 1.2 * w)}L{h(x + 1.2 * w)} {h(y - w)}H{h(x - 1.2 * w)}Z",
    )
    return svg.path(shapes[k % len(shapes)], tip, fill=colours.solver(k), class_="mark")


def key(k: int) -> str:
    """The mark by itself, for tables and legends."""
    drawn = mark(k, 7.0, 7.0, 5.0)
    return (
        '<svg class="mark-key" viewBox="0 0 14 14" width="14" height="14" '
        f'aria-hidden="true">{drawn}</svg>'
    )


def curve(k: int, path: str, tip: Iterable[str] = ()) -> str:
    """The k-th solver's line along path data."""
    dashes = DASHES[k % len(DASHES)]
    return svg.path(path, tip, stroke=colours.solver(k), stroke_dasharray=dashes, class_="curve")


def cross(x: float, y: float, size: float, tip: Iterable[str] = ()) -> str:
    """The mark of an instance without a gap."""
    h, w = svg.num, size
    path = (
        f"M{h(x - w)} {h(y - w)}l{h(2 * w)} {h(2 * w)}M{h(x + w)} {h(y - w)}l{h(-2 * w)} {h(2 * w)}"
    )
    return svg.path(path, tip, class_="cross")


def short(name: str, longest: int = LONGEST_NAME) -> str:
    """A name cut to so many letters."""
    return name if len(name) <= longest else name[: longest - 1] + "…"


def side_label(k: int, name: str, x: float, y: float) -> str:
    """The k-th solver's mark and name, right of a chart that ends at ``x``."""
    return mark(k, x + 14, y, 4.5) + svg.text(x + 24, y + 4, short(name), class_="side-name")


def side_labels(labels: Sequence[tuple[float, int, str]], x: float, base: float) -> list[str]:
    """Labels (height, solver, name), given from the top down, moved so that none overlap."""
    out, last = [], float("-inf")
    for j, (y, k, name) in enumerate(labels):
        last = min(max(y, last + LINE), base - LINE * (len(labels) - 1 - j))
        out.append(side_label(k, name, x, last))
    return out


@dataclass
class PointLabels:
    """Names beside points, placed so that they overlap neither points nor each other."""

    top: float
    base: float
    left_too: bool = False
    taken: list[tuple[float, float, float]] = field(default_factory=list)  # left, right, middle

    def reserve(self, x: float, y: float, radius: float = 8.0) -> None:
        """Keep labels away from a point."""
        self.taken.append((x - radius, x + radius, y))

    def add(self, x: float, y: float, name: str, colour: str | None = None) -> str:
        """The name right of the point, left of it if ``left_too``, or on another line."""
        width = LETTER * len(name)
        sides = (12, -12 - width) if self.left_too else (12,)
        spots = [(x + side, line) for line in self._lines(y) for side in sides]
        left, middle = next((spot for spot in spots if self._is_free(*spot, width)), spots[0])
        self.taken.append((left, left + width, middle))
        class_, style = ("side-name", None) if colour is None else ("run-name", f"fill:{colour}")
        return svg.text(left, middle + 4, name, class_=class_, style=style)

    def _lines(self, y: float) -> Iterator[float]:
        """Heights for a name, the nearest first."""
        yield y
        for k in range(1, len(self.taken) + 1):
            for line in (y + LINE * k, y - LINE * k):
                if self.top + 8 <= line <= self.base - 8:
                    yield line

    def _is_free(self, left: float, middle: float, width: float) -> bool:
        return all(
            left >= right or other >= left + width or abs(middle - line) >= LINE - 1
            for other, right, line in self.taken
        )
