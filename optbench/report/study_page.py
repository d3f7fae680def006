"""The page that reports a study."""

from __future__ import annotations

import os
from collections.abc import Iterator
from html import escape
from pathlib import Path

from optbench import __version__
from optbench.evaluate.claim_ledger import ClaimResult
from optbench.evaluate.gates import GateResult
from optbench.files import write_whole
from optbench.html.page import SEPARATOR, footer, hint, note, page, section, titled_figure
from optbench.report import solver_charts
from optbench.report.decision_pictures import decision_pictures
from optbench.report.energy_section import energy_section
from optbench.report.failures import failures
from optbench.report.formatting import counted, unbroken
from optbench.report.instance_section import instances
from optbench.report.metric_tables import metric_tables
from optbench.report.operation_section import operations
from optbench.report.provenance import meanings, provenance
from optbench.report.ranking import claims_section, gates_section, ranking, without_excess
from optbench.report.study_report import Caveat, StudyReport, caveats, gather
from optbench.report.study_verdict import verdict
from optbench.report.tests_section import tests_section
from optbench.store.run_store import Store
from optbench.study.planning import Plan

REPORT = "report.html"
# Most caveats shown before the verdict.
MOST_CAVEATS = 12
DOTS = (
    "A dot is an instance, the large mark the mean, the bar its 95 % interval; a cross has no "
    "gap and counts as 100 %. Of more "
    f"than {solver_charts.MOST_DOTS} instances an evenly spaced selection is drawn."
)
CURVES = (
    "Share of the instances on which a solver is within an excess of the best objective: the "
    "higher and the further left, the "
    f"better. At most the first {solver_charts.MOST_LINES} of the ranking."
)
PLACES = "Lower and further left is better."


def write_report(
    plan: Plan, store: Store | None = None, path: Path | None = None, linked: bool = True
) -> Path:
    """Write the report of a study, by default beside its plans; returns where it went.

    ``linked``: with links to the cells' files, which break when the page leaves the store.
    """
    return write(gather(plan, store or Store()), path, linked)


def write(report: StudyReport, path: Path | None = None, linked: bool = True) -> Path:
    """Write the page of a report that has been gathered."""
    target = path or report.folder / REPORT
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, render(report, target if linked else None).encode("utf-8", "replace"))
    return target


def render(report: StudyReport, path: Path | None) -> str:
    """The page as text, to be written to ``path``; None for a page without links to files."""
    gates, claims = report.judged

    def href(key: str) -> str:
        if path is None:
            return ""
        folder = report.store.cell(key).absolute()
        return Path(os.path.relpath(folder, path.absolute().parent)).as_posix() + "/"

    body = [
        _header(report, gates, claims),
        _ranking(report),
        operations(report),
        metric_tables(report),
        tests_section(report),
        energy_section(report),
        decision_pictures(report),
        _charts(report),
        gates_section(gates),
        claims_section(claims),
        failures(report, href),
        instances(report, href),
        provenance(report),
        footer(f"optbench {__version__}", f"{report.name} {report.plan.study.config_hash[:12]}"),
        '<dialog id="cell" aria-labelledby="cell-title"></dialog>',
    ]
    return page(f"{report.name}: report", body, __package__, ("report.css", "report.js"))


def _header(
    report: StudyReport, gates: tuple[GateResult, ...], claims: tuple[ClaimResult, ...]
) -> str:
    """The question, the answer, and the caveats."""
    first, *rest = verdict(report)
    also = "".join(f"<li>{unbroken(words)}</li>" for words in rest)
    remarks = caveats(report)
    banners = "".join(map(_banner, remarks[:MOST_CAVEATS]))
    more = len(remarks) - MOST_CAVEATS
    hidden = f'<p class="caveat">and {more:,} more caveats</p>' if more > 0 else ""
    facts = SEPARATOR.join(_facts(report, gates, claims))
    return (
        f"<header><h1>{escape(report.name)}</h1><p "
        f'class="question">{escape(report.plan.study.question)}</p>'
        f'<p class="facts">{escape(facts)}</p></header>{banners}{hidden}'
        '<section id="verdict"><p '
        f'class="verdict">{unbroken(first)}</p>{f"<ul>{also}</ul>" if also else ""}</section>'
    )


def _banner(caveat: Caveat) -> str:
    shade, sign = (" grave", "✗") if caveat.grave else ("", "!")
    return f'<p class="caveat{shade}" role="note"><b>{sign}</b> {_coded(caveat.words)}</p>'


def _coded(words: str) -> str:
    """Escaped text in which commands between backquotes are marked as code."""
    parts = escape(words).split("`")
    return "".join(f"<code>{part}</code>" if k % 2 else part for k, part in enumerate(parts))


def _facts(
    report: StudyReport, gates: tuple[GateResult, ...], claims: tuple[ClaimResult, ...]
) -> Iterator[str]:
    cells = [row.cell for row in report.table.rows]
    instances_of = counted(len({cell.instance_hash for cell in cells}), "instance")
    yield f"{len(report.records):,} of {counted(len(report.plan.cells), 'cell')}"
    yield counted(len(report.table.labels), "solver")
    yield f"{instances_of} of {counted(len({cell.target for cell in cells}), 'problem')}"
    for found, what in ((gates, "gates"), (claims, "claims")):
        if found:
            yield f"{sum(each.holds for each in found)} of {len(found)} {what} hold"


def _ranking(report: StudyReport) -> str:
    if not report.summaries:
        return ""
    aside = hint("means over instances, small: 95 % intervals")
    parts = (ranking(report), without_excess(report), meanings())
    return section("Ranking", *parts, id="ranking", aside=aside)


def _profile(report: StudyReport) -> str:
    """The performance profile, or why there is none."""
    title, words = "Performance profile", solver_charts.no_profile(report)
    if words is not None:
        return f"<figure><h2>{title}</h2>{note(words)}</figure>"
    zero = solver_charts.zero_best(report)
    return titled_figure(title, solver_charts.profile(report), CURVES + zero)


def _charts(report: StudyReport) -> str:
    if not report.ranked:
        return ""
    parts = [
        titled_figure("Gaps", solver_charts.gaps(report), DOTS),
        _profile(report),
        titled_figure("Gap against time", solver_charts.time_against_gap(report), PLACES),
    ]
    return f'<section id="charts">{"".join(parts)}</section>'
