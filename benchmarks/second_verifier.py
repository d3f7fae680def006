"""Random instances through both verifiers, every bound and the exact solvers; writes
docs/results/second_verifier.md.

    python benchmarks/second_verifier.py [--instances 5000] [--seconds 7200] [--processes 2]

Instances cycle through the scales. What is done is kept in the store, line by line: the same
command goes on where it was stopped. Exit code 1 when anything disagrees, or a feature that an
exact solver supports was compared fewer than 200 times.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from optbench.compiling.kernel_table import KERNELS, prepare  # noqa: E402
from tests.reference.second_agreement import SOLVERS, compare  # noqa: E402
from tests.second_verifier.generator import SCALES  # noqa: E402

LEAST_PER_FEATURE = 200
MEMORY_BYTES = 6 << 30
SHOWN = 40
Row = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--instances", type=int, default=5000, help="number of instances in all")
    parser.add_argument(
        "--seconds", type=float, default=7200.0, help="stop after so many seconds, to go on later"
    )
    parser.add_argument("--processes", type=int, default=1, choices=(1, 2))
    parser.add_argument(
        "--time-limit", type=float, default=10.0, help="seconds for each solver and bounding method"
    )
    parser.add_argument(
        "--solvers",
        nargs="+",
        default=list(SOLVERS),
        choices=SOLVERS,
        help="exact solvers to compare",
    )
    parser.add_argument(
        "--store", type=Path, default=Path(tempfile.gettempdir()) / "optbench_second_verifier.jsonl"
    )
    parser.add_argument(
        "-o", "--output", type=Path, default=ROOT / "docs" / "results" / "second_verifier.md"
    )
    options = parser.parse_args()
    prepare(KERNELS)  # nothing is compiled within a limit
    began = time.perf_counter()
    rows = stored(options.store)
    left = [k for k in range(options.instances) if k not in rows]
    with open(options.store, "a", encoding="utf-8") as store:
        for row in worked(left, options, began):
            rows[row["number"]] = row
            store.write(json.dumps(row) + "\n")
            store.flush()
            for line in row["wrong"]:
                print(line, file=sys.stderr, flush=True)
    done = [rows[k] for k in sorted(rows) if k < options.instances]
    scarce = scarce_features(done) if len(done) >= options.instances else []
    text = page(done, options, scarce)
    options.output.write_text(text, encoding="utf-8")
    print(text)
    return 1 if scarce or any(row["wrong"] for row in done) else 0


def worked(left: list[int], options: argparse.Namespace, began: float) -> Iterator[Row]:
    """One row for each instance that is left, until the time is over."""
    jobs = (
        (k, options.time_limit, options.solvers)
        for k in left
        if time.perf_counter() - began < options.seconds
    )
    if options.processes == 1:
        yield from map(one, jobs)
        return
    with multiprocessing.get_context("spawn").Pool(options.processes, limit_memory) as pool:
        # In portions, since a pool reads all its jobs at once.
        for first in range(0, len(left), 20):
            if time.perf_counter() - began >= options.seconds:
                return
            yield from pool.imap_unordered(
                one, [(k, options.time_limit, options.solvers) for k in left[first : first + 20]]
            )


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def one(job: tuple[int, float, list[str]]) -> Row:
    """The instance of a number: scales take turns, seeds follow."""
    number, time_limit_s, solvers = job
    scale = SCALES[number % len(SCALES)]
    began = time.perf_counter()
    row = asdict(compare(number // len(SCALES), scale, solvers, time_limit_s=time_limit_s))
    row["features"] = sorted(row["features"])
    row["solved"] = {solver: sorted(features) for solver, features in row["solved"].items()}
    return row | {
        "number": number,
        "scale": scale.name,
        "wall_s": round(time.perf_counter() - began, 3),
    }


def stored(path: Path) -> dict[int, Row]:
    """What an earlier call has done with this code; a store of other code is set aside."""
    head = {"code": code_version()}
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if not lines or json.loads(lines[0]) != head:
        if lines:
            path.replace(path.with_suffix(".old"))
        path.write_text(json.dumps(head) + "\n", encoding="utf-8")
        return {}
    return {row["number"]: row for row in map(json.loads, lines[1:])}


def code_version() -> str:
    """The commit, and a hash of what differs from it."""
    parts = ("optbench", "solvers", "tests/second_verifier", "tests/reference")
    commit = git("rev-parse", "HEAD")
    changes = git("diff", "HEAD", "--", *parts)
    return f"{commit} {hash_of(changes)}" if changes else commit


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()


def feature_counts(done: list[Row]) -> dict[str, Counter[str]]:
    """For each exact solver, how many compared instances had each feature."""
    counts: dict[str, Counter[str]] = {solver: Counter() for solver in SOLVERS}
    for row in done:
        for solver, features in row["solved"].items():
            counts[solver].update(features)
    return counts


def scarce_features(done: list[Row]) -> list[str]:
    """Features that a solver supports and was compared on fewer than LEAST_PER_FEATURE times."""
    from optbench.plugins.discovery import load_solver

    counts = feature_counts(done)
    out = []
    for solver in SOLVERS:
        for feature in sorted(load_solver(solver)[1].supports):
            if counts[solver][feature] < LEAST_PER_FEATURE:
                out.append(f"{solver}: {feature} {counts[solver][feature]}")
    return out


def page(done: list[Row], options: argparse.Namespace, scarce: list[str]) -> str:
    """The page: what was compared, what disagreed, counts per scale and per feature."""
    wrong = [line for row in done for line in row["wrong"]]
    status = Counter(row["status"] for row in done)
    packages = ", ".join(f"{name} {version(name)}" for name in ("ortools", "highspy", "numpy"))
    machine = f"{platform.machine()}, Python {platform.python_version()}, {packages}"
    total = {
        key: sum(row[key] for row in done)
        for key in ("num_schedules", "num_feasible", "num_bounds", "num_unproven")
    }
    intro = f"""
