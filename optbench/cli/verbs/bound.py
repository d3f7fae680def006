"""``optbench bound``: a certified lower bound."""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from optbench.cli.terminal import exits
from optbench.cli.terminal.output import BAD, DIM, GOOD, emit_json, escape, figure, show, table
from optbench.cli.terminal.parser import Parser, UsageError, add_seed, add_time_limit, number
from optbench.cli.terminal.targets import add_target, instance_of
from optbench.errors import OptbenchError

if TYPE_CHECKING:
    from optbench.bounds.bank.bank_entries import Recheck

DESCRIPTION = (
    "Lower bounds on the objective that no schedule can beat, each with its source and "
    "how it is proved."
)
EXAMPLES = (
    "optbench bound gpu_dag:tasks=12",
    "optbench bound jobshop:jobs=6,machines=4 --method cpsat --time-limit 5s",
    "optbench bound --recheck",
)


def configure(parser: Parser) -> None:
    add_target(parser, optional=True)
    again = "prove the workspace's bank again; drop entries that do not hold, with the reason"
    parser.flag("--recheck", again)
    methods = "a bounding method, or a solver (default auto: every suitable method)"
    parser.option("--method METHOD", methods, default="auto")
    add_time_limit(parser, 10.0, "time for bounding")
    add_seed(parser, "of the generated instance (default 0)")
    parser.option("--threads N", "of a solver (default 1)", number(int, 1), 1)


def run(args: argparse.Namespace) -> int:
    if args.recheck == (args.target is not None):
        raise UsageError(
            "give either a TARGET to bound, or --recheck alone to prove the bank's entries again"
        )
    return _recheck(args) if args.recheck else _bound(args)


def _recheck(args: argparse.Namespace) -> int:
    """Prove every entry of the bank again."""
    from optbench.bounds.bank.bound_bank import BoundBank
    from optbench.cli.terminal.work import interruptible
    from optbench.workspace import bank_file

    path = bank_file()
    if not path.is_file():
        raise OptbenchError(f"{path}: there is no bank; `optbench solve TARGET --bank` creates one")

    def work() -> tuple[list[Recheck], list[str]]:
        with BoundBank(path) as bank:
            notices = list(bank.notices)
            return list(bank.recheck_all()), notices

    found, notices = interruptible(work, keeps=False)
    if args.json:
        emit_json(
            {"bank": str(path), "notices": notices, "entries": [asdict(each) for each in found]}
        )
        return exits.DONE
    show("", *(escape(words) for words in notices))
    for each in found:
        value = (
            f"{escape(each.instance)}  {figure(each.value)}  [{DIM}]{escape(each.source)}, "
            f"{each.proof}[/]"
        )
        shade = GOOD if each.outcome == "holds" else BAD
        show(f"  [{shade}]{each.outcome}[/]  {value}  {escape(each.why)}")
    outcomes = Counter(each.outcome for each in found)
    changed = f"{outcomes['changed']:,} changed to the value that they prove"
    what = f"{len(found):,} entries of {escape(str(path))}"
    show(f"{what}: {outcomes['dropped']:,} dropped, {changed}")
    return exits.DONE


def _bound(args: argparse.Namespace) -> int:
    from optbench import api
    from optbench.cli.terminal.work import interruptible
    from optbench.compiling.compile_meter import compiled_s
    from optbench.outcome import best_by_level
    from optbench.plugins.schedule_shape import shape_of

    instance = instance_of(args.target, args.format, args.seed)

    settings = {"time_limit_s": args.time_limit, "seed": args.seed, "threads": args.threads}
    found = interruptible(partial(api.bound, instance, args.method, **settings), keeps=False)
    shape = shape_of(instance)
    best = best_by_level(found, shape.num_levels(instance), shape.sense(instance))
    if args.json:
        values = [None if bound is None else bound.value for bound in best]
        emit_json(
            {
                "instance": instance.name,
                "instance_hash": instance.hash,
                "objective": shape.objective_label(instance),
                "bounds": [bound.to_dict() for bound in found],
                "best": values[0] if len(values) == 1 else values,
                "compile_s": round(compiled_s(), 3),
            }
        )
    else:
        rows = []
        for k in range(len(best)):
            sign = 1 if shape.sense(instance) == "min" else -1
            ranked = sorted((b for b in found if b.level == k), key=lambda b: -sign * b.value)
            rows += [
                (
                    shape.label(instance, k) if b is ranked[0] else "",
                    figure(b.value),
                    b.source,
                    b.proof,
                )
                for b in ranked
            ]
        side = "below" if shape.sense(instance) == "min" else "above"
        show(f"\n[bold]{escape(instance.name)}[/]  [{DIM}]{shape.describe(instance)}[/]")
        if not rows:
            show(f"[{BAD}]no bound was found[/] for {escape(shape.objective_label(instance))}")
            return exits.NO_SOLUTION
        show(
            "",
            table(
                (f"no {shape.decision} has an objective {side}", "value", "source", "proof"),
                rows,
                right=("value",),
            ),
        )
    return exits.NO_SOLUTION if None in best else exits.DONE
