"""The fixed multipliers of the milestone rule, from training instances; writes
solvers/_milestone_multipliers.json.

    python benchmarks/milestone_multipliers.py [--quick]

Per training instance the search around the best multipliers takes RUNS runs. Every set that was the
best of an instance is then run on all of them, and sets are chosen one by one: each time the one
that lowers the mean ratio of the best value to the best known one the most. Seeds 0 to 2 of sizes
that no table of docs/results/milestones.md shows.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from optbench.bounds.milestones import find_milestones  # noqa: E402
from optbench.compiling.kernel_table import prepare  # noqa: E402
from optbench.model.instance import Floats  # noqa: E402
from optbench.plugins.discovery import load_problem, load_solver  # noqa: E402

load_solver("lp_guided", {})
from optbench.plugins.solvers._lp_finder import Finder  # noqa: E402
from optbench.plugins.solvers._lp_milestones import (  # noqa: E402
    SETS,
    MilestoneRules,
    Multipliers,
    guide_of,
    targets_of,
)

SPECS = (
    "gpu_dag:tasks=120,gpus=16,types=3",
    "gpu_dag:tasks=150,gpus=40,types=4",
    "gpu_dag:tasks=300,gpus=24,types=3",
    "gpu_dag:tasks=300,gpus=60,types=3,shape=random",
    "gpu_dag:tasks=400,gpus=40,types=3",
    "gpu_dag:tasks=400,gpus=40,types=2,shape=fork_join,deadlines=tight",
    "gpu_dag:tasks=600,gpus=64,types=3,shape=pipeline",
    "gpu_dag:tasks=800,gpus=80,types=3",
    "gpu_dag:tasks=800,gpus=160,types=6,nodes=4",
    "gpu_dag:tasks=1500,gpus=400,types=3",
    "gpu_dag:tasks=3000,gpus=900,types=3",
)
SEEDS, CHOSEN = range(3), 16
RUNS, QUICK_RUNS = 500, 20


def rules_of(spec: str, seed: int) -> MilestoneRules:
    instance = load_problem(spec).instance(seed)
    found = find_milestones(instance)
    assert found is not None
    finder = Finder(instance, guide_of(instance, found), seed)
    return MilestoneRules(finder, targets_of(found), seed)


def best_sets(rules: MilestoneRules, runs: int) -> list[Multipliers]:
    """Return the best set of multipliers of each of two searches."""
    found = []
    for start in (Multipliers(stretch=1.0), Multipliers(stretch=1.15)):
        rules.value = np.inf
        rules.run(start)
        for _ in range(runs // 2):
            rules.search()
        found.append(rules.best)
    return found


def values(each: list[MilestoneRules], sets: list[Multipliers]) -> Floats:
    """Return the value of every set on every instance, relative to the best of the instance."""
    table = np.array([[rules.finder.value_of(rules.rule(by)) for by in sets] for rules in each])
    return np.asarray(table / table.min(axis=1, keepdims=True), dtype=float)


def chosen(table: Floats, number: int) -> list[int]:
    """Return sets one by one, each the one that helps the most beside those before."""
    best, out = np.full(len(table), np.inf), list[int]()
    for _ in range(min(number, table.shape[1])):
        with_each = np.minimum(best[:, None], table).mean(axis=0)
        with_each[out] = np.inf
        out.append(int(np.argmin(with_each)))
        best = np.minimum(best, table[:, out[-1]])
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few runs, and nothing is written")
    quick = parser.parse_args().quick
    prepare({"lp_search"})
    began = time.process_time()
    specs, runs = (SPECS[:2], QUICK_RUNS) if quick else (SPECS, RUNS)
    each = [rules_of(spec, seed) for spec in specs for seed in SEEDS]
    print(f"{len(each)} linear programmes: {time.process_time() - began:.0f} s of processor time")
    sets = [by for rules in each for by in best_sets(rules, runs)]
    table = values(each, sets)
    order = chosen(table, CHOSEN)
    for number in (1, 2, 4, 8, CHOSEN):
        mean = float(table[:, order[:number]].min(axis=1).mean())
        print(f"best of {number}: {100 * (mean - 1):.2f} % above the best of {len(sets)} sets")
    print(f"{time.process_time() - began:.0f} s of processor time")
    if not quick:
        rows = [{name: round(value, 9) for name, value in asdict(sets[k]).items()} for k in order]
        lines = ",\n  ".join(json.dumps(row) for row in rows)
        SETS.write_text(f'{{"multipliers": [\n  {lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
