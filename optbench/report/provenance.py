"""The section on provenance, and the meaning of each column of the ranking."""

from __future__ import annotations

import json
import pickle
from contextlib import suppress
from html import escape

from optbench.errors import OptbenchError
from optbench.evaluate import stats
from optbench.html.page import note, section, table, text_table
from optbench.report.formatting import NONE, counted, seconds
from optbench.report.study_report import StudyReport, fixed
from optbench.study.declared import SolverEntry

MEANINGS = (
    (
        "study gap",
        "|objective − bound| / the larger of both, with the best bound of the instance that the "
        "core has certified, whoever "
        "reported it, that a solver named in `trust` gave, or that the run itself gave: as far "
        "as those bounds are right, a "
        "schedule is at most so far from the optimum. A cell that failed or found nothing counts "
        "as 100 %. Of lexicographic "
        "objectives the widest gap counts. Gates and claims call it study_gap.",
    ),
    (
        "behind first",
        "its gap minus that of the first, instance by instance; an interval that holds 0 may be "
        "chance, as may any of fewer "
        f"than {stats.FEWEST} instances.",
    ),
    (
        "gap of its own run",
        (
            "the gap to the best bound of the very same run, certified or the solver's own; 100 "
            "% of "
            "a solver that gives none (gap)."
        ),
    ),
    (
        "above best known",
        "(objective − best known) / best known (rpd), over the instances that it solved; of "
        "objectives in order, of the first. "
        "Of public instances the published best known counts too. It proves nothing, and does not "
        "apply where the objective is maximised or the best known is not positive.",
    ),
    ("optimum", "cells whose study gap is closed."),
    (
        "time",
        "solving time, without verification: geometric mean, shifted by "
        f"{stats.GEOMEAN_SHIFT_S:g} s; a failure counts as the "
        "whole time limit, and not at all where there is none.",
    ),
    (
        "rank, wins",
        "by objective on each instance and seed; level results share their ranks and win together.",
    ),
    (
        "intervals",
        f"{100 * stats.LEVEL:g} %, bootstrap over instances within each problem (repetitions of "
        "an instance are averaged first); "
        "where every problem has one instance only, the problems are drawn.",
    ),
)


def meanings() -> str:
    """The meaning of every column."""
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(words)}</dd>" for name, words in MEANINGS)
    return (
        '<details class="meanings"><summary>What the columns '
        f"mean</summary><dl>{items}</dl></details>"
    )


def provenance(report: StudyReport) -> str:
    """Machines and versions, how each solver was run, and the file of the study."""
    study = report.plan.study
    repeated = f", {study.repetitions} repetitions each" if study.repetitions > 1 else ""
    facts = [
        ("seeds", _ranges(study.seeds) + repeated),
        ("bounding of an instance", f"{study.bound_limit_s:g} s"),
        ("reference", study.reference),
        ("solvers whose own bounds count for all (trust)", ", ".join(study.trust) or "none"),
        ("configuration", study.config_hash[:16]),
        ("run again", f"optbench run {report.target}"),
    ]
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts)
    budgets = [_budget(entry) for entry in study.solvers]
    heads = ("solver", "parameters", *LIMITS)
    solvers = text_table(heads, budgets, "report-table budgets", words=(0, 1))
    solvers = f"<h3>Solvers and budgets</h3>{solvers}"
    parts = (_machines(report), solvers, _problems(report), f"<dl>{listed}</dl>", _file(report))
    return section("How it was made", *parts, id="provenance")


# Problems listed; a study of a public library has one per file.
MOST_PROBLEMS = 60
LIMITS = ("time limit", "work limit", "threads", "hard wall limit", "memory limit")


