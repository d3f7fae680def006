"""The section on failed cells by reason: message, end of the output, and command to repeat it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from html import escape
from pathlib import Path

from optbench.html.page import hint, note, section
from optbench.report.formatting import counted
from optbench.report.study_report import StudyReport
from optbench.run.repeat_command import failure_command
from optbench.store.records import REASONS, Record

# Most failures shown in full and solvers named for each reason, and lengths of the shown output
# and message.
MOST_OF_A_REASON, MOST_SOLVERS = 8, 12
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
    by_size = sorted(groups.items(), key=lambda pair: -len(pair[1]))
    parts = [_group(report, kind, found, href) for kind, found in by_size]
    count = sum(map(len, groups.values()))
    aside = hint(f"{counted(count, 'cell')}; those of solvers count as a gap of 100 %")
    return section("Failures", *parts, id="failures", aside=aside)


def _group(report: StudyReport, kind: str, found: list[Record], href: Callable[[str], str]) -> str:
    by_solver = Counter(record.cell.label for record in found).most_common(MOST_SOLVERS)
    who = ", ".join(f"{label} ({count:,})" for label, count in by_solver)
    items = "".join(_failure(report, record, href) for record in _spread(found))
    left = len(found) - MOST_OF_A_REASON
    more = note(f"{left:,} more are not shown.") if left > 0 else ""
    what = f"{counted(len(found), 'cell')}: {REASONS.get(kind, '')}"
    return (
        f'<h3><span class="bad">✗ {escape(kind.replace("_", " "))}</span> '
        f"<small>{escape(what)}</small></h3>"
        f"{note(who)}{items}{more}"
    )


def _spread(found: list[Record]) -> list[Record]:
    """The failures that are shown, taken from every solver in turn."""
    turns: Counter[str] = Counter()
    ordered = []
    for record in found:
        ordered.append((turns[record.cell.label], record))
        turns[record.cell.label] += 1
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
        f'<details class="failure"><summary><b>{escape(record.cell.title)}</b> '
        f"<span>{escape(message)}</span></summary>"
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
