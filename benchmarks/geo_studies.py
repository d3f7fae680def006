"""The built-in studies of arriving work, each run in a workspace of its own; writes
docs/results/geo_studies.md.

    python benchmarks/geo_studies.py [NAME ...] [-n JOBS] [--keep FOLDER] [-o FILE]

Some need public data: $OPTBENCH_DATA. With --keep the workspace stays, with the reports in it, and
the same command goes on from there. Exit code 1 when a study did not run to its end; gates and
claims that do not hold are part of the page.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from optbench.evaluate.rows import table as joined  # noqa: E402
from optbench.store.run_store import Store  # noqa: E402
from optbench.study.planning import Plan  # noqa: E402

STUDIES = ("chsac_af_paper", "geo_frontier", "geo_robust", "geo_varying", "geo_tune")
COMMAND = "python benchmarks/geo_studies.py"
# Of a study whose gates or claims do not hold.
NOT_HELD = 6
NOTE = """Seeds 0 to 4 are reported; nothing was tuned or trained on them. *Gap* is to the best
bound over all schedules, whatever work they do; `gap_own`, `gap_offered` and `gap_frontier` in the
reports are to the least at a schedule's own units, at all units, and at its own units and time in
the system ([docs/studies.md](../studies.md)). The reports have the tables per problem with
intervals, queues by day, and the pictures: the front, power over the week, times in the system,
ingress by site."""
PROGRESS = re.compile(r"^\s*[\d.]+ (ms|s|min|h) +\S.*$")


@dataclass(frozen=True)
class Ran:
    """What ``optbench run`` printed, without what it says while it works."""

    name: str
    code: int
    seconds: float
    text: str
    table: tuple[str, ...]


def run(name: str, jobs: int, workspace: Path) -> Ran:
    command = [
        sys.executable,
        "-m",
        "optbench.cli.main",
        "run",
        name,
        "-n",
        str(jobs),
        "--no-track",
    ]
    environment = {
        **os.environ,
        "OPTBENCH_WORKSPACE": str(workspace),
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "150",
    }
    began = time.perf_counter()
    done = subprocess.run(command, cwd=workspace, env=environment, capture_output=True, text=True)
    kept = [
        line.rstrip()
        for line in (done.stdout + done.stderr).splitlines()
        if not PROGRESS.match(line)
    ]
    text = "\n".join(kept).strip().partition("\n\nreport written to")[0]
    return Ran(name, done.returncode, time.perf_counter() - began, text, table(name, workspace))


def table(name: str, workspace: Path) -> tuple[str, ...]:
    """Means over seeds by problem and solver, the fastest first."""
    groups: dict[tuple[str, str], list[Mapping[str, float]]] = {}
    store = Store(workspace / ".optbench")
    folder, records = store.folder / "studies" / name, store.records()
    if not (folder / "latest").is_file():
        return ()
    plan = Plan.from_dict(json.loads((folder / (folder / "latest").read_text()).read_text()))
    for row in joined(plan, records).rows:
        if row.record is not None and row.objective is not None:
            found = {
                **row.record.metrics,
                **({} if row.study_gap is None else {"gap": row.study_gap}),
            }
            groups.setdefault((row.cell.target, row.cell.label), []).append(found)
    means = {
        key: [mean(each.get(name) for each in found) for name, _ in COLUMNS]
        for key, found in groups.items()
    }
    kept = [k for k in range(len(COLUMNS)) if any(each[k] for each in means.values())]
    fast = [metric for metric, _ in COLUMNS].index("sojourn_censored_s")
    lines = []
    for (target, label), values in sorted(
        means.items(), key=lambda each: (each[0][0], each[1][fast] or 0.0)
    ):
        cells = ["" if (value := values[k]) is None else COLUMNS[k][1](value) for k in kept]
        lines.append(f"| `{target}` | {label} | {' | '.join(cells)} |")
    head = f"| problem | solver | {' | '.join(COLUMNS[k][0] for k in kept)} |"
    return (head, f"| --- | --- |{' ---: |' * len(kept)}", *lines)


def mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _percent(value: float) -> str:
    return f"{100 * value:.2f} %"


COLUMNS: tuple[tuple[str, Callable[[float], str]], ...] = (
    ("completed", lambda value: f"{value:,.0f}"),
    ("j_per_unit", lambda value: f"{value:.4f}"),
    ("cost_usd", lambda value: f"{value:,.1f}"),
    ("carbon_g", lambda value: f"{value:,.0f}"),
    ("gap", _percent),
    ("gap_own", _percent),
    ("gap_offered", _percent),
    ("gap_frontier", _percent),
    ("sojourn_censored_s", lambda value: f"{value:,.0f}"),
    ("slo_violation", _percent),
)


def page(found: Sequence[Ran], jobs: int, commit: str) -> str:
    machine = (
        f"{platform.platform()}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, commit {commit}"
    )
    lines = [
        "# Studies of arriving work, run",
        "",
        f"Command: `{COMMAND}`  ",
        f"Machine: {machine}, {time.strftime('%Y-%m-%d')}",
        "",
        NOTE,
    ]
    for each in found:
        state = "" if each.code in (0, NOT_HELD) else f" (exit code {each.code})"
        lines += [
            "",
            f"## `optbench run {each.name} -n {jobs}`",
            "",
            f"{each.seconds:.0f} s{state}.",
            "",
        ]
        lines += ["```", each.text, "```", "", *each.table]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=STUDIES)
    parser.add_argument("-n", "--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path)
    parser.add_argument(
        "-o", "--output", type=Path, default=ROOT / "docs" / "results" / "geo_studies.md"
    )
    given = parser.parse_args()
    describe = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"]
    commit = subprocess.run(describe, capture_output=True, text=True).stdout.strip() or "unknown"
    workspace = given.keep or Path(tempfile.mkdtemp(prefix="optbench-geo-"))
    workspace.mkdir(parents=True, exist_ok=True)
    (workspace / "optbench.toml").touch()
    found = []
    try:
        for name in given.names:
            print(f"{name} ...", flush=True)
            found.append(run(name, given.jobs, workspace.absolute()))
            print(f"  exit code {found[-1].code}, {found[-1].seconds:.0f} s", flush=True)
            given.output.write_text(page(found, given.jobs, commit), encoding="utf-8")
    finally:
        if given.keep is None:
            shutil.rmtree(workspace, ignore_errors=True)
    return int(any(each.code not in (0, NOT_HELD) for each in found))


if __name__ == "__main__":
    sys.exit(main())
