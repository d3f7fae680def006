"""Pictures of arriving work: power over time, the distribution of times in the system, ingress x pool."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optbench.html import svg
from optbench.html.axes import DASHES, WIDTH, TimeAxis, chart, colour, mark, short
from optbench.html.axis_scale import TimeScale, amount, nice_ticks
from optbench.report.operation_figures import Operation
from optbench.report.words import percent

LEFT, NAMES, TOP, HEIGHT, FOOT = 90.0, 190.0, 10.0, 300.0, 48.0
# Points of a curve.
POINTS = 240
# Panels of the heat map in a row, their names' room, the side of a square, and what a square needs to hold a figure.
ABREAST, ROW_NAMES, SIDE, FIGURE_ROOM = 3, 112.0, 31.0, 28.0
LETTERS = 16


def _name(k: int, label: str, y: float, right: float) -> str:
    return mark(k, right + 14, y, 4.5) + svg.text(right + 24, y + 4, short(label), class_="side-name")


def _names(found: Sequence[tuple[str, Operation]], number: dict[str, int], right: float) -> list[str]:
    return [_name(number[label], label, TOP + 12 + 20 * j, right) for j, (label, _) in enumerate(found)]


def power(found: Sequence[tuple[str, Operation]], number: dict[str, int]) -> str:
    """A curve per solver: mean watts of each hour of a week."""
    width = WIDTH - LEFT - NAMES
    end = float(max(each.edges_s[-1] for _, each in found))
    highest = max(float(each.watts.max()) for _, each in found)
    scale = TimeScale(end, LEFT, width, 1.0)
    base, ceiling = TOP + HEIGHT, 1.08 * highest if highest > 0 else 1.0
    parts = [svg.tag("rect", x=LEFT, y=TOP, width=width, height=HEIGHT, class_="lane")]
    for watts in nice_ticks(ceiling, 5):
        y = base - HEIGHT * watts / ceiling
        parts += [
            svg.line(LEFT, y, LEFT + width, y, class_="grid"),
            svg.text(LEFT - 10, y + 4, amount(watts, "W"), class_="watts"),
        ]
    for t in scale.ticks():
        words = scale.label(t).removesuffix(" 0:00:00").removesuffix(" 00:00:00")
        parts += [
            svg.line(scale.x(t), TOP, scale.x(t), base, class_="grid"),
            svg.text(scale.x(t), base + 18, words, class_="tick"),
        ]
    for label, each in found:
        k = number[label]
        mean_w = float(np.average(each.watts, weights=np.diff(each.edges_s)))
        words = svg.title([label, f"{amount(mean_w, 'W')} on average"])
        path = svg.steps([scale.x(t) for t in each.edges_s.tolist()], [base - HEIGHT * w / ceiling for w in each.watts.tolist()])
        parts.append(svg.tag("path", words, d=path, stroke=colour(k), stroke_dasharray=DASHES[k % len(DASHES)], class_="curve"))
    return chart([*parts, *_names(found, number, LEFT + width)], base + FOOT, "power over time")


def times(found: Sequence[tuple[str, Operation]], number: dict[str, int]) -> str:
    """Share of all arrivals that was done within a time; a curve that ends below 100 % has left work undone."""
    ended = [each.sojourn_s for _, each in found if len(each.sojourn_s)]
    if not ended:
        return ""
    low = max(1e-3, min(float(each[0]) for each in ended))
    high = max(float(each[-1]) for each in ended)
    width, base = WIDTH - LEFT - NAMES, TOP + HEIGHT
    axis = TimeAxis(LEFT, width, low / 1.2, high * 1.2)
    parts = [svg.tag("rect", x=LEFT, y=TOP, width=width, height=HEIGHT, class_="lane")]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = base - HEIGHT * share
        parts += [svg.line(LEFT, y, LEFT + width, y, class_="grid"), svg.text(LEFT - 10, y + 4, percent(share), class_="watts")]
    for value, words in axis.ticks:
        parts += [svg.line(axis.at(value), TOP, axis.at(value), base, class_="grid")]
        parts += [svg.text(axis.at(value), base + 18, words, class_="tick")]
    for label, each in found:
        if len(each.sojourn_s):
            parts.append(_distribution(label, each, number[label], axis, base))
    return chart([*parts, *_names(found, number, LEFT + width)], base + FOOT, "times in the system")


def _distribution(label: str, each: Operation, k: int, axis: TimeAxis, base: float) -> str:
    count = len(each.sojourn_s)
    rank = np.unique(np.linspace(0, count - 1, POINTS).round().astype(np.int64))
    xs = [axis.at(value) for value in each.sojourn_s[rank].tolist()]
    ys = [base - HEIGHT * (r + 1) / each.arrivals for r in rank.tolist()]
    path = f"M{svg.num(xs[0])} {svg.num(base)}" + "".join(f"L{svg.num(x)} {svg.num(y)}" for x, y in zip(xs, ys, strict=True))
    words = svg.title([label, f"{percent(count / each.arrivals)} of {each.arrivals:,} arrivals done"])
    return svg.tag("path", words, d=path, stroke=colour(k), stroke_dasharray=DASHES[k % len(DASHES)], class_="curve")


def routes(found: Sequence[tuple[str, Operation]], number: dict[str, int], ingresses: Sequence[str], pools: Sequence[str]) -> str:
    """A panel per solver: a row per ingress, a column per pool, the deeper the more."""
    panel = WIDTH / ABREAST
    side = min(SIDE, (panel - ROW_NAMES - 24) / len(pools))
    head = 84.0
    height = head + min(side, 24.0) * len(ingresses) + 16.0
    parts = []
    for j, (label, each) in enumerate(found):
        left, top = panel * (j % ABREAST), height * (j // ABREAST)
        parts.append(mark(number[label], left + 8, top + 10, 4.5) + svg.text(left + 18, top + 14, short(label), class_="figure"))
        parts.append(_panel(each, ingresses, pools, left + ROW_NAMES, top + head, side))
    rows = -(-len(found) // ABREAST)
    return chart(parts, height * rows, "ingress by pool")


def _panel(each: Operation, ingresses: Sequence[str], pools: Sequence[str], left: float, top: float, side: float) -> str:
    row = min(side, 24.0)
    parts = []
    for p, name in enumerate(pools):
        x = left + side * (p + 0.5)
        turned = f"translate({svg.num(x)} {svg.num(top - 6)}) rotate(-45)"
        parts.append(svg.tag("text", svg.escape(name[:LETTERS]), transform=turned, class_="tick-turned"))
    for g, ingress in enumerate(ingresses):
        y = top + row * g
        parts.append(svg.text(left - 6, y + row / 2 + 4, ingress[:LETTERS], class_="watts"))
        for p, pool in enumerate(pools):
            share = float(each.shares[g, p])
            known = np.isfinite(share)
            words = svg.title([f"{ingress} to {pool}", percent(share) if known else "nothing came in"])
            place = {"x": left + side * p, "y": y, "width": side - 1, "height": row - 1}
            depth = f"{share**0.5:.2f}" if known else "0"  # by the root, so that little is told from nothing
            parts.append(svg.tag("rect", class_="lane", **place))
            parts.append(svg.tag("rect", words, fill="var(--accent)", fill_opacity=depth, **place))
            if known and side >= FIGURE_ROOM and share >= 0.005:
                parts.append(svg.text(left + side * (p + 0.5), y + row / 2 + 4, f"{100 * share:.0f}", class_="square"))
    return "".join(parts)
