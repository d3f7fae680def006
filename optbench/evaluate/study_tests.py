"""The hypothesis tests that a study asks for: solvers in pairs, all of them, and regressions.

With y the study's metric (its natural logarithm with ``scale = "log"``) of a cell:

    pairs        paired t-test of each solver against the reference, over the instances, seeds and
                 repetitions that both have; Holm's correction over all pairs of the study
    solvers      one-way ANOVA over the solvers, and with instances and seeds as blocks, over those
                 that all solvers have
    regression   y of one solver on numbers of the instance, the problem and the machine

A test that the values do not allow is replaced by the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import TypeVar

import numpy as np

from optbench.evaluate.cell_columns import CellColumns
from optbench.evaluate.hypothesis_tests import (
    EquivalenceTest,
    Floats,
    LinearRegression,
    PairedTest,
    UntestableError,
    VarianceTest,
    blocked_anova,
    equivalence_test,
    holm,
    linear_regression,
    one_way_anova,
    paired_t_test,
)
from optbench.evaluate.rows import Row, Table
from optbench.store.records import Record
from optbench.study.declared import Statistics
from optbench.study.expectations import scope
from optbench.study.formula_binding import cell_number
from optbench.study.statistics_section import numbers_in

T = TypeVar("T")
# The numbers of an instance, by its hash.
FactsOf = Callable[[str], Mapping[str, float]]


@dataclass(frozen=True)
class SolverPair:
    """A solver against the reference; the corrected p-values are Holm's."""

    problem: str
    label: str
    test: PairedTest | None
    p_corrected: float | None
    equivalence: EquivalenceTest | None
    equivalence_corrected: float | None
    why: str = ""


@dataclass(frozen=True)
class SolverVariance:
    """Both analyses of variance over all solvers, on ``units`` instances and seeds."""

    problem: str
    units: int
    one_way: VarianceTest | None
    blocked: VarianceTest | None
    why: str = ""


@dataclass(frozen=True)
class SolverRegression:
    label: str
    found: LinearRegression | None
    why: str = ""


@dataclass(frozen=True)
class StudyTests:
    """All tests of a study; ``problem`` is empty where they are over all problems, and ``without``
    counts the cells that have run and have no value.
    """

    section: Statistics
    reference: str
    without: int
    pairs: tuple[SolverPair, ...]
    variances: tuple[SolverVariance, ...]
    regressions: tuple[SolverRegression, ...]

    @property
    def is_log(self) -> bool:
        return self.section.scale == "log"


def study_tests(table: Table, labels: Sequence[str], facts: FactsOf) -> StudyTests | None:
    """Return the tests of a study; ``labels`` are the solvers that have run, best first."""
    section = table.plan.study.statistics
    if section is None or not labels:
        return None
    columns = CellColumns(table.rows)
    values = {label: _values(table, columns, label, section) for label in labels}
    reference = section.reference if section.reference in labels else labels[0]
    pairs, variances = list[SolverPair](), list[SolverVariance]()
    for problem, chosen in _problems(columns, section):
        here = {label: found[chosen] for label, found in values.items()}
        for label in labels:
            if label != reference:
                pairs.append(_pair(problem, label, here[label], here[reference], section))
        if len(labels) > 1:
            variances.append(_variance(problem, list(here.values())))
    regressions = tuple(
        _regression(label, values[label], columns.rows(label), section, facts) for label in labels
    )
    return StudyTests(
        section,
        reference,
        _without(columns, values),
        _corrected(pairs),
        tuple(variances),
        regressions if section.regress_on else (),
    )


def _values(table: Table, columns: CellColumns, label: str, section: Statistics) -> Floats:
    """The metric of each unit, NaN where there is none; of logarithms, where it is not positive."""
    node = cell_number(section.metric, scope(table.plan.study, label))
    found = columns.vector(label, node)
    if section.scale == "linear":
        return found
    return np.log(np.where(found > 0, found, np.nan))


