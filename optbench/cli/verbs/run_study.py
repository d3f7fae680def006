"""``optbench run STUDY``: run what is missing of a study."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import TYPE_CHECKING

from optbench.cli.terminal.output import emit_json
from optbench.cli.terminal.parser import Parser, number
from optbench.errors import OptbenchError
from optbench.execute.backends import ADDRESS_HELP, BACKENDS, EVERY_CPU, NAME_HELP

if TYPE_CHECKING:
    from optbench.run.runner import StudyRun
    from optbench.study.declared import Study

DESCRIPTION = (
    "Run the cells of a study that are missing in the local store, each in a process of its "
    "own. Ctrl-C, or a kill at any moment, loses no finished cell; the same command runs the "
    "rest."
)
EXAMPLES = (
    "optbench run quickstart -n 2",
    "optbench run quickstart --only solver=fcfs --only seed=0 --json",
    "optbench run quickstart --backend ray --address head.cluster:6379",
)
PATIENCE = (
    "optbench: stopping; finished cells are kept, the same command runs the rest (press "
    "Ctrl-C again to exit at once)\n"
)


def configure(parser: Parser) -> None:
    parser.positional("study", "name of a study, or its file")
    text = f"cells at a time (default 1; with --backend ray {EVERY_CPU})"
    parser.option("-n --jobs N", text, number(int, 1))
    parser.option("--backend NAME", NAME_HELP, choices=BACKENDS, default=BACKENDS[0])
    parser.option("--address HOST:PORT", ADDRESS_HELP)
    fields = "solver=, target=, instance=, seed=, repetition="
    text = f"{fields}, the beginning of a key, or text in `solver | instance | seed`"
    parser.repeated("--only FILTER", f"part of the cells: {text}; may repeat")
    parser.flag("--force", "run every cell again; the last record counts")
    parser.flag("--retry", "run failed cells again")
    parser.flag("--no-track", "send nothing to MLflow; `optbench sync` does it later")
    parser.flag("-q --quiet", "no progress")


def run(args: argparse.Namespace) -> int:
    from optbench.cli.terminal.place import announce_store
    from optbench.cli.terminal.study_summary import Account
    from optbench.cli.terminal.studying import Sending
    from optbench.run.read_in_subprocess import load_study_in_subprocess
    from optbench.store.run_store import Store
    from optbench.track.follow_process import following

    study, account = load_study_in_subprocess(args.study), None
    quiet = args.quiet or args.json
    announce_store(not args.no_track)
    try:
        with following(
            study, Store(), enabled=not args.no_track, on_wait=Sending(quiet)
        ) as sending:
            done = _run(args, study)
            account = Account(done, _report(done), not args.no_track)
            if not args.json:
                account.show()
            sending.hurry = done.interrupted
    except KeyboardInterrupt:
        if account is None:
            raise
    warning = None if done.interrupted else sending.warning
    if args.json:
        emit_json(account.to_dict(warning))
    if warning is not None:
        sys.stderr.write(f"optbench: {warning}\n")
    return account.exit_code


def _report(done: StudyRun) -> str | None:
    """The path of the report; a report that cannot be written is not an error of the run."""
    from optbench.report.study_page import write_report
    from optbench.store.run_store import Store

    if done.interrupted:
        return None
    try:
        return str(write_report(done.plan, Store()))
    except (OSError, OptbenchError) as error:
        sys.stderr.write(f"optbench: no report: {error}\n")
        return None


def _run(args: argparse.Namespace, study: Study) -> StudyRun:
    from optbench.cli.terminal.studying import StudyProgress
    from optbench.cli.terminal.work import interruptible
    from optbench.run.cell_filter import select
    from optbench.run.engines import engine_for
    from optbench.run.runner import run_study
    from optbench.run.study_progress import StudyWatch

    executor = engine_for(study, args.backend, args.jobs, args.address)
    settings = {"executor": executor, "force": args.force, "retry": args.retry}
    only = partial(select, filters=args.only)
    with StudyProgress(study.name, StudyWatch(), quiet=args.quiet or args.json) as progress:
        work = partial(run_study, study, only=only, on_progress=progress, **settings)
        return interruptible(work, patience=PATIENCE)
