"""The section on arriving work: J per unit beside certified floors, sojourns, queues, charts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from optbench.errors import OptbenchError
from optbench.evaluate.rows import Row
from optbench.evaluate.stats import Estimate
from optbench.evaluate.summaries import over_instances
from optbench.html.page import note, row, section, table, titled_figure
from optbench.html.quantities import amount, plain
from optbench.model.files.schedule_json import read_schedule
from optbench.report import operation_charts as charts
from optbench.report.formatting import NONE, counted, percent, seconds
from optbench.report.operation_figures import BINS, Operation, operation
from optbench.report.ranking import who
from optbench.report.study_report import StudyReport

# Of so many problems the first instance is drawn, with so many solvers in the order of the study.
MOST_DRAWN, MOST_CURVES = 3, 9
# Least share of the offered units that a solver on the frontier has done.
MOST_DONE = 0.98
NOTES = (
    "Means over instances, small: 95 % intervals. Above floor: J per unit against the certified "
    "least J per unit of anybody who "
    "does as many units (own), all units offered (offered), or as many at the same mean time in "
    "the system (frontier). "
    "Where solvers leave different work undone, J per unit itself does not compare them: rest is "
    "paid whatever is done. "
    "In system: mean over all arrivals, of what is undone up to the end."
)
FRONTIER = (
    "Means over instances. "
    "The dots are the certified least of anybody with a solver's units and its time; the line "
    "between is only drawn."
)
POWER = f"Means over 1/{BINS} of the time watched each, an hour of a week."
TIMES = (
    "Share of all arrivals done within a time; a curve that ends below 100 % has left work undone."
)
ROUTES = "Of what came in at an ingress (row) and began, per cent at each pool (column)."


def operations(report: StudyReport) -> str:
    """The section; empty where no instance has arrivals."""
    targets = dict.fromkeys(row.cell.target for row in report.table.rows)
    found = {target: rows for target in targets if (rows := _rows_of(report, target))}
    parts = []
    for k, (target, rows) in enumerate(found.items()):
        parts.append(f"<h3>{escape(target)}</h3>")
        parts.append(_table(report, "solver", COLUMNS, rows, "operation"))
        parts.append(_table(report, "waiting at the end of", DAYS, rows, "queues"))
        if k < MOST_DRAWN:
            parts.append(_frontier(report, rows))
            parts.append(_pictures(report, rows))
    return section("Operation", *parts, note(NOTES), id="operation") if parts else ""


def _rows_of(report: StudyReport, target: str) -> dict[str, list[Row]]:
    """Verified cells of a problem with arrivals, by solver, in the order of the ranking."""
    out = {}
    for summary in report.ranked:
        rows = [row for row in report.rows[summary.label] if row.cell.target == target]
        rows = [r for r in rows if r.cell.shape is None and "units_offered" in _metrics(r)]
        if rows:
            out[summary.label] = rows
    return out


def _metrics(row: Row) -> dict[str, float]:
    return {} if row.record is None or row.objective is None else dict(row.record.metrics)


def _value(name: str) -> Callable[[Row], float | None]:
    def value(row: Row) -> float | None:
        found = _metrics(row).get(name)
        return found if found is not None and math.isfinite(found) else None

    return value


def _done_share(row: Row) -> float | None:
    found = _metrics(row)
    return found["units_done"] / found["units_offered"] if found.get("units_offered") else None


def _frontier(report: StudyReport, rows: dict[str, list[Row]]) -> str:
    """The frontier of solvers that do nearly all of the work; the others do not compare."""
    points, left = [], []
    for label, each in rows.items():
        done = over_instances(each, _done_share)
        if done is None or done.value < MOST_DONE:
            left.append(label)
            continue
        names = ("sojourn_censored_s", "j_per_unit", "floor_frontier_j_per_unit")
        means = [over_instances(each, _value(name)) for name in names]
        sojourn_s, reached, floor = (None if mean is None else mean.value for mean in means)
        if reached is not None and sojourn_s is not None and sojourn_s > 0:
            points.append(charts.FrontierPoint(label, sojourn_s, reached, floor))
    words, undone = FRONTIER, f"more than {percent(1 - MOST_DONE)} of the work undone"
    if left:
        words += f" Not drawn, with {undone}: {', '.join(left)}."
    picture = charts.frontier(points, report.number)
    return titled_figure("Energy against time in the system", picture, words)


def _waiting(value: float) -> str:
    return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"


# Head, value of a cell, and how a mean is written.
Column = tuple[str, Callable[[Row], float | None], Callable[[float], str]]
COLUMNS: tuple[Column, ...] = (
    ("units done", _done_share, percent),
    ("completed", _value("completed"), lambda value: f"{value:,.0f}"),
    ("J per unit", _value("j_per_unit"), lambda value: plain(float(f"{value:.5g}"))),
    ("energy", _value("energy_j"), lambda value: amount(value, "J")),
    ("above floor: own", _value("gap_own"), percent),
    ("offered", _value("gap_offered"), percent),
    ("frontier", _value("gap_frontier"), percent),
    ("in system", _value("sojourn_censored_s"), seconds),
    ("p95 of done", _value("sojourn_p95_s"), seconds),
    ("p99 of done", _value("sojourn_p99_s"), seconds),
    ("at work", _value("service_mean_s"), seconds),
    ("wait at end", _value("queue_end"), _waiting),
    ("late", _value("slo_violation"), percent),
)  # fmt: skip


# Tasks that wait at the end of each day.
DAYS: tuple[Column, ...] = tuple(
    (f"day {k}", _value(f"queue_day{k}"), _waiting) for k in range(1, 15)
)


def _table(
    report: StudyReport,
    head: str,
    columns: Sequence[Column],
    rows: dict[str, list[Row]],
    class_: str,
) -> str:
    """Means by solver; columns without any value are left out."""
    heads, lines = [head], {label: list[str]() for label in rows}
    for name, value, show in columns:
        found = {label: over_instances(each, value) for label, each in rows.items()}
        if any(mean is not None for mean in found.values()):
            heads.append(name)
            for label, mean in found.items():
                lines[label].append(_shown(mean, show))
    shown = [row(who(report, label), cells) for label, cells in lines.items()]
    return table(heads, shown, f"report-table {class_}") if len(heads) > 1 else ""


def _shown(found: Estimate | None, show: Callable[[float], str]) -> str:
    if found is None:
        return NONE
    around = ""
    if found.known and found.high > found.low:
        around = f"<small>{show(found.low)} to {show(found.high)}</small>"
    return f"{show(found.value)}{around}"


def _pictures(report: StudyReport, rows: dict[str, list[Row]]) -> str:
    """Charts of the first instance that all these solvers ran; empty if its files are gone."""
    labels = [label for label in report.table.labels if label in rows]
    drawn = labels[:MOST_CURVES]
    first = rows[drawn[0]][0].cell
    found: list[tuple[str, Operation]] = []
    try:
        instance = report.store.instance(first.instance_hash)
        for label in drawn:
            cells = [each.cell for each in rows[label]]
            same = [cell for cell in cells if cell.instance_hash == first.instance_hash]
            if same:
                path = report.store.cell(same[0].key) / "schedule.json"
                found.append((label, operation(instance, read_schedule(path, instance))))
    except (OptbenchError, OSError):  # a store that was cleaned up; the tables stand without it
        return ""
    assert instance.stream is not None
    names, number = (instance.stream.ingress_names, instance.pools.names), report.number
    left = len(labels) - len(drawn)
    more = f" {counted(left, 'solver')} more in the tables alone." if left else ""
    return (
        titled_figure("Power over time", charts.power(found, number), POWER + more)
        + titled_figure("Times in the system", charts.times(found, number), TIMES + more)
        + titled_figure("Routes", charts.routes(found, number, *names), ROUTES + more)
    )
