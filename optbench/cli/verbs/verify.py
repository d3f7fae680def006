"""``optbench verify``: feasibility and metrics from instance and schedule alone."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from optbench.cli import exits
from optbench.cli.output import BAD, GOOD, emit_json, escape, figure, show
from optbench.cli.parser import number
from optbench.cli.targets import add_target, instance_of

SUMMARY = "check a schedule: every constraint by name, every metric recomputed"
DESCRIPTION = "Check a schedule against its instance. The exit code is 0 only if it is feasible, 4 if it is not."
EXAMPLES = ("optbench verify jobshop:jobs=6,machines=4 schedule.json",)


def configure(parser: argparse.ArgumentParser) -> None:
    add_target(parser, "instance")
    parser.add_argument("schedule", metavar="SCHEDULE", help="a schedule file, as written by `optbench solve -o`")
    parser.add_argument("--seed", metavar="N", type=number(int, 0), default=0, help="where the instance is generated (default 0)")


def run(args: argparse.Namespace) -> int:
    from optbench.model.files import read_schedule
    from optbench.model.verify import verify

    instance = instance_of(args.instance, args.format, args.seed)
    verdict = verify(instance, read_schedule(args.schedule, instance))
    if args.json:
        emit_json(
            {
                "instance": instance.name,
                "instance_hash": instance.hash,
                "schedule": args.schedule,
                "feasible": verdict.feasible,
                "objective": verdict.objective,
                "metrics": verdict.metrics,
                "violations": [asdict(violation) for violation in verdict.violations],
            }
        )
    elif verdict.feasible:
        from optbench.cli.report import metrics_table

        show(f"[{GOOD}]feasible[/]  {escape(instance.objective.label)} = [bold]{figure(verdict.objective)}[/]")
        show("", metrics_table(instance, verdict.metrics))
    else:
        show(f"[{BAD}]not feasible[/]: {escape(args.schedule)} breaks constraints of {escape(instance.name)}")
        for violation in verdict.violations:
            show(f"  [bold]{escape(violation.constraint)}[/] ({violation.count}×): {escape(violation.message)}")
    return exits.DONE if verdict.feasible else exits.NOT_VERIFIED
