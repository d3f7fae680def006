"""``optbench bound``: a certified lower bound."""

from __future__ import annotations

import argparse
import threading
from dataclasses import asdict
from typing import TYPE_CHECKING

from optbench.cli import exits
from optbench.cli.output import DIM, emit_json, escape, figure, show, table
from optbench.cli.parser import add_time_limit, number
from optbench.cli.targets import add_target, instance_of

if TYPE_CHECKING:
    from optbench.model.result import Bound

SUMMARY = "certified lower bounds: value, source and proof"
DESCRIPTION = "Lower bounds on the objective that no schedule can beat, each with its source and how it is proved."
EXAMPLES = ("optbench bound gpu_dag:tasks=12", "optbench bound jobshop:jobs=6,machines=4 --method cpsat --time-limit 5s")


def configure(parser: argparse.ArgumentParser) -> None:
    add_target(parser)
    parser.add_argument(
        "--method", metavar="METHOD", default="auto", help="a bounding method, or a solver (default auto: all that pay)"
    )
    add_time_limit(parser, 10.0, "time for bounding")
    parser.add_argument("--seed", metavar="N", type=number(int, 0), default=0, help="of the generated instance (default 0)")
    parser.add_argument("--threads", metavar="N", type=number(int, 1), default=1, help="of a solver (default 1)")


def run(args: argparse.Namespace) -> int:
    from optbench import api
    from optbench.cli.report import best_bounds
    from optbench.cli.work import interruptible

    instance = instance_of(args.target, args.format, args.seed)

    def work(_: threading.Event) -> list[Bound]:
        return api.bound(instance, args.method, time_limit_s=args.time_limit, seed=args.seed, threads=args.threads)

    found = interruptible(work, keeps=False)
    best = best_bounds(found)
    levels = range(instance.objective.num_levels)
    if args.json:
        values = [best[k].value if k in best else None for k in levels]
        emit_json(
            {
                "instance": instance.name,
                "instance_hash": instance.hash,
                "objective": instance.objective.label,
                "bounds": [asdict(bound) for bound in found],
                "best": values[0] if len(values) == 1 else values,
            }
        )
    else:
        rows = []
        for k in levels:
            ranked = sorted((b for b in found if b.level == k), key=lambda b: -b.value)
            rows += [
                (instance.objective.level(k).label if b is ranked[0] else "", figure(b.value), b.source, b.proof) for b in ranked
            ]
        show(f"\n[bold]{escape(instance.name)}[/]  [{DIM}]{instance.num_tasks:,} tasks[/]")
        show("", table(("no schedule is below", "value", "source", "proof"), rows, right=("value",)))
    return exits.DONE if all(k in best for k in levels) else exits.NO_SOLUTION
