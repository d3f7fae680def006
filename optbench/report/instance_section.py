"""The table of instances: what each solver reached on each, with the files and the command of every cell."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from optbench.evaluate.rows import Row
from optbench.report.gathered import StudyReport
from optbench.report.ranking import table_of
from optbench.report.words import NONE, infeasible_words, number, percent, seconds
from optbench.run.repeat_command import failure_command, non_default_params

# Cells shown; those of whole instances beyond it are left out, and the table says so.
MOST_CELLS = 2500
FEWEST_ROWS = 20
# Solvers that find room side by side; the table has the first of the ranking.
MOST_SOLVERS = 40
# Parts of a cell's message shown.
MESSAGE = 300

Href = Callable[[str], str]


@dataclass
class Particulars:
    """What the page tells of a cell when asked: text by line, files, command; cells refer to it by number."""

    study: str
    href: Href
    entries: list[dict[str, Any]] = field(default_factory=list)
    given: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def add(self, row: Row) -> int:
        record = row.record
        assert record is not None
        best = max(record.bounds, key=lambda each: float(each["value"]), default=None)
        lines = [f"{row.state}, {record.termination.replace('_', ' ')}"]
        if record.reason is not None:
            lines.append(f"{record.reason.kind}: {record.reason.message[:MESSAGE]}")
        if row.objective is not None:
            lines.append(f"objective {number(row.objective)}, {percent(row.rpd)} above the best known")
        if record.bound is not None and best is not None:
            lines.append(f"bound of this run {number(record.bound)} ({best['source']}, {best['proof']}), gap {percent(row.gap)}")
        if row.low is not None and row.objective is not None:
            lines.append(f"best bound of the study {number(row.low)}, study gap {percent(row.study_gap)}")
        if record.infeasibility is not None:
            lines.append("no schedule exists: " + infeasible_words(record.infeasibility))
        lines.append(f"solving {seconds(record.wall_s)}, cell {seconds(record.total_s)}, memory {record.peak_memory_mb:,.0f} MB")
        lines.append(f"key {row.cell.key}")
        if row.cell.label not in self.given:
            self.given[row.cell.label] = non_default_params(row.cell)
        command = failure_command(row.cell, record.reason, self.study, self.given[row.cell.label])
        self.entries.append({"t": row.cell.title, "l": lines, "f": self.href(row.cell.key), "c": command})
        return len(self.entries) - 1

    def script(self) -> str:
        """As data in the page; nothing in it can end the element."""
        text = json.dumps(self.entries, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
        return f'<script type="application/json" id="cells">{text}</script>'


def instances(report: StudyReport, href: Href) -> str:
    """A row per instance and seed; the hardest first where not all fit."""
    labels = [each.label for each in report.summaries if each.ran][:MOST_SOLVERS]
    if not labels:
        return ""
    rows: dict[tuple[str, int], dict[str, Row]] = {}
    for row in report.table.rows:
        rows.setdefault((row.cell.instance_hash, row.cell.seed), {})[row.cell.label] = row
    ran = {column: found for column, found in rows.items() if any(row.record is not None for row in found.values())}
    most = max(FEWEST_ROWS, MOST_CELLS // len(labels))
    kept = list(ran)
    if len(kept) > most:
        kept = sorted(kept, key=lambda column: _hardness(ran[column]), reverse=True)[:most]
    particulars = Particulars(report.word, href)
    lines = [_line(report, ran[column], labels, particulars) for column in kept]
    notes = ["Press a figure for its bound, its files and the command that repeats it; a column's head sorts."]
    if len(kept) < len(ran):
        notes.append(f"{len(kept):,} of {len(ran):,} instances are shown: those with failures, then those with the widest gaps.")
    left = [each.label for each in report.summaries if each.ran][MOST_SOLVERS:]
    if left:
        notes.append(f"{len(left)} solvers at the end of the ranking have no column.")
    heads = ["instance", "seed", "best known", "best bound", *labels]
    table = table_of(heads, lines, "instances")
    return (
        f'<section id="instances"><div class="head"><h2>Instances</h2></div><p class="note">{" ".join(notes)}</p>{table}'
        f"{particulars.script()}</section>"
    )


def _hardness(found: dict[str, Row]) -> tuple[bool, float]:
    return any(row.failed for row in found.values()), max(row.counted_study_gap for row in found.values())


def _line(report: StudyReport, found: dict[str, Row], labels: list[str], particulars: Particulars) -> str:
    first = next(iter(found.values())).cell
    known = report.table.best.get(first.instance_hash)
    target = f"<small>{escape(first.target)}</small>" if first.target != first.instance else ""
    best, low, by = NONE, NONE, ""
    if known is not None:
        best = number(known.value)
        by = f'<small>{"proven" if first.instance_hash in report.table.proven else escape(known.by)}</small>'
        low = number(known.low)
    cells = [
        f'<th scope="row">{escape(first.instance)}{target}</th><td>{first.seed}</td>',
        f'<td data-v="{known.first if known is not None else ""}">{best}{by}</td>',
        f'<td data-v="{known.low if known is not None and known.low is not None else ""}">{low}</td>',
        *[_cell(found.get(label), particulars) for label in labels],
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _cell(row: Row | None, particulars: Particulars) -> str:
    if row is None or row.record is None:
        return f"<td>{NONE}</td>"
    k = particulars.add(row)
    if row.failed:
        words = f'<span class="bad">✗ {escape(row.state.replace("_", " "))}</span>'
    elif row.objective is None:
        words = f'<span class="unsure">{escape(row.state)}</span>'
    else:
        gap = '<span class="good">✓ optimal</span>' if row.optimal else percent(row.study_gap)
        words = f"{number(row.objective)}<small>{gap}</small>"
    return f'<td data-v="{row.counted_study_gap:.6g}"><button type="button" data-k="{k}">{words}</button></td>'
