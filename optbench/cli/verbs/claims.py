"""``optbench claims [STUDY]``: published figures beside ours."""

from __future__ import annotations

import argparse

from optbench.cli.terminal import exits
from optbench.cli.terminal.output import BAD, DIM, GOOD, emit_json, escape, show
from optbench.cli.terminal.parser import Parser

DESCRIPTION = (
    "Show each published claim of a study beside what was measured here: our figure with its 95 "
    "% interval, what the certified "
    "bounds allow, the mean gap, and whether it holds. Without STUDY: of every study that was "
    "run here. Nothing is run. The exit "
    "code is 6 when a claim does not hold; `not reproduced` is a result, not an error."
)
EXAMPLES = ("optbench claims", "optbench claims quickstart --json")


def configure(parser: Parser) -> None:
    parser.positional("study", "name of a study, or its file (default: all that were run)", "?")


def run(args: argparse.Namespace) -> int:
    from optbench.evaluate.claim_ledger import ClaimResult
    from optbench.evaluate.judging import judge_claims
    from optbench.store.run_store import Store
    from optbench.store.snapshots import load_plan, load_plans

    store = Store()
    plans = [load_plan(args.study, store)] if args.study is not None else list(load_plans(store))
    records = store.records()
    results: list[ClaimResult] = [
        result for plan in plans for result in judge_claims(plan, records)
    ]
    held = sum(result.holds for result in results)
    if args.json:
        emit_json(
            {
                "studies": [plan.study.name for plan in plans],
                "claims": [result.to_dict() for result in results],
                "held": held,
                "not_held": len(results) - held,
                "notes": [plan.changed for plan in plans if plan.changed is not None],
            }
        )
        return exits.DONE if held == len(results) else exits.NOT_HELD
    for plan in plans:
        if plan.changed is not None:
            show(f"[{DIM}]{escape(plan.study.name)} as it was last run: {escape(plan.changed)}[/]")
    if not results:
        show(_nothing([plan.study.name for plan in plans]))
        return exits.DONE
    from optbench.cli.terminal.expectation_lines import show_claims

    show_claims(results, with_study=len(plans) > 1)
    colour = GOOD if held == len(results) else BAD
    show("", f"[{colour}]{held} of {len(results)} claims hold[/]")
    return exits.DONE if held == len(results) else exits.NOT_HELD


def _nothing(studies: list[str]) -> str:
    if not studies:
        return "no study has been run here; `optbench run STUDY` does"
    return (
        f"no claims in {', '.join(studies)}; a study makes them as \\[\\[claims]], see "
        "docs/studies.md"
    )
