"""``optbench doctor``: what is installed, what is missing, and the remedy."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from optbench.cli.terminal import exits
from optbench.cli.terminal.output import BAD, DIM, GOOD, emit_json, escape, show, table
from optbench.cli.terminal.parser import Parser

DESCRIPTION = "Check this installation. The exit code is 1 if something does not work, else 0."
EXAMPLES = ("optbench doctor", "optbench doctor --json")
MARKS = {"ok": f"[{GOOD}]ok[/]", "note": f"[{DIM}]note[/]", "problem": f"[{BAD}]problem[/]"}


def configure(parser: Parser) -> None:
    del parser  # it takes no arguments of its own


def run(args: argparse.Namespace) -> int:
    from optbench.environment_report import report

    checks = report()
    problems = sum(check.status == "problem" for check in checks)
    if args.json:
        emit_json({"problems": problems, "checks": [asdict(check) for check in checks]})
    else:
        rows = []
        for check in checks:
            remedy = f"\n[{DIM}]{escape(check.remedy)}[/]" if check.remedy else ""
            rows.append((MARKS[check.status], escape(check.name), escape(check.detail) + remedy))
        show("", table(("", "what", "found"), rows))
        show("\nall is well" if not problems else f"\n[{BAD}]{problems} to solve[/]")
    return exits.INTERNAL if problems else exits.DONE
