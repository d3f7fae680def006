"""Bad input: python benchmarks/fuzz_inputs.py [--files 2000] [--cli 40] writes
docs/results/bad_input.md.

Every damaged file must be read as a valid instance or refused with one message, in-process and by
the command line.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from optbench.errors import OptbenchError
from optbench.model.files.instance_json import write_instance
from optbench.model.instance import Instance

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.fuzz import bad_files  # noqa: E402 (the tests are no installed package)
from tests.fuzz.damage import damaged  # noqa: E402
from tests.fuzz.survival import attempt  # noqa: E402
from tests.sample_files.inputs import originals, shop  # noqa: E402

TARGET = ROOT / "docs" / "results" / "bad_input.md"
COMMAND = [sys.executable, "-c", "import sys; from optbench.cli.main import main; sys.exit(main())"]
HANG_S = 60.0
# All but FileFormatError, which ``attempt`` takes for an answer. TimeoutError is an OSError.
FAULTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    OptbenchError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    Warning,
)


@dataclass
class Tally:
    """Outcomes of many files of one format."""

    counts: Counter[str] = field(default_factory=Counter)
    slowest_s: float = 0.0
    read: list[int] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Finished:
    code: int | None
    wall_s: float
    peak_mb: float
    stderr: str


def run(arguments: Sequence[str]) -> Finished:
    """One command line; code None when it hung."""
    began = time.perf_counter()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen(
            [*COMMAND, *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=err
        )
        code = None
        while time.perf_counter() - began < HANG_S:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                break
            time.sleep(0.01)
        else:
            child.kill()
            _, _, usage = os.wait4(child.pid, 0)
        child.returncode = code
        wall_s = time.perf_counter() - began
        err.seek(0)
        return Finished(code, wall_s, usage.ru_maxrss / 1024, err.read().decode("utf-8", "replace"))


def fault_of(finished: Finished, allowed: Iterable[int]) -> str | None:
    """What is wrong with how a command ended; None when nothing is."""
    if finished.code is None:
        return f"hung for {HANG_S:g} s"
    if finished.code not in allowed:
        return f"exit code {finished.code}: {finished.stderr.strip()[-200:]}"
    for word in ("Traceback", "Warning"):
        if word in finished.stderr:
            return f"{word}: {finished.stderr.strip()[-200:]}"
    if finished.code == 2 and not finished.stderr.startswith("optbench: "):
        return f"no message: {finished.stderr[:100]!r}"
    return None


def in_process(name: str, text: str, count: int, folder: Path, owner: Instance | None) -> Tally:
    tally, path = Tally(), folder / name
    for seed in range(count):
        done, data = damaged(text.encode(), seed)
        path.write_bytes(data)
        try:
            outcome = attempt(path, owner)
        except FAULTS as error:
            tally.faults.append(f"{name}, seed {seed} ({done}): {type(error).__name__}: {error}")
            continue
        tally.counts["read" if outcome.message is None else "refused"] += 1
        if outcome.message is None:
            tally.read.append(seed)
        tally.slowest_s = max(tally.slowest_s, outcome.wall_s)
    return tally


def by_command(
    name: str,
    text: str,
    seeds: Iterable[int],
    readable: Iterable[int],
    folder: Path,
    owner_file: Path,
) -> Tally:
    """convert (verify for schedules) each, and solve and bound instances that can be read."""
    tally, path = Tally(), folder / name
    convert = ["convert", str(path), str(folder / "out.json")]
    solve = ["solve", str(path), "-s", "cpsat", "--time-limit", "2s"]
    commands: list[tuple[int, list[str], tuple[int, ...]]] = [
        (seed, convert, (0, 2)) for seed in seeds
    ]
    if name == "schedule":
        commands = [
            (seed, ["verify", str(owner_file), str(path)], (0, 2, 4))
            for seed in (*seeds, *readable)
        ]
    else:
        for seed in readable:
            commands += [(seed, solve, (0, 2, 3)), (seed, ["bound", str(path)], (0, 2, 3))]
    for seed, arguments, allowed in commands:
        path.write_bytes(damaged(text.encode(), seed)[1])
        finished = run(arguments)
        fault = fault_of(finished, allowed)
        if fault:
            tally.faults.append(f"{arguments[0]} {name}, seed {seed}: {fault}")
        tally.counts[f"{arguments[0]} {finished.code}"] += 1
        tally.slowest_s = max(tally.slowest_s, finished.wall_s)
    return tally


def by_hand(folder: Path) -> tuple[list[str], list[str]]:
    """Rows of the table of bad_files.CASES, and what went wrong."""
    rows, faults = [], []
    for case in bad_files.CASES:
        path = folder / f"{case.name.replace(' ', '_').replace('/', '_')}.in"
        given = case.make(path) or path
        finished = run(["convert", str(given), str(folder / "out.json")])
        message = " ".join(
            finished.stderr.removeprefix("optbench: ").replace(str(folder) + "/", "").split()
        )
        shown = message if len(message) <= 170 else message[:167] + "..."
        shown = shown.replace("|", "\\|")
        rows.append(
            f"| {case.name} | {finished.code} | {finished.wall_s:.2f} | {finished.peak_mb:.0f} | "
            f"{shown or '(read)'} |"
        )
        fault = fault_of(finished, (case.code,))
        if fault:
            faults.append(f"{case.name}: {fault}")
        if path.is_file():
            path.unlink()  # 200 MB each
    return rows, faults


def table(tallies: dict[str, Tally], describe: Callable[[Tally], str]) -> str:
    rows = [
        f"| {name} | {describe(tally)} | {tally.slowest_s:.2f} | {len(tally.faults)} |"
        for name, tally in tallies.items()
    ]
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--files", type=int, default=2000, help="damaged files per format, read in-process"
    )
    parser.add_argument(
        "--cli", type=int, default=40, help="of these, how many per format through the command line"
    )
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    warnings.simplefilter("error")
    texts, inside, outside = originals(), {}, {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        owner, owner_file = shop(flexible=False), folder / "owner.json"
        write_instance(owner, owner_file)
        began = time.perf_counter()
        for key, text in texts.items():
            inside[key] = in_process(
                key, text, options.files, folder, owner if key == "schedule" else None
            )
        inside_s = time.perf_counter() - began
        for key, text in texts.items():
            outside[key] = by_command(
                key,
                text,
                range(options.cli),
                inside[key].read[: options.cli // 4],
                folder,
                owner_file,
            )
        rows, faults = by_hand(folder)
    faults += [fault for tally in (*inside.values(), *outside.values()) for fault in tally.faults]
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(report(options, rows, faults, inside, outside, inside_s))
    print("\n".join(faults) or "no faults")
    sys.exit(1 if faults else 0)


def report(
    options: argparse.Namespace,
    rows: list[str],
    faults: list[str],
    inside: dict[str, Tally],
    outside: dict[str, Tally],
    inside_s: float,
) -> str:
    total = sum(sum(tally.counts.values()) for tally in inside.values())

    def read_and_refused(tally: Tally) -> str:
        return f"{tally.counts['read']:,}, {tally.counts['refused']:,}"

    def by_exit_code(tally: Tally) -> str:
        return ", ".join(f"{key}: {count}" for key, count in sorted(tally.counts.items()))

    return f"""# Bad input

