"""``optbench run STUDY``: run what is missing of a study."""

from __future__ import annotations

import argparse
import threading
from typing import TYPE_CHECKING

from optbench.cli import exits
from optbench.cli.output import emit_json
from optbench.cli.parser import number

if TYPE_CHECKING:
    from optbench.bench.runner import StudyRun

SUMMARY = "run what is missing of a study; the same command resumes it"
DESCRIPTION = "Run the cells of a study that the local store does not hold yet, each in a process of its own."
EXAMPLES = ("optbench run quickstart", "optbench run quickstart -n 2 --json")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY", help="name of a study, or its file")
    parser.add_argument("-n", "--jobs", metavar="N", type=number(int, 1), default=1, help="cells at a time (default 1)")
    parser.add_argument("--force", action="store_true", help="run every cell again")
    parser.add_argument("--retry", action="store_true", help="run those again that failed")


def run(args: argparse.Namespace) -> int:
    from optbench.bench.runner import run_study
    from optbench.bench.study import load_study
    from optbench.cli.work import interruptible

    study = load_study(args.study)

    def work(stop: threading.Event) -> StudyRun:
        return run_study(study, jobs=args.jobs, force=args.force, retry=args.retry, stop=stop)

    done = interruptible(work)
    emit_json(
        {
            "study": study.name,
            "config_hash": study.config_hash,
            "cells": len(done.plan.cells),
            "done": done.done,
            "failed": done.failed,
            "skipped": done.skipped,
        }
    )
    if done.interrupted:
        return exits.INTERRUPTED
    return exits.CELLS_FAILED if done.failed else exits.DONE
