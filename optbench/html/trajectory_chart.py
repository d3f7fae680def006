"""Chart of incumbents and bounds over solving time, which meet where optimality is proven."""

from __future__ import annotations

from collections.abc import Sequence

from optbench.html import axes, colours, svg
from optbench.html.marks import PointLabels
from optbench.html.quantities import plain
from optbench.model.result import Result, TrajectoryPoint

LEFT, RIGHT, TOP, HEIGHT = 150.0, 110.0, 14.0, 250.0
# Share of the best incumbent that is shown above and below it.
VIEW = 0.25


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
    base = TOP + HEIGHT
    x = axes.decades(LEFT, svg.WIDTH - LEFT - RIGHT, start, end, "solving time (log)")
    y = axes.linear(base, -HEIGHT, *_range(paths))
    parts, labels = list[str](), PointLabels(TOP, base + 20)
    ends: list[tuple[float, float, int]] = []
    for k, (result, path) in enumerate(zip(results, paths, strict=True)):
        colour = colours.solver(k)
        for kind in ("objective", "bound"):
            points = _changes(
                [(p.t_s, getattr(p, kind)) for p in path if getattr(p, kind) is not None]
            )
            if not points:
                continue
            xs = [x.at(t) for t, _ in points] + [x.at(max(result.wall_s, points[-1][0]))]
            ys = [y.at(v) for _, v in points]
            parts.append(svg.path(svg.steps(xs, ys), stroke=colour, class_=f"run {kind}"))
            if kind == "objective":
                for t, v in points:
                    if y.low <= v <= y.high:
                        words = [f"{result.solver}: {plain(v)} after {t:.3g} s"]
                        parts.append(svg.circle(x.at(t), y.at(v), 3.0, words, fill=colour))
            if kind == "objective" or all(p.objective is None for p in path):
                ends.append((xs[-1], ys[-1], k))
    for right, height, k in sorted(ends):
        parts.append(labels.add(right, height, results[k].solver, colours.solver(k)))
    return axes.chart(x, y, parts, "incumbents and bounds over time")


def _changes(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points at which the value differs from the one before."""
    return [point for k, point in enumerate(points) if k == 0 or point[1] != points[k - 1][1]]


def _range(paths: Sequence[Sequence[TrajectoryPoint]]) -> tuple[float, float]:
    """Range of values: a quarter around the best incumbent, and wider to show each last value."""
    incumbents = [[p.objective for p in path if p.objective is not None] for path in paths]
    bounds = [[p.bound for p in path if p.bound is not None] for path in paths]
    runs = [run for run in (*incumbents, *bounds) if run]
    values, last = [v for run in runs for v in run], [run[-1] for run in runs]
    best = min((v for run in incumbents for v in run), default=max(values))
    high = max([*last, min(max(values), best + VIEW * abs(best))])
    low = min([*last, max(min(values), best - VIEW * abs(best))])
    return axes.padded((low, high), 0.08)
