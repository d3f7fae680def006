"""Incumbents and bounds over solving time: the two meet where a schedule is proven optimal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from optbench.html import colours, svg
from optbench.html.axis_scale import nice_ticks, plain
from optbench.model.result import Result, TrajectoryPoint

WIDTH, HEIGHT, LEFT, RIGHT, TOP, FOOT = 1200.0, 250.0, 150.0, 110.0, 14.0, 40.0
# Share of the best incumbent that is shown above and below it.
VIEW = 0.25
DECADES = (0.001, 0.01, 0.1, 1.0, 10.0, 60.0, 600.0, 3600.0, 36000.0)
DECADE_NAMES = ("1 ms", "10 ms", "0.1 s", "1 s", "10 s", "1 min", "10 min", "1 h", "10 h")


def draw(results: Sequence[Result], level: int) -> str:
    """One chart for one level of the objective; empty when the search was over at once."""
    paths = [[point for point in result.trajectory if point.level == level] for result in results]
    values = [v for path in paths for p in path for v in (p.objective, p.bound) if v is not None]
    if len(set(values)) < 3:
        return ""
    times = [p.t_s for path in paths for p in path]
    end = max([*(r.wall_s for r in results), *times, 0.002])
    start = max(0.001, min([t for t in times if t > 0], default=0.001) / 1.5)
    start = min(start, end / 2)
    low, high = _range(paths)

    def x(t: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(max(t, start) / start) / math.log(end / start)

    def y(value: float) -> float:
        return TOP + HEIGHT * (1 - (min(max(value, low), high) - low) / (high - low))

    parts = [_grid(start, end, low, high, x, y)]
    names: list[tuple[float, float, str]] = []
    for k, (result, path) in enumerate(zip(results, paths, strict=True)):
        colour = colours.colour(colours.SOLVERS, k)
        for kind in ("objective", "bound"):
            points = _changes([(p.t_s, getattr(p, kind)) for p in path if getattr(p, kind) is not None])
            if not points:
                continue
            xs = [x(t) for t, _ in points] + [x(max(result.wall_s, points[-1][0]))]
            ys = [y(v) for _, v in points]
            parts.append(svg.tag("path", d=svg.steps(xs, ys), stroke=colour, class_=f"run {kind}"))
            if kind == "objective":
                parts += [
                    svg.tag("circle", svg.title([f"{result.solver}: {plain(v)} after {t:.3g} s"]), cx=a, cy=b, r=3.0, fill=colour)
                    for (t, v), a, b in zip(points, xs, ys, strict=False)
                    if low <= v <= high
                ]
            if kind == "objective" or all(p.objective is None for p in path):
                names.append((xs[-1], ys[-1], f'<tspan fill="{colour}">{svg.escape(result.solver)}</tspan>'))
    parts.append(_names(names))
    return svg.tag(
        "svg",
        "".join(parts),
        viewBox=f"0 0 {WIDTH:g} {TOP + HEIGHT + FOOT:g}",
        class_="chart",
        role="img",
        aria_label="incumbents and bounds over time",
    )


def _changes(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points at which the value differs from the one before."""
    return [point for k, point in enumerate(points) if k == 0 or point[1] != points[k - 1][1]]


def _range(paths: Sequence[Sequence[TrajectoryPoint]]) -> tuple[float, float]:
    """Values shown: within a quarter of the best incumbent, and wider only for where a solver ended."""
    incumbents = [[p.objective for p in path if p.objective is not None] for path in paths]
    bounds = [[p.bound for p in path if p.bound is not None] for path in paths]
    values = [v for runs in (incumbents, bounds) for run in runs for v in run]
    last = [run[-1] for runs in (incumbents, bounds) for run in runs if run]
    best = min((v for run in incumbents for v in run), default=max(values))
    high = max([*last, min(max(values), best + VIEW * abs(best))])
    low = min([*last, max(min(values), best - VIEW * abs(best))])
    room = 0.08 * max(high - low, 1e-3 * abs(high), 1e-9)
    return low - room, high + room


def _grid(start: float, end: float, low: float, high: float, x: object, y: object) -> str:
    assert callable(x) and callable(y)
    out = [svg.tag("rect", x=LEFT, y=TOP, width=WIDTH - LEFT - RIGHT, height=HEIGHT, class_="lane")]
    for t, name in zip(DECADES, DECADE_NAMES, strict=True):
        if start <= t <= end:
            out.append(svg.line(x(t), TOP, x(t), TOP + HEIGHT, class_="grid"))
            out.append(svg.text(x(t), TOP + HEIGHT + 18, name, class_="tick"))
    for value in nice_ticks(high, 5, low):
        out.append(svg.line(LEFT, y(value), WIDTH - RIGHT, y(value), class_="grid"))
        out.append(svg.text(LEFT - 12, y(value) + 4, plain(value), class_="watts"))
    out.append(svg.text(LEFT + (WIDTH - LEFT - RIGHT) / 2, TOP + HEIGHT + 36, "solving time (log)", class_="tick"))
    return "".join(out)


def _names(names: list[tuple[float, float, str]]) -> str:
    """Solver names where their lines end, pushed down where two would overlap."""
    out: list[str] = []
    placed: list[tuple[float, float]] = []
    for x, y, words in sorted(names):
        while any(abs(x - a) < 70 and abs(y - b) < 13 for a, b in placed):
            y += 13
        placed.append((x, y))
        out.append(svg.tag("text", words, x=x + 8, y=y + 4, class_="run-name"))
    return "".join(out)
