"""``optbench sync``: send missing and changed runs to MLflow."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from optbench.cli.terminal import exits
from optbench.cli.terminal.live_line import LiveLine, Step
from optbench.cli.terminal.output import DIM, emit_json, escape, show, table
from optbench.cli.terminal.parser import Parser

if TYPE_CHECKING:
    from optbench.store.run_store import Store

DESCRIPTION = (
    "Make MLflow hold exactly one run for every cell of the studies in the local store. Runs "
    "that are up to date are not sent again, so that this can be repeated at any time. The "
    "store is the workspace's mlflow/mlflow.db, or what $MLFLOW_TRACKING_URI names."
)
EXAMPLES = ("optbench sync", "optbench sync quickstart --json")


def configure(parser: Parser) -> None:
    parser.positional("study", "name of a study, or its file (default: all)", "?")
    parser.flag("--restore", "restore runs that were deleted in MLflow")
    parser.flag("-q --quiet", "no progress")


def run(args: argparse.Namespace) -> int:
    from optbench.cli.terminal.place import announce_store
    from optbench.store.run_store import Store
    from optbench.store.snapshots import load_plan, studies_run

    store = Store()
    studies = [load_plan(args.study, store).study.name] if args.study else studies_run(store)
    if studies:
        announce_store(True)
    done = _send(studies, store, args)
    if args.json:
        emit_json({"uri": done["uri"], "studies": done["studies"]})
    else:
        _show(done)
    return exits.DONE


def _send(studies: list[str], store: Store, args: argparse.Namespace) -> dict[str, Any]:
    from optbench.track.study_sync import push, with_records
    from optbench.track.tracking import Tracking

    tracking = Tracking(workspace=store.folder.parent)
    quiet = args.quiet or args.json
    out: list[dict[str, Any]] = []
    for study in studies:
        for snapshot in with_records(study, store):
            if not quiet and not tracking.place.exists:
                sys.stderr.write(f"making {tracking.place.database}, which takes some seconds\n")
            with SyncLine(study, quiet) as line:
                report = push(snapshot, store, tracking, restore=args.restore, on_sent=line)
            out.append({"study": study, "config_hash": snapshot.path.stem, **asdict(report)})
    return {"uri": tracking.place.uri, "studies": out}


class SyncLine(LiveLine):
    """Show the progress of a study on one line of a terminal."""

    waiting = "comparing with the local store"

    def describe(self, done: int, total: int) -> Step:
        return Step(f"{done:,} of {total:,} runs", done, total)

    def has_more(self) -> bool:
        return False


def _show(done: dict[str, Any]) -> None:
    if not done["studies"]:
        show("nothing has been run here yet; `optbench run STUDY` does")
        return
    columns = (
        "study",
        "configuration",
        "new",
        "changed",
        "as they were",
        "duplicates removed",
        "deleted in MLflow",
    )
    keys = ("created", "updated", "unchanged", "removed", "deleted")
    rows = [
        (escape(each["study"]), each["config_hash"], *(f"{each[key]:,}" for key in keys))
        for each in done["studies"]
    ]
    show("", table(columns, rows, right=columns[2:]))
    show(f"\nin [bold]{escape(done['uri'])}[/]; `optbench ui` shows them")
    if any(each["deleted"] for each in done["studies"]):
        show(f"[{DIM}]runs that were deleted in MLflow stay deleted; --restore brings them back[/]")
