"""``optbench verify``: check feasibility and compute metrics from instance and schedule alone."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from optbench.cli.terminal import exits
from optbench.cli.terminal.output import BAD, GOOD, emit_json, escape, figure, show
from optbench.cli.terminal.parser import Parser, add_seed
from optbench.cli.terminal.targets import add_target, instance_of

DESCRIPTION = (
    "Check a schedule against its instance, as it stands: no tolerance in time, capacity or "
    "work. The exit code is 0 only if it "
    "is feasible, 4 if it is not. With --repair, starts and ends may first move by 1 µs, or by "
    "one tick where that is coarser."
)
EXAMPLES = (
    "optbench verify jobshop:jobs=6,machines=4 schedule.json",
    "optbench verify jobshop:jobs=6,machines=4 schedule.json --repair",
)


def configure(parser: Parser) -> None:
    add_target(parser, "instance")
    parser.positional("schedule", "a schedule file, as written by `optbench solve -o`")
    parser.flag("--repair", "first repair rounding, by 1 µs or one tick at most")
    add_seed(parser, "seed of a generated instance (default 0)")


def run(args: argparse.Namespace) -> int:
    from optbench.plugins.schedule_shape import read_decision, shape_of
    from optbench.shapes.protocol.shape import Accepted

    instance = instance_of(args.instance, args.format, args.seed)
    shape = shape_of(instance)
    decision = read_decision(args.schedule, instance)
    made = (
        shape.accept(instance, decision)
        if args.repair
        else Accepted(decision, shape.verdict_of(instance, decision))
    )
    verdict = made.verdict
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
                "repaired": made.repaired,
            }
        )
    elif verdict.feasible:
        from optbench.cli.terminal.result_lines import metrics_table

        show(
            f"[{GOOD}]feasible[/]  {escape(shape.objective_label(instance))} = "
            f"[bold]{figure(verdict.objective)}[/]"
        )
        show("", metrics_table(instance, verdict.metrics))
        if made.repaired is not None:
            moved, largest_s = made.repaired["segments"], made.repaired["largest_move_s"]
            show(f"repaired: {moved:,} segments moved, by {largest_s:.3g} s at most")
    else:
        show(
            f"[{BAD}]not feasible[/]: {escape(args.schedule)} breaks constraints of "
            f"{escape(instance.name)}"
        )
        for violation in verdict.violations:
            show(
                f"  [bold]{escape(violation.constraint)}[/] ({violation.count}×): "
                f"{escape(violation.message)}"
            )
    return exits.DONE if verdict.feasible else exits.NOT_VERIFIED