def _without(columns: CellColumns, values: Mapping[str, Floats]) -> int:
    """The number of cells that have run and have no value."""
    return sum(
        row is not None and row.record is not None and isnan(value)
        for label, found in values.items()
        for row, value in zip(columns.rows(label), found.tolist(), strict=True)
    )


def _problems(columns: CellColumns, section: Statistics) -> list[tuple[str, np.ndarray]]:
    """The units of each problem, or all of them under no name."""
    targets = [unit.target for unit in columns.units]
    if not section.by_problem:
        return [("", np.arange(len(targets)))]
    names = dict.fromkeys(targets)
    return [(name, np.flatnonzero([each == name for each in targets])) for name in names]


def _pair(
    problem: str, label: str, ours: Floats, theirs: Floats, section: Statistics
) -> SolverPair:
    both = np.isfinite(ours) & np.isfinite(theirs)
    test, why = _tried(lambda: paired_t_test(ours[both], theirs[both]))
    equivalence = None
    if section.margin is not None:
        margin = float(np.log1p(section.margin)) if section.scale == "log" else section.margin
        equivalence, _ = _tried(lambda: equivalence_test(ours[both], theirs[both], margin))
    return SolverPair(problem, label, test, None, equivalence, None, why)


def _corrected(pairs: Sequence[SolverPair]) -> tuple[SolverPair, ...]:
    """The same pairs with p-values corrected over those that could be tested."""
    differ = iter(holm([each.test.p_value for each in pairs if each.test is not None]))
    alike = iter(holm([each.equivalence.p_value for each in pairs if each.equivalence is not None]))
    return tuple(
        SolverPair(
            each.problem,
            each.label,
            each.test,
            None if each.test is None else next(differ),
            each.equivalence,
            None if each.equivalence is None else next(alike),
            each.why,
        )
        for each in pairs
    )


def _variance(problem: str, values: Sequence[Floats]) -> SolverVariance:
    table = np.stack(values, axis=1)
    whole = table[np.isfinite(table).all(axis=1)]
    one_way, why = _tried(lambda: one_way_anova(list(whole.T)))
    blocked, also = _tried(lambda: blocked_anova(list(whole)))
    return SolverVariance(problem, len(whole), one_way, blocked, why or also)


def _regression(
    label: str,
    values: Floats,
    rows: Sequence[Row | None],
    section: Statistics,
    facts: FactsOf,
) -> SolverRegression:
    every = zip(values.tolist(), rows, strict=True)
    kept = [(value, row) for value, row in every if not isnan(value)]
    columns: dict[str, list[float]] = {name: [] for name in section.regress_on}
    for _, row in kept:
        assert row is not None and row.record is not None
        known = {
            **of_cell(row.record),
            **numbers_in(row.cell.target),
            **facts(row.cell.instance_hash),
        }
        for name, column in columns.items():
            if name not in known:
                why = f"{name} is not known of {row.cell.instance} ({row.cell.target})"
                return SolverRegression(label, None, why)
            if section.scale == "log" and not known[name] > 0:
                why = f"{name} of {row.cell.instance} is {known[name]:g}, which has no logarithm"
                return SolverRegression(label, None, why)
            column.append(float(np.log(known[name]) if section.scale == "log" else known[name]))
    found, why = _tried(lambda: linear_regression(columns, [value for value, _ in kept]))
    return SolverRegression(label, found, why)


def of_cell(record: Record) -> dict[str, float]:
    """Return the columns that every cell has (``study.statistics_section.OF_CELLS``)."""
    machine = record.machine
    found = {
        "threads": record.cell.budget.threads,
        "machine_cores": machine.get("cores"),
        "machine_memory_gb": machine.get("memory_gb"),
    }
    return {name: float(value) for name, value in found.items() if isinstance(value, (int, float))}


def _tried(test: Callable[[], T]) -> tuple[T | None, str]:
    """The result of a test, or why the values do not allow it."""
    try:
        return test(), ""
    except UntestableError as error:
        return None, str(error)
