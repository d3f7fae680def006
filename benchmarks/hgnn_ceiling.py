"""The ceiling of hgnn: its player fed with the milestones of the LP, exact and degraded; writes
docs/results/hgnn_ceiling.md and hgnn_ceiling.svg.

    python benchmarks/hgnn_ceiling.py [--seeds 10-14] [--trained FILE ...] [--raw FILE] [-o FILE]

hgnn and lp_guided play the same compiled list rule; here it has the depth of hgnn's queue (160)
throughout. It is given the starts, ends and prices of the LP, with one set of multipliers, or with
the best of 32 on the instance, both chosen on training seeds of gpu_cluster
(``cluster_multipliers``). With z from a standard normal distribution and C the LP's makespan, they
are degraded in three ways:

    tasks    start and end of each task, as shares of C, times exp(s z), one z per task
    shift    start and end of each task plus s z C, one z per task, not below 0
    prices   the price of each class of alike pools times exp(s z)

The errors of a network's due dates are put on the scales of ``tasks`` and ``shift``: the standard
deviation of log(due / LP end) over tasks, and the root mean square of (f due - LP end) / C with the
best factor f; both leave out a common factor, as multipliers do. Two rows exchange
parts: the network's due dates and order at the LP's prices, and the LP's at the network's prices
and costs. Objectives are verified; gaps are to the certified bound of the fluid LP.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._ceiling_page import COMMAND, LEVELS, NOISES, PlayRow, page, picture  # noqa: E402
from benchmarks._cluster_runs import RESULTS, play, tuned_rule  # noqa: E402
from benchmarks.cluster_multipliers import cluster_sets, with_depth  # noqa: E402
from optbench.bounds.milestones import find_milestones  # noqa: E402
from optbench.model.classes import class_view  # noqa: E402
from optbench.model.instance import Floats, Instance  # noqa: E402
from optbench.model.verify import verify  # noqa: E402
from optbench.plugins.discovery import load_problem  # noqa: E402
from optbench.plugins.solvers._lp_finder import Finder  # noqa: E402
from optbench.plugins.solvers._lp_milestones import (  # noqa: E402
    MilestoneRules,
    Multipliers,
    Targets,
    fixed_sets,
    guide_of,
    targets_of,
)
from optbench.plugins.solvers.hgnn import Hgnn  # noqa: E402
from optbench.plugins.solvers.hgnn.milestone_rule import (  # noqa: E402
    DEPTH,
    RuleNumbers,
    numbers_of,
    rule_of,
)
from optbench.plugins.solvers.hgnn.situation import situation_of  # noqa: E402
from optbench.sim.kernel.dispatch import Rule  # noqa: E402
from optbench.sim.rules import has_choice, list_rule, run_rule  # noqa: E402
from optbench.sim.sampling import DEEPEST  # noqa: E402

# Sizes with the whole curve, and one with its ends alone, for docs/results/hgnn_speed.md.
CURVES = ("gpu_cluster:nodes=16,tasks=400", "gpu_cluster:nodes=64,tasks=2400")
LARGE = "gpu_cluster:nodes=128,tasks=5000"
DRAWS = 3


class CeilingCase:
    """One instance, its LP, and the player."""

    def __init__(self, spec: str, seed: int) -> None:
        self.spec, self.seed = spec, seed
        self.instance: Instance = load_problem(spec).instance(seed)
        found = find_milestones(self.instance)
        if found is None:
            raise RuntimeError(f"{spec}, seed {seed}: the LP has no solution")
        self.known, self.exact = found, targets_of(found)
        finder = Finder(self.instance, guide_of(self.instance, found), seed)
        self.rules = MilestoneRules(finder, self.exact, seed)
        self.found = situation_of(self.instance)

    def row(
        self, method: str, rule: Rule, level: float = 0.0, due: Floats | None = None
    ) -> PlayRow:
        """Play a rule and verify its schedule."""
        began = time.process_time()
        schedule = run_rule(self.instance, rule).schedule
        cpu_s = time.process_time() - began
        if schedule is None:
            raise RuntimeError(f"{method} left work of {self.instance.name} undone")
        objective = verify(self.instance, schedule).objective
        assert isinstance(objective, float)
        made = self.made(method, objective, cpu_s, level)
        if due is None:
            return made
        return replace(made, error=self.error(due), shift_error=self.shift_error(due))

    def made(self, method: str, objective: float, cpu_s: float, level: float = 0.0) -> PlayRow:
        bound = self.known.bound.value
        return PlayRow(self.spec, self.seed, method, level, objective, bound, cpu_s)

    def rule(self, targets: Targets, by: Multipliers, depth: int = DEPTH) -> Rule:
        """Return the milestone rule of these targets and multipliers."""
        self.rules.targets = targets
        return with_depth(self.rules.rule(by), depth)

    def best(self, method: str, sets: list[Multipliers], depth: int = DEPTH) -> PlayRow:
        """Return the best of several sets of multipliers at the exact milestones; the seconds are
        those of all runs.
        """
        rows = [self.row(method, self.rule(self.exact, by, depth)) for by in sets]
        least = min(rows, key=lambda row: row.objective)
        return replace(least, cpu_s=sum(row.cpu_s for row in rows))

    def error(self, due: Floats) -> float:
        """Return the deviation of log(due / LP end)."""
        return float(np.std(np.log(np.maximum(due, 1.0) / np.maximum(self.exact.end, 1.0))))

    def shift_error(self, due: Floats) -> float:
        """Return the root mean square of (f due - LP end) / C with the best factor f."""
        end = self.exact.end
        factor = float(due @ end) / max(1.0, float(due @ due))
        return float(np.sqrt(np.mean((factor * due - end) ** 2))) / max(1.0, self.known.makespan)

    def degraded(self, noise: str, level: float, rng: np.random.Generator) -> Targets:
        """Return the LP's milestones and prices with noise."""
        exact = self.exact
        if noise == "prices":
            view = class_view(self.instance)
            factor = np.exp(level * rng.normal(size=view.num_classes))
            return replace(exact, pool_price=exact.pool_price * factor[view.pool_class])
        z = rng.normal(size=self.instance.num_tasks)
        if noise == "tasks":
            factor = np.exp(level * z)
            return replace(exact, start=exact.start * factor, end=exact.end * factor)
        moved = np.maximum(-exact.start, level * z * self.known.makespan)
        return replace(exact, start=exact.start + moved, end=exact.end + moved)

    def network_row(self, name: str, network: Hgnn) -> tuple[PlayRow, RuleNumbers]:
        """Play a network's answers; return the numbers of its rule too."""
        answers = network.answers(self.instance, self.found)
        made = numbers_of(self.instance, self.found, answers)
        return self.row(name, rule_of(self.instance, self.found, answers), due=made.due), made

    def exchanged(self, name: str, made: RuleNumbers, by: Multipliers) -> Iterator[PlayRow]:
        """Play both exchanges of parts between a network and the LP."""
        mixed = replace(self.exact, start=made.base, end=made.due / by.stretch)
        yield self.row(f"{name}: its due dates, LP prices", self.rule(mixed, by), due=made.due)
        rule = list_rule(
            self.instance,
            base=self.exact.start - by.tail * self.rules.tail,
            depth=DEPTH,
            lookahead=has_choice(self.instance),
            end_weight=made.end_weight,
            late_weight=made.late_weight,
            energy_weight=made.energy_weight,
            pool_cost=made.pool_cost,
            due=by.stretch * self.exact.end,
            late_price=by.late * self.rules.end_cost,
            set_cost=made.set_cost,
        )
        yield self.row(f"{name}: LP due dates, its prices", rule)

    def rows(self, trained: list[str], curve: bool) -> Iterator[PlayRow]:
        """Play everything on this instance; without the curve, its ends alone."""
        sets, shipped = cluster_sets(), fixed_sets()
        one = sets[0]
        yield self.row("LP milestones", self.rule(self.exact, one))
        yield self.best("LP milestones, best of 32", sets)
        yield self.best("LP milestones, first set of lp_guided", shipped[:1])
        yield self.best("LP milestones, 16 sets of lp_guided", shipped)
        if curve:
            name = "LP milestones, 16 sets of lp_guided, its depth"
            yield self.best(name, shipped, DEEPEST)
        networks = {f"hgnn {k}": Hgnn(checkpoint=path) for k, path in enumerate(trained)}
        for name, network in {**networks, "no network": Hgnn(weights="none")}.items():
            row, made = self.network_row(name, network)
            yield row
            if curve:
                yield from self.exchanged(name, made, one)
        rules = {"path_milestones": f"path_milestones:depth={DEPTH}", "tuned rule": tuned_rule()}
        for name, spec in rules.items():
            run = play(spec, self.instance)
            yield self.made(name, run.objective, run.cpu_s)
        if curve:
            yield from self.noisy_rows(one)

    def noisy_rows(self, by: Multipliers) -> Iterator[PlayRow]:
        for k, noise in enumerate(NOISES):
            for level in LEVELS:
                rng = np.random.default_rng((self.seed, k, round(1000 * level)))
                for _ in range(DRAWS):
                    targets = self.degraded(noise, level, rng)
                    yield self.row(noise, self.rule(targets, by), level, targets.end)


