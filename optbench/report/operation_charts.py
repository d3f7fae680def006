"""Charts of arriving work: energy against sojourn, power over time, sojourns, routes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from optbench.html import axes, svg
from optbench.html.marks import curve, mark, short, side_label, side_labels
from optbench.html.quantities import amount, clock, plain
from optbench.report.formatting import percent, seconds
from optbench.report.operation_figures import Operation

LEFT, NAMES, TOP, HEIGHT = 90.0, 190.0, 10.0, 300.0
FRONT_NAMES, FRONT_HEIGHT = 250.0, 380.0
# Points of a curve.
POINTS = 240
# Heat maps in a row, room for names of rows, side of a square, least side with room for a figure.
ABREAST, ROW_NAMES, SIDE, FIGURE_ROOM = 3, 112.0, 31.0, 28.0
LETTERS = 16

# Solvers with what they did.
Found = Sequence[tuple[str, Operation]]


@dataclass(frozen=True)
class FrontierPoint:
    """Means over instances of one solver; ``floor`` is None where no bound is known."""

    label: str
    sojourn_s: float
    j_per_unit: float
    floor: float | None


def frontier(points: Sequence[FrontierPoint], number: dict[str, int]) -> str:
    """J per unit against mean time in the system by solver, with a line through certified
    floors.
    """
    if len(points) < 2:
        return ""
    low_s, high_s = min(p.sojourn_s for p in points) / 1.3, max(p.sojourn_s for p in points) * 1.3
    values = [value for p in points for value in (p.j_per_unit, p.floor) if value is not None]
    x = axes.clock_times(
        LEFT, svg.WIDTH - LEFT - FRONT_NAMES, low_s, high_s, "mean time in the system"
    )
    y = axes.linear(TOP + FRONT_HEIGHT, -FRONT_HEIGHT, *axes.padded(values, 0.06), 6)
    floors = sorted((x.at(p.sojourn_s), y.at(p.floor)) for p in points if p.floor is not None)
    parts = _floors(floors)
    ranked = sorted(points, key=lambda each: -each.j_per_unit)
    for p in ranked:
        above = (
            "" if p.floor is None else f", {percent(1 - p.floor / p.j_per_unit)} above its floor"
        )
        cost = f"{plain(float(f'{p.j_per_unit:.5g}'))} J per unit{above}"
        words = [p.label, cost, f"{seconds(p.sojourn_s)} in the system"]
        parts.append(mark(number[p.label], x.at(p.sojourn_s), y.at(p.j_per_unit), 5.5, words))
    labels = [(y.at(p.j_per_unit), number[p.label], p.label) for p in ranked]
    parts += side_labels(labels, x.end, y.start)
    return axes.chart(x, y, parts, "J per unit against time in the system")


def _floors(places: Sequence[tuple[float, float]]) -> list[str]:
    """The floors joined in order of time; the true floor is convex and a little below the line."""
    if not places:
        return []
    dots = [svg.circle(x, y, 2.5, class_="floor-dot") for x, y in places]
    return [svg.path(svg.polyline(places), class_="floor"), *dots]


def _names(found: Found, number: dict[str, int], right: float) -> list[str]:
    heights = (TOP + 12 + 20 * j for j in range(len(found)))
    return [side_label(number[label], label, right, y) for (label, _), y in zip(found, heights)]


def power(found: Found, number: dict[str, int]) -> str:
    """Power over time: a curve per solver of mean watts, each over an hour of a week."""
    end = float(max(each.edges_s[-1] for _, each in found))
    highest = max(float(each.watts.max()) for _, each in found)
    x = axes.times(LEFT, svg.WIDTH - LEFT - NAMES, end, 1.0)
    x = replace(x, write=lambda t: clock(t).removesuffix(" 0:00:00"))
    top_w = 1.08 * highest if highest > 0 else 1.0
    y = axes.linear(TOP + HEIGHT, -HEIGHT, 0.0, top_w, write=lambda watts: amount(watts, "W"))
    parts = []
    for label, each in found:
        mean_w = float(np.average(each.watts, weights=np.diff(each.edges_s)))
        xs, ys = map(x.at, each.edges_s.tolist()), map(y.at, each.watts.tolist())
        words = [label, f"{amount(mean_w, 'W')} on average"]
        parts.append(curve(number[label], svg.steps(list(xs), list(ys)), words))
    return axes.chart(x, y, parts + _names(found, number, x.end), "power over time")


def times(found: Found, number: dict[str, int]) -> str:
    """Share of all arrivals done within a time; a curve below 100 % at its end left work undone."""
    ended = [each.sojourn_s for _, each in found if len(each.sojourn_s)]
    if not ended:
        return ""
    low = max(1e-3, min(float(each[0]) for each in ended))
    high = max(float(each[-1]) for each in ended)
    x = axes.decades(LEFT, svg.WIDTH - LEFT - NAMES, low / 1.2, high * 1.2)
    y = axes.shares(TOP + HEIGHT, -HEIGHT)
    parts = [
        _distribution(label, each, number[label], x, y)
        for label, each in found
        if len(each.sojourn_s)
    ]
    return axes.chart(x, y, parts + _names(found, number, x.end), "times in the system")


def _distribution(label: str, each: Operation, k: int, x: axes.Axis, y: axes.Axis) -> str:
    count = len(each.sojourn_s)
    rank = np.unique(np.linspace(0, count - 1, POINTS).round().astype(np.int64))
    shares = ((rank + 1) / each.arrivals).tolist()
    points = list(zip(map(x.at, each.sojourn_s[rank].tolist()), map(y.at, shares), strict=True))
    words = [label, f"{percent(count / each.arrivals)} of {each.arrivals:,} arrivals done"]
    return curve(k, svg.polyline([(points[0][0], y.start), *points]), words)


def routes(
    found: Found, number: dict[str, int], ingresses: Sequence[str], pools: Sequence[str]
) -> str:
    """A heat map per solver: a row per ingress, a column per pool."""
    panel = svg.WIDTH / ABREAST
    side = min(SIDE, (panel - ROW_NAMES - 24) / len(pools))
    head = 84.0
    height = head + min(side, 24.0) * len(ingresses) + 16.0
    parts = []
    for j, (label, each) in enumerate(found):
        left, top = panel * (j % ABREAST), height * (j // ABREAST)
        parts.append(mark(number[label], left + 8, top + 10, 4.5))
        parts.append(svg.text(left + 18, top + 14, short(label), class_="figure"))
        parts.append(_panel(each, ingresses, pools, left + ROW_NAMES, top + head, side))
    rows = -(-len(found) // ABREAST)
    return svg.chart(parts, height * rows, "ingress by pool")


def _panel(
    each: Operation,
    ingresses: Sequence[str],
    pools: Sequence[str],
    left: float,
    top: float,
    side: float,
) -> str:
    row = min(side, 24.0)
    parts = []
    for p, name in enumerate(pools):
        x = left + side * (p + 0.5)
        turned = f"translate({svg.num(x)} {svg.num(top - 6)}) rotate(-45)"
        parts.append(
            svg.tag("text", svg.escape(name[:LETTERS]), transform=turned, class_="tick-turned")
        )
    for g, ingress in enumerate(ingresses):
        y = top + row * g
        parts.append(svg.text(left - 6, y + row / 2 + 4, ingress[:LETTERS], class_="watts"))
        for p, pool in enumerate(pools):
            share = float(each.shares[g, p])
            known = np.isfinite(share)
            words = [f"{ingress} to {pool}", percent(share) if known else "nothing came in"]
            place = (left + side * p, y, side - 1, row - 1)
            depth = f"{share**0.5:.2f}" if known else "0"  # the root makes small shares visible
            parts.append(svg.rect(*place, class_="lane"))
            parts.append(svg.rect(*place, words, fill="var(--accent)", fill_opacity=depth))
            if known and side >= FIGURE_ROOM and share >= 0.005:
                figure, x = f"{100 * share:.0f}", left + side * (p + 0.5)
                parts.append(svg.text(x, y + row / 2 + 4, figure, class_="square"))
    return "".join(parts)
