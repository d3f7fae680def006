"""The summary of a run of a study, on the terminal and as JSON."""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from optbench.cli.terminal import exits
from optbench.cli.terminal.output import (
    BAD,
    DIM,
    GOOD,
    attributes,
    escape,
    length,
    percent,
    show,
    table_of,
)
from optbench.html.quantities import duration

if TYPE_CHECKING:
    from optbench.evaluate.rows import Row, Table
    from optbench.evaluate.summaries import Summary
    from optbench.run.runner import StudyRun
    from optbench.store.records import Reason, Record

LEGEND = (
    "mean study gap, over instances; a missing gap counts as 100 %; time is the solver's "
    "own, the shifted geometric mean"
)
# Beside the name of a solver that uses work before it arrives, and has no rank.
CLAIRVOYANT = f" [{BAD}]clairvoyant, not ranked[/]"
# Verdicts on gates and claims whose cells have not been run.
UNDECIDED = ("unknown", "no data")
# Shorter times of compiling are not mentioned.
FELT_S = 1.0


class Account:
    """A run of a study with the results computed from its records; ``report`` is the path of its
    page, and ``tracked`` whether MLflow has the runs.
    """

    def __init__(self, run: StudyRun, report: str | None = None, tracked: bool = True) -> None:
        from optbench.evaluate.judging import evaluate
        from optbench.evaluate.rows import table

        self.run, self.report, self.tracked = run, report, tracked
        self.table = table(replace(run.plan, cells=run.cells), run.records)
        self.failures = _failures(run, self.table)
        self.gates, self.claims = evaluate(run.plan, run.stored)

    @property
    def num_failed(self) -> int:
        """Number of failed cells and of instances that could not be made."""
        return len(self.failures) + len(self.run.unmade)

    @property
    def complete(self) -> bool:
        """Whether every cell of the study has a record, including those that were not selected."""
        return all(cell.key in self.run.stored for cell in self.run.plan.cells)

    @property
    def holds(self) -> bool:
        """Whether gates and claims hold; those that depend on cells still to be run, and claims
        that the study does not check, are left out.
        """
        verdicts = [
            *(gate.verdict for gate in self.gates),
            *(claim.verdict for claim in self.claims if not claim.claim.left_to),
        ]
        return all(
            word == "holds" or (word in UNDECIDED and not self.complete) for word in verdicts
        )

    @property
    def exit_code(self) -> int:
        """The exit code of a run."""
        if self.run.interrupted:
            return exits.INTERRUPTED
        if self.num_failed:
            return exits.CELLS_FAILED
        return exits.DONE if self.holds else exits.NOT_HELD

    def to_dict(self, tracking: str | None) -> dict[str, Any]:
        """``run --json``."""
        run = self.run
        return {
            "study": run.plan.study.name,
            "config_hash": run.plan.study.config_hash,
            "trust": list(run.plan.study.trust),
            "cells": len(run.cells),
            "done": run.done,
            "failed": self.num_failed,
            "skipped": run.skipped,
            "gates": [each.to_dict() for each in self.gates],
            "claims": [each.to_dict() for each in self.claims],
            "report": self.report,
            "ran": run.ran,
            "interrupted": run.interrupted,
            "solvers": self.solvers(),
            "failures": by_reason(run, self.failures),
            "unmade": [
                {"target": each.target, "seed": each.seed, "message": each.error}
                for each in run.unmade
            ],
            "contradictions": [each.words for each in self.table.contradictions],
            "overruns": [
                {"title": each.cell.title, "overrun_s": each.overrun_s} for each in self.overruns()
            ],
            "tracking": tracking,
            "wall_s": round(run.wall_s, 3),
            "compile_s": round(run.compile_s, 3),
        }

    def solvers(self) -> list[dict[str, Any]]:
        """A row per solver, best first."""
        from optbench.evaluate.scores import ranked

        return [_solver(each, self.table.of(each.label)) for each in ranked(self.table)]

    def overruns(self) -> list[Record]:
        """Cells whose processes ran much longer than their time limit."""
        return [record for record in self.run.records.values() if record.overrun_s > 0]

    def show(self) -> None:
        """Show the outcome, a row per solver, failures with their commands, gates, claims, next
        steps.
        """
        from optbench.cli.terminal.expectation_lines import show_claims, show_gates

        show(f"\n[bold]{escape(self.run.plan.study.name)}[/]  {self._line()}")
        rows = self.solvers()
        if rows:
            study = self.run.plan.study
            by = f"ranked by {study.rank}, less first; " if study.rank else ""
            trusted = ", ".join(study.trust)
            also = f"; bounds of {trusted} count for all, uncertified" if trusted else ""
            show(
                "", solvers_table(rows, study.rank), f"[{DIM}]{escape(by)}{LEGEND}{escape(also)}[/]"
            )
        self._show_failures()
        show_gates(self.gates)
        show_claims(self.claims)
        if self.report is not None:
            show("", f"report written to [bold]{escape(self.report)}[/]")
        show("", *(f"[{DIM}]{escape(line)}[/]" for line in self._next()))

    def _line(self) -> str:
        run = self.run
        here = f" ({run.skipped:,} existed already)" if run.skipped else ""
        failed = f"{self.num_failed:,} failed"
        bad = f"[{BAD}]{failed}[/]" if self.num_failed else f"[{GOOD}]none failed[/]"
        state = "interrupted: " if run.interrupted else ""
        return f"{state}{run.done:,} of {len(run.cells):,} cells done{here}, {bad}{self._seconds()}"

    def _seconds(self) -> str:
        """Where the seconds went, of a run that ran anything."""
        run = self.run
        if not run.ran:
            return ""
        if run.compile_s < FELT_S:
            return f", in {length(run.wall_s)}"
        cells_s = run.wall_s - run.compile_s
        return (
            f", in {length(run.wall_s)}: {length(run.compile_s)} compiling, {length(cells_s)} "
            "the cells"
        )

    def _show_failures(self) -> None:
        for made in self.run.unmade:
            show(
                f"[{BAD}]no instance[/] of {escape(made.target)} with seed {made.seed}: "
                f"{escape(_short(str(made.error)))}"
            )
        for kind, each in by_reason(self.run, self.failures).items():
            show("", f"[{BAD}]{each['count']:,} {kind}[/]: {each['means']}")
            show(
                f"  {escape(each['title'])}: {escape(_short(each['message']))}",
                f"  [bold]{escape(each['command'])}[/]",
            )
        for found in self.table.contradictions:
            show(f"[{BAD}]contradiction[/]: {escape(found.words)}")
        overruns = self.overruns()
        if overruns:
            worst = max(overruns, key=lambda record: record.overrun_s)
            many = "1 cell took" if len(overruns) == 1 else f"{len(overruns):,} cells took"
            show(
                "",
                (
                    f"{many} longer than the time limit, at worst by {length(worst.overrun_s)}: "
                    f"{escape(worst.cell.title)}"
                ),
            )

    def _next(self) -> list[str]:
        """The commands for next steps."""
        from optbench.run.repeat_command import study_argument

        name = shlex.quote(study_argument(self.run.plan.study))
        lines = []
        if self.run.interrupted or not self.complete:
            lines.append(f"optbench run {name}  runs the rest")
        if self.failures:
            lines.append(f"optbench run {name} --retry  runs the failed cells again")
        whole = "" if self.report is not None else f"optbench report {name}  the whole comparison; "
        runs = "optbench ui  the runs in MLflow"
        if not self.tracked:
            runs = f"optbench sync {name}  sends the runs to MLflow"
        return [*lines, f"{whole}{runs}"]


