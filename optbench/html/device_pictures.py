"""Pictures of devices at work, each an SVG that stands alone.

    stacked_bars({"fast": {"computing": 2.0, "waiting": 1.0}}, "ms of a step", words)
    share_lanes({"fast": Lane([0, 1, 2], {"computing": [0.9, 0.8]})}, "s", words)
    matrix_chart(names, values, "from", "to", words)
    step_curves({"fast": ([0, 20, 40], [3.1, 3.0])}, "step", "MB per step")

Parts of the same name have the same colour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from optbench.html import svg
from optbench.html.axes import FOOT, Axis, linear
from optbench.html.colours import TASKS, colour
from optbench.html.quantities import plain
from optbench.html.standalone_charts import (
    CHARACTER,
    LEFT,
    LEGEND_ROW,
    RIGHT,
    WIDTH,
    legend,
    standalone,
    step_lines,
)

TOP, BAR, GAP = 44.0, 26.0, 12.0
LANE, LANE_GAP = 46.0, 16.0
MOST_ROWS, MOST_LANES, MOST_CURVES = 40, 12, 16
# Squares of a matrix at most, with numbers up to so many; the deepest shade of the largest value.
MOST_SQUARES, MOST_NUMBERED, DEEPEST = 40, 12, 0.6
STYLE = (
    ".on{fill:#16202e;font-size:12px;text-anchor:middle}.end{text-anchor:end}"
    ".mid{text-anchor:middle}.h{fill:#4a86e8}.f{fill:none;stroke:#ccd1da}"
    "@media(prefers-color-scheme:dark){.f{stroke:#3d4556}}"
)


@dataclass(frozen=True)
class Lane:
    """Shares of the time by part, from one edge to the next."""

    edges: Sequence[float]
    shares: Mapping[str, Sequence[float]]


def _parts_of(rows: Sequence[Mapping[str, object]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _left_of(names: Sequence[str]) -> float:
    """Room for the names on the left."""
    return min(260.0, max([LEFT, *(24 + CHARACTER * len(name) for name in names)]))


def stacked_bars(rows: Mapping[str, Mapping[str, float]], x_name: str, words: str) -> str:
    """A bar per row of parts after each other, and the share of the first part at its end."""
    shown = dict(list(rows.items())[:MOST_ROWS])
    names = _parts_of(list(shown.values()))
    left = _left_of(list(shown))
    longest = max([sum(row.values()) for row in shown.values()], default=0.0) or 1.0
    base = TOP + (BAR + GAP) * len(shown)
    x = linear(left, WIDTH - left - RIGHT - 60, 0.0, longest, most=8, name=x_name)
    out = [svg.text(LEFT, 22.0, words), *_ticks(x, TOP - 6, base)]
    for k, (name, row) in enumerate(shown.items()):
        y, begin = TOP + (BAR + GAP) * k, 0.0
        out.append(svg.text(left - 10, y + BAR / 2 + 5, name, class_="end"))
        for part, value in row.items():
            width = x.at(begin + value) - x.at(begin)
            if width > 0:
                fill = colour(TASKS, names.index(part))
                out.append(svg.rect(x.at(begin), y, width, BAR, fill=fill))
            begin += value
        first = next(iter(row.values()), 0.0) / begin if begin else 0.0
        out.append(svg.text(x.at(begin) + 8, y + BAR / 2 + 5, f"{100 * first:.0f} %"))
    return _finish(out, names, base + FOOT, words, len(rows) - len(shown), "devices")


def share_lanes(lanes: Mapping[str, Lane], x_name: str, words: str) -> str:
    """A lane per device, filled from below by the shares of its parts over time."""
    shown = dict(list(lanes.items())[:MOST_LANES])
    names = _parts_of([lane.shares for lane in shown.values()])
    left = _left_of(list(shown)) + 44
    end = max(lane.edges[-1] for lane in shown.values())
    base = TOP + (LANE + LANE_GAP) * len(shown) - LANE_GAP + 8
    x = linear(left, WIDTH - left - RIGHT, 0.0, end or 1.0, most=10, name=x_name)
    out = [svg.text(LEFT, 22.0, words), *_ticks(x, TOP, base)]
    for k, (name, lane) in enumerate(shown.items()):
        y = TOP + (LANE + LANE_GAP) * k
        out.append(svg.text(left - 54, y + LANE / 2 + 5, name, class_="end"))
        out.append(svg.text(left - 8, y + 10, "100 %", class_="end"))
        out.append(svg.text(left - 8, y + LANE, "0 %", class_="end"))
        xs = [x.at(edge) for edge in lane.edges]
        below = [y + LANE] * (len(xs) - 1)
        for part, shares in lane.shares.items():
            above = [low - LANE * share for low, share in zip(below, shares, strict=True)]
            fill = colour(TASKS, names.index(part))
            out.append(svg.path(svg.band(xs, above, below), class_="a", fill=fill))
            below = above
        out.append(svg.rect(left, y, x.length, LANE, class_="f"))
    return _finish(out, names, base + FOOT, words, len(lanes) - len(shown), "devices")


def matrix_chart(
    names: Sequence[str], values: Sequence[Sequence[float]], rows: str, columns: str, words: str
) -> str:
    """A square per pair, deeper for a larger value, from a row to a column."""
    count = min(len(names), MOST_SQUARES)
    shown, numbered = list(names[:count]), count <= MOST_NUMBERED
    left = _left_of([*shown, rows]) + 20
    side = min(64.0, (WIDTH - left - RIGHT) / count)
    width = min(max(side, 64.0) if numbered else side, (WIDTH - left - RIGHT) / count)
    top = TOP + 46
    largest = max([value for row in values for value in row], default=0.0) or 1.0
    out = [svg.text(LEFT, 22.0, words), svg.text(left - 10, TOP + 12, f"{rows} ↓", class_="end")]
    out.append(svg.text(left, TOP + 12, f"{columns} →"))
    height = min(side, 40.0)
    for i, name in enumerate(shown):
        y, x = top + height * i, left + width * i
        label = name if CHARACTER * len(name) <= max(width - 4, 20) else str(i)
        out.append(svg.text(left - 10, y + height / 2 + 5, name, class_="end"))
        out.append(svg.text(x + width / 2, top - 8, label, class_="mid"))
        for j in range(count):
            value, x = values[i][j], left + width * j
            share = DEEPEST * value / largest
            square = (x + 1, y + 1, width - 2, height - 2)
            out.append(svg.rect(*square, class_="h", fill_opacity=f"{share:.3f}"))
            out.append(svg.rect(*square, class_="f"))
            if numbered and value > 0:
                words_of = plain(float(f"{value:.3g}"))
                out.append(svg.text(x + width / 2, y + height / 2 + 5, words_of, class_="mid"))
    left_out = len(names) - count
    return _finish(out, [], top + height * count + 12, words, left_out, "devices")


def step_curves(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], x_name: str, y_name: str
) -> str:
    """Staircases with edges of their own, 0 where a curve has no value."""
    shown = dict(list(curves.items())[:MOST_CURVES])
    every = sorted({edge for edges, _ in shown.values() for edge in edges})
    drawn = {}
    for name, (edges, values) in shown.items():
        at, out = 0, list[float]()
        for edge in every[:-1]:
            while at + 1 < len(edges) and edges[at + 1] <= edge:
                at += 1
            out.append(values[at] if edges[0] <= edge and at < len(values) else 0.0)
        drawn[name] = out
    return step_lines(every, drawn, x_name, y_name, dashed=True)


def _ticks(x: Axis, top: float, base: float) -> list[str]:
    """Vertical grid lines, with labels and the name of the axis below."""
    out = [svg.line(x.at(t), top, x.at(t), base, class_="g") for t in x.ticks]
    out += [svg.text(x.at(t), base + 18, x.write(t), class_="mid") for t in x.ticks]
    return [*out, svg.text(x.end, base + 38, x.name, class_="end")]


def _finish(
    parts: list[str], names: Sequence[str], top: float, words: str, left_out: int, what: str
) -> str:
    """The picture with its legend, and how much was left out."""
    keys, rows = legend(names, top, [colour(TASKS, k) for k in range(len(names))])
    height = top + (LEGEND_ROW * rows if names else 0.0)
    if left_out > 0:
        keys.append(svg.text(LEFT, height + 12, f"{left_out} more {what} are not drawn"))
        height += LEGEND_ROW
    return standalone([*parts, *keys], height + 4, words, STYLE)
