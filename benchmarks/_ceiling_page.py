"""The page and the picture of ``hgnn_ceiling``: gaps by method, and the curve of gaps by noise."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks._cluster_runs import page_head, percent
from optbench.html import svg
from optbench.html.axes import Axis, linear
from optbench.html.colours import SOLVERS

COMMAND = "python benchmarks/hgnn_ceiling.py"
NOISES = {
    "tasks": "each task's start and end times exp(s z)",
    "shift": "each task's start and end plus s z of the LP's makespan",
    "prices": "each class's price times exp(s z)",
}
LEVELS = (0.05, 0.1, 0.2, 0.4, 0.8)
EXACT, BEST = "LP milestones", "LP milestones, best of 32"
RULES = ("path_milestones", "tuned rule")
NETWORK = "hgnn "
# The picture, in pixels.
WIDTH, LEFT, TOP, PANEL, HEIGHT, BETWEEN, FOOT = 1060.0, 90.0, 40.0, 360.0, 300.0, 90.0, 110.0
RULE_COLOUR, HALF_COLOUR, BEST_COLOUR = "#8a8f98", "#c4320a", "#1b2230"
# The largest noise or error of the picture, in per cent.
WIDEST = 90.0
STYLE = (
    "text{font:12px sans-serif;fill:#1b2230}.grid{stroke:#dfe3ea}.tick{text-anchor:middle}"
    ".watts{text-anchor:end}.axis-name{text-anchor:middle;font-weight:600}"
)


@dataclass(frozen=True)
class PlayRow:
    """One run: verified objective, certified bound, the noise, and the errors of its due dates."""

    spec: str
    seed: int
    method: str
    level: float
    objective: float
    bound: float
    cpu_s: float
    error: float = 0.0
    shift_error: float = 0.0

    @property
    def gap(self) -> float:
        return 1.0 - self.bound / self.objective


class RowsOfSize:
    """The rows of one size: means by instance over draws and networks."""

    def __init__(self, rows: Iterable[PlayRow], spec: str) -> None:
        self.rows = [row for row in rows if row.spec == spec]
        self.seeds = sorted({row.seed for row in self.rows})

    def methods(self) -> list[str]:
        return list(dict.fromkeys(row.method for row in self.rows if row.method not in NOISES))

    def networks(self) -> list[str]:
        return [name for name in self.methods() if name.startswith(NETWORK) and ":" not in name]

    def mean(
        self, methods: Sequence[str], level: float = 0.0, field: str = "objective"
    ) -> list[float]:
        """Return the mean of a field by instance over the rows of these methods."""
        return [
            float(
                np.mean(
                    [
                        getattr(row, field)
                        for row in self.rows
                        if row.seed == seed and row.method in methods and row.level == level
                    ]
                )
            )
            for seed in self.seeds
        ]

    def gaps(self, methods: Sequence[str], level: float = 0.0) -> list[float]:
        return self.mean(methods, level, "gap")

    def best_rule(self) -> str:
        """Return the rule without LP and network of the least mean objective."""
        return min(RULES, key=lambda name: float(np.mean(self.mean([name]))))

    def closed(self, methods: Sequence[str], level: float = 0.0) -> float:
        """Return the share of the way from the best rule to LP milestones, of mean objectives."""
        rule, exact = (float(np.mean(self.mean([name]))) for name in (self.best_rule(), EXACT))
        return (rule - float(np.mean(self.mean(methods, level)))) / (rule - exact)

    def half(self, noise: str) -> str:
        """Return the noise at which half of the way is left, between measured levels."""
        levels = (0.0, *LEVELS)
        shares = [1.0, *(self.closed([noise], level) for level in LEVELS)]
        known = list(zip(levels, shares, strict=True))
        for (a, one), (b, two) in itertools.pairwise(known):
            if one >= 0.5 > two:
                return f"{100 * (a + (b - a) * (one - 0.5) / (one - two)):.0f} %"
        return f"above {100 * levels[-1]:.0f} %"


def size_name(spec: str) -> str:
    values = dict(part.split("=") for part in spec.partition(":")[2].split(","))
    return f"{values['nodes']} nodes, {int(values['tasks']):,} tasks"


def table(size: RowsOfSize) -> list[str]:
    """Return the gap of every method without noise."""
    lines = [
        "| method | gap, % | of the way, % | error of due dates, % | shift of due dates, % |"
        " seconds |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    names = [("hgnn, mean of the networks", size.networks())]
    names += [(name, [name]) for name in size.methods()]
    for name, methods in names:
        errors = [
            100 * float(np.mean(size.mean(methods, field=field)))
            for field in ("error", "shift_error")
        ]
        shown = " | ".join(f"{error:.0f}" if error else "" for error in errors)
        lines.append(
            f"| {name} | {percent(size.gaps(methods))} | {100 * size.closed(methods):.0f} | "
            f"{shown} | "
            f"{np.mean(size.mean(methods, field='cpu_s')):.3f} |"
        )
    return [*lines, ""]


def curve_table(size: RowsOfSize) -> list[str]:
    """Return gaps and shares of the way by noise."""
    lines = [
        "| noise | " + " | ".join(f"{100 * level:.0f} %" for level in (0.0, *LEVELS)),
        "| --- |" + " --- |" * (1 + len(LEVELS)) + " --- |",
    ]
    lines[0] += " | half of the way is left at |"
    for noise, words in NOISES.items():
        cells = [f"{percent(size.gaps([EXACT]))}: 100 %"]
        cells += [
            f"{percent(size.gaps([noise], level))}: {100 * size.closed([noise], level):.0f} %"
            for level in LEVELS
        ]
        lines.append(f"| {noise}: {words} | {' | '.join(cells)} | {size.half(noise)} |")
    return [*lines, ""]


def page(rows: list[PlayRow], curves: Sequence[str], command: str, drawing: str) -> str:
    """Return the text of docs/results/hgnn_ceiling.md, without what a reader concludes from it."""
    lines = page_head("The ceiling of hgnn: its player fed with LP milestones", command)
    lines += [
        "Gaps are to the certified bound of the fluid LP, mean and 95 % interval over instances; "
        "three draws of noise per instance. *Of the way* is (rule - method) / (rule - LP "
        "milestones) of mean verified objectives, the rule the better one of `path_milestones` "
        "and the tuned rule, LP milestones with the one set of multipliers that is best on "
        "training seeds of gpu_cluster. Seconds are those of the runs, without the LP and without "
        "the forward pass; those of best-of rows count all runs.",
        "",
        f"![gaps by noise]({drawing})",
        "",
    ]
    for spec in dict.fromkeys(row.spec for row in rows):
        size = RowsOfSize(rows, spec)
        seeds = f"seeds {', '.join(map(str, size.seeds))}"
        lines += [f"## {size_name(spec)} ({seeds})", "", *table(size)]
        if spec in curves:
            lines += ["Gap, and share of the way, by noise:", "", *curve_table(size)]
    return "\n".join(lines).rstrip() + "\n"


def picture(rows: list[PlayRow], curves: Sequence[str]) -> str:
    """Return the curve as an SVG file, one panel per size."""
    parts = [svg.tag("style", STYLE)]
    high = max(
        float(np.mean(size.gaps([name], level)))
        for size in (RowsOfSize(rows, spec) for spec in curves)
        for name, level in [(size.best_rule(), 0.0), *((n, LEVELS[-1]) for n in NOISES)]
    )
    for k, spec in enumerate(curves):
        parts.append(panel(RowsOfSize(rows, spec), k, 100 * high * 1.05))
    parts.append(legend())
    drawn = svg.chart(parts, TOP + HEIGHT + FOOT, "gaps by noise on LP milestones", WIDTH)
    return drawn.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n"


def panel(size: RowsOfSize, number: int, high: float) -> str:
    """Return the panel of one size: curves of noise, levels of rules, and the networks."""
    left = LEFT + number * (PANEL + BETWEEN)
    x = linear(left, PANEL, 0.0, WIDEST, 9, name="noise s, or error of due dates, %")
    y = linear(TOP + HEIGHT, -HEIGHT, 0.0, high, 8, name="gap, %")
    parts = [grid(x, y), svg.text(left, TOP - 14, size_name(size.rows[0].spec), font_weight=600)]
    rule = 100 * float(np.mean(size.gaps([size.best_rule()])))
    exact = 100 * float(np.mean(size.gaps([EXACT])))
    best = 100 * float(np.mean(size.gaps([BEST])))
    # Half of the way in objectives, as a gap: bound / objective is 1 - gap.
    half = 100 - 2 / (1 / (100 - rule) + 1 / (100 - exact))
    for value, colour in ((rule, RULE_COLOUR), (half, HALF_COLOUR), (best, BEST_COLOUR)):
        at = y.at(value)
        parts.append(svg.line(x.start, at, x.end, at, stroke=colour, stroke_dasharray="6 4"))
    for k, noise in enumerate(NOISES):
        gaps = [exact, *(100 * float(np.mean(size.gaps([noise], level))) for level in LEVELS)]
        points = [(x.at(100 * s), y.at(gap)) for s, gap in zip((0.0, *LEVELS), gaps, strict=True)]
        parts.append(svg.path(svg.polyline(points), stroke=SOLVERS[k], fill="none"))
        parts += [svg.circle(*point, 3.0, fill=SOLVERS[k]) for point in points]
    for name in (*size.networks(), "no network"):
        error = 100 * float(np.mean(size.mean([name], field="error")))
        gap = 100 * float(np.mean(size.gaps([name])))
        across, down = x.at(error), y.at(gap)
        tip = [f"{name}: {gap:.1f} %"]
        parts.append(svg.circle(across, down, 5.0, tip, fill="none", stroke="#1b2230"))
        label = {"no network": name, size.networks()[0]: "hgnn"}.get(name, "")
        parts.append(svg.text(across - 10, down + 4, label, class_="watts"))
    return "".join(parts)


def grid(x: Axis, y: Axis) -> str:
    """Return the grid, the ticks and the names of two axes."""
    out = []
    for tick in x.ticks:
        out.append(svg.line(x.at(tick), y.end, x.at(tick), y.start, class_="grid"))
        out.append(svg.text(x.at(tick), y.start + 18, x.write(tick), class_="tick"))
    for tick in y.ticks:
        out.append(svg.line(x.start, y.at(tick), x.end, y.at(tick), class_="grid"))
        out.append(svg.text(x.start - 8, y.at(tick) + 4, y.write(tick), class_="watts"))
    middle = y.start + y.length / 2
    turned = f"translate({x.start - 44:g} {middle:g}) rotate(-90)"
    out.append(svg.text(x.start + x.length / 2, y.start + 40, x.name, class_="axis-name"))
    out.append(svg.tag("text", y.name, class_="axis-name", transform=turned))
    return "".join(out)


def legend() -> str:
    """Return what the lines and circles mean, below the panels."""
    entries = [(SOLVERS[k], f"{noise}: {words}") for k, (noise, words) in enumerate(NOISES.items())]
    entries += [
        (RULE_COLOUR, "best rule without LP or network"),
        (HALF_COLOUR, "half of the way from it to LP milestones"),
        (BEST_COLOUR, "LP milestones, best of 32 multipliers"),
    ]
    out, base = [], TOP + HEIGHT + 64
    for k, (colour, words) in enumerate(entries):
        at, down = LEFT + (k // 3) * 400, base + (k % 3) * 17
        out.append(svg.line(at, down - 4, at + 22, down - 4, stroke=colour, stroke_width=2))
        out.append(svg.text(at + 30, down, words))
    at = LEFT + 690
    out.append(svg.circle(at, base - 4, 5.0, fill="none", stroke="#1b2230"))
    out.append(svg.text(at + 12, base, "hgnn (three trainings), no network"))
    return "".join(out)
