"""``optbench init``: a workspace of one's own."""

from __future__ import annotations

import argparse
from pathlib import Path

from optbench.cli import exits
from optbench.cli.output import DIM, GOOD, emit_json, escape, show

SUMMARY = "make a workspace: problems/, solvers/, studies/ with a working example"
DESCRIPTION = "Make a folder a workspace: your own plug-ins live there beside the built-in ones. Nothing is overwritten."
EXAMPLES = ("optbench init", "optbench init my-lab")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dir", metavar="DIR", nargs="?", default=".", help="the folder (default: this one)")


def run(args: argparse.Namespace) -> int:
    from optbench.scaffold import init

    written = init(args.dir)
    if args.json:
        emit_json({"workspace": str(Path(args.dir).resolve()), "files": [str(path) for path in written]})
        return exits.DONE
    if not written:
        show(f"{escape(args.dir)} is a workspace already; nothing to write")
        return exits.DONE
    show(f"[{GOOD}]made a workspace[/] in [bold]{escape(args.dir)}[/]:")
    show("\n".join(f"  {escape(str(path))}" for path in written))
    enter = "" if Path(args.dir).resolve() == Path.cwd() else f"cd {escape(args.dir)}; "
    show(f"[{DIM}]next: {enter}optbench list; optbench new solver my_rule[/]")
    return exits.DONE
