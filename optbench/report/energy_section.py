"""The section on what the runs themselves drew, and when a learned solver has paid back its
training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from optbench.evaluate.payback import Payback, paybacks
from optbench.evaluate.rows import Row
from optbench.html.page import note, row, section, table
from optbench.html.quantities import amount
from optbench.plugins.training_energy import is_complete
from optbench.report.formatting import NONE, counted, figures, four_digits, percent
from optbench.report.ranking import stacked, who
from optbench.report.study_report import StudyReport

HEADS = ("solver", "cells", "J per cell", "processors", "GPUs", "in all", "shared", "how known")
PAYBACK_HEADS = (
    *("learned solver", "has paid back", "its training (J)", "saving per instance (J)"),
    *("its schedule + run (J)", "best rule's (J)"),
)
NOTE = (
    "What the cells' processes drew themselves, in joules, apart from the verified energy of their "
    "schedules: it can only be measured and enters no gap. Measured: the share of the processor "
    "packages and their memory by processor time, and the GPUs that the cell's processes used. "
    "Estimated: processor seconds times a stated power. Shared: other processes used the same "
    "packages or GPUs meanwhile. Incomplete: something was not measured, or a figure is only a "
    "lower bound; the cells' records say what."
)
PAYBACK_NOTE = (
    "An instance is one of the problem named, with as many tasks as it has. Paid back after: "
    "energy of the training / mean over the instances that both solved of (verified energy_j of "
    "the rule's schedule + its run − the same of the learned solver, inference included). The "
    "rule is that of least mean energy_j among the study's policies that are neither learned nor "
    "clairvoyant, with the parameters that the study gives them. Tuned: these are not its "
    "defaults. Energy alone counts, whatever the objective weighs."
)


def energy_section(report: StudyReport) -> str:
    """The section; empty where no cell has a record of its energy."""
    by_label = {label: measured(rows) for label, rows in _rows(report).items()}
    lines = [_line(report, label, rows) for label, rows in by_label.items() if rows]
    if not lines:
        return ""
    parts = [table(HEADS, lines, "report-table energy", words=(0, 7)), note(NOTE)]
    found = paybacks(report.table)
    if found:
        shown = [_payback_line(report, each) for each in found]
        parts.append("<h3>Energy of training, paid back</h3>")
        parts.append(table(PAYBACK_HEADS, shown, "report-table payback", words=(0, 1)))
        parts.append(note(PAYBACK_NOTE))
    return section("Energy of the runs", *parts, id="energy")


def energy_outline(report: StudyReport) -> dict[str, Any]:
    """The same as plain data."""
    return {
        "solvers": [
            {"solver": label, **totals(rows)}
            for label, every in _rows(report).items()
            if (rows := measured(every))
        ],
        "payback": [each.to_dict() for each in paybacks(report.table)],
    }


def _rows(report: StudyReport) -> dict[str, list[Row]]:
    out: dict[str, list[Row]] = {each.label: [] for each in report.summaries}
    for each in report.table.rows:
        out[each.cell.label].append(each)
    return out


def measured(rows: Sequence[Row]) -> list[Mapping[str, Any]]:
    """What is recorded of the energy of cells; those of older records have nothing."""
    return [
        each.record.energy
        for each in rows
        if each.record is not None and "energy_j" in each.record.energy
    ]


def totals(cells: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Sums over cells, and on how many of them something was estimated or shared."""
    devices = [each["device_j"] for each in cells if each["device_j"] is not None]
    return {
        "cells": len(cells),
        "energy_j": sum(each["energy_j"] for each in cells),
        "cpu_j": sum(each["cpu_j"] for each in cells),
        "device_j": sum(devices) if devices else None,
        "estimated": sum(each["estimated"] for each in cells),
        "incomplete": sum(not is_complete(each) for each in cells),
        "shared": sum(each["cpu_shared"] or each["device_shared"] for each in cells),
    }


def _line(report: StudyReport, label: str, cells: Sequence[Mapping[str, Any]]) -> str:
    sums = totals(cells)
    count, devices = sums["cells"], sums["device_j"]
    values = (
        f"{count:,}",
        four_digits(sums["energy_j"] / count),
        four_digits(sums["cpu_j"] / count),
        NONE if devices is None else four_digits(devices / count),
        amount(sums["energy_j"], "J"),
        percent(sums["shared"] / count),
        how_known(cells),
    )
    return row(who(report, label), values, words=(0, 7))


def how_known(cells: Sequence[Mapping[str, Any]]) -> str:
    """``measured``, or ``estimated at 12 W`` with the number of such cells where both occur; and
    on how many something is missing.
    """
    incomplete = sum(not is_complete(each) for each in cells)
    missing = f"; incomplete in {counted(incomplete, 'cell')}" if incomplete else ""
    return _means(cells) + missing


def _means(cells: Sequence[Mapping[str, Any]]) -> str:
    estimated = [each for each in cells if each["estimated"]]
    if not estimated:
        return "measured"
    watts = sorted({each["assumed_w"] for each in estimated})
    words = f"estimated at {' or '.join(f'{each:g}' for each in watts)} W"
    mixed = len(estimated) < len(cells)
    return f"{words} ({counted(len(estimated), 'cell')}), else measured" if mixed else words


def _payback_line(report: StudyReport, each: Payback) -> str:
    head = f"{who(report, each.label)}<small>{escape(each.target)}</small>"
    estimated = "<small>estimated</small>" if each.training_estimated else ""
    tuned = "tuned" if each.rule_tuned else "default parameters"
    rule = "" if each.rule is None else f"<small>{escape(each.rule)}, {tuned}</small>"
    values = (
        f"<b>{escape(each.words)}</b>",
        NONE if each.training_j is None else four_digits(each.training_j) + estimated,
        stacked(figures(each.saving)),
        _sum(each.learned_j, each.learned_run_j),
        _sum(each.rule_j, each.rule_run_j) + rule,
    )
    return row(head, values, words=(0, 1))


def _sum(schedule_j: float | None, run_j: float | None) -> str:
    if schedule_j is None or run_j is None:
        return NONE
    return f"{four_digits(schedule_j)} + {four_digits(run_j)}"
