"""The pictures of an audit: the way from the record down to the bound, and energy against time in the system."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from optbench.html import colours, svg
from optbench.html.axis_scale import amount, clock, nice_ticks

WIDTH, LEFT, RIGHT = 1200.0, 150.0, 190.0
ROW = 34.0
TOP, HEIGHT, FOOT = 16.0, 330.0, 46.0
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
    rows = [("record", 0.0, recorded_j, colours.POOLS[0])]
    level = recorded_j
    for k, (name, share) in enumerate(sorted(causes.items(), key=lambda item: -item[1])):
        rows.append((name, min(level, level - share), max(level, level - share), colours.TASKS[k + 1]))
        level -= share
    rows.append(("least", 0.0, least_j, colours.POOLS[1]))
    span = WIDTH - LEFT - RIGHT
    parts = []
    for k, (name, low, high, colour) in enumerate(rows):
        y = TOP + k * ROW
        x, width = LEFT + span * low / recorded_j, max(1.0, span * (high - low) / recorded_j)
        ends = name in ("record", "least")
        value = amount(high if ends else high - low, "J")
        tip = svg.title([WORDS.get(name, "certified least energy" if name == "least" else "recorded"), value])
        parts.append(svg.tag("rect", tip, x=x, y=y, width=width, height=ROW - 10, rx=3, fill=colour))
        parts.append(svg.text(LEFT - 12, y + 16, name, class_="pool"))
        said = value if ends else f"{value}, {100 * (high - low) / recorded_j:.1f} %"
        parts.append(svg.text(LEFT + span * high / recorded_j + 8, y + 16, said, class_="cause-value"))
    bottom = TOP + len(rows) * ROW
    parts.append(svg.line(LEFT, TOP, LEFT, bottom, class_="grid"))
    return svg.tag(
        "svg", "".join(parts), viewBox=f"0 0 {WIDTH:g} {bottom + 6:g}", class_="chart", role="img", aria_label="excess by cause"
    )


def frontier(
    curve: Sequence[tuple[float, float]], record: tuple[float, float], policies: Sequence[tuple[str, float, float]]
) -> str:
    """The certified least energy by mean sojourn, the record, and the policies."""
    far_s, far_j = VIEW * record[0], VIEW * record[1]
    shown = [(name, min(s, far_s), min(j, far_j), s > far_s or j > far_j) for name, s, j in policies]
    right = 1.05 * max([record[0], *(s for _, s, _, _ in shown), *(s for s, _ in curve if s <= far_s)])
    high = max([record[1], *(j for _, _, j, _ in shown), *(j for s, j in curve if s <= right)])
    low = min([record[1], *(j for _, _, j, _ in shown), *(j for _, j in curve)])
    low, high = low - 0.12 * (high - low), high + 0.08 * (high - low)

    def x(s: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * s / right

    def y(j: float) -> float:
        return TOP + HEIGHT * (1 - (j - low) / (high - low))

    parts = [svg.tag("rect", x=LEFT, y=TOP, width=WIDTH - LEFT - RIGHT, height=HEIGHT, class_="lane")]
    for tick in nice_ticks(high, 5, low):
        parts += [svg.line(LEFT, y(tick), WIDTH - RIGHT, y(tick), class_="grid")]
        parts += [svg.text(LEFT - 12, y(tick) + 4, amount(tick, "J"), class_="watts")]
    for tick in nice_ticks(right, 8):
        parts += [svg.text(x(tick), TOP + HEIGHT + 18, clock(round(tick)), class_="tick")]
    parts.append(svg.text((LEFT + WIDTH - RIGHT) / 2, TOP + HEIGHT + 38, "mean time in the system", class_="tick"))
    inside = [(s, j) for s, j in curve if s <= right]
    if inside:
        points = [(x(s), y(j)) for s, j in inside] + [(WIDTH - RIGHT, y(inside[-1][1]))]
        path = "L".join(f"{svg.num(a)} {svg.num(b)}" for a, b in points)
        base = TOP + HEIGHT
        parts.append(
            svg.tag("path", d=f"M{path}L{svg.num(points[-1][0])} {base:g}L{svg.num(points[0][0])} {base:g}Z", class_="below")
        )
        parts.append(svg.tag("path", d=f"M{path}", class_="frontier"))
        parts += [svg.tag("circle", cx=a, cy=b, r=2.5, class_="proved") for a, b in points[:-1]]
        parts.append(svg.text(points[-1][0] + 8, points[-1][1] + 4, "certified least", class_="run-name"))
    marks = [("record", *record, False), *shown]
    taken: list[tuple[float, float]] = []
    for k, (name, s, j, beyond) in enumerate(marks):
        colour = colours.colour(colours.SOLVERS, k)
        tip = svg.title([name, *(["beyond the edge of the picture"] if beyond else [amount(j, "J"), clock(round(s))])])
        parts.append(svg.tag("circle", tip, cx=x(s), cy=y(j), r=6.0 if k == 0 else 5.0, fill=colour))
        at = next(at for at in places(y(j)) if not any(abs(x(s) - a) < 150 and abs(at - b) < 14 for a, b in taken))
        taken.append((x(s), at))
        words = svg.tag("tspan", svg.escape(name + (" →" if beyond else "")), fill=colour)
        parts.append(svg.tag("text", words, x=x(s) + 10, y=at + 4, class_="run-name"))
    return svg.tag(
        "svg", "".join(parts), viewBox=f"0 0 {WIDTH:g} {TOP + HEIGHT + FOOT:g}", class_="chart", role="img",
        aria_label="energy against mean time in the system",
    )  # fmt: skip


def places(y: float) -> Iterator[float]:
    """Heights for a name, nearest first, within the picture as long as there is room."""
    for k in range(40):
        for at in (y - 14 * k, y + 14 * k):
            if TOP + 8 <= at <= TOP + HEIGHT - 8:
                yield at
    yield from (TOP + HEIGHT + 14 * k for k in range(1000))
