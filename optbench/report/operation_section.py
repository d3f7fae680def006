"""The section on arriving work: J per unit beside certified floors, sojourns, queues, charts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from optbench.errors import OptbenchError
from optbench.evaluate.rows import Row
from optbench.evaluate.stats import Estimate
from optbench.evaluate.summaries import over_instances
from optbench.html.marks import key
from optbench.html.page import note, row, section, table, titled_figure
from optbench.html.quantities import amount, plain
from optbench.model.files.schedule_json import read_schedule
from optbench.report import operation_charts as charts
from optbench.report.formatting import NONE, counted, percent, seconds
from optbench.report.operation_figures import BINS, Operation, operation
from optbench.report.study_report import StudyReport

# Of so many problems the first instance is drawn, with so many solvers in the order of the study.
MOST_DRAWN, MOST_CURVES = 3, 9
# Least share of the offered units that a solver on the frontier has done.
MOST_DONE = 0.98
NOTES = (
    "Means over instances, small: 95 % intervals. Above floor: J per unit against the certified least J per unit of anybody who "
    "does as many units (own), all units offered (offered), or as many at the same mean time in the system (frontier). "
    "Where solvers leave different work undone, J per unit itself does not compare them: rest is paid whatever is done. "
    "In system: mean over all arrivals, of what is undone up to the end."
)
FRONTIER = (
    "Means over instances. "
    "The dots are the certified least of anybody with a solver's units and its time; the line between is only drawn."
)
PICTURES = (
    ("Power over time", f"Means over 1/{BINS} of the time watched each, an hour of a week."),
    ("Times in the system", "Share of all arrivals done within a time; a curve that ends below 100 % has left work undone."),
    ("Routes", "Of what came in at an ingress (row) and began, per cent at each pool (column)."),
)


def operations(report: StudyReport, number: dict[str, int]) -> str:
    """The section; empty where no instance has arrivals."""
    targets = [target for target in dict.fromkeys(row.cell.target for row in report.table.rows) if _rows_of(report, target)]
    if not targets:
        return ""
    parts = []
    for k, target in enumerate(targets):
        rows = _rows_of(report, target)
        parts.append(f"<h3>{escape(target)}</h3>{_table('solver', COLUMNS, rows, number, 'operation')}")
        parts.append(_table("waiting at the end of", DAYS, rows, number, "queues"))
        if k < MOST_DRAWN:
            parts.append(_frontier(rows, number))
            parts.append(_pictures(report, rows, number))
    return section("Operation", *parts, note(NOTES), id="operation")


def _rows_of(report: StudyReport, target: str) -> dict[str, list[Row]]:
    """Verified cells of a problem with arrivals, by solver, in the order of the ranking."""
    out = {}
    for summary in report.ranked:
        rows = [row for row in report.rows[summary.label] if row.cell.target == target and "units_offered" in _metrics(row)]
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


def _frontier(rows: dict[str, list[Row]], number: dict[str, int]) -> str:
    """The frontier of solvers that do nearly all of the work; the others do not compare."""
    points, left = [], []
    for label, each in rows.items():
        done = over_instances(each, _done_share)
        if done is None or done.value < MOST_DONE:
            left.append(label)
            continue
        names = ("sojourn_censored_s", "j_per_unit", "floor_frontier_j_per_unit")
        sojourn, reached, floor = (over_instances(each, _value(name)) for name in names)
        if sojourn is not None and reached is not None and sojourn.value > 0:
            points.append(charts.FrontierPoint(label, sojourn.value, reached.value, None if floor is None else floor.value))
    picture = charts.frontier(points, number)
    more = f" Not drawn, with more than {percent(1 - MOST_DONE)} of the work undone: {', '.join(left)}." if left else ""
    return titled_figure("Energy against time in the system", picture, FRONTIER + more)


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
DAYS: tuple[Column, ...] = tuple((f"day {k}", _value(f"queue_day{k}"), _waiting) for k in range(1, 15))


def _table(head: str, columns: Sequence[Column], rows: dict[str, list[Row]], number: dict[str, int], class_: str) -> str:
    """Means by solver; columns without any value are left out."""
    found = {label: [over_instances(each, value) for _, value, _ in columns] for label, each in rows.items()}
    kept = [k for k in range(len(columns)) if any(each[k] is not None for each in found.values())]
    lines = [
        row(_head(label, number), [_shown(each[k], columns[k][2]) for k in kept]) for label, each in found.items()
    ]
    return table([head, *(columns[k][0] for k in kept)], lines, f"report-table {class_}") if kept else ""


def _head(label: str, number: dict[str, int]) -> str:
    return f'<span class="who">{key(number[label])}<span>{escape(label)}</span></span>'


def _shown(found: Estimate | None, show: Callable[[float], str]) -> str:
    if found is None:
        return NONE
    around = f"<small>{show(found.low)} to {show(found.high)}</small>" if found.known and found.high > found.low else ""
    return f"{show(found.value)}{around}"


def _pictures(report: StudyReport, rows: dict[str, list[Row]], number: dict[str, int]) -> str:
    """Charts of the first instance that all these solvers ran; empty if its files are gone."""
    labels = [label for label in report.table.labels if label in rows]
    drawn = labels[:MOST_CURVES]
    first = rows[drawn[0]][0].cell
    found: list[tuple[str, Operation]] = []
    try:
        instance = report.store.instance(first.instance_hash)
        for label in drawn:
            row = next((row for row in rows[label] if row.cell.instance_hash == first.instance_hash), None)
            if row is not None:
                schedule = read_schedule(report.store.cell(row.cell.key) / "schedule.json", instance)
                found.append((label, operation(instance, schedule)))
    except (OptbenchError, OSError):  # a store that was cleaned up; the tables stand without it
        return ""
    assert instance.stream is not None
    names = instance.stream.ingress_names, instance.pools.names
    made = (charts.power(found, number), charts.times(found, number), charts.routes(found, number, *names))
    left = len(labels) - len(drawn)
    more = f" {counted(left, 'solver')} more in the tables alone." if left else ""
    return "".join(titled_figure(title, picture, words + more) for (title, words), picture in zip(PICTURES, made, strict=True))
