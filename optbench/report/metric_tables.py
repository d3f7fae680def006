"""The metrics of instances that are no schedules, in the units and words of their shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape

from optbench.evaluate.rows import Row
from optbench.evaluate.summaries import over_instances
from optbench.html.page import note, row, section, table
from optbench.html.quantities import plain
from optbench.report.formatting import figures
from optbench.report.ranking import stacked, who
from optbench.report.study_report import StudyReport
from optbench.shapes.protocol.shape_facts import ShapeFacts

# Most metrics that have a column; the pop-ups of the cells show as many.
MOST = 12


def metric_tables(report: StudyReport) -> str:
    """A table per shape: its metrics by solver, means over the instances that all have run."""
    by_name: dict[str, ShapeFacts] = {}
    for shape in report.plan.shapes.values():
        by_name.setdefault(shape.name, shape)
    parts = [_table(report, shape, headed=len(by_name) > 1) for shape in by_name.values()]
    return section("Metrics", *parts, id="metrics")


def _table(report: StudyReport, shape: ShapeFacts, headed: bool) -> str:
    rows = {
        each.label: [
            found
            for found in report.rows[each.label]
            if found.cell.shape is not None and found.cell.shape.name == shape.name
        ]
        for each in report.ranked
    }
    names = _names(shape, [found for each in rows.values() for found in each])
    lines = [
        row(who(report, label), [_mean(found, name) for name in names])
        for label, found in rows.items()
        if found
    ]
    if not names or not lines:
        return ""
    heads = ["solver", *(_head(shape, name) for name in names)]
    head = f"<h3>{escape(shape.name)}</h3>" if headed else ""
    shown = table(heads, lines, "report-table metrics")
    return head + shown + note(_meanings(shape, names))


def _names(shape: ShapeFacts, rows: Sequence[Row]) -> list[str]:
    """The declared metrics that any decision has, then any others, at most MOST."""
    known = {name for each in rows if each.record is not None for name in each.record.metrics}
    first = [name for name in shape.metrics if name in known]
    return [*first, *sorted(known - set(first))][:MOST]


def _mean(rows: Sequence[Row], name: str) -> str:
    return stacked(figures(over_instances(rows, _reader(name))))


def _reader(name: str) -> Callable[[Row], float | None]:
    def read(each: Row) -> float | None:
        return None if each.record is None else each.record.metrics.get(name)

    return read


def _head(shape: ShapeFacts, name: str) -> str:
    unit = _unit(shape, name)
    return f"{name} ({unit})" if unit else name


def _unit(shape: ShapeFacts, name: str) -> str:
    return shape.metrics[name].unit if name in shape.metrics else ""


def _meanings(shape: ShapeFacts, names: Sequence[str]) -> str:
    """What each metric is, and which of them is the objective."""
    told = [
        f"{name}: {shape.metrics[name].words}"
        for name in names
        if name in shape.metrics and shape.metrics[name].words
    ]
    said = "Means over the instances on which a solver has a result; small: 95 % intervals."
    goal = f"Objective: {shape.objective}."
    return " ".join([said, *([f"{'; '.join(told)}."] if told else []), goal])


def metric_words(metrics: Mapping[str, float], shape: ShapeFacts) -> list[str]:
    """``cost_usd 2.6 USD`` for each metric, in the shape's order."""
    order = dict.fromkeys([*(name for name in shape.metrics if name in metrics), *sorted(metrics)])
    return [
        " ".join(filter(None, (name, plain(metrics[name]), _unit(shape, name))))
        for name in list(order)[:MOST]
    ]
