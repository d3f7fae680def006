"""The page of a front: points, the certified floor under them as a staircase, and what is left open in between."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from optbench import __version__
from optbench.html import svg
from optbench.html.axis_scale import nice_ticks, plain
from optbench.html.page_shell import shell
from optbench.pareto.front_floor import floor_at
from optbench.pareto.points import Front, FrontPoint

WIDTH, HEIGHT, LEFT, RIGHT, TOP, FOOT = 1200.0, 470.0, 120.0, 36.0, 16.0, 58.0
# Room around the points, as a share of their range.
MARGIN = 0.08
RESTS = {"idle": "idle", "asleep": "sleep", "mixed": "idle or sleep, as their pool says,"}


def render_front(front: Front, title: str | None = None) -> str:
    """The page as text, with nothing to fetch."""
    shown = title or f"{front.instance}: {front.y} against {front.x}"
    chart = draw(front)
    body = [
        f"<header><h1>{escape(shown)}</h1><p>{escape(declaration(front))}</p></header>",
        f'<section><div class="head"><h2>Front</h2></div><p class="legend">{_legend()}</p><div class="scroll">{chart}</div>'
        f'<p class="note">{escape(verdict(front))}</p></section>' if chart else "",
        f'<section><div class="head"><h2>Points</h2></div><div class="scroll">{_table(front)}</div></section>',
        f"<footer>{escape(_provenance(front))}</footer>",
    ]
    return shell(shown, body, __package__, ("front.css",))


def declaration(front: Front) -> str:
    """What the front was drawn of: horizon and rest."""
    if front.horizon_s is None:
        until = "until the schedule ends" if front.horizon_from == "completion" else "and count in neither metric"
        return f"devices that are not busy {RESTS[front.rest_energy]} {until}"
    why = {
        "given": "as given",
        "instance": "of the instance",
        "cheapest_modes": "in which every task can have its cheapest mode",
        "longest": "in which some optimal schedule ends",
    }[front.horizon_from]
    return f"devices that are not busy {RESTS[front.rest_energy]} until {plain(front.horizon_s)} s, the horizon {why}"


def verdict(front: Front) -> str:
    """What is proved, in a sentence or two."""
    share = f"{100 * front.undecided_share:.3g} % of the box that the points span"
    return (
        f"{front.proven} of {len(front.points)} points are proven optimal: no schedule within their limit on {front.x} has less "
        f"{front.y}. "
        f"Between front and floor, {share} is undecided. No schedule at all has less than {plain(front.constant)} of {front.y}."
    )


def draw(front: Front) -> str:
    """The chart; empty without points."""
    if not front.points:
        return ""
    xs, ys = [p.x for p in front.points], [p.y for p in front.points]
    lows = [p.bound for p in front.points if p.bound is not None]
    left, right = _room(min([*xs, front.x_bound or xs[0]]), max(xs))
    low, high = _room(min([*ys, *lows]), max(ys))

    def x(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (min(max(value, left), right) - left) / (right - left)

    def y(value: float) -> float:
        return TOP + HEIGHT * (1 - (min(max(value, low), high) - low) / (high - low))

    parts = [_grid(front, left, right, low, high, x, y), _areas(front, left, right, low, x, y)]
    parts += [_mark(front, point, x, y) for point in front.points]
    return svg.tag(
        "svg", "".join(parts), viewBox=f"0 0 {WIDTH:g} {TOP + HEIGHT + FOOT:g}", class_="chart", role="img",
        aria_label=f"front of {front.y} against {front.x}",
    )


Scale = Callable[[float], float]


def _room(low: float, high: float) -> tuple[float, float]:
    room = MARGIN * max(high - low, 1e-3 * abs(high), 1e-9)
    return low - room, high + room


def _grid(front: Front, left: float, right: float, low: float, high: float, x: Scale, y: Scale) -> str:
    width = WIDTH - LEFT - RIGHT
    out = [svg.tag("rect", x=LEFT, y=TOP, width=width, height=HEIGHT, class_="lane")]
    for value in nice_ticks(right, 10, left):
        out.append(svg.line(x(value), TOP, x(value), TOP + HEIGHT, class_="grid"))
        out.append(svg.text(x(value), TOP + HEIGHT + 18, plain(value), class_="tick"))
    for value in nice_ticks(high, 6, low):
        out.append(svg.line(LEFT, y(value), WIDTH - RIGHT, y(value), class_="grid"))
        out.append(svg.text(LEFT - 10, y(value) + 4, plain(value), class_="watts"))
    out.append(svg.text(LEFT + width / 2, TOP + HEIGHT + 42, front.x, class_="axis-name x"))
    upright = f"translate(26 {TOP + HEIGHT / 2:g}) rotate(-90)"
    out.append(svg.tag("text", svg.escape(front.y), class_="axis-name x", transform=upright))
    return "".join(out)


def _areas(front: Front, left: float, right: float, low: float, x: Scale, y: Scale) -> str:
    """Where no schedule can be, and what is open between floor and front."""
    start = front.x_bound if front.x_bound is not None else left
    inner = sorted({s for s, _ in front.floor if start < s < right} | {p.x for p in front.points if start < p.x < right})
    cuts = [start, *inner, right]
    floor = [floor_at(front.floor, b, front.constant) for b in cuts[1:]]
    out = []
    if start > left:
        words = svg.title([f"{front.x} below {plain(start)}: no schedule"])
        out.append(svg.tag("rect", words, x=x(left), y=TOP, width=x(start) - x(left), height=HEIGHT, class_="impossible"))
    pixels, floor_y = [x(c) for c in cuts], [y(v) for v in floor]
    first = cuts.index(front.points[0].x) if front.points[0].x in cuts else 0
    best = [min(p.y for p in front.points if p.x <= a) for a in cuts[first:-1]]
    if best:
        top = [y(v) for v in best]
        out.append(svg.tag("path", d=svg.band(pixels[first:], top, floor_y[first:]), class_="undecided"))
        out.append(svg.tag("path", d=svg.steps(pixels[first:], top), class_="front-line"))
    ground = [y(low)] * len(floor)
    words = svg.title(["certified floor: no schedule is in here"])
    out.append(svg.tag("path", words, d=svg.band(pixels, floor_y, ground), class_="floor"))
    out.append(svg.tag("path", d=svg.steps(pixels, floor_y), class_="floor-line"))
    return "".join(out)


def _mark(front: Front, point: FrontPoint, x: Scale, y: Scale) -> str:
    state = "proven optimal" if point.proven else f"gap {_percent(point.gap)}"
    lines = [
        f"{front.x} {plain(point.x)}, {front.y} {plain(point.y)}",
        f"bound {plain(point.bound)} ({point.bound_source})" if point.bound is not None else "no bound",
        f"{state}; above what no schedule avoids {_percent(point.gap_above)}",
        f"found under {front.x} ≤ {plain(point.limit)} in {point.wall_s:.1f} s",
    ]
    class_ = "point" if point.proven else "point open"
    circle = svg.tag("circle", svg.title(lines), cx=x(point.x), cy=y(point.y), r=6.0, class_=class_)
    if point.proven or point.bound is None:
        return circle
    return svg.line(x(point.x), y(point.y) + 6, x(point.x), y(point.bound), class_="whisker") + circle


def _legend() -> str:
    return (
        '<span><i class="dot"></i>proven optimal</span><span><i class="dot open"></i>verified, not proven</span>'
        '<span><i class="key" style="background:var(--accent);opacity:.35"></i>no schedule can be here</span>'
        '<span><i class="key" style="background:var(--bad);opacity:.35"></i>undecided</span>'
        '<span class="hint">point at a mark for its proof</span>'
    )


def _table(front: Front) -> str:
    names = (f"{front.x} ≤", front.x, front.y, "bound", "gap", "gap above constant", "bound from", "seconds")
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    rows = []
    for p in front.points:
        shown = '<span class="good">proven</span>' if p.proven else _percent(p.gap)
        above = "0" if p.proven else _percent(p.gap_above)
        bound = "-" if p.bound is None else plain(p.bound)
        cells = (plain(p.x), plain(p.y), bound, shown, above, escape(p.bound_source or "-"), f"{p.wall_s:.1f}")
        rows.append(f"<tr><th>{plain(p.limit)}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    return f'<table class="front-table"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.3g} %"


def _provenance(front: Front) -> str:
    threads = f"{front.threads} thread{'s' * (front.threads != 1)}"
    facts = (f"optbench {__version__}", front.solver, threads, f"{front.time_limit_s:g} s per point", f"seed {front.seed}",
             f"{front.wall_s:.0f} s in all", f"instance {front.instance_hash[:12]}")
    return "  ·  ".join(facts)
