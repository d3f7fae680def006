"""``optbench convert``: one file format to another."""

from __future__ import annotations

import argparse

from optbench.cli import exits, outputs
from optbench.cli.output import emit_json, escape, show
from optbench.cli.parser import UsageError, number
from optbench.cli.targets import TARGET_HELP, instance_of

SUMMARY = "write an instance in another format"
DESCRIPTION = "Read an instance of any known format (or generate one) and write it in another; - is stdout."
EXAMPLES = ("optbench convert jobshop:jobs=6,machines=4 instance.json", "optbench convert instance.json copy.json --to optbench")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", metavar="IN", help=TARGET_HELP)
    parser.add_argument("output", metavar="OUT", help="the file to write; - for stdout")
    parser.add_argument("--to", metavar="FORMAT", default="optbench", help="format to write (default optbench, the native JSON)")
    parser.add_argument("--format", metavar="FORMAT", help="format of IN, where its content fits more than one")
    parser.add_argument("--seed", metavar="N", type=number(int, 0), default=0, help="of a generated instance (default 0)")


def run(args: argparse.Namespace) -> int:
    from optbench.errors import nearest
    from optbench.model.formats import FORMATS

    writers = {name: entry.write for name, entry in FORMATS.items() if entry.write is not None}
    write = writers.get(args.to)
    if write is None:
        problem = "can be read but not written" if args.to in FORMATS else "is no format"
        raise UsageError(f"--to {args.to!r} {problem}; {nearest(args.to, writers)}")
    if args.json and args.output == outputs.STDOUT:
        raise UsageError("--json and OUT on stdout (-) would mix; give OUT a path")
    outputs.check_writable("OUT", args.output)
    instance = instance_of(args.input, args.format, args.seed)
    written = outputs.save(write(instance), args.output)
    if args.json:
        emit_json(
            {
                "instance": instance.name,
                "instance_hash": instance.hash,
                "tasks": instance.num_tasks,
                "format": args.to,
                "file": written,
            }
        )
    elif args.output != outputs.STDOUT:
        show(f"{escape(instance.name)}: {instance.num_tasks:,} tasks written to [bold]{escape(written)}[/] ({escape(args.to)})")
    return exits.DONE
