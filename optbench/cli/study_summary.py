"""What a run of a study came to, for people and as JSON."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from optbench.cli.output import BAD, DIM, GOOD, escape, length, percent, show, table

if TYPE_CHECKING:
    from optbench.bench.records import Record
    from optbench.bench.results import Row, Summary, Table
    from optbench.bench.runner import StudyRun

# Cells with the same reason shown one by one.
MAX_EXAMPLES = 1


def joined(run: StudyRun) -> Table:
    """The selected cells with their instances' bounds, checked against each other."""
    from dataclasses import replace

    from optbench.bench import results

    return results.table(replace(run.plan, cells=run.cells), run.records)


def failures(run: StudyRun, rows: Table) -> list[Record]:
    """Records that count as failed: those that say so, and those that others refute."""
    refuted = {row.cell.key: row.record for row in rows.rows if row.record is not None and row.record.failed}
    return [refuted.get(key, record) for key, record in run.records.items() if record.failed or key in refuted]


def by_reason(run: StudyRun, failed: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """Failures by their reason, the most frequent first: how many, what it means, one example, the command that repeats it."""
    from optbench.bench.records import REASONS
    from optbench.bench.repeating import repeat

    grouped: dict[str, list[Record]] = {}
    for record in failed:
        assert record.reason is not None
        grouped.setdefault(record.reason.kind, []).append(record)
    return {
        kind: {
            "count": len(records),
            "means": REASONS.get(kind, ""),
            "cell": records[0].key,
            "title": records[0].cell.title,
            "message": "" if records[0].reason is None else records[0].reason.message,
            "command": repeat(records[0].cell, records[0].reason, run.plan.study.name),
        }
        for kind, records in sorted(grouped.items(), key=lambda item: -len(item[1]))
    }


def document(run: StudyRun) -> dict[str, Any]:
    """``run --json``, without what gates, claims and the report add."""
    rows = joined(run)
    failed = failures(run, rows)
    return {
        "study": run.plan.study.name,
        "config_hash": run.plan.study.config_hash,
        "cells": len(run.cells),
        "done": run.done,
        "failed": len(failed) + len(run.unmade),
        "skipped": run.skipped,
        "gates": [],
        "claims": [],
        "report": None,
        "ran": run.ran,
        "interrupted": run.interrupted,
        "solvers": [_solver(each, rows.of(each.label)) for each in _summaries(rows)],
        "failures": by_reason(run, failed),
        "unmade": [{"target": each.target, "seed": each.seed, "message": each.error} for each in run.unmade],
        "contradictions": [each.words for each in rows.contradictions],
        "overruns": [{"title": each.cell.title, "overrun_s": each.overrun_s} for each in _overruns(run)],
    }


def show_run(run: StudyRun, told: dict[str, Any]) -> None:
    """The outcome in a line, a row per solver, what failed and how to see it again."""
    here = f" ({told['skipped']:,} were there already)" if told["skipped"] else ""
    bad = f", [{BAD}]{told['failed']:,} failed[/]" if told["failed"] else f", [{GOOD}]none failed[/]"
    state = "interrupted: " if run.interrupted else ""
    show(f"\n[bold]{escape(told['study'])}[/]  {state}{told['done']:,} of {told['cells']:,} cells done{here}{bad}")
    if told["solvers"]:
        show("", solvers_table(told["solvers"]))
        show(f"[{DIM}]mean gap over instances, a missing gap counts as 100 %; time is the solver's own, the median[/]")
    for each in told["unmade"]:
        show(f"[{BAD}]no instance[/] of {escape(each['target'])} with seed {each['seed']}: {escape(str(each['message']))}")
    for kind, each in told["failures"].items():
        show(f"\n[{BAD}]{each['count']:,} {kind}[/]: {each['means']}")
        show(f"  {escape(each['title'])}: {escape(_short(each['message']))}", f"  [bold]{escape(each['command'])}[/]")
    for words in told["contradictions"]:
        show(f"[{BAD}]contradiction[/]: {escape(words)}")
    if told["overruns"]:
        worst = max(told["overruns"], key=lambda each: float(each["overrun_s"]))
        many = f"{len(told['overruns']):,} cells took longer than their time limit"
        show(f"{many}, at worst by {length(worst['overrun_s'])}: {escape(worst['title'])}")


def solvers_table(solvers: Sequence[dict[str, Any]]) -> Any:
    columns = ("solver", "cells", "failed", "no gap", "mean gap", "optimal", "time")
    rows = [
        (
            escape(each["solver"]),
            f"{each['ran']:,}" if each["ran"] == each["cells"] else f"{each['ran']:,} of {each['cells']:,}",
            str(each["failed"] or "-"),
            str(each["missing_gaps"] or "-"),
            percent(each["mean_gap"]),
            str(each["optimal"] or "-"),
            "-" if each["median_wall_s"] is None else length(each["median_wall_s"]),
        )
        for each in solvers
    ]
    return table(columns, rows, right=columns[1:])


def _summaries(rows: Table) -> list[Summary]:
    from optbench.bench.results import summaries

    return summaries(rows)


def _solver(summary: Summary, rows: Sequence[Row]) -> dict[str, Any]:
    times = [row.record.wall_s for row in rows if row.record is not None and row.record.wall_s is not None]
    return {
        "solver": summary.label,
        "cells": summary.planned,
        "ran": summary.ran,
        "failed": summary.failed,
        "missing_gaps": summary.missing_gaps,
        "mean_gap": None if summary.study_gap is None else summary.study_gap.value,
        "optimal": summary.optimal,
        "median_wall_s": statistics.median(times) if times else None,
    }


def _overruns(run: StudyRun) -> list[Record]:
    return [record for record in run.records.values() if record.overrun_s > 0]


def _short(message: str, most: int = 300) -> str:
    line = " ".join(message.split())
    return line if len(line) <= most else line[:most] + "..."
