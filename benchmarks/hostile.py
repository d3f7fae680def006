"""Hostile solvers next to honest ones: what becomes of each, of the others, and of what they start.

    python benchmarks/hostile.py [-o docs/results/hostile.md]

Runs a study of honest solvers alone and one with the hostile ones of tests/hostile among them, then
kills a runner whose cells have started children in sessions of their own. Writes
docs/results/hostile.md; exit code 1 when anything is not as it must be.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from optbench.store.records import Record, machine  # noqa: E402
from tests.hostile.cases import (  # noqa: E402
    CASES,
    COMMAND,
    HONEST,
    MARK,
    Case,
    Study,
    make_workspace,
    marked,
    run,
)

PROBLEMS = ("jobshop:jobs=4,machines=3", "gpu_dag:tasks=8,gpus=4")
SEEDS = 2
GONE_WITHIN_S = 1.0


@dataclass(frozen=True)
class Row:
    """One hostile configuration over all instances."""

    case: Case
    records: tuple[Record, ...]
    contradicted: bool

    @property
    def holds(self) -> bool:
        expected = None if self.case.later else self.case.reason
        return (
            len(self.records) == SEEDS * len(PROBLEMS)
            and all(
                (record.reason.kind if record.reason else None) == expected
                and (self.case.later or self.case.says in str(record.reason))
                for record in self.records
            )
            and (self.contradicted or not self.case.later)
        )

    def line(self) -> str:
        longest = max(self.records, key=lambda record: record.total_s)
        said = str(
            longest.reason
            or ("a contradiction, said by name" if self.case.later else "its result counts")
        )
        name = self.case.spec.replace(",victim={victim}", "")
        peak = max(record.peak_memory_mb for record in self.records)
        verdict = "" if self.holds else " **not as expected**"
        expected = self.case.reason or "none"
        return (
            f"| `{name}` | {expected}{verdict} | {short(said)} | {longest.total_s:.2f} | "
            f"{peak:.0f} |"
        )


def short(text: str, most: int = 130) -> str:
    text = text.replace("|", "/").replace("\n", " ")
    return text if len(text) <= most else text[: most - 1] + "…"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "-o", "--output", type=Path, default=ROOT / "docs" / "results" / "hostile.md"
    )
    output = parser.parse_args().output
    with tempfile.TemporaryDirectory(prefix="optbench-hostile-") as folder:
        alone_s, alone = timed(Path(folder) / "alone", HONEST)
        # A hostile one between any two honest ones, so that they run side by side.
        mixed = [spec for k, case in enumerate(CASES) for spec in (*HONEST[k : k + 1], case.spec)]
        hostile_s, study = timed(Path(folder) / "hostile", mixed)
        rows = [row_of(case, study) for case in CASES]
        checks = [
            ("every hostile cell has the reason that it must have", all(row.holds for row in rows)),
            (
                "the honest cells have the keys and objectives of the study without hostile ones",
                are_equal(study, alone),
            ),
            (
                "the store holds every cell of the plan, once, and every line of it can be read",
                is_whole(study),
            ),
            ("exit code 5 with hostile cells, 0 without", (study.code, alone.code) == (5, 0)),
            (
                "no process is left, and nothing in the work folder",
                not marked(study.root) and not left_folders(study),
            ),
        ]
        before, seconds = killed_runner(Path(folder) / "killed")
        words = (
            f"a runner killed with SIGKILL takes its {before} processes with it within "
            f"{GONE_WITHIN_S:g} s"
        )
        checks.append((words, before > 1 and seconds < GONE_WITHIN_S))
        output.write_text(
            report(rows, checks, alone_s, hostile_s, before, seconds), encoding="utf-8"
        )
    for words, holds in checks:
        print(f"{'yes' if holds else 'NO '}  {words}")
    print(f"written: {output}")
    return 0 if all(holds for _, holds in checks) else 1


def timed(root: Path, solvers: Sequence[str]) -> tuple[float, Study]:
    began = time.monotonic()
    study = run(make_workspace(root), solvers, problems=PROBLEMS, seeds=SEEDS)
    return time.monotonic() - began, study


def row_of(case: Case, study: Study) -> Row:
    found = tuple(record for record in study.records().values() if case.is_of(record))
    return Row(
        case, found, any(case.says in each for each in study.summary.get("contradictions", []))
    )


def are_equal(study: Study, alone: Study) -> bool:
    return (
        study.honest() == alone.honest()
        and len(alone.honest()) == len(HONEST) * len(PROBLEMS) * SEEDS
    )


def is_whole(study: Study) -> bool:
    lines = (study.root / ".optbench" / "results.jsonl").read_text().splitlines()
    cells = SEEDS * len(PROBLEMS) * (len(CASES) + len(HONEST) + 1)  # and the bounds
    return len(lines) == len(study.records()) == cells == study.summary.get("cells")


def left_folders(study: Study) -> list[Path]:
    return list((study.root / ".optbench" / "work").iterdir())


def killed_runner(root: Path) -> tuple[int, float]:
    """How many processes a study had when its runner was killed, and the seconds until all were
    gone.
    """
    make_workspace(root)
    (root / "studies" / "killed.toml").write_text(
        f'problems = ["{PROBLEMS[0]}"]\nsolvers = ["spawns:how=lasting", "loops"]\ntime_limit = '
        '"60s"\nbound_limit = "1s"\n'
    )
    environment = {**os.environ, "OPTBENCH_WORKSPACE": str(root), MARK: str(root)}
    words = [*COMMAND, "run", "killed", "-n", "2", "--no-track", "--quiet"]
    runner = subprocess.Popen(
        words, cwd=root, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60.0
    while (
        not any("sleeping in its own session" in each for each in marked(root))
        and time.monotonic() < deadline
    ):
        time.sleep(0.05)
    time.sleep(1.0)  # both cells are well under way
    before = len(marked(root))
    runner.send_signal(signal.SIGKILL)
    began = time.monotonic()
    runner.wait()
    while marked(root) and time.monotonic() < began + 30.0:
        time.sleep(0.01)
    return before, time.monotonic() - began


def report(
    rows: list[Row],
    checks: list[tuple[str, bool]],
    alone_s: float,
    hostile_s: float,
    before: int,
    killed_s: float,
) -> str:
    sandbox = rows[0].records[0].machine.get("sandbox", {}) if rows[0].records else {}
    facts = machine()
    return "\n".join(
        [
            "# Hostile solvers",
            "",
            f"`python benchmarks/hostile.py` · {platform.platform()}, {facts['cores']} cores,",
            f"{facts['memory_gb']} GB, Python {facts['python']}, optbench {facts['optbench']};",
            f"root: {os.geteuid() == 0}; sandbox: {sandbox}",
            "",
            f"{len(CASES)} hostile configurations between {len(HONEST)} honest ones on",
            f"{len(PROBLEMS) * SEEDS} instances, two jobs at a time: {hostile_s:.0f} s; the honest",
            f"ones alone: {alone_s:.0f} s.",
            "",
            *(f"- {'yes' if holds else '**no**'}: {words}" for words, holds in checks),
            "",
            f"The runner was killed while {before} processes were at work, one of them in a",
            f"session of its own: all gone after {killed_s:.2f} s.",
            "",
            "Seconds are those of the slowest cell, from its fork to its end; memory is the most",
            "that its tree had of its own.",
            "",
            "| configuration | reason | what the record says | s | MB |",
            "| --- | --- | --- | --- | --- |",
            *(row.line() for row in rows),
            "",
        ]
    )


if __name__ == "__main__":
    raise SystemExit(main())
