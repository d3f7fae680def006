"""The page of a front: points, the certified floor below, and the undecided area between."""

from __future__ import annotations

from html import escape
from pathlib import Path

from optbench import __version__
from optbench.fronts.front_floor import floor_at
from optbench.fronts.points import Front, FrontPoint
from optbench.html import axes, svg
from optbench.html.axes import Axis
from optbench.html.captions import counted, number
from optbench.html.notebook import fragment
from optbench.html.page import (
    colour_key,
    footer,
    header,
    hint,
    note,
    page,
    row,
    scroll,
    section,
    table,
)
from optbench.html.quantities import percent, plain
from optbench.model.files.strict_json import render
from optbench.model.measures import metric_unit

LEFT, RIGHT, TOP, HEIGHT = 120.0, 36.0, 16.0, 470.0
STYLES = ("front.css",)
# Room around the points, as a share of their range.
MARGIN = 0.08
RESTS = {"idle": "idle", "asleep": "sleep", "mixed": "idle or sleep, as their pool says,"}
HORIZONS = {
    "completion": "until the schedule ends",
    "none": "and count in neither metric",
    "given": "as given",
    "instance": "of the instance",
    "cheapest_modes": "in which every task can have its cheapest mode",
    "longest": "in which some optimal schedule ends",
}


def render_front(front: Front, title: str | None = None) -> str:
    """The page as text, with nothing to fetch."""
    shown = title or _title(front)
    body = [*_sections(front, shown), footer(*_provenance(front))]
    return page(shown, body, __package__, STYLES)


def front_fragment(front: Front) -> str:
    """The front in the output cell of a notebook."""
    return fragment(_sections(front, _title(front)), __package__, STYLES)


def front_line(front: Front) -> str:
    """``<Front of 'x' by cpsat: 3 points, makespan_s 10 to 20 s, energy_j 60 to 120 J, ...>``."""
    facts = [counted(len(front.points), "point")]
    for metric, values in (
        (front.x, [point.x for point in front.points]),
        (front.y, [point.y for point in front.points]),
    ):
        if values:
            low, high = number(min(values)), number(max(values))
            span_shown = low if low == high else f"{low} to {high}"
            facts.append(f"{metric} {span_shown} {metric_unit(metric)}".strip())
    if front.points:
        facts.append(f"{front.proven} proven optimal")
        facts.append(f"{100 * front.undecided_share:.3g} % undecided")
    elif front.infeasible:
        facts.append("proven infeasible")
    facts += [f"no schedule below {number(front.constant)} {metric_unit(front.y)}".strip()]
    if front.termination != "finished":
        facts.append(front.termination.replace("_", " "))
    return f"<Front of {front.instance!r} by {front.solver}: {', '.join(facts)}>"


def front_files(front: Front, path: Path) -> dict[Path, str]:
    """The text of ``front.save(path)``, which is that of ``optbench pareto -o``."""
    return {path: render(front.to_dict())}


def _title(front: Front) -> str:
    return f"{front.instance}: {front.y} against {front.x}"


def _sections(front: Front, title: str) -> list[str]:
    chart = draw(front)
    legend = f'<p class="legend">{_legend()}</p>'
    return [
        header(title, declaration(front)),
        section("Front", legend, scroll(chart), note(verdict(front))) if chart else "",
        section("Points", _table(front)),
    ]


def declaration(front: Front) -> str:
    """The horizon of the front, and how devices rest within it."""
    until = HORIZONS[front.horizon_from]
    if front.horizon_s is not None:
        until = f"until {plain(front.horizon_s)} s, the horizon {until}"
    return f"devices that are not busy {RESTS[front.rest_energy]} {until}"


def verdict(front: Front) -> str:
    """What is proven of the front, in words."""
    share = f"{100 * front.undecided_share:.3g} % of the box that the points span"
    return (
        f"{front.proven} of {len(front.points)} points are proven optimal: no schedule within "
        f"their limit on {front.x} has less "
        f"{front.y}. "
        f"Between front and floor, {share} is undecided. No schedule at all has less than "
        f"{plain(front.constant)} of {front.y}."
    )