def measured(
    raw: Path, cells: list[tuple[str, int]], rows_of: Callable[[str, int], list[PlayRow]]
) -> list[PlayRow]:
    """Return the rows of the file, and add those of the instances that it has none of."""
    text = raw.read_text(encoding="utf-8") if raw.exists() else ""
    rows = [PlayRow(**json.loads(line)) for line in text.splitlines()]
    done = {(row.spec, row.seed) for row in rows}
    for spec, seed in cells:
        if (spec, seed) not in done:
            new = rows_of(spec, seed)
            with raw.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(asdict(row)) + "\n" for row in new)
            rows += new
            least = min(math.inf, *(row.gap for row in new))
            print(f"{spec} {seed}: least gap {100 * least:.2f} %", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="10-14", help="first and last")
    parser.add_argument("--large", action="store_true", help="also 128 nodes with 5,000 tasks")
    trained = [str(ROOT / "benchmarks" / "networks" / f"hgnn-{k}.safetensors") for k in (0, 1, 2)]
    parser.add_argument("--trained", nargs="+", default=trained)
    parser.add_argument("--raw", type=Path, default=RESULTS / "raw" / "hgnn_ceiling.jsonl")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "hgnn_ceiling.md")
    args = parser.parse_args()
    first, last = map(int, args.seeds.split("-"))
    specs = (*CURVES, LARGE) if args.large else CURVES
    cells = [(spec, seed) for spec in specs for seed in range(first, last + 1)]
    rows = measured(
        args.raw,
        cells,
        lambda spec, seed: list(CeilingCase(spec, seed).rows(args.trained, spec in CURVES)),
    )
    command = f"{COMMAND} --seeds {args.seeds}{' --large' if args.large else ''}"
    drawing = args.output.with_suffix(".svg")
    drawing.write_text(picture(rows, CURVES), encoding="utf-8")
    args.output.write_text(page(rows, CURVES, command, drawing.name), encoding="utf-8")


if __name__ == "__main__":
    main()
