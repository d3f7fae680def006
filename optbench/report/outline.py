"""A report as plain data for `--json`, and the page that lists all studies of a workspace."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from optbench.evaluate.stats import Estimate
from optbench.evaluate.summaries import Summary
from optbench.files import write_whole
from optbench.html.page import header, page, row, table
from optbench.report.energy_section import energy_outline
from optbench.report.formatting import unbroken
from optbench.report.study_report import StudyReport, caveats
from optbench.report.study_verdict import verdict
from optbench.report.tests_section import tests_outline
from optbench.store.run_store import STUDIES, Store

INDEX = "index.html"
# What is said of a solver, and the keys that are not the attributes' names.
SUMMARY = (
    *("label", "planned", "ran", "compared", "failed", "unsolved", "study_gap", "score", "behind"),
    *("gap", "rpd", "regret", "optimal", "proved", "time_s", "rank", "wins", "clairvoyant"),
)
KEYS = {"label": "solver", "unsolved": "no_schedule", "behind": "behind_first"}
HEADS = ("study", "question and answer", "cells", "last ran (UTC)")


def outline(report: StudyReport) -> dict[str, Any]:
    """Verdict, caveats and ranking as plain data."""
    return {
        "study": report.name,
        "question": report.plan.study.question,
        "config_hash": report.plan.study.config_hash,
        "trust": list(report.plan.study.trust),
        "cells": len(report.plan.cells),
        "done": len(report.records),
        "failed": len(report.failures),
        "verdict": verdict(report),
        "caveats": [{"words": each.words, "grave": each.grave} for each in caveats(report)],
        "ranked_by": report.plan.study.rank or "study_gap",
        "ranking": [_summary(each) for each in report.summaries],
        "run_energy": energy_outline(report),
        **tests_outline(report),
    }


def _summary(each: Summary) -> dict[str, Any]:
    out = {}
    for name in SUMMARY:
        value = getattr(each, name)
        out[KEYS.get(name, name)] = _estimate(value) if isinstance(value, Estimate) else value
    return out | unequal_of(each)


def unequal_of(each: Summary) -> dict[str, int]:
    """The number of instances on which a solver and the first had different hardware, if any."""
    return {"unequal_hardware_instances": each.unequal} if each.unequal else {}


def _estimate(found: Estimate) -> dict[str, Any]:
    ends = (found.low, found.high) if found.known else (None, None)
    return {"mean": found.value, "low": ends[0], "high": ends[1], "instances": found.count}


def last_ran(report: StudyReport) -> str:
    """The start of the latest cell, in ISO 8601; empty where none has run."""
    return max((record.began_at for record in report.records), default="")


def write_index(
    reports: Sequence[tuple[StudyReport, Path]], store: Store, path: Path | None = None
) -> Path:
    """Write a page that lists studies, the one that ran last first, and return its path."""
    target = path or store.folder / STUDIES / INDEX
    rows = []
    for report, file in sorted(reports, key=lambda pair: last_ran(pair[0]), reverse=True):
        link = Path(os.path.relpath(file.absolute(), target.absolute().parent)).as_posix()
        failed = (
            f'<small class="bad">{len(report.failures):,} failed</small>' if report.failures else ""
        )
        answer = (
            f"{escape(report.plan.study.question)}<small>{unbroken(verdict(report)[0])}</small>"
        )
        cells = f"{len(report.records):,} of {len(report.plan.cells):,}{failed}"
        ran = escape(last_ran(report)[:16].replace("T", " "))
        name = f'<a href="{escape(link)}">{escape(report.name)}</a>'
        rows.append(row(name, (answer, cells, ran), words=(1,)))
    what = "study" if len(reports) == 1 else "studies"
    shown = table(HEADS, rows, "report-table gates", words=(0, 1))
    body = [header("Studies", f"{len(reports):,} {what} run here"), f"<section>{shown}</section>"]
    write_whole(
        target, page("Studies", body, __package__, ("report.css",)).encode("utf-8", "replace")
    )
    return target
