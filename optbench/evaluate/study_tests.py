"""The hypothesis tests that a study asks for: solvers in pairs, all of them, and regressions.

With y the study's metric (its natural logarithm with ``scale = "log"``) of a cell:

    pairs        paired t-test of each solver against the reference, over the instances; Holm's
                 correction over all pairs of the study; a pair whose differences
                 are all the same and not 0 has no test and counts with p = 1, and so do
                 identical ones among the tests of equivalence
    solvers      one-way ANOVA over the solvers, and with instances as blocks
    regression   y of one solver on numbers of the instance, the problem and the machine

The value of an instance is the mean over the seeds and repetitions that all compared solvers have:
further runs of one instance are no further instances. Where there is a single instance, its seeds
and repetitions take the place of instances.

A test that the values do not allow is replaced by the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from statistics import fmean
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

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
    """A solver against the reference; the corrected p-values are Holm's. ``constant`` are
    differences that are all the same, and not 0.
    """

    problem: str
    label: str
    test: PairedTest | None
    p_corrected: float | None
    equivalence: EquivalenceTest | None
    equivalence_corrected: float | None
    why: str = ""
    constant: bool = False


@dataclass(frozen=True)
class SolverVariance:
    """Both analyses of variance over all solvers, on ``units`` instances, or runs of one."""

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
    hashes = np.array([unit.instance_hash for unit in columns.units])
    for problem, chosen in _problems(columns, section):
        here = {label: found[chosen] for label, found in values.items()}
        for label in labels:
            if label != reference:
                ours, theirs = _of_instances((here[label], here[reference]), hashes[chosen])
                pairs.append(_pair(problem, label, ours, theirs, section))
        if len(labels) > 1:
            every = _of_instances(tuple(here.values()), hashes[chosen])
            variances.append(_variance(problem, every))
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


def _of_instances(values: Sequence[Floats], hashes: NDArray[np.str_]) -> list[Floats]:
    """Each solver's values by instance: means over its runs; of a single instance, the runs."""
    table = np.stack(values)
    whole = np.isfinite(table).all(axis=0)
    table, (_, number) = table[:, whole], np.unique(hashes[whole], return_inverse=True)
    if len(number) == 0 or number.max() == 0:
        return list(table)
    counts = np.bincount(number)
    return [np.bincount(number, weights=row) / counts for row in table]


def _pair(
    problem: str, label: str, ours: Floats, theirs: Floats, section: Statistics
) -> SolverPair:
    test, why = _tried(lambda: paired_t_test(ours, theirs))
    equivalence = None
    if section.margin is not None:
        margin = float(np.log1p(section.margin)) if section.scale == "log" else section.margin
        equivalence, _ = _tried(lambda: equivalence_test(ours, theirs, margin))
    constant = test is None and len(ours) > 1
    return SolverPair(problem, label, test, None, equivalence, None, why, constant)


def _corrected(pairs: Sequence[SolverPair]) -> tuple[SolverPair, ...]:
    """The same pairs with p-values corrected over those that have enough values."""
    out = list(pairs)
    family = [k for k, each in enumerate(pairs) if each.test is not None or each.constant]
    tests = [pairs[k].test for k in family]
    differ = holm([1.0 if test is None else test.p_value for test in tests])
    alike = holm([_alike(pairs[k].equivalence) for k in family])
    for k, p_value, other in zip(family, differ, alike, strict=True):
        found = pairs[k].equivalence
        tested = found is not None and not found.identical
        corrected = other if tested else None
        out[k] = replace(pairs[k], p_corrected=p_value, equivalence_corrected=corrected)
    return tuple(out)


def _alike(test: EquivalenceTest | None) -> float:
    """The p-value of a test of equivalence; 1 where there was nothing to test."""
    return 1.0 if test is None or test.identical else test.p_value


def _variance(problem: str, values: Sequence[Floats]) -> SolverVariance:
    one_way, why = _tried(lambda: one_way_anova(values))
    blocked, also = _tried(lambda: blocked_anova(list(np.stack(values, axis=1))))
    return SolverVariance(problem, len(values[0]), one_way, blocked, why or also)


def _regression(
    label: str,
    values: Floats,
    rows: Sequence[Row | None],
    section: Statistics,
    facts: FactsOf,
) -> SolverRegression:
    """One value per instance, and per machine where a column is the machine's."""
    names, log = section.regress_on, section.scale == "log"
    found: dict[tuple[object, ...], list[float]] = {}
    for value, row in zip(values.tolist(), rows, strict=True):
        if isnan(value):
            continue
        assert row is not None and row.record is not None
        of_row = facts(row.cell.instance_hash)
        known = {**of_cell(row.record), **numbers_in(row.cell.target), **of_row}
        for name in names:
            if name not in known:
                return SolverRegression(label, None, f"{name} is not known of {row.cell.instance}")
            if log and not known[name] > 0:
                why = f"{name} of {row.cell.instance} is {known[name]:g}, which has no logarithm"
                return SolverRegression(label, None, why)
        place = (row.cell.instance_hash, *(known[name] for name in names))
        found.setdefault(place, []).append(value)
    points = np.array([place[1:] for place in found], dtype=float).reshape(len(found), len(names))
    columns = dict(zip(names, (np.log(points) if log else points).T, strict=True))
    means = [fmean(each) for each in found.values()]
    fit, why = _tried(lambda: linear_regression(columns, means))
    return SolverRegression(label, fit, why)


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
