"""The search for projects, old beside new at equal time, on the published projects that it may be
tuned on; writes docs/results/project_search.md.

    python benchmarks/project_search.py [--quick] [--old COMMIT] [--seconds 10] [--seeds 1]

The old code is the commit named, unpacked and compiled in a temporary folder. Two tables: the
compiled search alone on one thread, for equal processor time, with its schedules per second; and
the solver ``cpsat`` on two threads, for equal time, measured as in ``cells.py``. The instances are
every second one of j30, j60, j90 and j120 by sorted name, those whose best known makespan is not
the length of the critical path; the hold-out list has the others. About six minutes with --quick (3
s, no j30), half an hour without, two minutes of them compiling the old code.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

sys.path.insert(0, os.environ.get("OPTBENCH_SIDE", str(Path(__file__).resolve().parents[1])))

from benchmarks.cells import data_dir, machine, run_optbench
from optbench.api import load_target
from optbench.compiling.kernel_table import prepare

ROOT = Path(__file__).resolve().parents[1]
REPORT = ROOT / "docs" / "results" / "project_search.md"
# The last commit before the search was made anew.
OLD = "58e16769fa455aca6f9fa2712ee90f003a286dd2"
SIZES, SIDES = ("j30", "j60", "j90", "j120"), ("old", "new")
# Children between two looks at the clock, and schedules per child in the old search.
CHUNK, OLD_SCHEDULES = 400, 3


@dataclass(frozen=True)
class Measured:
    """One run: its makespan, its bound (of a solver) and its schedules per second (of a search)."""

    makespan: float
    bound: float | None = None
    schedules_per_s: float = 0.0


def tuning_half(sizes: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """Name, best known makespan and bound of each instance."""
    known = json.loads((data_dir() / "rcpsp" / "bounds.json").read_text())
    names = [
        n for size in sizes for n in sorted(k for k in known if k.startswith(size + "_"))[1::2]
    ]
    return {n: known[n] for n in names if known[n]["critical_path"] < known[n]["upper_bound"]}


def search_alone(name: str, seconds: float, seed: int) -> Measured:
    """The compiled search from random lists, for this processor time on one thread."""
    from optbench.sim.primal.project import ProjectSearch

    known = json.loads((data_dir() / "rcpsp" / "bounds.json").read_text())
    search = ProjectSearch(load_target(data_dir() / "rcpsp" / known[name]["file"]), seed)
    began = time.thread_time()
    while (spent := time.thread_time() - began) < seconds:
        search.step(CHUNK)
    made = getattr(search, "decoded", OLD_SCHEDULES * search.tried)
    return Measured(search.makespan, None, made / spent)


def solved(name: str, seconds: float, seed: int) -> Measured:
    """The solver ``cpsat`` with all that belongs to it, on two threads."""
    from benchmarks.cells import published

    what = next(each for each in published(("rcpsp",)) if each.name == name)
    cell = run_optbench(what, seconds, 2, seed)
    if cell.objective is None or cell.violations:
        raise SystemExit(f"{name}: no feasible schedule: {cell.violations}")
    return Measured(cell.objective, cell.bound)


KINDS = {"search": search_alone, "solver": solved}


def serve() -> None:
    """Measure what standard input names, one JSON list per line, with the code of this process."""
    prepare({"shop_search", "project_search", "deductions"})
    for line in sys.stdin:
        kind, name, seconds, seed = json.loads(line)
        print(json.dumps(vars(KINDS[kind](name, seconds, seed))), flush=True)


class Side:
    """A process that measures with the code of one folder."""

    def __init__(self, folder: Path) -> None:
        environment = os.environ | {
            "OPTBENCH_SIDE": str(folder),
            "PYTHONPATH": str(folder),
            "OPTBENCH_DATA": str(data_dir().resolve()),
        }
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env=environment,
        )

    def measure(self, kind: str, name: str, seconds: float, seed: int) -> Measured:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps([kind, name, seconds, seed]) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"the process that measures {name} ended; its message is above")
        return Measured(**json.loads(answer))

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def unpack(commit: str, folder: Path) -> None:
    """Write the files of a commit."""
    archive = subprocess.run(
        ["git", "archive", commit], cwd=ROOT, check=True, capture_output=True
    ).stdout
    subprocess.run(["tar", "-x"], cwd=folder, input=archive, check=True)


def table(
    kind: str, known: dict[str, dict[str, float]], rows: dict[str, dict[str, list[Measured]]]
) -> Iterator[str]:
    """Means by size: deviation from the best known, gap, schedules per second."""
    yield (
        "| size | instances | "
        + " | ".join(
            f"{what} {side}"
            for what in (("rpd", "schedules/s") if kind == "search" else ("rpd", "gap"))
            for side in SIDES
        )
        + " |"
    )
    yield "| --- | --: | --: | --: | --: | --: |"
    for size in SIZES:
        names = [name for name in rows if name.startswith(size + "_")]
        if not names:
            continue
        deviations, others = [], []
        for side in SIDES:
            runs = [(run, known[name]["upper_bound"]) for name in names for run in rows[name][side]]
            deviations.append(f"{100 * mean(run.makespan / best - 1 for run, best in runs):.2f} %")
            if kind == "search":
                others.append(f"{mean(run.schedules_per_s for run, _ in runs):,.0f}")
            else:
                gaps = [1 - (run.bound or 0.0) / run.makespan for run, _ in runs]
                others.append(f"{100 * mean(gaps):.2f} %")
        yield f"| {size} | {len(names)} | {' | '.join(deviations + others)} |"
    yield ""
    yield "| instance | best known | makespans old | makespans new |"
    yield "| --- | --: | --: | --: |"
    for name, sides in rows.items():
        cells = [", ".join(f"{run.makespan:g}" for run in sides[side]) for side in SIDES]
        yield f"| {name} | {known[name]['upper_bound']:g} | {cells[0]} | {cells[1]} |"
    yield ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="3 s each, without j30")
    parser.add_argument("--seconds", type=float, default=10.0, help="per run (10)")
    parser.add_argument("--seeds", type=int, default=1, help="seeds per instance (1)")
    parser.add_argument("--sizes", nargs="*", default=SIZES, help="sizes of projects (all)")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), help="search, solver (both)")
    parser.add_argument("--old", default=OLD, metavar="COMMIT", help="commit of the old code")
    parser.add_argument("-o", type=Path, default=REPORT, help="file of the report")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    seconds = 3.0 if options.quick else options.seconds
    known = tuning_half(SIZES[1:] if options.quick else tuple(options.sizes))
    lines = [
        "# The search for projects, old beside new",
        "",
        f"{len(known)} published projects that it may be tuned on, {seconds:g} s each,",
        f"{options.seeds} seed(s), in turn. Old: commit {options.old[:7]}. rpd is against the best",
        "known makespan; gap is (makespan - bound) / makespan, with the solver's own bounds.",
        "",
        f"Command: `{shlex.join(['python', *sys.argv])}`  ",
        f"Machine: {machine()}",
        "",
    ]
    with tempfile.TemporaryDirectory() as folder:
        unpack(options.old, Path(folder))
        sides = {"old": Side(Path(folder)), "new": Side(ROOT)}
        for kind in options.kinds:
            rows: dict[str, dict[str, list[Measured]]] = {}
            for name in known:
                rows[name] = {side: [] for side in SIDES}
                for seed in range(options.seeds):
                    for side in SIDES:
                        rows[name][side].append(sides[side].measure(kind, name, seconds, seed))
                print(kind, name, known[name]["upper_bound"], *rows[name].values(), flush=True)
            title = {
                "search": "The compiled search alone, one thread, processor time",
                "solver": "The solver cpsat, two threads, all included",
            }[kind]
            lines += [f"## {title}", "", *table(kind, known, rows)]
        for each in sides.values():
            each.close()
    text = "\n".join(lines)
    options.o.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
