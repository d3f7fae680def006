"""The content of a report: results of a study, caveats, verdicts of gates and claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from optbench.errors import OptbenchError
from optbench.evaluate.claim_ledger import ClaimResult
from optbench.evaluate.gates import GateResult
from optbench.evaluate.hardware_models import models_by_instance, words_of
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
    """The results of a study, joined and summarised; ``kinds`` are by label: see ``kind_of``."""

    plan: Plan
    store: Store
    table: Table
    summaries: tuple[Summary, ...]
    costs: Costs
    rows: Mapping[str, Sequence[Row]]
    bounding: tuple[Record, ...]
    kinds: Mapping[str, str]
    score: Score | None = None

    @property
    def name(self) -> str:
        return self.plan.study.name

    @cached_property
    def number(self) -> dict[str, int]:
        """The numbers of the solvers, by which their marks and colours differ."""
        return {label: k for k, label in enumerate(self.table.labels)}

    @cached_property
    def decision(self) -> str:
        """What a solver's answer is called: a schedule, or the word of the study's own shape."""
        known = {key: shape.decision for key, shape in self.plan.shapes.items()}
        words = {known.get(row.cell.instance_hash, "schedule") for row in self.table.rows}
        return words.pop() if len(words) == 1 else "decision"

    @cached_property
    def senses(self) -> frozenset[str]:
        """The senses of the study's objectives."""
        return frozenset(row.cell.sense for row in self.table.rows)

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
    score, costs, summaries = score_of(joined), costs_of(joined), tuple(ranked(joined))
    rows = compared(rows_by_label(joined), costs)
    bounding = tuple(records[cell.key] for cell in plan.bounding.values() if cell.key in records)
    kinds = {entry.label: kind_of(entry.name) for entry in plan.study.solvers}
    return StudyReport(plan, store, joined, summaries, costs, rows, bounding, kinds, score)


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
    wrong, doubts = (*_contradictions(report), *_unmade(report)), _doubts(report)
    return [*(Caveat(words, grave=True) for words in wrong), *map(Caveat, doubts)]


def _contradictions(report: StudyReport) -> Iterator[str]:
    """A caveat per solver at fault, and one per contradiction of published figures."""
    groups: dict[str, list[str]] = {}
    for each in report.table.contradictions:
        groups.setdefault("" if each.guilty is None else each.guilty.label, []).append(each.words)
    for label, words in groups.items():
        if not label or len(words) == 1:
            yield from words
        else:
            refuted = f"{len(words):,} bounds or proofs of {label} are refuted"
            yield f"{refuted}, for example {words[0]}"


def _unmade(report: StudyReport) -> Iterator[str]:
    lost = [each for each in report.plan.made if each.error is not None]
    for each in lost[:MOST_UNMADE]:
        yield f"no instance of {each.target} with seed {each.seed}: {each.error}"
    if len(lost) > MOST_UNMADE:
        yield f"and {len(lost) - MOST_UNMADE:,} more instances could not be made"


def _doubts(report: StudyReport) -> Iterator[str]:
    """What is missing, changed or mixed, so that figures say less."""
    records = report.records
    yield from _incomplete(report)
    gaps = [each.study_gap.count for each in report.summaries if each.study_gap is not None]
    count = max(gaps, default=0)
    if 1 < count < FEWEST and len(report.ranked) > 1:
        few = f"{count} instances are too few for 95 % intervals"
        yield f"{few}: theirs are too narrow, and tell no solvers apart"
    if report.plan.changed:
        yield report.plan.changed
    late = [record for record in records if record.overrun_s > 0]
    if late:
        worst = max(late, key=lambda record: record.overrun_s)
        where = f"at worst by {seconds(worst.overrun_s)}: {worst.cell.title}"
        yield f"{counted(len(late), 'cell')} took longer than the time limit, {where}"
    yield from _unequal(report)
    yield from _several("machines or library versions", _machines(records))
    yield from _several("versions of the code", [record.code_version for record in records])


def _incomplete(report: StudyReport) -> Iterator[str]:
    planned, ran = len(report.plan.cells), len(report.records)
    if ran < planned:
        rest = f"`optbench run {report.target}` runs the rest"
        yield f"{ran:,} of {planned:,} cells have run; {rest}"
    solvers = [each for each in report.summaries if each.ran]
    if solvers and not report.costs.columns:
        none = "there is no instance that all solvers have run"
        yield f"{none}: their figures are over different instances"
    elif any(each.ran > each.compared for each in solvers):
        where = f"{counted(len(report.costs.columns), 'pair')} of instance and seed alone"
        yield f"solvers are compared on {where}, which all of them have run"


def _unequal(report: StudyReport) -> Iterator[str]:
    """Instances whose cells ran on several models of CPU or GPU."""
    found = models_by_instance([row for rows in report.rows.values() for row in rows])
    mixed = {instance: models for instance, models in found.items() if len(models) > 1}
    if mixed:
        models = sorted(words_of(each) for each in set().union(*mixed.values()))
        yield (
            f"unequal hardware: the cells of {counted(len(mixed), 'instance')} of {len(found):,} "
            f"ran on {'; '.join(models)}: comparisons there are marked"
        )


def _several(what: str, names: Sequence[str]) -> Iterator[str]:
    counts = Counter(names)
    if len(counts) > 1:
        listed = "; ".join(f"{name} ({counted(k, 'cell')})" for name, k in counts.most_common())
        yield f"records come from {len(counts)} {what}, so that times may not compare: {listed}"


def _machines(records: Sequence[Record]) -> list[str]:
    """The machine of each record, described by the properties that differ between records."""
    every = [fixed(record.machine) for record in records]
    keys = dict.fromkeys(key for machine in every for key in machine)
    differing = [key for key in keys if len({str(machine.get(key)) for machine in every}) > 1]
    return [
        ", ".join(f"{key} {machine.get(key, 'unknown')}" for key in differing) for machine in every
    ]


def fixed(machine: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of a machine that are the same for all cells that ran there."""
    return {key: value for key, value in machine.items() if key not in PER_CELL}
