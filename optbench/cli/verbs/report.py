"""``optbench report [STUDY]``: write the report of a study as one page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optbench.cli.terminal import exits, output
from optbench.cli.terminal.output import BAD, DIM, GOOD, emit_json, escape, percent, show, table
from optbench.cli.terminal.parser import Parser, UsageError
from optbench.errors import OptbenchError

if TYPE_CHECKING:
    from optbench.evaluate.summaries import Summary
    from optbench.report.study_report import StudyReport

DESCRIPTION = (
    "Write the report of a study from its records in the local store: ranking with intervals, "
    "gaps, instances, gates, claims, "
    "failures with the commands that repeat them, machine and versions. Nothing is run. Without "
    "STUDY: of every study that was "
    "run here, and a page that lists them."
)
EXAMPLES = (
    "optbench report quickstart --open",
    "optbench report quickstart -o report.html --json",
    "optbench report",
)
COLUMNS = (
    "",
    "solver",
    "study gap",
    "95 % interval",
    "above best known",
    "optimum",
    "failed",
    "time",
)


def configure(parser: Parser) -> None:
    parser.positional("study", "name of a study, or its file (default: all that were run)", "?")
    parser.option(
        "-o --output FILE", "write the page there (default: in the store, beside the study)"
    )
    parser.flag("--open", "show the page in a browser")


def run(args: argparse.Namespace) -> int:
    if args.output == output.STDOUT:
        raise UsageError("-o -: the page links to files beside it; give the path of a file")
    output.check_writable("-o", args.output)
    path = None if args.output is None else Path(args.output)
    written = _every_study(args, path) if args.study is None else _one_study(args, path)
    if args.open:
        import webbrowser

        if not webbrowser.open(written.absolute().as_uri()):
            sys.stderr.write(f"optbench: no browser to show it; open {written} in one\n")
    return exits.DONE


def _one_study(args: argparse.Namespace, path: Path | None) -> Path:
    from optbench.report.outline import outline
    from optbench.report.study_page import write
    from optbench.report.study_report import gather
    from optbench.store.run_store import Store
    from optbench.store.snapshots import load_plan

    store = Store()
    report = gather(load_plan(args.study, store), store)
    written = write(report, path)
    if args.json:
        emit_json(outline(report) | _judged(report) | {"report": str(written)})
    else:
        _show(report)
        show(f"report written to [bold]{escape(str(written))}[/]")
    return written


def _every_study(args: argparse.Namespace, path: Path | None) -> Path:
    from optbench.report.outline import last_ran, outline, write_index
    from optbench.report.study_page import write
    from optbench.report.study_report import gather
    from optbench.report.study_verdict import verdict
    from optbench.store.run_store import Store
    from optbench.store.snapshots import load_plans

    store = Store()
    reports = [gather(plan, store) for plan in load_plans(store)]
    if not reports:
        raise OptbenchError(
            f"no study has been run here: {store.folder} holds none; `optbench run quickstart` "
            "runs one"
        )
    reports.sort(key=last_ran, reverse=True)
    pages = [(report, write(report)) for report in reports]
    index = write_index(pages, store, path)
    if args.json:
        studies = [
            outline(report) | _judged(report) | {"report": str(page)} for report, page in pages
        ]
        emit_json({"report": str(index), "studies": studies})
        return index
    for report, page in pages:
        done = f"{len(report.records):,} of {len(report.plan.cells):,} cells"
        show(
            f"\n[bold]{escape(report.name)}[/]  [{DIM}]{done}[/]",
            escape(verdict(report)[0]),
            f"[{DIM}]{escape(str(page))}[/]",
        )
    show(f"\nlist written to [bold]{escape(str(index))}[/]")
    return index


def _judged(report: StudyReport) -> dict[str, Any]:
    gates, claims = report.judged
    return {
        "gates": [each.to_dict() for each in gates],
        "claims": [each.to_dict() for each in claims],
    }


def _show(report: StudyReport) -> None:
    """Show the verdict, its limitations, and the ranking."""
    from optbench.report.study_report import caveats
    from optbench.report.study_verdict import verdict

    show(f"\n[bold]{escape(report.name)}[/]  [{DIM}]{escape(report.plan.study.question)}[/]")
    first, *rest = verdict(report)
    show("", f"[{GOOD}]{escape(first)}[/]", *map(escape, rest))
    for each in caveats(report):
        show(
            f"[{BAD}]{escape(each.words)}[/]" if each.grave else f"[yellow]{escape(each.words)}[/]"
        )
    rows = [_row(place, each) for place, each in enumerate(report.summaries, 1)]
    show("", table(COLUMNS, rows, right=(*COLUMNS[2:],)), "")


def _row(place: int, each: Summary) -> tuple[str, ...]:
    from optbench.cli.terminal.study_summary import marked_name
    from optbench.report.formatting import interval, seconds

    name = marked_name(each.label, each.clairvoyant, each.unequal)
    if each.study_gap is None:
        return (str(place), name, f"[{DIM}]not run[/]", *("-",) * 5)
    failed = f"[{BAD}]{each.failed:,}[/]" if each.failed else "0"
    return (
        "-" if each.clairvoyant else str(place),
        name,
        percent(each.study_gap.value),
        interval(each.study_gap) or "-",
        percent(each.rpd.value) if each.rpd is not None else "-",
        f"{each.optimal:,} of {each.compared:,}",
        failed,
        seconds(each.time_s),
    )
