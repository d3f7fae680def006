"""J per unit against the mean time in the system: each solver beside the certified least at its own units and its own mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from optbench.html import svg
from optbench.html.axes import WIDTH, TimeAxis, chart, mark, short
from optbench.html.axis_scale import clock, nice_ticks, plain
from optbench.report.words import percent, seconds

LEFT, NAMES, TOP, HEIGHT, FOOT = 90.0, 250.0, 10.0, 380.0, 48.0
LABEL_ROOM = 15.0
# Seconds that a line may stand at, and how many lines at most.
TIMES = (
    *(1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 2700, 3600, 5400, 7200, 10_800, 21_600, 43_200, 86_400),
    *(172_800, 604_800),
)  # fmt: skip
MOST_TIMES = 10


@dataclass(frozen=True)
class FrontierPoint:
    """Means over instances; ``floor`` is None where nothing certifies one."""

    label: str
    sojourn_s: float
    j_per_unit: float
    floor: float | None


def frontier(points: Sequence[FrontierPoint], number: dict[str, int]) -> str:
    """Marks are solvers, the line below joins their floors; nothing for a single one."""
    if len(points) < 2:
        return ""
    width, base = WIDTH - LEFT - NAMES, TOP + HEIGHT
    axis = TimeAxis(LEFT, width, min(p.sojourn_s for p in points) / 1.3, max(p.sojourn_s for p in points) * 1.3)
    values = [value for p in points for value in (p.j_per_unit, p.floor) if value is not None]
    margin = 0.06 * (max(values) - min(values)) or 1.0
    low, high = min(values) - margin, max(values) + margin

    def y(value: float) -> float:
        return base - HEIGHT * (value - low) / (high - low)

    parts = [svg.tag("rect", x=LEFT, y=TOP, width=width, height=HEIGHT, class_="lane")]
    for value in nice_ticks(high, 6, low):
        parts.append(svg.line(LEFT, y(value), LEFT + width, y(value), class_="grid"))
        parts.append(svg.text(LEFT - 10, y(value) + 4, plain(value), class_="watts"))
    inside = [t for t in TIMES if axis.low <= t <= axis.high]
    for t in inside[:: 1 + len(inside) // MOST_TIMES]:
        parts.append(svg.line(axis.at(t), TOP, axis.at(t), base, class_="grid"))
        parts.append(svg.text(axis.at(t), base + 18, clock(t), class_="tick"))
    parts.append(svg.text(LEFT + width / 2, base + 40, "mean time in the system", class_="axis-name x"))
    parts += _floors(sorted((axis.at(p.sojourn_s), y(p.floor)) for p in points if p.floor is not None))
    last = -1e9
    for p in sorted(points, key=lambda each: -each.j_per_unit):
        above = "" if p.floor is None else f", {percent(1 - p.floor / p.j_per_unit)} above its floor"
        words = svg.title(
            [p.label, f"{plain(float(f'{p.j_per_unit:.5g}'))} J per unit{above}", f"{seconds(p.sojourn_s)} in the system"]
        )
        parts.append(mark(number[p.label], axis.at(p.sojourn_s), y(p.j_per_unit), 5.5, words))
        last = max(last + LABEL_ROOM, min(y(p.j_per_unit), base - LABEL_ROOM))
        parts.append(mark(number[p.label], LEFT + width + 14, last, 4.5))
        parts.append(svg.text(LEFT + width + 24, last + 4, short(p.label), class_="side-name"))
    return chart(parts, max(base + FOOT, last + 20), "J per unit against time in the system")


def _floors(places: Sequence[tuple[float, float]]) -> list[str]:
    """The floors joined in order of time: of a convex curve, a line a little above it."""
    if not places:
        return []
    path = "M" + "L".join(f"{svg.num(x)} {svg.num(y)}" for x, y in places)
    dots = [svg.tag("circle", cx=x, cy=y, r=2.5, class_="floor-dot") for x, y in places]
    return [svg.tag("path", d=path, class_="floor"), *dots]