Written by `python benchmarks/fuzz_inputs.py --files {options.files} --cli {options.cli}` with
Python {sys.version.split()[0]}. A fault is a traceback, a warning, a hang, a wrong exit code, no
message, or an instance that is read but not valid.

**Faults: {len(faults)}.**

{chr(10).join(f"- {fault}" for fault in faults)}

## By hand

`optbench convert FILE out.json`, a process each: exit code, wall time and peak memory of the whole
process, start included.

| file | exit | s | MB | message |
| --- | --- | --- | --- | --- |
{chr(10).join(rows)}

## {options.files:,} damaged files per format, in-process

Flipped bits, truncation, swapped tokens, changed numbers and words, lines and blocks copied,
dropped and swapped, noise: one to three of these by seed 0 to {options.files - 1}. What is read is
validated, written and read again with the same hash. {total:,} files in {inside_s:.0f} s.

| format | read and valid, refused | slowest s | faults |
| --- | --- | --- | --- |
{table(inside, read_and_refused)}

## {options.cli} of them per format through the command line

`convert` each (`verify` for schedules); then `solve -s cpsat --time-limit 2s` and `bound` for
{options.cli // 4} readable ones. Counts by verb and exit code.

| format | verb and exit code: files | slowest s | faults |
| --- | --- | --- | --- |
{table(outside, by_exit_code)}
"""


if __name__ == "__main__":
    main()
