"""Charts of a study: gaps by solver, the performance profile, gap against time."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

import numpy as np

from optbench.evaluate import stats
from optbench.evaluate.summaries import Summary, instance_means
from optbench.html import axes, colours, svg
from optbench.html.axes import Axis
from optbench.html.marks import PointLabels, cross, curve, mark, short, side_labels
from optbench.report.formatting import counted, percent, seconds, with_interval
from optbench.report.study_report import StudyReport

LEFT, NAMES, FIGURES = 210.0, 190.0, 100.0
ROW, TOP, HEIGHT = 34.0, 8.0, 340.0
# Dots drawn of one solver; of more, an evenly spaced selection in order of size, which keeps their
# shape.
MOST_DOTS = 150
# Lines of a profile and names in a plot that a reader can distinguish.
MOST_LINES = 10


def gaps(report: StudyReport) -> str:
    """A row per solver: a dot per instance, the mean and its interval."""
    name = f"{_gap_words(report)}, mean of each instance"
    x = axes.gaps(LEFT, svg.WIDTH - LEFT - FIGURES, name=name)
    height = ROW * len(report.ranked)
    nameless = Axis(TOP + height, -height, 0.0, 1.0)
    middles = (TOP + ROW * (j + 0.5) for j in range(len(report.ranked)))
    rows = [_gap_row(report, each, x, y) for each, y in zip(report.ranked, middles)]
    return axes.chart(x, nameless, rows, "gaps by solver")


def _by_last_level(report: StudyReport) -> bool:
    """Whether the study ranks by the gap of the last level, which is drawn in place of the widest
    one.
    """
    return report.score is not None and report.score.is_last_gap


def _gap_words(report: StudyReport) -> str:
    return "gap of the last level" if _by_last_level(report) else "study gap"


def _gap_of(report: StudyReport, summary: Summary) -> stats.Estimate | None:
    return summary.score if _by_last_level(report) else summary.study_gap


def _gap_row(report: StudyReport, summary: Summary, x: Axis, y: float) -> str:
    rows, k = report.rows[summary.label], report.number[summary.label]
    last = _by_last_level(report)
    counted_gap = attrgetter("counted_last_gap" if last else "counted_study_gap")
    found = instance_means(rows, counted_gap)[0]
    known = attrgetter("last_gap" if last else "study_gap")
    empty = {row.cell.instance_hash for row in rows if known(row) is None}
    names = {row.cell.instance_hash: row.cell.instance for row in rows}
    dots = []
    for instance, value in thinned(sorted(found.items(), key=lambda pair: pair[1])):
        words = [f"{names[instance]}: {percent(value)}", summary.label]
        if instance in empty:
            dots.append(cross(x.at(value), y, 3.5, words))
        else:
            fill = colours.solver(k)
            dots.append(svg.circle(x.at(value), y, 3.5, words, fill=fill, class_="dot-of"))
    gap, bar = _gap_of(report, summary), ""
    assert gap is not None
    if gap.known:
        low, high = x.at(gap.low), x.at(gap.high)
        ends = "".join(svg.line(end, y - 6, end, y + 6, class_="whisker-of") for end in (low, high))
        bar = ends + svg.line(low, y, high, y, class_="whisker-of")
    words = [f"{summary.label}: {with_interval(gap)}", counted(gap.count, "instance")]
    middle = mark(k, x.at(gap.value), y, 6.0, words)
    name = svg.text(LEFT - 16, y + 4, short(summary.label), class_="pool")
    figure = svg.text(x.end + 14, y + 4, percent(gap.value), class_="figure")
    return svg.tag("g", "".join([name, *dots, bar, middle, figure]), class_="gap-row")


def thinned(values: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """At most MOST_DOTS of the values, evenly spaced by rank, with the least and the greatest."""
    if len(values) <= MOST_DOTS:
        return list(values)
    picks = np.unique(np.linspace(0, len(values) - 1, MOST_DOTS).round().astype(int))
    return [values[pick] for pick in picks.tolist()]


def no_profile(report: StudyReport) -> str | None:
    """Why a profile of ratios to the best objective does not apply to this study."""
    if len(report.ranked) < 2 or not report.costs.columns:
        return None
    if "max" in report.senses:
        return "It does not apply: an objective is maximised, so that no cost is compared."
    reached = report.costs.values[np.isfinite(report.costs.values)]
    if (reached < 0).any():
        return "It does not apply: an objective is negative, and has no ratio to the best one."
    return None


def zero_best(report: StudyReport) -> str:
    """A remark on instances whose best objective is 0, of which others are no multiple."""
    count = int((stats.best_of(report.costs.values) == 0).sum()) if report.costs.columns else 0
    if not count:
        return ""
    where = counted(count, "pair")
    return (
        f" On {where} of instance and seed the best is 0: whoever does not reach it never counts."
    )


def profile(report: StudyReport) -> str:
    """Dolan and Moré: the share of instances with an objective within an excess of the best one."""
    if len(report.ranked) < 2 or not report.costs.columns:
        return ""
    curves = dict(zip(report.costs.labels, stats.performance_profile(report.costs.values)))
    worst = max((float(taus[-1]) - 1 for taus, _ in curves.values()), default=0.0)
    name = "above the best objective that any solver reached on the instance"
    x = axes.gaps(LEFT, svg.WIDTH - LEFT - NAMES, max(worst * 1.05, 0.01), name)
    y = axes.shares(TOP + HEIGHT, -HEIGHT)
    parts, ends = [], []
    drawn = [each.label for each in report.ranked if each.rpd is not None][:MOST_LINES]
    for place, label in reversed(list(enumerate(drawn))):
        (taus, shares), k = curves[label], report.number[label]
        xs = [*(x.at(tau - 1) for tau in taus.tolist()), x.end]
        ys = [y.at(share) for share in shares.tolist()]
        best, near = percent(float(shares[0])), percent(_within(taus, shares, 0.1))
        words = [label, f"best or level on {best}", f"within 10 % on {near}"]
        parts.append(curve(k, svg.steps(xs, ys), words))
        ends.append((ys[-1], place, k, label))
    labels = [(height, k, label) for height, _, k, label in sorted(ends)]
    return axes.chart(x, y, parts + side_labels(labels, x.end, y.start), "performance profile")


def _within(taus: stats.Floats, shares: stats.Floats, excess: float) -> float:
    return float(shares[np.searchsorted(taus, 1 + excess, side="right") - 1])


def time_against_gap(report: StudyReport) -> str:
    """Where each solver stands: its solving time and its gap."""
    found = [
        (each, each.time_s, gap)
        for each in report.ranked
        if each.time_s is not None and (gap := _gap_of(report, each)) is not None
    ]
    if len(found) < 2:
        return ""
    times = [max(time_s, 1e-3) for _, time_s, _ in found]
    name = f"solving time (geometric mean, shifted by {stats.GEOMEAN_SHIFT_S:g} s)"
    x = axes.decades(LEFT, svg.WIDTH - LEFT - NAMES, min(times) / 1.6, max(times) * 1.6, name)
    y = axes.gaps(TOP + HEIGHT, -HEIGHT, name=f"mean {_gap_words(report)}")
    parts, labels = list[str](), PointLabels(TOP, y.start, left_too=True)
    for _, time_s, gap in found:
        labels.reserve(x.at(time_s), y.at(gap.value))
    for summary, time_s, gap in sorted(found, key=lambda each: y.at(each[2].value)):
        across, up = x.at(time_s), y.at(gap.value)
        if gap.known:
            parts.append(
                svg.line(across, y.at(gap.low), across, y.at(gap.high), class_="whisker-of")
            )
        lines = [summary.label, f"gap {with_interval(gap)}", f"time {seconds(time_s)}"]
        parts.append(mark(report.number[summary.label], across, up, 6.0, lines))
        if len(found) <= 2 * MOST_LINES:
            parts.append(labels.add(across, up, short(summary.label)))
    return axes.chart(x, y, parts, "gap against time")
