"""Failures by reason: what happened, the tail of the output, and the command that shows it again."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path

from optbench.report.gathered import StudyReport
from optbench.report.words import counted
from optbench.run.repeat_command import failure_command
from optbench.store.records import REASONS, Record

# Failures shown in full for each reason, and of each the end of what it wrote.
MOST_OF_A_REASON = 8
TAIL_LINES, TAIL_CHARACTERS = 20, 3000
MESSAGE = 1500
OUTPUT = "output.txt"


def failures(report: StudyReport, href: Callable[[str], str]) -> str:
    """Grouped by reason, the most frequent first."""
    groups: dict[str, list[Record]] = {}
    for record in report.failures:
        assert record.reason is not None
        groups.setdefault(record.reason.kind, []).append(record)
    if not groups:
        return ""
    parts = [_group(report, kind, found, href) for kind, found in sorted(groups.items(), key=lambda pair: -len(pair[1]))]
    count = sum(map(len, groups.values()))
    hint = f"{counted(count, 'cell')}; those of solvers count as a gap of 100 %"
    head = f'<div class="head"><h2>Failures</h2><span class="hint">{hint}</span></div>'
    return f'<section id="failures">{head}{"".join(parts)}</section>'


def _group(report: StudyReport, kind: str, found: list[Record], href: Callable[[str], str]) -> str:
    by_solver: dict[str, int] = {}
    for record in found:
        by_solver[record.cell.label] = by_solver.get(record.cell.label, 0) + 1
    who = ", ".join(f"{label} ({count:,})" for label, count in sorted(by_solver.items(), key=lambda pair: -pair[1])[:12])
    items = "".join(_failure(report, record, href) for record in _spread(found))
    more = f'<p class="note">{len(found) - MOST_OF_A_REASON:,} more are not shown.</p>' if len(found) > MOST_OF_A_REASON else ""
    what = f"{counted(len(found), 'cell')}: {REASONS.get(kind, '')}"
    return (
        f'<h3><span class="bad">✗ {escape(kind.replace("_", " "))}</span> <small>{escape(what)}</small></h3>'
        f'<p class="note">{escape(who)}</p>{items}{more}'
    )


def _spread(found: list[Record]) -> list[Record]:
    """As many as are shown, of every solver in turn."""
    turns: dict[str, int] = {}
    ordered = []
    for record in found:
        turn = turns.get(record.cell.label, 0)
        turns[record.cell.label] = turn + 1
        ordered.append((turn, record))
    return [record for _, record in sorted(ordered, key=lambda pair: pair[0])[:MOST_OF_A_REASON]]


def _failure(report: StudyReport, record: Record, href: Callable[[str], str]) -> str:
    assert record.reason is not None
    command = failure_command(record.cell, record.reason, report.word)
    output = _tail(report.store.cell(record.key) / OUTPUT)
    shown = f'<pre class="output">{escape(output)}</pre>' if output else '<p class="note">It wrote nothing.</p>'
    message = record.reason.message[:MESSAGE]
    folder = href(record.key)
    link = f'<p><a href="{escape(folder)}">its files</a></p>' if folder else ""
    return (
        f'<details class="failure"><summary><b>{escape(record.cell.title)}</b> <span>{escape(message)}</span></summary>'
        f"{shown}<p>Again: <code>{escape(command)}</code></p>{link}</details>"
    )


def _tail(path: Path) -> str:
    """The end of what a cell wrote; control characters other than line ends are dropped."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - 4 * TAIL_CHARACTERS))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    clean = "".join(sign for sign in text if sign in "\n\t" or sign.isprintable())
    return "\n".join(clean.splitlines()[-TAIL_LINES:])[-TAIL_CHARACTERS:]
