"""The section on failed cells by reason: message, end of the output, and command to repeat it."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path

from optbench.html.page import hint, note, section
from optbench.report.formatting import counted
from optbench.report.study_report import StudyReport
from optbench.run.repeat_command import failure_command
from optbench.store.records import REASONS, Record

# Most failures shown in full for each reason, and lengths of the shown output and message.
MOST_OF_A_REASON = 8
TAIL_LINES, TAIL_CHARACTERS = 20, 3000
MESSAGE = 1500
OUTPUT = "output.txt"


def failures(report: StudyReport, href: Callable[[str], str]) -> str:
    """The section: failures grouped by reason, the most frequent first."""
    groups: dict[str, list[Record]] = {}
    for record in report.failures:
        assert record.reason is not None
        groups.setdefault(record.reason.kind, []).append(record)
    if not groups:
        return ""
    parts = [_group(report, kind, found, href) for kind, found in sorted(groups.items(), key=lambda pair: -len(pair[1]))]
    count = sum(map(len, groups.values()))
    aside = hint(f"{counted(count, 'cell')}; those of solvers count as a gap of 100 %")
    return section("Failures", *parts, id="failures", aside=aside)


def _group(report: StudyReport, kind: str, found: list[Record], href: Callable[[str], str]) -> str:
    by_solver: dict[str, int] = {}
    for record in found:
        by_solver[record.cell.label] = by_solver.get(record.cell.label, 0) + 1
    who = ", ".join(f"{label} ({count:,})" for label, count in sorted(by_solver.items(), key=lambda pair: -pair[1])[:12])
    items = "".join(_failure(report, record, href) for record in _spread(found))
    more = note(f"{len(found) - MOST_OF_A_REASON:,} more are not shown.") if len(found) > MOST_OF_A_REASON else ""
    what = f"{counted(len(found), 'cell')}: {REASONS.get(kind, '')}"
    return (
        f'<h3><span class="bad">✗ {escape(kind.replace("_", " "))}</span> <small>{escape(what)}</small></h3>'
        f"{note(who)}{items}{more}"
    )


def _spread(found: list[Record]) -> list[Record]:
    """The failures that are shown, taken from every solver in turn."""
    turns: dict[str, int] = {}
    ordered = []
    for record in found:
        turn = turns.get(record.cell.label, 0)
        turns[record.cell.label] = turn + 1
        ordered.append((turn, record))
    return [record for _, record in sorted(ordered, key=lambda pair: pair[0])[:MOST_OF_A_REASON]]


def _failure(report: StudyReport, record: Record, href: Callable[[str], str]) -> str:
    assert record.reason is not None
    command = failure_command(record.cell, record.reason, report.target)
    output = _tail(report.store.cell(record.key) / OUTPUT)
    shown = f'<pre class="output">{escape(output)}</pre>' if output else note("It wrote nothing.")
    message = record.reason.message[:MESSAGE]
    folder = href(record.key)
    link = f'<p><a href="{escape(folder)}">its files</a></p>' if folder else ""
    return (
        f'<details class="failure"><summary><b>{escape(record.cell.title)}</b> <span>{escape(message)}</span></summary>'
        f"{shown}<p>Again: <code>{escape(command)}</code></p>{link}</details>"
    )


def _tail(path: Path) -> str:
    """The end of a cell's output, without control characters other than line ends."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - 4 * TAIL_CHARACTERS))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    clean = "".join(sign for sign in text if sign in "\n\t" or sign.isprintable())
    return "\n".join(clean.splitlines()[-TAIL_LINES:])[-TAIL_CHARACTERS:]
