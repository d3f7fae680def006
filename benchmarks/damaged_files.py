"""Damaged files of every shape: python benchmarks/damaged_files.py [--files 250] writes
docs/results/damaged_files.md.

Every file goes through the command line, in child processes that live long: `convert` reads an
instance, `verify` a decision. A child measures time and the peak of its memory per file.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.sample_files.packing_workspace import write_workspace  # noqa: E402

TARGET = ROOT / "docs" / "results" / "damaged_files.md"
MOST_S, MOST_MB, TIMES_FILE = 10.0, 50.0, 10.0
# A child beyond this is killed: a fault, not a measurement.
CHILD_BYTES = 4 << 30
HANG_S = 60
LARGE_FILES, MOST_FAULTS = 10, 20


@dataclass
class Row:
    """What became of the files of one kind."""

    codes: Counter[int] = field(default_factory=Counter)
    judged: int = 0
    read: int = 0
    slowest_s: float = 0.0
    most_mb: float = 0.0
    most_share: float = 0.0
    faults: list[str] = field(default_factory=list)


def peak_mb() -> float:
    """Highest resident memory since the peak was last cleared."""
    text = Path("/proc/self/status").read_text()
    return int(text.partition("VmHWM:")[2].split()[0]) / 1024


def clear_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def work(folder: Path, name: str, first: int, files: int, large: bool) -> None:
    """Child: print one line of JSON per file, from the first seed on."""
    from tests.fuzz.large_files import LargeOriginals
    from tests.fuzz.shape_damage import Originals, damaged_file, judged, run

    resource.setrlimit(resource.RLIMIT_AS, (CHILD_BYTES, CHILD_BYTES))
    small = Originals(folder)
    whole = folder / "whole"
    kind = next(each for each in small.kinds() if each.name == name)
    path = whole.with_suffix(kind.suffix)
    path.write_text(kind.original(0))
    base_s, base_mb = 0.0, 0.0
    for _ in range(3):  # the first time loads modules
        clear_peak()
        answer = run(kind.command(path, 0))
        assert answer.code == 0, answer.message
        base_s, base_mb = answer.seconds, peak_mb()
    if large:
        kind = LargeOriginals(folder).large(name)
    for seed in range(first, files):
        done, path = damaged_file(kind, folder, seed)
        clear_peak()
        answer = run(kind.command(path, seed))
        more_mb = peak_mb() - base_mb
        fault, said = judged(kind, path, seed, answer)
        line = {
            "seed": seed,
            "done": done,
            "code": answer.code,
            "seconds": answer.seconds - base_s,
            "mb": more_mb,
            "size_mb": path.stat().st_size / 1e6,
            "fault": fault,
            "said": said,
        }
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


def measured(name: str, files: int, large: bool) -> Row:
    """Run children over all files of a kind; one that dies is a fault of the file it was at."""
    row, first = Row(), 0
    while first < files and len(row.faults) < MOST_FAULTS:
        with tempfile.TemporaryDirectory() as text:
            folder = Path(text)
            write_workspace(folder)
            words = [sys.executable, __file__, "--child", str(folder), name, str(first), str(files)]
            words += ["--large"] if large else []
            environment = {**os.environ, "OPTBENCH_WORKSPACE": str(folder)}
            done = subprocess.run(
                words, capture_output=True, text=True, env=environment, check=False,
                timeout=HANG_S * max(10, files),
            )  # fmt: skip
            for line in map(json.loads, done.stdout.splitlines()):
                take(row, line, name)
                first = line["seed"] + 1
            if done.returncode:
                row.faults.append(f"{name} {first}: the process died: {done.stderr[-500:]}")
                first += 1
    return row


def take(row: Row, line: dict[str, Any], name: str) -> None:
    row.codes[line["code"]] += 1
    if line["code"] in (0, 4):
        row.read += 1
        row.judged += line["said"]
    row.slowest_s = max(row.slowest_s, line["seconds"])
    row.most_mb = max(row.most_mb, line["mb"])
    if line["size_mb"] > 0.5:
        row.most_share = max(row.most_share, line["mb"] / line["size_mb"])
    what = line["fault"]
    if what is None and line["seconds"] > MOST_S:
        what = f"{line['seconds']:.1f} s"
    if what is None and line["mb"] > MOST_MB + TIMES_FILE * line["size_mb"]:
        what = f"{line['mb']:.0f} MB for a file of {line['size_mb']:.1f} MB"
    if what is not None:
        row.faults.append(f"{name} {line['seed']} ({line['done']}): {what}")


KINDS = {
    "schedules": "an instance of tasks, JSON",
    "packing": "an instance of the workspace's own shape, JSON",
    "milp": "a programme, JSON",
    "mps": "a programme, MPS",
    "lp": "a programme, LP",
    "schedule": "a decision for tasks",
    "placement": "a decision of the workspace's own shape",
    "point": "a point of a programme",
}


def table(rows: dict[str, Row], large: bool) -> list[str]:
    share = " | MB per MB of file" if large else ""
    lines = [
        f"| files of | read (exit 0 or 4) | of these judged by a second reading | refused (exit 2) "
        f"| slowest s | most MB{share} | faults |",
        "| --- | --- | --- | --- | --- | --- |" + (" --- |" if large else "") + " --- |",
    ]
    for name, row in rows.items():
        part = f" | {row.most_share:.1f}" if large else ""
        lines.append(
            f"| `{name}`: {KINDS[name]} | {row.read} | {row.judged} | {row.codes[2]} "
            f"| {row.slowest_s:.2f} | {row.most_mb:.0f}{part} | {len(row.faults)} |"
        )
    return lines


def page(small: dict[str, Row], large: dict[str, Row], files: int, seconds: float) -> str:
    faults = [fault for row in (*small.values(), *large.values()) for fault in row.faults]
    count = files * len(small) + LARGE_FILES * len(large)
    return "\n".join(
        [
            "# Damaged files of every shape",
            "",
            f"Written by `python benchmarks/damaged_files.py --files {files}` with Python "
            f"{sys.version.split()[0]}, {count:,} files in {seconds:.0f} s.",
            "",
            f"**Faults: {len(faults)}.** A fault is an exit code other than 0 or 2 (for decisions "
            "also 4), a traceback, a",
            "message that does not begin with the file or names no line or field, a content that a "
            "second reading denies,",
            f"more than {MOST_S:g} s, or more than {MOST_MB:g} MB and {TIMES_FILE:g} times the "
            "file above what a valid small file takes.",
            "Time and memory are those above a valid small file.",
            "",
            "A file that is read is read a second time: JSON by Python's `json` and compared value "
            "by value with what",
            "`convert` writes, MPS by HiGHS, LP by regular expressions for the usual form, "
            "verdicts by the second verifier",
            "(`tests/second_verifier`), by the rules of packing and by rows in fractions, both "
            "written again in",
            "`tests/fuzz/other_readings.py`. Where the second reader refuses a file (HiGHS: lines "
            "of a column that do not",
            "stand together; patterns: an unusual form), nothing is compared.",
            "",
            *[f"- {fault}" for fault in faults],
            "",
            f"## {files} small files of each kind",
            "",
            "One to three of: flipped bits, truncation, swapped tokens, changed numbers and words, "
            "lines and blocks copied,",
            "dropped and swapped, intruders, noise; by seed.",
            "",
            *table(small, False),
            "",
            f"## {LARGE_FILES} files of several MB of each kind",
            "",
            *table(large, True),
            "",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=250)
    parser.add_argument("--child", nargs=4)
    parser.add_argument("--large", action="store_true")
    args = parser.parse_args()
    if args.child:
        folder, name, first, files = args.child
        work(Path(folder), name, int(first), int(files), args.large)
        return 0
    began = time.perf_counter()
    small = {name: measured(name, args.files, large=False) for name in KINDS}
    large = {name: measured(name, LARGE_FILES, large=True) for name in KINDS}
    seconds = time.perf_counter() - began
    TARGET.write_text(page(small, large, args.files, seconds))
    print(TARGET.read_text())
    return int(any(row.faults for row in (*small.values(), *large.values())))


if __name__ == "__main__":
    sys.exit(main())
