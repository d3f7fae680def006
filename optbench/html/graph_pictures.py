"""Pictures of graphs in parts, each an SVG that stands alone.

    point_graph(group, names, tail, head, words)             every node, coloured by its group
    bubble_graph(sizes, names, fills, weights, key, words)   a bubble per group, lines between them

``words`` stand above the picture and describe it to readers who do not see it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from optbench.html import svg
from optbench.html.colours import TASKS, colour
from optbench.html.graph_layouts import (
    fitted,
    force_layout,
    lying,
    on_circle,
    ring_order,
    spectral_start,
)
from optbench.html.standalone_charts import LEFT, LEGEND_ROW, WIDTH, legend, standalone

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# The place of the graph, below the words.
TOP, HEIGHT, SIDE = 44.0, 520.0, 60.0
# The same with one bubble or two.
LOW_HEIGHT = 170.0
STYLE = (
    ".in{stroke:#b5bac4;stroke-width:1;fill:none}.cut{stroke:#d2493a;stroke-width:1.4;fill:none}"
    ".link{stroke:#8d95a5;fill:none;stroke-opacity:.55;stroke-linecap:round}"
    ".o{stroke:#fff;stroke-width:1}.on{fill:#16202e;text-anchor:middle}"
    ".side{text-anchor:middle}.note{paint-order:stroke;stroke:#fff;stroke-width:4px;"
    "text-anchor:middle;font-size:12px}"
    "@media(prefers-color-scheme:dark){.in{stroke:#6b7488}.cut{stroke:#ff8a65}.o{stroke:#12151b}"
    ".note{stroke:#12151b}}"
)
SMALLEST_NODE, LARGEST_NODE = 3.0, 11.0
# Most edges and names drawn, and bubbles; of more, an evenly spaced or the heaviest selection.
MOST_EDGES, MOST_NAMES, MOST_BUBBLES, MOST_LINKS = 4000, 16, 60, 400
# Bubbles whose radius is smaller have no words inside.
LEAST_RADIUS, LARGEST_SHARE = 9.0, 0.36
LARGEST_BUBBLE, PAIR = 62.0, 190.0
THICKEST, THINNEST = 22.0, 0.4
# With more bubbles lines are thinner, and neither they nor bubbles have numbers.
MOST_NUMBERED = 14
# Weights written beside their lines, the heaviest first, where there is room.
MOST_NOTES = 15


def point_graph(
    group: Ints, names: Sequence[str], tail: Ints, head: Ints, words: str, key: Mapping[str, str]
) -> str:
    """Nodes coloured by group; ``key`` names edges within (class "in") and between ("cut")."""
    count = len(names)
    at = lying(force_layout(spectral_start(len(group), tail, head), tail, head))
    at = fitted(at, SIDE, TOP + 12, WIDTH - 2 * SIDE, HEIGHT - 24)
    parts = [svg.text(LEFT, 22.0, words)]
    chosen = np.linspace(0, max(len(tail) - 1, 0), min(len(tail), MOST_EDGES)).astype(np.int64)
    between = group[tail] != group[head]
    for class_, wanted in (("in", False), ("cut", True)):
        lines = [e for e in chosen.tolist() if bool(between[e]) == wanted]
        d = "".join(_line(at[tail[e]], at[head[e]]) for e in lines)
        parts.append(svg.path(d, class_=class_) if d else "")
    radius = _radius(at)
    parts += [
        svg.circle(float(x), float(y), radius, class_="o", fill=colour(TASKS, int(g)))
        for (x, y), g in zip(at.tolist(), group.tolist(), strict=True)
    ]
    shown = [f"{name}" for name in names[:MOST_NAMES]]
    if count > MOST_NAMES:
        shown[-1] = f"and {count - MOST_NAMES + 1} more"
    bottom = TOP + HEIGHT + 12
    keys, rows = legend(shown, bottom, [colour(TASKS, g) for g in range(len(shown))])
    parts += [*keys, *_line_key(key, bottom + LEGEND_ROW * rows)]
    return standalone(parts, bottom + LEGEND_ROW * (rows + 1) + 4, words, STYLE)


def _radius(at: Floats) -> float:
    """A radius with which most nodes do not touch."""
    if len(at) < 2:
        return LARGEST_NODE
    squares = np.square(at[:, None, :] - at[None, :, :]).sum(axis=2)
    np.fill_diagonal(squares, np.inf)
    nearest = np.sqrt(np.median(squares.min(axis=1)))
    return float(np.clip(0.4 * nearest, SMALLEST_NODE, LARGEST_NODE))


def _line(one: Floats, other: Floats) -> str:
    x, y, z, w = (svg.num(float(value)) for value in (*one, *other))
    return f"M{x} {y}L{z} {w}"


def _line_key(key: Mapping[str, str], top: float) -> list[str]:
    """Short lines with what they mean."""
    out, x = list[str](), LEFT
    for class_, words in key.items():
        out.append(svg.line(x, top + 7, x + 24, top + 7, class_=class_))
        out.append(svg.text(x + 32, top + 11, words))
        x += 60 + 7.5 * len(words)
    return out


def bubble_graph(
    sizes: Floats,
    names: Sequence[tuple[str, str]],
    fills: Ints,
    weights: Floats,
    key: Sequence[str],
    words: str,
) -> str:
    """A bubble per group with the area of its size, lines as thick as the weight between two.

    ``names`` are two lines each, ``fills`` numbers of colours, which ``key`` names. ``weights`` is
    symmetric.
    """
    shown = np.sort(np.argsort(-sizes, kind="stable")[:MOST_BUBBLES])
    shown = shown[ring_order(weights[np.ix_(shown, shown)])]
    count = len(shown)
    height = HEIGHT if count > 2 else LOW_HEIGHT
    middle = np.array([WIDTH / 2, TOP + 16 + height / 2])
    turned, largest = _ring(count, height)
    at = middle + turned
    radius = np.maximum(largest * np.sqrt(sizes[shown] / max(float(sizes.max()), 1.0)), 2.0)
    parts = [svg.text(LEFT, 22.0, words)]
    notes = list[str]()
    parts += _links(at, radius, weights[np.ix_(shown, shown)], notes)
    for k, i in enumerate(shown.tolist()):
        x, y = at[k].tolist()
        r = float(radius[k])
        parts.append(svg.circle(x, y, r, class_="o", fill=colour(TASKS, int(fills[i]))))
        parts += _bubble_words(x, y, r, names[i], middle, count)
    parts += notes
    bottom = TOP + height + 56
    listed = list(key[:MOST_NAMES])
    keys, rows = legend(listed, bottom, [colour(TASKS, k) for k in range(len(listed))])
    if count < len(sizes):
        left = f"the largest {count} of {len(sizes)} are drawn"
        keys.append(svg.text(LEFT, bottom + LEGEND_ROW * rows + 11, left))
        rows += 1
    return standalone([*parts, *keys], bottom + LEGEND_ROW * rows + 4, words, STYLE)


def _ring(count: int, height: float) -> tuple[Floats, float]:
    """Places around the middle, two of them side by side, and the largest radius with which
    neighbours do not touch.
    """
    if count <= 2:
        return np.array([[-PAIR, 0.0], [PAIR, 0.0]])[:count] * (count == 2), LARGEST_BUBBLE
    room = (120.0, 24.0) if count > MOST_NUMBERED else (190.0, 62.0)
    reach = np.array([WIDTH / 2 - room[0], height / 2 - room[1]])
    share = 2 * np.pi * float(reach.mean()) / count * LARGEST_SHARE
    return on_circle(count) * reach, min(share, LARGEST_BUBBLE)


def _links(at: Floats, radius: Floats, weights: Floats, notes: list[str]) -> list[str]:
    """Lines, the heaviest on top; their weights where there is room go to ``notes``."""
    one, other = np.nonzero(np.triu(weights, 1))
    weight = weights[one, other]
    order = np.argsort(-weight, kind="stable")[:MOST_LINKS]
    out, taken = list[str](), [(x, y, r + 10) for (x, y), r in zip(at.tolist(), radius.tolist())]
    widest = THICKEST * min(1.0, (MOST_NUMBERED / len(at)) ** 2)
    for rank, e in enumerate(order.tolist()):
        a, b = at[one[e]], at[other[e]]
        thick = max(THINNEST, widest * float(np.sqrt(weight[e] / weight.max())))
        out.append(svg.path(_line(a, b), class_="link", stroke_width=thick))
        if rank < MOST_NOTES and len(at) <= MOST_NUMBERED:
            text = f"{weight[e]:,.0f}"
            place = _free_place(a, b, 4.0 * len(text) + 4, taken)
            if place is not None:
                taken.append((*place, 4.0 * len(text) + 4))
                notes.append(svg.text(place[0], place[1] + 4, text, class_="note"))
    return out[::-1]


def _free_place(
    a: Floats, b: Floats, room: float, taken: Sequence[tuple[float, float, float]]
) -> tuple[float, float] | None:
    """A place along a line that is away from all others."""
    for share in (0.5, 0.4, 0.6, 0.3, 0.7):
        x, y = (a + share * (b - a)).tolist()
        if all((x - p) ** 2 + (y - q) ** 2 > (room + r) ** 2 for p, q, r in taken):
            return x, y
    return None


def _bubble_words(
    x: float, y: float, r: float, name: tuple[str, str], middle: Floats, count: int
) -> list[str]:
    """The name inside, and the second line outside of the circle, away from its middle."""
    inside = svg.text(x, y + 4.5, name[0], class_="on") if r >= LEAST_RADIUS else ""
    if count > MOST_NUMBERED:
        return [inside]
    if count == 1:
        return [inside, svg.text(x, y + r + 18, name[1], class_="side")]
    right, left = x > middle[0] + 60, x < middle[0] - 60
    if right or left:
        anchor = "start" if right else "end"
        place = x + (r + 8) * (1 if right else -1)
        return [inside, svg.text(place, y + 4.5, name[1], text_anchor=anchor)]
    below = y > middle[1]
    return [inside, svg.text(x, y + (r + 18 if below else -r - 8), name[1], class_="side")]
