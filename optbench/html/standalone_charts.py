"""Charts that stand alone, for the pictures of a shape: each is an SVG with its own styles.

    stacked_steps(edges, {"alone": heights, "shared": others}, "epoch", "GPUs in use")
    step_lines(edges, {"energy": heights}, "hours", "MJ")

A value holds from one edge to the next. A shape names these functions by a string, since it stands
below this room; a user's shape may import them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from optbench.html import svg
from optbench.html.axes import FOOT, Axis, linear
from optbench.html.colours import POOLS, colour

WIDTH, LEFT, RIGHT, TOP, HEIGHT = 1000.0, 70.0, 20.0, 30.0, 240.0
STYLE = (
    "text{font:13px sans-serif;fill:#555}.g{stroke:#ddd;stroke-width:1}"
    ".l{fill:none;stroke-width:2}.a{stroke:none}"
    "@media(prefers-color-scheme:dark){text{fill:#bbb}.g{stroke:#444}}"
)
# Where the legend begins below the chart, and the height of one of its rows.
LEGEND_Y, LEGEND_ROW = TOP + HEIGHT + FOOT, 20.0
DASHES = "7 7"
# Width of a character of a legend, and of its coloured square with the gaps.
CHARACTER, SQUARE = 7.5, 28.0


def stacked_steps(
    edges: Sequence[float], parts: Mapping[str, Sequence[float]], x_name: str, y_name: str
) -> str:
    """Areas one above the other."""
    total = [sum(column) for column in zip(*parts.values(), strict=True)]
    x, y = _axes(edges, [0.0, *total], x_name, y_name)
    xs = [x.at(edge) for edge in edges]
    below, out = [0.0] * len(total), list[str]()
    for k, values in enumerate(parts.values()):
        above = [low + value for low, value in zip(below, values, strict=True)]
        d = svg.steps(xs, [y.at(value) for value in above])
        back = svg.steps(xs[::-1], [y.at(value) for value in below[::-1]])
        out.append(svg.path(f"{d}L{back[1:]}Z", class_="a", fill=colour(POOLS, k)))
        below = above
    return _chart(x, y, out, list(parts), x_name, y_name)


def step_lines(
    edges: Sequence[float],
    parts: Mapping[str, Sequence[float]],
    x_name: str,
    y_name: str,
    dashed: bool = False,
) -> str:
    """Staircases over each other; ``dashed``: later ones let those below show through."""
    every = [0.0, *(value for values in parts.values() for value in values)]
    x, y = _axes(edges, every, x_name, y_name)
    xs = [x.at(edge) for edge in edges]
    out = [
        svg.path(
            svg.steps(xs, [y.at(value) for value in values]),
            class_="l",
            stroke=colour(POOLS, k),
            stroke_dasharray=DASHES if dashed and k else None,
        )
        for k, values in enumerate(parts.values())
    ]
    return _chart(x, y, out, list(parts), x_name, y_name)


def _axes(
    edges: Sequence[float], values: Sequence[float], x_name: str, y_name: str
) -> tuple[Axis, Axis]:
    low, high = min(values), max(values)
    x = linear(LEFT, WIDTH - LEFT - RIGHT, edges[0], edges[-1], most=10, name=x_name)
    top = high + 0.05 * ((high - low) or 1.0)
    return x, linear(TOP + HEIGHT, -HEIGHT, low, top, name=y_name)


def _chart(
    x: Axis, y: Axis, parts: Iterable[str], names: Sequence[str], x_name: str, y_name: str
) -> str:
    grid = [svg.line(x.start, y.at(t), x.end, y.at(t), class_="g") for t in y.ticks]
    labels = [svg.text(x.start - 8, y.at(t) + 4, y.write(t), text_anchor="end") for t in y.ticks]
    labels += [svg.text(x.at(t), y.start + 18, x.write(t), text_anchor="middle") for t in x.ticks]
    labels.append(svg.text(x.end, y.start + 38, x_name, text_anchor="end"))
    keys, rows = legend(names, LEGEND_Y)
    labels += [*keys, svg.text(LEFT, y.start + 38, y_name)]
    height = y.start + FOOT + LEGEND_ROW * rows
    return standalone(
        [*grid, *parts, *labels], height, f"{y_name} over {x_name}: {', '.join(names)}"
    )


def legend(
    names: Sequence[str], top: float, colours: Sequence[str] | None = None
) -> tuple[list[str], int]:
    """Coloured squares with names from ``top`` on, and the number of their rows, at least one."""
    at, row, out = LEFT, 0, list[str]()
    for k, name in enumerate(names):
        width = SQUARE + CHARACTER * len(name)
        if at + width > WIDTH and at > LEFT:
            at, row = LEFT, row + 1
        y0 = top + LEGEND_ROW * row
        fill = colour(POOLS, k) if colours is None else colours[k]
        out.append(svg.rect(at, y0, 12.0, 12.0, fill=fill))
        out.append(svg.text(at + 17, y0 + 11, name))
        at += width
    return out, row + 1


def standalone(parts: Iterable[str], height: float, label: str, style: str = "") -> str:
    """A whole picture with the styles of all, and its own; ``label`` describes it in words."""
    body, words = "".join([f"<style>{STYLE}{style}</style>", *parts]), escape(label, quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {height:g}" role="img" '
        f'aria-label="{words}">{body}</svg>'
    )
