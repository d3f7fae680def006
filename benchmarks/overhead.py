"""What a study costs beside solving: per cell, per record, and reading a large store; writes
docs/results/overhead.md.

    python benchmarks/overhead.py [--cells 1000] [-o docs/results/overhead.md]

Cells are trivial (3 jobs on 3 machines by a list rule), two at a time, in a workspace of their own.
Beyond the solve is what the cell's process was there for (from its fork to its end) without the
solver's own time, and what the runner did about it.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

COMMAND = "python benchmarks/overhead.py"
JOBS, MOST_MS, LEAST_CELLS_PER_S, STORED = 2, 50.0, 20.0, 100_000
STUDY = """
question = "What does a cell cost that has nothing to do?"
problems = ["jobshop:jobs=3,machines=3"]
solvers = ["fcfs"]
seeds = 2
repetitions = {repetitions}
work_limit = 1
bound_limit = "1s"
"""


class Stopwatch:
    """Seconds spent in some functions, call by call."""

    def __init__(self) -> None:
        self.spent: dict[str, list[float]] = {}

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **options: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*args, **options)
            finally:
                self.spent.setdefault(name, []).append(time.perf_counter() - began)

        return run

    def median_ms(self, name: str) -> float:
        return 1e3 * statistics.median(self.spent[name])

    @contextmanager
    def watching(self) -> Any:
        """While the runner judges and stores."""
        from optbench.run import runner
        from optbench.run.judge import judge
        from optbench.store.run_store import Store

        with (
            mock.patch.object(runner, "judge", self.timed("judge", judge)),
            mock.patch.object(Store, "add", self.timed("store", Store.add)),
            mock.patch.object(Store, "_append", self.timed("append", Store._append)),
        ):
            yield self


def cells(folder: Path, number: int) -> tuple[list[str], bool]:
    """A study of trivial cells; lines of the table, and whether the targets are met."""
    from optbench.run.runner import run_study
    from optbench.study.study_file import load_study

    path = folder / "studies" / "trivial.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(STUDY.format(repetitions=number // 2))
    study = load_study(path)
    # Compiled code and bounds are there, as for any second study.
    run_study(study, jobs=JOBS, only=lambda cells: cells[:4])
    began = time.perf_counter()
    with Stopwatch().watching() as watch:
        done = run_study(study, jobs=JOBS, force=True)
    elapsed_s = time.perf_counter() - began
    began = time.perf_counter()
    again = run_study(study, jobs=JOBS)
    resumed_s = time.perf_counter() - began
    assert not done.failed and again.ran == 0 and len(done.records) == len(done.cells)
    solves = [
        record
        for record in done.records.values()
        if record.cell.kind == "solve" and record.wall_s is not None
    ]
    beyond = [1e3 * (record.total_s - (record.wall_s or 0.0)) for record in solves]
    runner_ms = watch.median_ms("judge") + watch.median_ms("store")
    median = statistics.median(beyond) + runner_ms
    rate = len(done.cells) / elapsed_s
    rows = [
        ("cells, two at a time", f"{len(done.cells):,}"),
        ("whole study, start and instances included", f"{elapsed_s:.1f} s"),
        ("**cells per second** (target: 20 or more)", f"**{rate:.1f}**"),
        ("process beyond the solve: median", f"{statistics.median(beyond):.1f} ms"),
        ("process beyond the solve: 95 %", f"{sorted(beyond)[int(0.95 * len(beyond))]:.1f} ms"),
        ("runner, judging: median", f"{watch.median_ms('judge'):.2f} ms"),
        ("runner, storing: median", f"{watch.median_ms('store'):.2f} ms"),
        ("of that the append with its flush to the disk", f"{watch.median_ms('append'):.2f} ms"),
        ("**beyond the solve, all of it: median** (target: at most 50 ms)", f"**{median:.1f} ms**"),
        ("the same command again, with nothing to do", f"{resumed_s:.2f} s"),
    ]
    return table(("trivial cells", "figure"), rows), median <= MOST_MS and rate >= LEAST_CELLS_PER_S


def reading(folder: Path) -> list[str]:
    """A store of 100,000 records: opened, asked for a hundred of them, read whole."""
    from optbench.store.run_store import Store

    store = Store()
    record = next(record for record in store.records().values() if record.cell.kind == "solve")
    large = Store(folder / "large").make()
    with large.file.open("wb") as file:
        for seed in range(STORED):
            cell = replace(record.cell, seed=seed)
            file.write(line_of(replace(record, cell=cell)))
    mb = large.file.stat().st_size / 1e6
    fresh = Store(folder / "large")
    began = time.perf_counter()
    records = fresh.records()
    opened_s = time.perf_counter() - began
    keys = [replace(record.cell, seed=seed).key for seed in range(0, STORED, STORED // 100)]
    began = time.perf_counter()
    assert all(key in records for key in keys)
    some_s = time.perf_counter() - began
    began = time.perf_counter()
    assert len(records) == STORED
    whole_s = time.perf_counter() - began
    rows = [
        (f"opened: {STORED:,} records, {mb:.0f} MB", f"{opened_s:.2f} s"),
        ("100 of them asked for", f"{1e3 * some_s:.1f} ms"),
        ("all of them parsed", f"{whole_s:.1f} s"),
    ]
    return table(("a large store", "figure"), rows)


def line_of(record: Any) -> bytes:
    import json

    return json.dumps(record.to_dict(), allow_nan=False).encode() + b"\n"


def table(head: tuple[str, str], rows: Sequence[tuple[str, str]]) -> list[str]:
    return [
        f"| {head[0]} | {head[1]} |",
        "| --- | ---: |",
        *(f"| {name} | {value} |" for name, value in rows),
        "",
    ]


def commit() -> str:
    words = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", type=int, default=1000, help="trivial cells (default 1000)")
    parser.add_argument(
        "-o", "--output", type=Path, default=ROOT / "docs" / "results" / "overhead.md"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="optbench-overhead-") as name:
        folder = Path(name)
        (folder / "optbench.toml").touch()
        os.environ["OPTBENCH_WORKSPACE"] = name
        load = os.getloadavg()[0]
        first, met = cells(folder, options.cells)
        second = reading(folder)
    about = [
        "# Overhead of a study",
        "",
        f"`{COMMAND} --cells {options.cells}` at {commit()}, {os.cpu_count()} cores,",
        f"{platform.machine()}, Python {platform.python_version()}, load at the start {load:.1f}.",
        "Nothing is sent to MLflow here: a process of low priority does that beside the study.",
        "",
    ]
    text = "\n".join([*about, *first, *second])
    options.output.write_text(text, encoding="utf-8")
    print(text)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
