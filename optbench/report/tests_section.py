"""The section on hypothesis tests, which a study asks for by its table ``[statistics]``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import cache
from html import escape
from math import exp, inf
from typing import Any

from optbench.errors import OptbenchError
from optbench.evaluate.hypothesis_tests import VarianceTest
from optbench.evaluate.study_tests import (
    SolverPair,
    SolverRegression,
    SolverVariance,
    StudyTests,
    study_tests,
)
from optbench.html.page import note, row, section, table
from optbench.plugins.schedule_shape import shape_of
from optbench.report.formatting import NONE, counted, four_digits, listed
from optbench.report.ranking import who
from optbench.report.study_report import StudyReport
from optbench.study.statistics_section import OF_CELLS

# Columns of a larger variance inflation are named: their single coefficients say little.
INFLATED = 10.0
# A smaller p-value, or a corrected one, is called significant.
SIGNIFICANT = 0.05
# Numbers below are written with a power of ten.
SMALL = 1e-3
# Smaller p-values are not written out.
LEAST_P = 1e-4
PAIRED = (
    "Paired t-tests over the instances that both solvers have, each with its mean over seeds and "
    "repetitions; of a single instance, over these. Small: 95 % interval. p is two-sided, "
    "corrected by Holm over all tests of its column, and in bold below 0.05; where all "
    "differences are the same, there is no test, and p counts as 1. A t-test supposes "
    "that pairs are independent and their differences about normal."
)
EQUIVALENT = (
    "Equivalence: two one-sided paired t-tests, of which p is the larger; below 0.05 the mean "
    "difference lies within the margin."
)
SPREAD = (
    "ANOVA: whether all solvers have the same mean, over the instances that all have; "
    "explained is the solvers' share of the variance. With blocks, the mean of each instance "
    "is taken away before."
)
LEAST_SQUARES = (
    "Least squares with a constant, for each solver, over instances with their means; t and p are "
    "those of a coefficient of 0. Standardised: per standard deviation of both, which compares "
    "columns."
)
LOGARITHMS = (
    "All tests are of natural logarithms: a difference is shown as a ratio of geometric means, and "
    "a coefficient is the power by which the metric grows with the column."
)


def tests_section(report: StudyReport) -> str:
    """The section; empty where the study asks for no tests, or nothing has run."""
    found = _tests(report)
    if found is None:
        return ""
    metric = f"<p>Metric: <code>{escape(found.section.metric)}</code>{_rest(found)}</p>"
    parts = [metric, *_pairs(report, found), *_variances(found), *_regressions(report, found)]
    return section("Tests", *parts, note(LOGARITHMS) if found.is_log else "", id="tests")


def tests_outline(report: StudyReport) -> dict[str, Any]:
    """The same as plain data; empty where the study asks for none."""
    found = _tests(report)
    return {} if found is None else {"tests": asdict(found)}


def _tests(report: StudyReport) -> StudyTests | None:
    return study_tests(report.table, [each.label for each in report.ranked], _facts_of(report))


def _facts_of(report: StudyReport) -> Any:
    """The numbers of an instance: of a schedule's, from the store; else as its shape told them."""

    @cache
    def facts(instance_hash: str) -> Mapping[str, float]:
        shape = report.plan.shapes.get(instance_hash)
        if shape is not None:
            return shape.facts
        try:
            instance = report.store.instance(instance_hash)
        except (OptbenchError, OSError):  # a store that was cleaned up
            return {}
        return shape_of(instance).facts_of(instance)

    return facts


def _rest(found: StudyTests) -> str:
    """What else the section says of the metric: its scale, and the cells without it."""
    words = ", its logarithm" if found.is_log else ""
    if found.without:
        reason = " (or none above 0)" if found.is_log else ""
        words += f". {counted(found.without, 'cell')} without a value{reason} enter no test"
    return escape(words)


def _pairs(report: StudyReport, found: StudyTests) -> Iterator[str]:
    """Each solver against the reference."""
    if not found.pairs:
        return
    difference = "ratio" if found.is_log else "difference"
    heads = [*(["problem"] if found.section.by_problem else []), "solver", "pairs", difference]
    heads += ["t", "p", "p corrected"]
    margin = found.section.margin
    if margin is not None:
        heads += [f"equivalent within {_margin(found)}: p", "p corrected"]
    yield f"<h3>Against {escape(found.reference)}</h3>"
    lines = [_pair_line(report, found, each) for each in found.pairs]
    words = (0, 1) if found.section.by_problem else (0,)
    yield table(heads, lines, "report-table tests", words=words)
    yield note(PAIRED + (f" {EQUIVALENT}" if margin is not None else ""))


def _margin(found: StudyTests) -> str:
    margin = found.section.margin or 0.0
    return f"a factor {_figure(1 + margin)}" if found.is_log else _figure(margin)