def _failures(run: StudyRun, rows: Table) -> list[Record]:
    """Records that count as failed, including those that other records contradict."""
    refuted = {
        row.cell.key: row.record
        for row in rows.rows
        if row.record is not None and row.record.failed
    }
    return [
        refuted.get(key, record)
        for key, record in run.records.items()
        if record.failed or key in refuted
    ]


def by_reason(run: StudyRun, failed: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """Failures by reason, the most frequent first: count, explanation, example, command."""
    from optbench.run.repeat_command import failure_command, study_argument
    from optbench.store.records import REASONS

    grouped: dict[str, list[tuple[Record, Reason]]] = {}
    for record in failed:
        if record.reason is not None:
            grouped.setdefault(record.reason.kind, []).append((record, record.reason))
    out = {}
    for kind, records in sorted(grouped.items(), key=lambda item: -len(item[1])):
        record, reason = records[0]
        out[kind] = {
            "count": len(records),
            "means": REASONS.get(kind, ""),
            "cell": record.key,
            "title": record.cell.title,
            "message": reason.message,
            "command": failure_command(record.cell, reason, study_argument(run.plan.study)),
        }
    return out


def solvers_table(solvers: Sequence[dict[str, Any]], rank: str = "") -> Any:
    """The table of solvers; ``rank`` is the ranking formula, empty for the gap."""
    from optbench.study.formula_names import LAST_LEVEL

    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        "solver": lambda row: marked_name(
            row["solver"],
            row.get("clairvoyant", False),
            row.get("unequal_hardware_instances", 0),
        ),
        rank: lambda row: _scored(row["score"], rank),
        "cells": lambda row: _done(row["ran"], row["cells"]),
        "failed": lambda row: str(row["failed"] or "-"),
        "no gap": lambda row: str(row["missing_gaps"] or "-"),
        "study gap": lambda row: percent(row["mean_study_gap"]),
        "optimal": lambda row: str(row["optimal"] or "-"),
        "time": lambda row: "-" if row.get("time_s") is None else duration(row["time_s"]),
    }
    if not rank:
        del columns[rank]
    if rank == LAST_LEVEL:  # the widest gap of any level says nothing beside it
        del columns["study gap"]
    return table_of(solvers, columns, left=("solver",))


def _done(done: int, total: int) -> str:
    return f"{total:,}" if done == total else f"{done:,} of {total:,}"


def _solver(summary: Summary, rows: Sequence[Row]) -> dict[str, Any]:
    from optbench.report.outline import unequal_of

    times = [
        row.record.wall_s
        for row in rows
        if row.record is not None and row.record.wall_s is not None
    ]
    return {
        "solver": summary.label,
        "cells": summary.planned,
        **attributes(summary, "ran", "failed", "missing_gaps"),
        "score": None if summary.score is None else summary.score.value,
        "mean_study_gap": None if summary.study_gap is None else summary.study_gap.value,
        "mean_gap": None if summary.gap is None else summary.gap.value,
        "optimal": summary.optimal,
        "median_wall_s": statistics.median(times) if times else None,
        "time_s": summary.time_s,
        "clairvoyant": summary.clairvoyant,
        **unequal_of(summary),
    }


def marked_name(label: str, clairvoyant: bool, unequal: int) -> str:
    """The name of a solver with what is to be known of its place."""
    from optbench.evaluate.hardware_models import mark_of

    mark = f" [yellow]{mark_of(unequal)}[/]" if unequal else ""
    return escape(label) + CLAIRVOYANT * clairvoyant + mark


def _scored(value: float | None, rank: str) -> str:
    from optbench.evaluate.scores import Score

    if value is None or Score(rank, {}).is_share:
        return "-" if value is None else f"{100 * value:.3g} %"
    return f"{value:.5g}"


def _short(message: str, most: int = 300) -> str:
    line = " ".join(message.split())
    return line if len(line) <= most else line[:most] + "..."
