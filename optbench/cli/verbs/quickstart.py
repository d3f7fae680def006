"""``optbench quickstart``: run the study of that name and show where to look next."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
import time
from pathlib import Path

from optbench.cli.terminal import exits
from optbench.cli.terminal.output import DIM, GOOD, escape, length, show
from optbench.cli.terminal.parser import Parser, add_json, number

DESCRIPTION = (
    "Run the study `quickstart`: exact solvers, prices and rules on a night of training, GPU "
    "task graphs and job shops. It shows a table and the gates, writes the report, and sends "
    "the runs to MLflow. What its solvers need is compiled first, once per machine. Outside of "
    "a workspace it makes one in ./optbench-quickstart. The same command again runs what is "
    "missing."
)
EXAMPLES = ("optbench quickstart", "optbench quickstart -n 1 --json")
STUDY, FOLDER = "quickstart", "optbench-quickstart"
JOBS = 2
NEXT = (
    ("optbench ui", "the runs in MLflow: sort, filter, compare two, open a Gantt chart"),
    (
        "optbench solve night_batch --html night.html",
        "one of its instances by itself, with a Gantt chart",
    ),
    ("optbench list -v", "problems, solvers, studies and their parameters"),
    ("optbench new study my_question", "a study of your own, every key explained"),
)


def configure(parser: Parser) -> None:
    parser.option("-n --jobs N", f"cells at a time (default {JOBS}, or the cores)", number(int, 1))
    parser.flag("--no-track", "send nothing to MLflow; `optbench sync` does it later")
    parser.flag("-q --quiet", "no progress")


def run(args: argparse.Namespace) -> int:
    from optbench.cli.verbs import run_study

    root, made = workspace()
    if made:
        words = f"no workspace was found here; a new one is in {root}"
        sys.stderr.write(f"optbench: {words}\n") if args.json else show(
            f"[{GOOD}]{escape(words)}[/]"
        )
    began = time.monotonic()
    options = ["--json"] * args.json + ["--no-track"] * args.no_track + ["--quiet"] * args.quiet
    jobs = args.jobs or min(JOBS, os.cpu_count() or 1)
    parser = Parser(prog="optbench run")
    run_study.configure(parser)
    add_json(parser)
    code = run_study.run(parser.parse_args([STUDY, "-n", str(jobs), *options]))
    if not args.json and code != exits.INTERRUPTED:
        words = (
            f"{length(time.monotonic() - began)} for everything: compiling, the study, the "
            "report and the runs in MLflow"
        )
        show("", f"[{DIM}]{words}[/]")
        show_next(root)
    return code


def workspace() -> tuple[Path, bool]:
    """The workspace of this folder or of an earlier quickstart, or a new one, and whether it is
    new.
    """
    from optbench.scaffold import init
    from optbench.workspace import activate

    root = activate()
    if root is not None:
        return root, False
    root = Path.cwd() / FOLDER
    made = bool(init(root))
    activate(root)
    return root, made


def show_next(root: Path) -> None:
    """Show next commands; where necessary, first those that set the path and enter the
    workspace.
    """
    steps = list(NEXT)
    if not Path.cwd().resolve().is_relative_to(root.resolve()):
        steps.insert(
            0, (f"cd {shlex.quote(os.path.relpath(root))}", "the workspace of these results")
        )
    activate = Path(sys.prefix) / "bin" / "activate"
    if activate.is_file() and shutil.which("optbench") != str(activate.with_name("optbench")):
        here = activate.relative_to(Path.cwd()) if activate.is_relative_to(Path.cwd()) else activate
        steps.insert(0, (f". {shlex.quote(str(here))}", "so that the shell finds optbench"))
    width = max(len(command) for command, _ in steps)
    show("", f"[{DIM}]where to look next[/]")
    show("\n".join(f"  {escape(command):<{width}}   [{DIM}]{words}[/]" for command, words in steps))
