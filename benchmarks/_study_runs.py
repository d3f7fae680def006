"""What was run of a study in a workspace, for pages: its cells, its report and its ledger; and the
command line of the scripts that write such pages.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks._cluster_runs import RESULTS

Cells = dict[tuple[str, str, int], Mapping[str, float]]


@dataclass(frozen=True)
class StudyRun:
    """The cells of a study by target, solver and seed, and what its report and ledger say."""

    name: str
    cells: Cells
    targets: tuple[str, ...]
    labels: tuple[str, ...]
    report: Mapping[str, Any]
    claims: Sequence[Mapping[str, Any]]


def study_run(name: str, workspace: Path) -> StudyRun:
    """Read the store of a workspace, and its report and claims."""
    from optbench.evaluate.rows import table
    from optbench.store.run_store import Store
    from optbench.store.snapshots import load_plan

    store = Store(workspace / ".optbench")
    plan = load_plan(name, store)
    rows = table(plan, store.records()).rows
    cells: Cells = {}
    for row in rows:
        if row.record is None or row.objective is None:
            continue
        measured = {
            f"measured.{name}": float(reading["mean"])
            for name, reading in row.record.measured.get("metrics", {}).items()
        }
        gap = {"gap_last_level": row.counted_last_gap, "wall_s": row.record.wall_s or 0.0}
        place = (row.cell.target, row.cell.label, row.cell.instance_seed)
        cells[place] = {**row.record.metrics, **measured, **gap}
    return StudyRun(
        name,
        cells,
        tuple(dict.fromkeys(row.cell.target for row in rows)),
        tuple(dict.fromkeys(row.cell.label for row in rows)),
        command("report", name, workspace),
        command("claims", name, workspace)["claims"],
    )


def command(verb: str, study: str, workspace: Path) -> Any:
    """What a command says as JSON."""
    words = [sys.executable, "-m", "optbench.cli.main", verb, study, "--json"]
    place = {**os.environ, "OPTBENCH_WORKSPACE": str(workspace)}
    done = subprocess.run(
        words, cwd=workspace, env=place, capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 5, 6):  # cells or claims that failed are a result
        raise RuntimeError(f"{' '.join(words)}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def claim_table(run: StudyRun) -> Iterator[str]:
    """The ledger of a study."""
    yield f"### Ledger of `{run.name}`"
    yield ""
    yield "| claim | paper | ours | 95 % interval | verdict |"
    yield "| --- | --- | --- | --- | --- |"
    for each in run.claims:
        ours = "" if each["ours"] is None else f"{each['ours']:.3f}"
        ends = each.get("interval")
        around = f"{ends[0]:.3f} to {ends[1]:.3f}" if ends else ""
        shown = (each["text"], f"{each['paper']:.3f}", ours, around, each["verdict"])
        yield "| " + " | ".join(shown) + " |"
    yield ""


def write_pages(names: Iterable[str], page: Callable[[str, Path, str], str]) -> None:
    """Write pages, by default those of all names, from a workspace and the commit of its runs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("workspace", type=Path)
    parser.add_argument("--commit", default="?")
    parser.add_argument("--pages", default=",".join(names))
    args = parser.parse_args()
    for name in args.pages.split(","):
        text = page(name, args.workspace.resolve(), args.commit)
        (RESULTS / f"{name}.md").write_text(text.rstrip() + "\n", encoding="utf-8")