def draw(front: Front) -> str:
    """The chart; empty without points."""
    if not front.points:
        return ""
    xs, ys = [p.x for p in front.points], [p.y for p in front.points]
    lows = [p.bound for p in front.points if p.bound is not None]
    across = axes.padded([*xs, front.x_bound or xs[0]], MARGIN)
    up = axes.padded([*ys, *lows], MARGIN)
    x = axes.linear(LEFT, svg.WIDTH - LEFT - RIGHT, *across, 10, name=front.x)
    y = axes.linear(TOP + HEIGHT, -HEIGHT, *up, 6, name=front.y)
    marks = [_mark(front, point, x, y) for point in front.points]
    return axes.chart(x, y, [_areas(front, x, y), *marks], f"front of {front.y} against {front.x}")


def _areas(front: Front, x: Axis, y: Axis) -> str:
    """The area without schedules, and the undecided one between floor and front."""
    left, right = x.low, x.high
    start = front.x_bound if front.x_bound is not None else left
    steps = {*(s for s, _ in front.floor), *(p.x for p in front.points)}
    cuts = [start, *sorted(s for s in steps if start < s < right), right]
    floor = [floor_at(front.floor, b, front.constant) for b in cuts[1:]]
    out = []
    if start > left:
        words = [f"{front.x} below {plain(start)}: no schedule"]
        out.append(svg.rect(LEFT, TOP, x.at(start) - LEFT, HEIGHT, words, class_="impossible"))
    pixels, floor_y = [x.at(c) for c in cuts], [y.at(v) for v in floor]
    first = cuts.index(front.points[0].x) if front.points[0].x in cuts else 0
    best = [min(p.y for p in front.points if p.x <= a) for a in cuts[first:-1]]
    if best:
        top = [y.at(v) for v in best]
        out.append(svg.path(svg.band(pixels[first:], top, floor_y[first:]), class_="undecided"))
        out.append(svg.path(svg.steps(pixels[first:], top), class_="front-line"))
    ground = [y.start] * len(floor)
    words = ["certified floor: no schedule is in here"]
    out.append(svg.path(svg.band(pixels, floor_y, ground), words, class_="floor"))
    out.append(svg.path(svg.steps(pixels, floor_y), class_="floor-line"))
    return "".join(out)


def _mark(front: Front, point: FrontPoint, x: Axis, y: Axis) -> str:
    state = "proven optimal" if point.proven else f"gap {_percent(point.gap)}"
    bound = "no bound"
    if point.bound is not None:
        bound = f"bound {plain(point.bound)} ({point.bound_source})"
    lines = [
        f"{front.x} {plain(point.x)}, {front.y} {plain(point.y)}",
        bound,
        f"{state}; above what no schedule avoids {_percent(point.gap_above)}",
        f"found under {front.x} ≤ {plain(point.limit)} in {point.wall_s:.1f} s",
    ]
    class_ = "point" if point.proven else "point open"
    across, up = x.at(point.x), y.at(point.y)
    circle = svg.circle(across, up, 6.0, lines, class_=class_)
    if point.proven or point.bound is None:
        return circle
    return svg.line(across, up + 6, across, y.at(point.bound), class_="whisker") + circle


def _legend() -> str:
    return (
        (
            '<span><i class="dot"></i>proven optimal</span><span><i class="dot open"></i>verified, '
            "not proven</span>"
        )
        + colour_key("var(--accent);opacity:.35", "no schedule can be here")
        + colour_key("var(--bad);opacity:.35", "undecided")
        + hint("point at a mark for its proof")
    )


def _table(front: Front) -> str:
    gaps = ("bound", "gap", "gap above constant", "bound from")
    heads = (f"{front.x} ≤", front.x, front.y, *gaps, "seconds")
    rows = []
    for p in front.points:
        shown = '<span class="good">proven</span>' if p.proven else _percent(p.gap)
        above = "0" if p.proven else _percent(p.gap_above)
        bound = "-" if p.bound is None else plain(p.bound)
        source, wall_s = escape(p.bound_source or "-"), f"{p.wall_s:.1f}"
        cells = (plain(p.x), plain(p.y), bound, shown, above, source, wall_s)
        rows.append(row(plain(p.limit), cells))
    return table(heads, rows)


def _percent(value: float | None) -> str:
    return "-" if value is None else percent(value)


def _provenance(front: Front) -> tuple[str, ...]:
    threads = f"{front.threads} thread{'s' * (front.threads != 1)}"
    return (
        f"optbench {__version__}",
        front.solver,
        threads,
        f"{front.time_limit_s:g} s per point",
        f"seed {front.seed}",
        f"{front.wall_s:.0f} s in all",
        f"instance {front.instance_hash[:12]}",
    )
