"""``optbench new``: write a small working plug-in and its test."""

from __future__ import annotations

import argparse

from optbench.cli.terminal import exits
from optbench.cli.terminal.output import GOOD, emit_json, escape, show
from optbench.cli.terminal.parser import Parser

DESCRIPTION = (
    "Write a small working plug-in and its test into this workspace; change it into yours. "
    "`slurm` is a batch script that starts a Ray cluster on Slurm's nodes and runs a command there."
)
EXAMPLES = (
    "optbench new solver my_rule",
    "optbench new problem my_cluster",
    "optbench new study my_question",
    "optbench new slurm my_batch",
)
KINDS = ("solver", "problem", "study", "slurm")


def configure(parser: Parser) -> None:
    parser.positional("kind", "solver, problem, study or slurm", choices=KINDS)
    parser.positional("name", "lower-case letters, digits and underscores")


def run(args: argparse.Namespace) -> int:
    from optbench.scaffold import new

    written = new(args.kind, args.name)
    if args.json:
        emit_json({"kind": args.kind, "name": args.name, "files": [str(path) for path in written]})
    else:
        show(f"[{GOOD}]wrote[/] {args.kind} [bold]{escape(args.name)}[/]:")
        show("\n".join(f"  {escape(str(path))}" for path in written))
    return exits.DONE