def _pair_line(report: StudyReport, found: StudyTests, each: SolverPair) -> str:
    solver = who(report, each.label)
    head, first = (escape(each.problem), [solver]) if each.problem else (solver, [])
    words = (0, 1) if first else (0,)
    more = 2 if found.section.margin is not None else 0
    if each.test is None:
        missing = f'<td colspan="{5 + more}" class="words">{escape(each.why)}</td>'
        shown = "".join(f'<td class="words">{cell}</td>' for cell in first)
        return f'<tr><th scope="row">{head}</th>{shown}{missing}</tr>'
    test, write = each.test, _ratio if found.is_log else _figure
    ends = f"{write(test.low)} to {write(test.high)}"
    cells = [f"{test.count:,}", f"{write(test.difference)}<small>{ends}</small>"]
    cells += [_figure(test.statistic), p_words(test.p_value), _marked(each.p_corrected)]
    if more:
        alike = each.equivalence
        if alike is not None and alike.identical:
            cells += ["identical, not tested", NONE]
        else:
            cells += [NONE if alike is None else p_words(alike.p_value)]
            cells += [_marked(each.equivalence_corrected)]
    return row(head, [*first, *cells], words=words)


def _variances(found: StudyTests) -> Iterator[str]:
    """Both analyses of variance over all solvers."""
    if not found.variances:
        return
    heads = ("solvers together", "instances", "degrees", "F", "p", "explained")
    lines = [line for each in found.variances for line in _variance_lines(each)]
    yield "<h3>All solvers</h3>"
    yield table(heads, lines, "report-table tests", words=(0,))
    yield note(SPREAD)


def _variance_lines(each: SolverVariance) -> Iterator[str]:
    where = f"<small>{escape(each.problem)}</small>" if each.problem else ""
    if each.why and each.one_way is None and each.blocked is None:
        missing = f'<td colspan="5" class="words">{escape(each.why)}</td>'
        yield f'<tr><th scope="row">ANOVA{where}</th>{missing}</tr>'
        return
    for name, test in (("one-way ANOVA", each.one_way), ("ANOVA with blocks", each.blocked)):
        yield row(f"{name}{where}", _variance_cells(each.units, test))


def _variance_cells(units: int, test: VarianceTest | None) -> list[str]:
    if test is None:
        return [f"{units:,}", *[NONE] * 4]
    degrees = f"{test.between_freedom:,} and {test.within_freedom:,}"
    share = f"{100 * test.explained:.1f} %"
    return [f"{units:,}", degrees, _figure(test.statistic), _marked(test.p_value), share]


def _regressions(report: StudyReport, found: StudyTests) -> Iterator[str]:
    """The metric of each solver on the columns that the study names."""
    if not found.regressions:
        return
    heads = ("solver", "column", "coefficient", "standard error", "t", "p", "standardised")
    lines = [line for each in found.regressions for line in _regression_lines(report, each)]
    yield f"<h3>Regression on {escape(', '.join(found.section.regress_on))}</h3>"
    yield table(heads, lines, "report-table tests", words=(0, 1))
    meanings = {**OF_CELLS}
    for shape in report.plan.shapes.values():
        meanings |= shape.fact_words
    told = [f"{name}: {meanings[name]}" for name in found.section.regress_on if name in meanings]
    yield note(LEAST_SQUARES + (f" {'; '.join(told)}." if told else ""))


def _regression_lines(report: StudyReport, each: SolverRegression) -> Iterator[str]:
    solver = who(report, each.label)
    if each.found is None:
        missing = f'<td colspan="6" class="words">{escape(each.why)}</td>'
        yield f'<tr><th scope="row">{solver}</th>{missing}</tr>'
        return
    fit = each.found
    told = f"R² {fit.r_squared:.3f} (adjusted {fit.adjusted_r_squared:.3f}), "
    told += f"{counted(fit.count, 'instance')}, F {_figure(fit.statistic)}, p "
    told += p_words(fit.p_value)
    inflated = [each.name for each in fit.coefficients if each.inflation > INFLATED]
    if inflated:
        most = max(each.inflation for each in fit.coefficients)
        told += f"; {listed(inflated)} carry nearly the same: variance inflation {_figure(most)}"
    for k, one in enumerate(fit.coefficients):
        head = f"{solver}<small>{escape(told)}</small>" if k == 0 else ""
        cells = (
            escape(one.name),
            _figure(one.value),
            _figure(one.standard_error),
            _figure(one.statistic),
            _marked(one.p_value),
            NONE if k == 0 else f"{one.standardised:.3f}",
        )
        yield row(head, cells, words=(0, 1))


def p_words(p_value: float | None) -> str:
    """A p-value; a tiny one as a limit."""
    if p_value is None:
        return NONE
    return f"< {LEAST_P:g}" if p_value < LEAST_P else f"{p_value:.4f}"


def _figure(value: float) -> str:
    """Four digits; of a small number, such as seconds per edge, with its power of ten."""
    return f"{value:.3e}" if 0 < abs(value) < SMALL else four_digits(value)


def _marked(p_value: float | None) -> str:
    words = escape(p_words(p_value))
    return f"<b>{words}</b>" if p_value is not None and p_value < SIGNIFICANT else words


def _ratio(logarithm: float) -> str:
    """The ratio of two geometric means."""
    return _figure(exp(logarithm) if logarithm < 700 else inf)