`python benchmarks/second_verifier.py --instances {options.instances}`: {len(done):,} random
instances of `tests/second_verifier/generator.py` at {len(SCALES)} scales, commit
{git("rev-parse", "--short", "HEAD")}. The second verifier and both brute forces are written from
docs/formats.md in exact rationals and import nothing of optbench.

- **Disagreements: {len(wrong)}.** Verdicts and metrics of both verifiers on
  {total["num_schedules"]:,} schedules, of which {total["num_feasible"]:,} are feasible; metrics,
  objectives and bounds compare with 2^-40 of the sum of absolute terms.
- {status["optimum"]:,} optima by brute force, {status["infeasible"]:,} instances proven infeasible
  by it. On the other {status["no brute force"]:,} the best verified schedule stands beside every
  bound. {total["num_bounds"]:,} bounds in all.
- {total["num_unproven"]:,} times a solver ended without a proof in {options.time_limit:g} s; its
  objective and bounds were compared all the same.
- {machine}; {sum(row["wall_s"] for row in done):,.0f} s of work.
"""
    if scarce:
        intro += f"- Compared fewer than {LEAST_PER_FEATURE} times: {'; '.join(scarce)}.\n"
    more = [f"    and {len(wrong) - SHOWN} more"] if len(wrong) > SHOWN else []
    by_scale = {scale.name: [row for row in done if row["scale"] == scale.name] for scale in SCALES}
    lines = [
        "# Two verifiers, brute force, exact solvers, and every bound",
        intro,
        *[f"    {line}" for line in wrong[:SHOWN]],
        *more,
        "",
        "| scale | instances | brute force | schedules | bounds | disagreements |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        *[scale_line(name, rows) for name, rows in by_scale.items()],
        "",
        f"| feature | instances | {' | '.join(SOLVERS)} |",
        f"| --- | ---: | {' | '.join('---:' for _ in SOLVERS)} |",
        *feature_lines(done),
        "",
    ]
    return "\n".join(lines)


def scale_line(name: str, rows: list[Row]) -> str:
    brute = sum(row["status"] in ("optimum", "infeasible") for row in rows)
    schedules, bounds = (sum(row[key] for row in rows) for key in ("num_schedules", "num_bounds"))
    wrong = sum(len(row["wrong"]) for row in rows)
    return f"| {name} | {len(rows)} | {brute} | {schedules} | {bounds} | {wrong} |"


def feature_lines(done: list[Row]) -> list[str]:
    counts = feature_counts(done)
    every = Counter(feature for row in done for feature in row["features"])
    return [
        " | ".join([f"| {feature}", str(count), *(str(counts[s][feature]) for s in SOLVERS)]) + " |"
        for feature, count in sorted(every.items(), key=lambda entry: (-entry[1], entry[0]))
    ]


if __name__ == "__main__":
    sys.exit(main())
