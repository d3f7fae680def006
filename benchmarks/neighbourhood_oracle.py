"""What choosing neighbourhoods well is worth in large neighbourhood search on GPU clusters; writes
docs/results/neighbourhood_oracle.md.

    python benchmarks/neighbourhood_oracle.py [--checkpoint FILE] [--seeds 500-502] [--rounds 60]
        [--raw FILE] [-o FILE]

All searches start from the same point, the best of eight schedules of ``hgnn``, and take the same
rounds of the same sub-solver (steps of annealing among the freed tasks). In a round there are eight
neighbourhoods, one per selector of ``solvers/hgnn_lns/neighbourhoods.py``.

oracle  tries all eight from the same schedule, keeps the best result, and is charged one attempt
random  tries one of the eight, drawn uniformly
luck    draws one of the eight selectors and tries it eight times (other tasks, other random
        numbers), keeps the best result, and is charged one: what eight tries are worth without any
        choice between selectors
eight   is ``random`` with eight times the rounds: what the oracle computes, charged in full
NAME    always takes the selector of this name

Budgets are counted in steps, so that the load of the machine changes nothing and a run repeats.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from optbench.evaluate.stats import bootstrap_interval  # noqa: E402
from optbench.plugins.discovery import load_problem  # noqa: E402
from optbench.plugins.solvers.hgnn import Hgnn  # noqa: E402
from optbench.plugins.solvers.hgnn_lns.freed_search import FreedPoint, FreedSearch  # noqa: E402
from optbench.plugins.solvers.hgnn_lns.neighbourhoods import (  # noqa: E402
    SELECTORS,
    PointView,
    select,
)
from optbench.plugins.solvers.hgnn_lns.starting_point import NetworkStart, start_of  # noqa: E402

COMMAND = "python benchmarks/neighbourhood_oracle.py"
# Specifications and steps of an attempt: about 0.05 s of the processor.
SPECS = {"gpu_cluster:nodes=32,tasks=500": 500, "gpu_cluster:nodes=64,tasks=1000": 200}
# Freed tasks per neighbourhood; samples of the network at the start.
SIZE, SAMPLES = 40, 8
TRIES = len(SELECTORS)
METHODS = ("random", "oracle", "luck", "eight", *SELECTORS)


@dataclass(frozen=True)
class SearchRow:
    """One search. ``won`` counts the rounds in which each selector had the best result, ``better``
    those in which it had a better one than the schedule before, ``mean_gain`` is in per cent of
    the objective per attempt.
    """

    spec: str
    seed: int
    method: str
    rounds: int
    steps: int
    start: float
    end: float
    cpu_s: float
    won: dict[str, int]
    better: dict[str, int]
    mean_gain: dict[str, float]


class Rounds:
    """Rounds of one method from a common start."""

    def __init__(self, method: str, start: NetworkStart, steps: int, seed: int) -> None:
        self.method, self.steps = method, steps
        self.search, self.around = FreedSearch(start.finder), start.surroundings
        self.rng = np.random.default_rng(seed)
        self.won = dict.fromkeys(SELECTORS, 0)
        self.gains: dict[str, list[float]] = {name: [] for name in SELECTORS}

    def names(self) -> list[str]:
        """Return the selectors that are tried in this round."""
        drawn = SELECTORS[int(self.rng.integers(len(SELECTORS)))]
        if self.method == "oracle":
            return list(SELECTORS)
        if self.method == "luck":
            return [drawn] * TRIES
        return [drawn if self.method in ("random", "eight") else self.method]

    def play(self) -> None:
        """Try the neighbourhoods of a round, and go on from the best result."""
        search = self.search
        view = PointView(self.around, search.mode, search.start, search.end)
        tried: list[tuple[str, FreedPoint]] = []
        for name in self.names():
            found = search.attempt(select(name, view, SIZE, self.rng), self.steps)
            tried.append((name, found))
            self.gains[name].append(1.0 - found.value / search.point.value)
        name, best = min(tried, key=lambda each: each[1].value)
        if best.value < search.point.value:
            self.won[name] += 1
            search.move_to(best)


def rows_of(
    spec: str, seed: int, steps: int, rounds: int, methods: list[str], checkpoint: str | None
) -> Iterator[SearchRow]:
    """Search one instance by each method from the same start."""
    instance = load_problem(spec).instance(seed)
    network = Hgnn(checkpoint=checkpoint)
    for method in methods:
        start = start_of(instance, network, SAMPLES, seed, lambda: math.inf)
        if start is None:
            raise RuntimeError(f"{spec}, seed {seed}: the network's rule finishes no schedule")
        played = Rounds(method, start, steps, seed)
        began, first = time.process_time(), played.search.point.value
        for _ in range(rounds * (TRIES if method == "eight" else 1)):
            played.play()
        yield SearchRow(
            spec,
            seed,
            method,
            rounds,
            steps,
            first,
            played.search.point.value,
            time.process_time() - began,
            played.won,
            {name: sum(g > 0 for g in each) for name, each in played.gains.items()},
            {name: 100 * float(np.mean(each)) for name, each in played.gains.items() if each},
        )


def gains(rows: list[SearchRow], method: str, other: str) -> list[float]:
    """Return by how many per cent of the other's objective a method's is lower, per instance."""
    ends = {(row.spec, row.seed, row.method): row.end for row in rows}
    return [
        100 * (1.0 - ends[spec, seed, method] / end)
        for (spec, seed, name), end in ends.items()
        if name == other and (spec, seed, method) in ends
    ]


def table(rows: list[SearchRow]) -> list[str]:
    """Return a table per specification, and one of all."""
    lines = []
    specs = list(dict.fromkeys(row.spec for row in rows))
    for title, spec_rows in [
        *((f"`{spec}`", [row for row in rows if row.spec == spec]) for spec in specs),
        ("All instances", rows),
    ]:
        lines += [
            f"## {title}",
            "",
            "| method | below the start | below `random` at equal charged rounds | interval |"
            " processor s |",
            "| --- | ---: | ---: | --- | ---: |",
        ]
        for method in dict.fromkeys(row.method for row in spec_rows):
            mine = [row for row in spec_rows if row.method == method]
            below = np.mean([100 * (1 - row.end / row.start) for row in mine])
            less = gains(spec_rows, method, "random")
            low, high = bootstrap_interval(less)
            seconds = np.mean([row.cpu_s for row in mine])
            lines.append(
                f"| {method} | {below:.2f} % | {np.mean(less):+.2f} % | {low:+.2f} to "
                f"{high:+.2f} | {seconds:.1f} |"
            )
        lines.append("")
    return lines


def selector_table(rows: list[SearchRow]) -> list[str]:
    """Return how each selector did in the rounds of the oracle."""
    oracle = [row for row in rows if row.method == "oracle"]
    rounds = max(1, sum(row.rounds for row in oracle))
    lines = [
        "## Selectors in the oracle's rounds",
        "",
        "| selector | best of the eight | better than before | mean gain of an attempt |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name in SELECTORS:
        won = 100 * sum(row.won[name] for row in oracle) / rounds
        better = 100 * sum(row.better[name] for row in oracle) / rounds
        gain = np.mean([row.mean_gain[name] for row in oracle]) if oracle else math.nan
        lines.append(f"| {name} | {won:.0f} % | {better:.0f} % | {gain:.4f} % |")
    return [*lines, ""]


def page(rows: list[SearchRow], words: str) -> str:
    """Return the text of docs/results/neighbourhood_oracle.md."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba"))
    return "\n".join(
        [
            "# An oracle over neighbourhoods",
            "",
            f"`{words}`; {platform.machine()}, {os.cpu_count()} cores, Python "
            f"{platform.python_version()}, {versions}; seconds are of the processor. {SIZE} tasks "
            f"are freed, the start is the best of {SAMPLES} schedules of `hgnn`, an attempt takes "
            + ", ".join(f"{steps:,} steps on `{spec}`" for spec, steps in SPECS.items())
            + ". What the methods do is said in the benchmark.",
            "",
            *table(rows),
            *selector_table(rows),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", help="network of hgnn; the shipped one without it")
    parser.add_argument("--seeds", default="500-502", help="first and last")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--raw", type=Path, help="file of rows: known ones are kept")
    parser.add_argument("-o", "--output", type=Path)
    args = parser.parse_args()
    lines = (
        args.raw.read_text(encoding="utf-8").splitlines() if args.raw and args.raw.exists() else []
    )
    rows = [SearchRow(**json.loads(line)) for line in lines]
    first, last = map(int, args.seeds.split("-"))
    for spec, steps in SPECS.items():
        for seed in range(first, last + 1):
            known = {row.method for row in rows if (row.spec, row.seed) == (spec, seed)}
            methods = [name for name in args.methods.split(",") if name not in known]
            for row in rows_of(spec, seed, steps, args.rounds, methods, args.checkpoint):
                rows.append(row)
                print(f"{spec} {seed} {row.method}: {row.end / row.start:.4f}", flush=True)
                if args.raw:
                    with args.raw.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(asdict(row)) + "\n")
    text = page(rows, f"{COMMAND} --seeds {args.seeds} --rounds {args.rounds}")
    if args.output:
        args.output.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
