"""The content of a report: results of a study, caveats, verdicts of gates and claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from optbench.errors import OptbenchError
from optbench.evaluate.claim_ledger import ClaimResult
from optbench.evaluate.gates import GateResult
from optbench.evaluate.judging import evaluate_table
from optbench.evaluate.rows import Row, Table, table
from optbench.evaluate.scores import Score, ranked, score_of
from optbench.evaluate.stats import FEWEST
from optbench.evaluate.summaries import Costs, Summary, compared, costs_of, rows_by_label
from optbench.plugins.discovery import load_class
from optbench.plugins.policy import RulePolicy
from optbench.plugins.specs import parameters
from optbench.report.formatting import counted, seconds
from optbench.run.repeat_command import study_argument
from optbench.store.records import Record
from optbench.store.run_store import STUDIES, Store
from optbench.study.planning import Plan

# Properties of a machine that differ from cell to cell.
PER_CELL = ("sandbox",)
# A solver with this parameter is a learned one.
LEARNED = "checkpoint"
# At most so many instances that could not be made are named one by one.
MOST_UNMADE = 3


@dataclass(frozen=True)
class Caveat:
    """A warning about the figures; ``grave`` where a figure may be wrong."""

    words: str
    grave: bool = False


@dataclass(frozen=True)
class StudyReport:
    """The results of a study, joined and summarised; ``rules`` and ``learned`` are labels by kind."""

    plan: Plan
    store: Store
    table: Table
    summaries: tuple[Summary, ...]
    costs: Costs
    rows: Mapping[str, Sequence[Row]]
    bounding: tuple[Record, ...]
    rules: frozenset[str]
    learned: frozenset[str]
    score: Score | None = None

    @property
    def name(self) -> str:
        return self.plan.study.name

    @property
    def ranked(self) -> tuple[Summary, ...]:
        """The solvers that have run, best first."""
        return tuple(each for each in self.summaries if each.compared)

    def merit(self, row: Row) -> float | None:
        """The value by which a cell is ranked; less is better."""
        return row.counted_study_gap if self.score is None else self.score.of(row)

    @property
    def records(self) -> list[Record]:
        """The records of all cells of the plan that have run."""
        return [*self.bounding, *(row.record for row in self.table.rows if row.record is not None)]

    @cached_property
    def judged(self) -> tuple[tuple[GateResult, ...], tuple[ClaimResult, ...]]:
        """The verdicts of gates and of claims."""
        return evaluate_table(self.table)

    @property
    def failures(self) -> list[Record]:
        return [record for record in self.records if record.failed]

    @property
    def target(self) -> str:
        """The argument of ``optbench run`` that names the study."""
        return study_argument(self.plan.study)

    @property
    def folder(self) -> Path:
        return self.store.folder / STUDIES / self.name


def gather(plan: Plan, store: Store) -> StudyReport:
    """Join, check and summarise the records that the store has of a plan."""
    records = store.records()
    joined = table(plan, records)
    score = score_of(joined)
    costs = costs_of(joined)
    rows = compared(rows_by_label(joined), costs)
    bounding = tuple(records[cell.key] for cell in plan.bounding.values() if cell.key in records)
    kinds = {entry.label: kind_of(entry.name) for entry in plan.study.solvers}
    return StudyReport(
        plan,
        store,
        joined,
        tuple(ranked(joined)),
        costs,
        rows,
        bounding,
        frozenset(label for label, kind in kinds.items() if kind == "rule"),
        frozenset(label for label, kind in kinds.items() if kind == "learned"),
        score,
    )


def kind_of(solver: str) -> str:
    """``rule``, ``learned`` or ``other``, according to the plug-in as it is installed now."""
    try:
        cls = load_class("solver", solver)
    except OptbenchError:
        return "other"
    if any(entry.name == LEARNED for entry in parameters(cls)):
        return "learned"
    return "rule" if issubclass(cls, RulePolicy) else "other"


def caveats(report: StudyReport) -> list[Caveat]:
    """Warnings about the figures, the gravest first."""
    found = _contradictions(report)
    found += _unmade(report)
    found += _incomplete(report)
    found += _few(report)
    if report.plan.changed:
        found.append(Caveat(report.plan.changed))
    records = report.records
    found += _overruns(records)
    found += _several("machines or library versions", _machines(records))
    found += _several("versions of the code", [record.code_version for record in records])
    return found


def _contradictions(report: StudyReport) -> list[Caveat]:
    """A caveat per solver at fault, and one per contradiction of published figures."""
    groups: dict[str, list[str]] = {}
    for each in report.table.contradictions:
        groups.setdefault("" if each.guilty is None else each.guilty.label, []).append(each.words)
    out = []
    for label, words in groups.items():
        if not label:
            out += [Caveat(each, grave=True) for each in words]
        elif len(words) == 1:
            out.append(Caveat(words[0], grave=True))
        else:
            out.append(Caveat(f"{len(words):,} bounds or proofs of {label} are refuted, for example {words[0]}", grave=True))
    return out


def _unmade(report: StudyReport) -> list[Caveat]:
    lost = [each for each in report.plan.made if each.error is not None]
    words = [f"no instance of {each.target} with seed {each.seed}: {each.error}" for each in lost[:MOST_UNMADE]]
    more = len(lost) - len(words)
    return [Caveat(each, grave=True) for each in [*words, *([f"and {more:,} more instances could not be made"] if more else [])]]


def _incomplete(report: StudyReport) -> list[Caveat]:
    planned, ran = len(report.plan.cells), len(report.records)
    out = []
    if ran < planned:
        out.append(Caveat(f"{ran:,} of {planned:,} cells have run; `optbench run {report.target}` runs the rest"))
    solvers = [each for each in report.summaries if each.ran]
    if solvers and not report.costs.columns:
        out.append(Caveat("there is no instance that all solvers have run: their figures are over different instances"))
    elif any(each.ran > each.compared for each in solvers):
        where = counted(len(report.costs.columns), "pair")
        out.append(Caveat(f"solvers are compared on {where} of instance and seed alone, which all of them have run"))
    return out


def _few(report: StudyReport) -> list[Caveat]:
    count = max((each.study_gap.count for each in report.summaries if each.study_gap is not None), default=0)
    if not 1 < count < FEWEST or len(report.ranked) < 2:
        return []
    return [Caveat(f"{count} instances are too few for 95 % intervals: theirs are too narrow, and tell no solvers apart")]


def _overruns(records: Sequence[Record]) -> list[Caveat]:
    """A caveat on cells that ran past their time limit."""
    late = [record for record in records if record.overrun_s > 0]
    if not late:
        return []
    worst = max(late, key=lambda record: record.overrun_s)
    where = f"at worst by {seconds(worst.overrun_s)}: {worst.cell.title}"
    return [Caveat(f"{counted(len(late), 'cell')} took longer than the time limit, {where}")]


def _several(what: str, names: Sequence[str]) -> list[Caveat]:
    counts = Counter(names)
    if len(counts) < 2:
        return []
    listed = "; ".join(f"{each} ({counted(count, 'cell')})" for each, count in counts.most_common())
    return [Caveat(f"records come from {len(counts)} {what}, so that times may not compare: {listed}")]


def _machines(records: Sequence[Record]) -> list[str]:
    """The machine of each record, described by the properties that differ between records."""
    every = [fixed(record.machine) for record in records]
    keys = dict.fromkeys(key for machine in every for key in machine)
    differing = [key for key in keys if len({str(machine.get(key)) for machine in every}) > 1]
    return [", ".join(f"{key} {machine.get(key, 'unknown')}" for key in differing) for machine in every]


def fixed(machine: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of a machine that are the same for all cells that ran there."""
    return {key: value for key, value in machine.items() if key not in PER_CELL}
