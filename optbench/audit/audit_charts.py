"""Charts of an audit: causes of the excess over the bound, and energy against sojourn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from optbench.audit.findings import to_the_second
from optbench.html import axes, colours, svg
from optbench.html.axes import Axis
from optbench.html.bar_rows import Bar, bar_row
from optbench.html.marks import PointLabels
from optbench.html.quantities import amount

LEFT, RIGHT = 150.0, 190.0
ROW = 34.0
TOP, HEIGHT = 16.0, 330.0
# Points further out than this many times the record's sojourn or energy stand at the edge.
VIEW = 2.5

WORDS = {
    "clock": "too high, or too low for what they cost",
    "count": "GPUs per run, too many or too few",
    "placement": "the type of GPU that a run had",
    "idle": "GPUs awake that nobody used",
    "waiting": "time in queues that runs could have used",
}


def waterfall(recorded_j: float, causes: Mapping[str, float], least_j: float) -> str:
    """Bars from the recorded energy down to the certified least."""
    axis = Axis(LEFT, svg.WIDTH - LEFT - RIGHT, 0.0, recorded_j)
    bars = [("record", _whole(recorded_j, colours.POOLS[0], "recorded"))]
    level = recorded_j
    for k, (name, share) in enumerate(sorted(causes.items(), key=lambda item: -item[1]), 1):
        low, high = min(level, level - share), max(level, level - share)
        value = amount(high - low, "J")
        shown = f"{value}, {100 * (high - low) / recorded_j:.1f} %"
        bars.append((name, Bar(low, high, colours.TASKS[k], shown, (WORDS[name], value))))
        level -= share
    bars.append(("least", _whole(least_j, colours.POOLS[1], "certified least energy")))
    parts = [bar_row(name, [bar], axis, TOP + k * ROW) for k, (name, bar) in enumerate(bars)]
    bottom = TOP + len(bars) * ROW
    parts.append(svg.line(LEFT, TOP, LEFT, bottom, class_="grid"))
    return svg.chart(parts, bottom + 6, "excess by cause")


def _whole(energy_j: float, colour: str, words: str) -> Bar:
    """The first or the last bar, which starts at 0."""
    value = amount(energy_j, "J")
    return Bar(0.0, energy_j, colour, value, (words, value))


def frontier(
    curve: Sequence[tuple[float, float]],
    record: tuple[float, float],
    policies: Sequence[tuple[str, float, float]],
) -> str:
    """The certified least energy by mean time in the system, the record, and the policies."""
    far_s, far_j = VIEW * record[0], VIEW * record[1]
    marks = [("record", *record, False)]
    for name, s, j in policies:
        marks.append((name, min(s, far_s), min(j, far_j), s > far_s or j > far_j))
    times, energies = [s for _, s, _, _ in marks], [j for _, _, j, _ in marks]
    right = 1.05 * max([*times, *(s for s, _ in curve if s <= far_s)])
    seen = [(s, j) for s, j in curve if s <= right]
    high, low = max([*energies, *(j for _, j in seen)]), min([*energies, *(j for _, j in curve)])
    low, high = low - 0.12 * (high - low), high + 0.08 * (high - low)
    width, name = svg.WIDTH - LEFT - RIGHT, "mean time in the system"
    x = axes.linear(LEFT, width, 0.0, right, 8, to_the_second, name)
    y = axes.linear(TOP + HEIGHT, -HEIGHT, low, high, write=lambda j: amount(j, "J"))
    parts, labels = _least(seen, x, y), PointLabels(TOP, y.start)
    for _, s, j, _ in marks:
        labels.reserve(x.at(s), y.at(j))
    for k, (name, s, j, beyond) in enumerate(marks):
        colour, across, up = colours.solver(k), x.at(s), y.at(j)
        where = ["beyond the edge of the picture"] if beyond else [amount(j, "J"), to_the_second(s)]
        radius = 6.0 if k == 0 else 5.0
        parts.append(svg.circle(across, up, radius, [name, *where], fill=colour))
        parts.append(labels.add(across, up, name + (" →" if beyond else ""), colour))
    return axes.chart(x, y, parts, "energy against mean time in the system")


def _least(curve: Sequence[tuple[float, float]], x: Axis, y: Axis) -> list[str]:
    """The line of the certified least energy, and the area below it, where no scheduler can be."""
    if not curve:
        return []
    proved = [(x.at(s), y.at(j)) for s, j in curve]
    points = [*proved, (x.end, proved[-1][1])]
    below = [*points, (x.end, y.start), (points[0][0], y.start)]
    return [
        svg.path(f"{svg.polyline(below)}Z", class_="below"),
        svg.path(svg.polyline(points), class_="frontier"),
        *(svg.circle(a, b, 2.5, class_="proved") for a, b in proved),
        svg.text(x.end + 8, points[-1][1] + 4, "certified least", class_="run-name"),
    ]
