"""What choosing well among eight neighbourhoods is worth in large neighbourhood search on GPU
clusters; writes docs/results/neighbourhood_oracle.md.

    python benchmarks/neighbourhood_oracle.py [--seeds 10-14] [--rounds 16] [--raw FILE] [-o FILE]

Searches start from one point of lp_guided, anneal freed tasks with its annealer, and differ only in
what they free. There are two starts: the best point of the LP (``milestones``: its rule's runs, its
roundings), and that point annealed for 20 steps per task as lp_guided does (``annealed``). The
eight selectors are those of ``_neighbourhoods``; a try frees 20 tasks and takes 100 steps.

In a round a method makes eight tries from the same schedule, each with its own random numbers,
goes on from the best result, and is charged one:

oracle   one try of each of the eight selectors
luck     eight neighbourhoods of one selector, which is drawn for every round
again    one neighbourhood, of a drawn selector, eight times

or it makes one try: ``random`` draws a selector, and goes on for eight times the rounds, which is
what the oracle computes; ``uniform``, ``window`` and ``critical`` always take one selector.
``annealing`` is lp_guided's own annealer with all tasks free, for the charged steps.

What counts, written before any report seed was run. The best of eight results is lower than one
result even where all eight neighbourhoods are alike. So the gain of the choice is not oracle
against one try, but oracle against the two methods that compute as much and choose less: against
``luck`` it is what choosing the selector is worth at most, against ``again`` what choosing the
neighbourhood is worth at most. Both are (other - oracle) / other of the objectives after the same
charged rounds, paired by instance, with a bootstrap interval. A network that chooses can get no
more than the oracle, and must pay for eight tries to get that much. Where the upper ends of the
intervals of both gains are below 1 % from both starts, guidance ends here, as issue 15 says.
Budgets are counted in steps, so that the load of the machine changes nothing and a run repeats.
Seeds 500 and 501 served for development.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import RESULTS, page_head, percent  # noqa: E402
from benchmarks._freed_annealing import FreedPoint, FreedSearch  # noqa: E402
from benchmarks._neighbourhoods import SELECTORS, PointView, select  # noqa: E402
from optbench.api import solve  # noqa: E402
from optbench.bounds.milestones import Milestones, find_milestones  # noqa: E402
from optbench.model.instance import Instance  # noqa: E402
from optbench.plugins.discovery import load_problem  # noqa: E402
from optbench.plugins.solvers._lp_finder import Finder  # noqa: E402
from optbench.plugins.solvers._lp_milestones import (  # noqa: E402
    MilestoneRules,
    guide_of,
    targets_of,
)
from optbench.plugins.solvers._lp_search import BEST_VALUE  # noqa: E402

COMMAND = "python benchmarks/neighbourhood_oracle.py"
SMALL = ("gpu_cluster:nodes=16,tasks=500", "gpu_cluster:nodes=32,tasks=500")
# Starts, and the instances that are searched from each.
SPECS = {"milestones": (*SMALL, "gpu_cluster:nodes=64,tasks=1000"), "annealed": SMALL}
# Freed tasks and steps of a try, and tries of a round.
SIZE, STEPS, TRIES = 20, 100, len(SELECTORS)
# lp_guided's sets of multipliers and roundings, and the steps per task of the second start.
RUNS, ROUNDINGS, ANNEALED = 16, 10, 20
# How often the temperature of lp_guided's annealer changes.
LOOKS = 200
SINGLE = {"uniform": "random", "window": "window", "critical": "critical"}
METHODS = ("oracle", "luck", "again", "random", *SINGLE, "annealing")
# Schedules of the LP's rule and of the network, as they are: they are not searched.
SCHEDULES = ("LP milestones, played", "hgnn, best of 8")
STOP = 1.0


@dataclass(frozen=True)
class SearchRow:
    """One search: the value at its start and after each round, and, for the oracle, the rounds in
    which each selector had the best result.
    """

    spec: str
    start: str
    seed: int
    method: str
    bound: float
    values: list[float]
    cpu_s: float
    won: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Beginning:
    """An instance, its milestones, and a search that has found the common start."""

    instance: Instance
    known: Milestones
    finder: Finder
    played: float


def beginning_of(spec: str, seed: int, start: str) -> Beginning:
    """Find the start of lp_guided: the best point of its rule and of the LP, perhaps annealed."""
    instance = load_problem(spec).instance(seed)
    known = find_milestones(instance)
    if known is None:
        raise RuntimeError(f"{spec}, seed {seed}: the LP has no solution")
    finder = Finder(instance, guide_of(instance, known), seed)
    rules = MilestoneRules(finder, targets_of(known), seed)
    rules.first(RUNS, lambda: math.inf)
    rules.keep_point()
    finder.first(ROUNDINGS, lambda: math.inf)
    if start == "annealed":
        anneal_all(finder, ANNEALED * instance.num_tasks)
    return Beginning(instance, known, finder, rules.value)


def anneal_all(finder: Finder, total: int) -> None:
    """Anneal with all tasks free as lp_guided does for a given amount of work."""
    done = 0
    while done < total:
        steps = min(-(-total // LOOKS), total - done)
        finder.anneal(steps, done / total, total)
        done += steps


class RoundsOfMethod:
    """Rounds of one method from the common start."""

    def __init__(self, method: str, begun: Beginning, seed: int) -> None:
        self.method, self.begun = method, begun
        self.search = FreedSearch(begun.finder.twin(seed), seed)
        self.rng = np.random.default_rng(seed)
        self.won = dict.fromkeys(SELECTORS, 0)

    def names(self) -> list[str]:
        """Return the selectors that are tried in this round."""
        if self.method == "oracle":
            return list(SELECTORS)
        drawn = SELECTORS[int(self.rng.integers(len(SELECTORS)))]
        if self.method in ("luck", "again"):
            return [drawn] * TRIES
        return [SINGLE.get(self.method, drawn)]

    def play(self) -> float:
        """Make the tries of a round, and go on from the best result; return its value."""
        search, begun = self.search, self.begun
        view = PointView(begun.instance, begun.known, search.mode, search.start, search.end)
        tried: list[tuple[str, FreedPoint]] = []
        freed = None
        for name in self.names():
            if freed is None or self.method != "again":
                freed = select(name, view, SIZE, self.rng)
            tried.append((name, search.attempt(freed, STEPS)))
        name, best = min(tried, key=lambda each: each[1].value)
        if best.value < search.point.value:
            self.won[name] += 1
            search.move_to(best)
        return search.point.value


def row_of(
    spec: str, start: str, seed: int, method: str, rounds: int, begun: Beginning
) -> SearchRow:
    """Search by one method."""
    began = time.process_time()
    first = float(begun.finder.search.value[BEST_VALUE])
    won: dict[str, int] = {}
    if method == "annealing":
        finder = begun.finder.twin(seed)
        anneal_all(finder, rounds * STEPS)
        values = [float(finder.search.value[BEST_VALUE])]
    elif method == SCHEDULES[0]:
        values = [begun.played]
    elif method == SCHEDULES[1]:
        found = solve(begun.instance, "hgnn", samples=TRIES, seed=seed, bound=False).objective
        assert isinstance(found, float)
        values = [found]
    else:
        played = RoundsOfMethod(method, begun, seed)
        values = [played.play() for _ in range(rounds * (TRIES if method == "random" else 1))]
        won = played.won if method == "oracle" else {}
    cpu_s = time.process_time() - began
    return SearchRow(
        spec, start, seed, method, begun.known.bound.value, [first, *values], cpu_s, won
    )


Value = Callable[[str], float]


def values_of(rows: list[SearchRow], rounds: int) -> list[Value]:
    """Return, per instance, a function from a method to the objective that it ends with."""
    out = []
    for key in dict.fromkeys((row.spec, row.start, row.seed) for row in rows):
        mine = {row.method: row.values for row in rows if (row.spec, row.start, row.seed) == key}
        ends = {name: values[-1] for name, values in mine.items()}
        ends["start"] = mine["oracle"][0]
        ends["random x 8"], ends["random"] = mine["random"][-1], mine["random"][rounds]
        out.append(ends.__getitem__)
    return out


def less(cases: list[Value], method: str, other: str) -> list[float]:
    """Return by which share of the other's objective a method's is lower, per instance."""
    return [1.0 - value(method) / value(other) for value in cases]


WORDS = (
    ("oracle", "eight selectors, best kept", 1, 8),
    ("luck", "one selector, eight neighbourhoods, best kept", 1, 8),
    ("again", "one neighbourhood, eight times, best kept", 1, 8),
    ("random", "one try, a drawn selector", 1, 1),
    ("uniform", "one try, any tasks", 1, 1),
    ("window", "one try, a window of time", 1, 1),
    ("critical", "one try, the critical path", 1, 1),
    ("annealing", "lp_guided's annealer, all tasks free", 1, 1),
    ("random x 8", "one try, a drawn selector, eight times the rounds", 8, 8),
    (SCHEDULES[0], "the start's schedule by the LP's rule, no search", 0, 0),
    (SCHEDULES[1], "no search", 0, 0),
)


def table(title: str, cases: list[Value], rounds: int) -> list[str]:
    """Return the table of one start and size."""
    lines = [
        f"### {title}, {len(cases)} instances",
        "",
        "| method | what is tried | charged steps | computed steps | below the start, % |"
        " oracle is lower by, % |",
        "| --- | --- | ---: | ---: | --- | --- |",
    ]
    for name, words, charged, computed in WORDS:
        steps = rounds * STEPS
        lines.append(
            f"| {name} | {words} | {charged * steps:,} | {computed * steps:,} | "
            f"{percent(less(cases, name, 'start'))} | {percent(less(cases, 'oracle', name))} |"
        )
    return [*lines, ""]


def selector_table(rows: list[SearchRow]) -> list[str]:
    """Return how often each selector was the best of the eight."""
    oracle = [row for row in rows if row.method == "oracle"]
    total = sum(sum(row.won.values()) for row in oracle)
    lines = [
        f"## Selectors in the {total:,} rounds of the oracle that found something better",
        "",
        "Alike selectors would each have the best result in 12.5 % of them.",
        "",
        "| selector | best of the eight |",
        "| --- | ---: |",
    ]
    for name in SELECTORS:
        won = sum(row.won[name] for row in oracle)
        lines.append(f"| {name} | {100 * won / max(1, total):.0f} % |")
    return [*lines, ""]


def verdict(by_start: dict[str, list[Value]]) -> list[str]:
    """Return the gains of the choice by start, and whether guidance ends here."""
    from optbench.evaluate.stats import estimate

    lines = [
        "| start | instances | choosing the selector (oracle below luck), % |"
        " choosing the neighbourhood (oracle below again), % | oracle below one try, % |"
        " oracle below one try at eight times the rounds, % |",
        "| --- | ---: | --- | --- | --- | --- |",
    ]
    highest = -math.inf
    for start, cases in by_start.items():
        gains = [less(cases, "oracle", name) for name in ("luck", "again", "random", "random x 8")]
        highest = max(highest, *(100 * estimate(each).high for each in gains[:2]))
        cells = " | ".join(percent(each) for each in gains)
        lines.append(f"| {start} | {len(cases)} | {cells} |")
    ends = "below" if highest < STOP else "not below"
    words = "guidance ends here" if highest < STOP else "guidance is not ruled out"
    return [
        *lines,
        "",
        f"The highest upper end of the first two columns is {highest:.2f} %, {ends} {STOP:g} %: "
        f"{words}.",
        "",
    ]


def page(rows: list[SearchRow], seeds: str, rounds: int) -> str:
    """Return the text of docs/results/neighbourhood_oracle.md."""
    command = f"{COMMAND} --seeds {seeds} --rounds {rounds}"
    lines = page_head("An oracle over neighbourhoods", command)
    lines += [
        f"A try frees {SIZE} tasks and takes {STEPS} steps of lp_guided's annealer among them; "
        f"each search has {rounds} charged rounds. The oracle tries eight selectors in a round, "
        "keeps the best result and is charged one try. What counts as its gain was written into "
        "the benchmark before these seeds were run. Means of paired differences with 95 % "
        "intervals.",
        "",
    ]
    by_start = {
        start: values_of([row for row in rows if row.start == start], rounds)
        for start in dict.fromkeys(row.start for row in rows)
    }
    lines += ["## What the choice is worth", "", *verdict(by_start)]
    for start in by_start:
        lines += [f"## From the start `{start}`", ""]
        for spec in dict.fromkeys(row.spec for row in rows if row.start == start):
            mine = [row for row in rows if (row.spec, row.start) == (spec, start)]
            lines += table(f"`{spec}`", values_of(mine, rounds), rounds)
    return "\n".join([*lines, *selector_table(rows)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="10-14", help="first and last")
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument(
        "--raw", type=Path, default=RESULTS / "raw" / "neighbourhood_oracle.jsonl",
        help="file of rows: known ones are kept",
    )  # fmt: skip
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "neighbourhood_oracle.md")
    args = parser.parse_args()
    text = args.raw.read_text(encoding="utf-8") if args.raw.exists() else ""
    rows = [SearchRow(**json.loads(line)) for line in text.splitlines()]
    done = {(row.spec, row.start, row.seed, row.method) for row in rows}
    first, last = map(int, args.seeds.split("-"))
    cells = [(start, spec) for start, specs in SPECS.items() for spec in specs]
    for seed in range(first, last + 1):
        for start, spec in cells:
            todo = [m for m in (*METHODS, *SCHEDULES) if (spec, start, seed, m) not in done]
            begun = beginning_of(spec, seed, start) if todo else None
            for method in todo:
                assert begun is not None
                row = row_of(spec, start, seed, method, args.rounds, begun)
                rows.append(row)
                print(
                    f"{spec} {start} {seed} {method}: {row.values[-1] / row.values[0]:.4f}",
                    flush=True,
                )
                with args.raw.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(row)) + "\n")
    args.output.write_text(page(rows, args.seeds, args.rounds), encoding="utf-8")


if __name__ == "__main__":
    main()
