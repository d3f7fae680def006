"""The section on instances: every cell with its result, files and command."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from optbench.evaluate.rows import Row
from optbench.html.page import note, section, table
from optbench.model.measures import Value
from optbench.report.formatting import NONE, infeasible_words, number, percent, seconds
from optbench.report.metric_tables import metric_words
from optbench.report.study_report import StudyReport
from optbench.run.best_known import sign_of
from optbench.run.repeat_command import failure_command, non_default_params

# Most cells shown; further instances are left out, and a note says so.
MOST_CELLS = 2500
FEWEST_ROWS = 20
# Most columns of solvers; the table shows the first of the ranking.
MOST_SOLVERS = 40
# Parts of a cell's message shown.
MESSAGE = 300

Href = Callable[[str], str]


@dataclass
class CellDetails:
    """Details of cells for the dialogue of the page; cells refer to them by number."""

    report: StudyReport
    href: Href
    entries: list[dict[str, Any]] = field(default_factory=list)
    given: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def add(self, row: Row) -> int:
        record = row.record
        assert record is not None
        sign = sign_of(row.cell.sense)
        best = max(record.bounds, key=lambda each: sign * float(each["value"]), default=None)
        lines = [f"{row.state}, {record.termination.replace('_', ' ')}"]
        if record.reason is not None:
            lines.append(f"{record.reason.kind}: {record.reason.message[:MESSAGE]}")
        if row.objective is not None:
            words = f", {percent(row.rpd)} above the best known"
            if row.no_excess is not None:
                words = f" (the best known is {number(self.known(row))})"
            lines.append(f"objective {number(row.objective)}{words}")
            lines += self.metrics(row)
        if record.bound is not None and best is not None:
            lines.append(
                f"bound of this run {number(record.bound)} ({best['source']}, {best['proof']}), "
                f"gap {percent(row.gap)}"
            )
        if row.low is not None and row.objective is not None:
            lines.append(
                f"best bound of the study {number(row.low)}, study gap {percent(row.study_gap)}"
            )
        if record.infeasibility is not None:
            decision = "schedule" if row.cell.shape is None else "decision"
            words = infeasible_words(record.infeasibility)
            lines.append(f"no {decision} exists: {words}")
        lines.append(
            f"solving {seconds(record.wall_s)}, cell {seconds(record.total_s)}, memory "
            f"{record.peak_memory_mb:,.0f} MB"
        )
        lines.append(f"key {row.cell.key}")
        if row.cell.label not in self.given:
            self.given[row.cell.label] = non_default_params(row.cell)
        command = failure_command(
            row.cell, record.reason, self.report.target, self.given[row.cell.label]
        )
        self.entries.append(
            {"t": row.cell.title, "l": lines, "f": self.href(row.cell.key), "c": command}
        )
        return len(self.entries) - 1

    def known(self, row: Row) -> Value | None:
        found = self.report.table.best.get(row.cell.instance_hash)
        return None if found is None else found.value

    def metrics(self, row: Row) -> list[str]:
        """The metrics of a decision of a user's shape, in its own units."""
        shape = self.report.plan.shapes.get(row.cell.instance_hash)
        if shape is None or row.record is None:
            return []
        words = metric_words(row.record.metrics, shape)
        return [", ".join(words)] if words else []

    def script(self) -> str:
        """The details as JSON in a script element, which no text in them can end."""
        text = json.dumps(self.entries, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
        return f'<script type="application/json" id="cells">{text}</script>'


def instances(report: StudyReport, href: Href) -> str:
    """A row per instance and seed; the hardest first where not all fit."""
    solvers = [each.label for each in report.summaries if each.ran]
    labels, left = solvers[:MOST_SOLVERS], len(solvers) - MOST_SOLVERS
    if not labels:
        return ""
    rows: dict[tuple[str, int], dict[str, Row]] = {}
    for row in report.table.rows:
        rows.setdefault((row.cell.instance_hash, row.cell.seed), {})[row.cell.label] = row
    ran = {
        column: found
        for column, found in rows.items()
        if any(row.record is not None for row in found.values())
    }
    most = max(FEWEST_ROWS, MOST_CELLS // len(labels))
    kept = list(ran)
    if len(kept) > most:
        kept = sorted(kept, key=lambda column: _hardness(ran[column]), reverse=True)[:most]
    details = CellDetails(report, href)
    lines = [_line(report, ran[column], labels, details) for column in kept]
    notes = [
        (
            "Press a figure for its bound, its files and the command that repeats it; a column's "
            "head sorts."
        )
    ]
    if len(kept) < len(ran):
        notes.append(
            f"{len(kept):,} of {len(ran):,} instances are shown: those with failures, then those "
            "with the widest gaps."
        )
    if left > 0:
        notes.append(f"{left} solvers at the end of the ranking have no column.")
    heads = ["instance", "seed", "best known", "best bound", *labels]
    shown = table(heads, lines, "report-table instances")
    return section("Instances", note(" ".join(notes)), shown, details.script(), id="instances")


def _hardness(found: dict[str, Row]) -> tuple[bool, float]:
    return any(row.failed for row in found.values()), max(
        row.counted_study_gap for row in found.values()
    )


def _line(
    report: StudyReport, found: dict[str, Row], labels: list[str], details: CellDetails
) -> str:
    first = next(iter(found.values())).cell
    known = report.table.best.get(first.instance_hash)
    target = f"<small>{escape(first.target)}</small>" if first.target != first.instance else ""
    best = low = f'<td data-v="">{NONE}</td>'
    if known is not None:
        by = "proven" if first.instance_hash in report.table.proven else escape(known.by)
        best = f'<td data-v="{known.first}">{number(known.value)}<small>{by}</small></td>'
        sorted_by = "" if known.low is None else known.low
        low = f'<td data-v="{sorted_by}">{number(known.low)}</td>'
    head = f'<th scope="row">{escape(first.instance)}{target}</th><td>{first.seed}</td>'
    cells = "".join(_cell(found.get(label), details) for label in labels)
    return f"<tr>{head}{best}{low}{cells}</tr>"


def _cell(row: Row | None, details: CellDetails) -> str:
    if row is None or row.record is None:
        return f"<td>{NONE}</td>"
    k = details.add(row)
    if row.failed:
        words = f'<span class="bad">✗ {escape(row.state.replace("_", " "))}</span>'
    elif row.objective is None:
        words = f'<span class="unsure">{escape(row.state)}</span>'
    else:
        gap = '<span class="good">✓ optimal</span>' if row.optimal else percent(row.study_gap)
        words = f"{number(row.objective)}<small>{gap}</small>"
    return (
        f'<td data-v="{row.counted_study_gap:.6g}"><button type="button" '
        f'data-k="{k}">{words}</button></td>'
    )
