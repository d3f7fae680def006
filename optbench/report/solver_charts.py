"""The charts of a report: gaps by solver, the performance profile, gap against time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optbench.evaluate import stats
from optbench.evaluate.summaries import Summary, instance_means
from optbench.html import svg
from optbench.html.axes import (
    DASHES,
    LEFT,
    NAMES,
    RIGHT,
    WIDTH,
    ExcessScale,
    TimeAxis,
    chart,
    colour,
    cross,
    mark,
    short,
)
from optbench.report.gathered import StudyReport
from optbench.report.words import counted, percent, seconds, with_interval

ROW, TOP, FOOT = 34.0, 8.0, 48.0
HEIGHT = 340.0
# Dots drawn of one solver; of more, every so many in order of size, so that their shape stays.
MOST_DOTS = 150
# Lines of a profile and names in a plot that can be told apart.
MOST_LINES = 10
LABEL_ROOM = 15.0
# Width of a letter, for where there is room.
LETTER = 7.0


def gaps(report: StudyReport, number: dict[str, int]) -> str:
    """A row per solver: a dot per instance, the mean and its interval."""
    scale = ExcessScale(LEFT, WIDTH - LEFT - RIGHT)
    height = TOP + ROW * len(report.ranked)
    parts = [_grid(scale, TOP, height, "study gap, mean of each instance")]
    for j, summary in enumerate(report.ranked):
        parts.append(_gap_row(report, summary, number[summary.label], scale, TOP + ROW * (j + 0.5)))
    return chart(parts, height + FOOT, "gaps by solver")


def _gap_row(report: StudyReport, summary: Summary, k: int, scale: ExcessScale, y: float) -> str:
    rows = report.rows[summary.label]
    found = instance_means(rows, lambda row: row.counted_study_gap)[0]
    empty = {row.cell.instance_hash for row in rows if row.study_gap is None}
    names = {row.cell.instance_hash: row.cell.instance for row in rows}
    dots = []
    for instance, value in thinned(sorted(found.items(), key=lambda pair: pair[1])):
        words = svg.title([f"{names[instance]}: {percent(value)}", summary.label])
        if instance in empty:
            dots.append(cross(scale.at(value), y, 3.5, words))
        else:
            dots.append(svg.tag("circle", words, cx=scale.at(value), cy=y, r=3.5, fill=colour(k), class_="dot-of"))
    assert summary.study_gap is not None
    words = svg.title([f"{summary.label}: {with_interval(summary.study_gap)}", counted(summary.study_gap.count, "instance")])
    bar = ""
    if summary.study_gap.known:
        low, high = scale.at(summary.study_gap.low), scale.at(summary.study_gap.high)
        ends = "".join(svg.line(x, y - 6, x, y + 6, class_="whisker-of") for x in (low, high))
        bar = ends + svg.line(low, y, high, y, class_="whisker-of")
    middle = mark(k, scale.at(summary.study_gap.value), y, 6.0, words)
    name = svg.text(LEFT - 16, y + 4, short(summary.label), class_="pool")
    figure = svg.text(WIDTH - RIGHT + 14, y + 4, percent(summary.study_gap.value), class_="figure")
    return svg.tag("g", "".join([name, *dots, bar, middle, figure]), class_="gap-row")


def thinned(values: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """At most so many, evenly by rank, with the least and the greatest."""
    if len(values) <= MOST_DOTS:
        return list(values)
    picks = np.unique(np.linspace(0, len(values) - 1, MOST_DOTS).round().astype(int))
    return [values[pick] for pick in picks.tolist()]


def profile(report: StudyReport, number: dict[str, int]) -> str:
    """Dolan and Moré: the share of instances on which a solver is within an excess of the best objective of the study."""
    if len(report.ranked) < 2 or not report.costs.columns:
        return ""
    curves = dict(zip(report.costs.labels, stats.performance_profile(report.costs.values)))
    worst = max((float(taus[-1]) - 1 for taus, _ in curves.values()), default=0.0)
    scale = ExcessScale(LEFT, WIDTH - LEFT - NAMES - 20, max(worst * 1.05, 0.01))
    base = TOP + HEIGHT
    parts = [_grid(scale, TOP, base, "above the best objective that any solver reached on the instance")]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = base - HEIGHT * share
        parts.append(svg.line(LEFT, y, scale.start + scale.length, y, class_="grid"))
        parts.append(svg.text(LEFT - 10, y + 4, f"{100 * share:.0f} %", class_="watts"))
    labels: list[tuple[float, float, str, int]] = []
    drawn = [each for each in report.ranked if each.rpd is not None][:MOST_LINES]
    for place, summary in reversed(list(enumerate(drawn))):
        taus, shares = curves[summary.label]
        k = number[summary.label]
        xs = [scale.at(tau - 1) for tau in taus.tolist()] + [scale.start + scale.length]
        ys = [base - HEIGHT * share for share in shares.tolist()]
        near = percent(_within(taus, shares, 0.1))
        words = svg.title([summary.label, f"best or level on {percent(float(shares[0]))}", f"within 10 % on {near}"])
        dashes = DASHES[k % len(DASHES)]
        parts.append(svg.tag("path", words, d=svg.steps(xs, ys), stroke=colour(k), stroke_dasharray=dashes, class_="curve"))
        labels.append((ys[-1], float(place), short(summary.label), k))
    parts += _side_names(labels, scale.start + scale.length, base)
    return chart(parts, base + FOOT, "performance profile")


def _within(taus: stats.Floats, shares: stats.Floats, excess: float) -> float:
    return float(shares[np.searchsorted(taus, 1 + excess, side="right") - 1])


def _side_names(labels: list[tuple[float, float, str, int]], x: float, base: float) -> list[str]:
    """Names where curves end, one below the other where they would overlap, none below the chart."""
    out, last = [], -np.inf
    for j, (y, _, name, k) in enumerate(sorted(labels)):
        y = min(max(y, last + LABEL_ROOM), base - LABEL_ROOM * (len(labels) - 1 - j))
        last = y
        out.append(mark(k, x + 14, y, 4.5) + svg.text(x + 24, y + 4, name, class_="side-name"))
    return out


def time_against_gap(report: StudyReport, number: dict[str, int]) -> str:
    """Where each solver stands: its solving time and its gap."""
    found = [
        (each, each.time_s, each.study_gap)
        for each in report.ranked
        if each.time_s is not None and each.study_gap is not None
    ]
    if len(found) < 2:
        return ""
    times = [max(time_s, 1e-3) for _, time_s, _ in found]
    axis = TimeAxis(LEFT, WIDTH - LEFT - NAMES - 20, min(times) / 1.6, max(times) * 1.6)
    base = TOP + HEIGHT
    scale = ExcessScale(base, -HEIGHT)
    parts = [svg.tag("rect", x=LEFT, y=TOP, width=axis.length, height=HEIGHT, class_="lane")]
    for value, name in scale.ticks:
        parts.append(svg.line(LEFT, scale.at(value), LEFT + axis.length, scale.at(value), class_="grid"))
        parts.append(svg.text(LEFT - 10, scale.at(value) + 4, name, class_="watts"))
    for value, name in axis.ticks:
        parts.append(svg.line(axis.at(value), TOP, axis.at(value), base, class_="grid"))
        parts.append(svg.text(axis.at(value), base + 18, name, class_="tick"))
    words = f"solving time (geometric mean, shifted by {stats.GEOMEAN_SHIFT_S:g} s)"
    parts.append(svg.text(LEFT + axis.length / 2, base + 40, words, class_="axis-name x"))
    upright = f"translate({LEFT - 76:g} {TOP + HEIGHT / 2:g}) rotate(-90)"
    parts.append(svg.tag("text", "mean study gap", class_="axis-name x", transform=upright))
    placed = [(axis.at(time_s) - 8, axis.at(time_s) + 8, scale.at(gap.value)) for _, time_s, gap in found]
    for summary, time_s, gap in sorted(found, key=lambda each: scale.at(each[2].value)):
        x, y = axis.at(time_s), scale.at(gap.value)
        if gap.known:
            parts.append(svg.line(x, scale.at(gap.low), x, scale.at(gap.high), class_="whisker-of"))
        lines = svg.title([summary.label, f"gap {with_interval(gap)}", f"time {seconds(time_s)}"])
        parts.append(mark(number[summary.label], x, y, 6.0, lines))
        if len(found) <= 2 * MOST_LINES:
            parts.append(_name_beside(placed, short(summary.label), x, y))
    return chart(parts, base + FOOT, "gap against time")


def _name_beside(placed: list[tuple[float, float, float]], name: str, x: float, y: float) -> str:
    """A name right of its mark, or left, or below: where nothing else is yet (``placed``: left, right, height)."""
    width = LETTER * len(name)
    spots = [(x + side, y + LABEL_ROOM * down) for down in range(len(placed) + 1) for side in (12, -12 - width)]
    left, height = next(
        (spot for spot in spots if not any(_overlap(spot[0], spot[0] + width, spot[1], *each) for each in placed)), spots[0]
    )
    placed.append((left, left + width, height))
    return svg.text(left, height + 4, name, class_="side-name")


def _overlap(left: float, right: float, y: float, other_left: float, other_right: float, other_y: float) -> bool:
    return left < other_right and other_left < right and abs(y - other_y) < LABEL_ROOM - 1


def _grid(scale: ExcessScale, top: float, base: float, name: str) -> str:
    out = [svg.tag("rect", x=scale.start, y=top, width=scale.length, height=base - top, class_="lane")]
    for value, words in scale.ticks:
        out.append(svg.line(scale.at(value), top, scale.at(value), base, class_="grid"))
        out.append(svg.text(scale.at(value), base + 18, words, class_="tick"))
    out.append(svg.text(scale.start + scale.length / 2, base + 40, name, class_="axis-name x"))
    return "".join(out)
