"""The tabu search of shops, old against new, at equal processor time on instances that are for
tuning: python benchmarks/shop_search.py --old ../checkout-before [--quick]

Both sides start from the same list schedule, on one thread. Generated instances are shaped like
those of Dauzère-Pérès and Paulli: 10, 15 or 20 jobs of 15 to 25 operations on 5, 8 or 10 machines,
each machine eligible with a probability, durations of 10 to 100 that are equal or differ between
the machines. Durations: 3 minutes with ``--quick``, 25 minutes without.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

# Behind PYTHONPATH, which names the checkout whose search is played.
sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks.cells import ROOT, data_dir, machine

REPORT = ROOT / "docs" / "results" / "shop_search.md"
SIZES = {"10x5": (10, 5), "15x8": (15, 8), "20x10": (20, 10)}
QUICK = ("gen_15x8_0.1_equal_1", "gen_20x10_0.1_own_1", "gen_15x8_0.3_own_1", "setb4x", "la24")
FLEXIBLE = ("mt10c1", "mt10xyz", "setb4cc", "setb4x", "setb4xy", "kacem2", "fattahi15", "behnke6")
SHOPS = ("la24", "orb01")
# Iterations between two looks at the clock.
CHUNK = 400


def generated(seed: int, jobs: int, machines: int, chance: float, equal: bool) -> str:
    """A flexible job shop as text: each machine is eligible with this chance, at least one is."""
    rng = np.random.default_rng((seed, jobs, machines, int(100 * chance), equal))
    lines = [f"{jobs} {machines} 1"]
    for _ in range(jobs):
        numbers = [int(rng.integers(15, 26))]
        for _ in range(numbers[0]):
            eligible = np.flatnonzero(rng.random(machines) < chance).tolist()
            eligible = eligible or [int(rng.integers(machines))]
            durations = rng.integers(10, 101, len(eligible)).tolist()
            numbers.append(len(eligible))
            for k, one in enumerate(eligible):
                numbers += [one + 1, durations[0 if equal else k]]
        lines.append(" ".join(map(str, numbers)))
    return "\n".join(lines) + "\n"


def instances(folder: Path) -> dict[str, Path]:
    """Write the generated instances; return the files of all."""
    files = {}
    for size, (jobs, machines) in SIZES.items():
        for chance in (0.1, 0.3, 0.5):
            for equal in (True, False):
                name = f"gen_{size}_{chance}_{'equal' if equal else 'own'}_1"
                files[name] = folder / f"{name}.txt"
                files[name].write_text(generated(1, jobs, machines, chance, equal))
    for family, names in (("flexible-jobshop", FLEXIBLE), ("jobshop", SHOPS)):
        files |= {name: data_dir() / family / f"{name}.txt" for name in names}
    return files


def play(path: Path, seconds: float, seed: int) -> dict[str, Any]:
    """Search for this much processor time with the optbench on the path."""
    from optbench.api import load_target
    from optbench.bounds.auto import lower_bounds
    from optbench.compiling.kernel_table import prepare
    from optbench.model.windows import windows
    from optbench.sim.primal.shop import ShopSearch, list_schedule

    prepare({"shop_search"})
    instance = load_target(path)
    w = windows(instance)
    search = ShopSearch(instance, seed)
    search.begin(*list_schedule(instance, np.lexsort((-w.tail, w.head))))
    bound = max(b.value for b in lower_bounds(instance, "cheap"))
    iterations, began = 0, time.thread_time()
    search.aim(bound)
    while (spent := time.thread_time() - began) < seconds and search.makespan > bound:
        search.step(CHUNK)
        iterations += CHUNK
    return {
        "tasks": instance.num_tasks,
        "bound": bound,
        "makespan": search.makespan,
        "rate": iterations / max(spent, 1e-9),
    }


def side(checkout: Path, path: Path, seconds: float, seed: int) -> dict[str, Any]:
    """``play`` in a process of its own with the package of a checkout."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__)), "--play", str(path), str(seconds), str(seed)],
        env={**os.environ, "PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        check=False,
        cwd=checkout,
    )
    if done.returncode != 0:
        raise SystemExit(f"{checkout} on {path.name} failed:\n{done.stderr[-3000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def row(name: str, sides: dict[str, list[dict[str, Any]]]) -> tuple[str, list[float]]:
    """One line of the table, and the mean deviation from the bound per side."""
    first = sides["new"][0]
    cells, deviations = [f"| {name} | {first['tasks']} | {first['bound']:g} "], []
    for each in ("old", "new"):
        found = sides[each]
        length = mean(one["makespan"] for one in found)
        deviations.append(100 * (length / first["bound"] - 1))
        rate = mean(one["rate"] for one in found) / 1000
        cells.append(f"| {length:.1f} | {deviations[-1]:.2f} % | {rate:.1f} ")
    ratio = mean(s["rate"] for s in sides["new"]) / mean(s["rate"] for s in sides["old"])
    return "".join(cells) + f"| {ratio:.1f} |", deviations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", type=Path, metavar="FOLDER", help="checkout to compare with")
    parser.add_argument("--quick", action="store_true", help="five instances, 4 s, one seed")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="only these instances")
    parser.add_argument("--seconds", type=float, metavar="S", help="processor time of each run")
    parser.add_argument("--play", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.play:
        path, seconds, seed = options.play
        print(json.dumps(play(Path(path), float(seconds), int(seed))))
        return
    if options.old is None:
        parser.error("--old: which checkout to compare with")
    seconds = options.seconds or (4.0 if options.quick else 8.0)
    seeds = (0,) if options.quick else (0, 1, 2)
    lines, every = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name, path in instances(Path(folder)).items():
            if name not in (options.only or (QUICK if options.quick else (name,))):
                continue
            checkouts = {"old": options.old.resolve(), "new": ROOT}
            sides = {
                which: [side(checkout, path, seconds, seed) for seed in seeds]
                for which, checkout in checkouts.items()
            }
            line, deviations = row(name, sides)
            print(line, flush=True)
            lines.append(line)
            every.append(deviations)
    REPORT.write_text(report(lines, every, seconds, len(seeds)))
    print(f"written: {REPORT}")


def report(lines: list[str], every: list[list[float]], seconds: float, seeds: int) -> str:
    before, after = (mean(each[k] for each in every) for k in range(2))
    return "\n".join(
        [
            "# Tabu search for shops, old against new",
            "",
            f"{seconds:g} s of processor time on one thread each, from the same list schedule,",
            f"{seeds} seed{'s' * (seeds > 1)}; fewer where the bound was met. Bound is the best",
            "cheap one; deviations are from it, though the optimum may be longer. Mean deviation:",
            f"{before:.2f} % old, {after:.2f} % new. Speed in 1,000 iterations per second of",
            "processor time (a whole neighbourhood is evaluated in each). None of these instances",
            "is in the hold-out list.",
            "",
            f"Command: `python benchmarks/shop_search.py {' '.join(sys.argv[1:])}`  ",
            f"Machine: {machine()}",
            "",
            "| instance | tasks | bound | old | above | speed | new | above | speed | ratio |",
            "| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |",
            *lines,
            "",
        ]
    )


if __name__ == "__main__":
    main()