def _budget(entry: SolverEntry) -> tuple[str, ...]:
    budget = entry.budget
    params = ", ".join(f"{key}={value}" for key, value in entry.params.items()) or "defaults"
    memory = "none" if budget.memory_limit_mb is None else f"{budget.memory_limit_mb:,.0f} MB"
    limit = "none" if budget.time_limit_s is None else seconds(budget.time_limit_s)
    work = "none" if budget.work_limit is None else f"{budget.work_limit:g}"
    wall = seconds(budget.hard_wall_s)
    return entry.label, params, limit, work, str(budget.threads), wall, memory


def _problems(report: StudyReport) -> str:
    """Problems of the study with their objectives."""
    instances: dict[str, dict[str, None]] = {}
    for each in report.table.rows:
        instances.setdefault(each.cell.target, {})[each.cell.instance_hash] = None
    rows = [
        (target, _objective(report, next(iter(hashes))), f"{len(hashes):,}")
        for target, hashes in list(instances.items())[:MOST_PROBLEMS]
    ]
    more = len(instances) - len(rows)
    left = note(f"{more:,} more problems are not listed.") if more > 0 else ""
    heads = ("problem", "minimise" if report.senses == {"min"} else "objective", "instances")
    shown = text_table(heads, rows, "report-table problems", words=(0, 1))
    return f"<h3>Problems</h3>{shown}{left}"


def _objective(report: StudyReport, instance_hash: str) -> str:
    """The objective of an instance, of a schedule if the store still has it."""
    shape = report.plan.shapes.get(instance_hash)
    if shape is not None:
        return f"{shape.objective}; {shape.name}, {shape.size}"
    try:
        return report.store.instance(instance_hash).objective.label
    except (
        OSError,
        OptbenchError,
        pickle.PickleError,
        AttributeError,
        ImportError,
        EOFError,
        TypeError,
    ):
        return NONE


def _machines(report: StudyReport) -> str:
    """One row per machine and version of the code, with the time of the runs and their number."""
    found: dict[tuple[str, str], list[str]] = {}
    for record in report.records:
        words = [
            f"{value}" if key in ("host", "system") else f"{key} {value}"
            for key, value in fixed(record.machine).items()
        ]
        confined = record.machine.get("sandbox", {})
        words += [f"sandbox {key} {value}" for key, value in confined.items()]
        found.setdefault((", ".join(words), record.code_version), []).append(record.began_at)
    if not found:
        return ""
    rows = []
    for (machine, code), times in sorted(found.items(), key=lambda pair: -len(pair[1])):
        began = sorted(time for time in times if time)
        span = f"{_minute(began[0])} to {_minute(began[-1])}" if began else ""
        texts = (escape(machine), f"<code>{escape(code)}</code>", escape(span))
        cells = "".join(f'<td class="words">{cell}</td>' for cell in texts)
        rows.append(f"<tr>{cells}<td>{counted(len(times), 'cell')}</td></tr>")
    dirty = any("dirty" in record.code_version for record in report.records)
    heads = ("machine", "optbench and commit", "when (UTC)", "ran")
    meaning = note("dirty: with changes that are in no commit.") if dirty else ""
    return table(heads, rows, "report-table machines", words=range(3)) + meaning


def _minute(time: str) -> str:
    return time[:16].replace("T", " ")


def _ranges(seeds: tuple[int, ...]) -> str:
    """``0-4, 7``."""
    parts: list[list[int]] = []
    for seed in sorted(seeds):
        if parts and seed == parts[-1][-1] + 1:
            parts[-1].append(seed)
        else:
            parts.append([seed])
    return ", ".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


def _file(report: StudyReport) -> str:
    """The study file, or the recorded study where the file is gone."""
    study, text = report.plan.study, ""
    if study.path is not None:
        with suppress(OSError, UnicodeDecodeError):
            text, name = study.path.read_text(encoding="utf-8"), study.path.name
    if not text:
        text, name = json.dumps(study.to_dict(), indent=2, default=str), "as it was recorded"
    return (
        f"<details><summary>The study: {escape(name)}</summary><pre>{escape(text)}</pre></details>"
    )
