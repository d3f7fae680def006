"""Multipliers of the milestone rule for gpu_cluster, from training seeds; writes
benchmarks/cluster_multipliers.json.

    python benchmarks/cluster_multipliers.py [--draws 160]

lp_guided plays milestones with sets of multipliers that were chosen on gpu_dag. Here the same is
done for gpu_cluster, with the queue's depth of hgnn's rule, so that the same player is fed by both.
Per training instance there are two searches around the best multipliers. The sets that were the
best for a while (the last few of each search) and the shipped ones are run on all instances; 32 are
chosen one by one, each the one that lowers the mean ratio of the best value to the best known one
the most. The first of them is the best single set.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.milestone_multipliers import chosen  # noqa: E402
from optbench.bounds.milestones import find_milestones  # noqa: E402
from optbench.model.instance import Floats  # noqa: E402
from optbench.plugins.discovery import load_problem  # noqa: E402
from optbench.plugins.solvers._lp_finder import Finder  # noqa: E402
from optbench.plugins.solvers._lp_milestones import (  # noqa: E402
    MilestoneRules,
    Multipliers,
    fixed_sets,
    guide_of,
    targets_of,
)
from optbench.plugins.solvers.hgnn.milestone_rule import DEPTH as HGNN_DEPTH  # noqa: E402
from optbench.sim.kernel import mode_choice  # noqa: E402
from optbench.sim.kernel.dispatch import Rule  # noqa: E402

SETS = Path(__file__).with_name("cluster_multipliers.json")
CASES = (
    ("gpu_cluster:nodes=16,tasks=400", 1000),
    ("gpu_cluster:nodes=16,tasks=400", 1001),
    ("gpu_cluster:nodes=16,tasks=400", 1002),
    ("gpu_cluster:nodes=16,tasks=400", 1003),
    ("gpu_cluster:nodes=32,tasks=1000", 1004),
    ("gpu_cluster:nodes=32,tasks=1000", 1005),
    ("gpu_cluster:nodes=64,tasks=2400", 1006),
)
STARTS = (Multipliers(stretch=1.0), Multipliers(stretch=1.15))
CHOSEN, KEPT, SIGNIFICANT = 32, 4, 6


def with_depth(rule: Rule, depth: int) -> Rule:
    """Return a rule that tries this many tasks of a queue."""
    rule.option[mode_choice.DEPTH] = min(depth, max(1, len(rule.base)))
    return rule


def value_of(rules: MilestoneRules, by: Multipliers) -> float:
    """Return the value of one run at hgnn's depth."""
    return float(rules.finder.value_of(with_depth(rules.rule(by), HGNN_DEPTH)))


def rules_of(spec: str, seed: int) -> MilestoneRules:
    instance = load_problem(spec).instance(seed)
    found = find_milestones(instance)
    if found is None:
        raise RuntimeError(f"{spec}, seed {seed}: the LP has no solution")
    finder = Finder(instance, guide_of(instance, found), seed)
    return MilestoneRules(finder, targets_of(found), seed)


def last_bests(rules: MilestoneRules, draws: int) -> list[Multipliers]:
    """Return the last sets that were the best for a while, of two searches."""
    out = []
    for start in STARTS:
        rules.best, rules.value = start, math.inf
        bests = list[Multipliers]()
        for draw in range(draws // len(STARTS)):
            by = rules.drawn() if draw else start
            value = value_of(rules, by)
            if value < rules.value:
                rules.best, rules.value = by, value
                bests.append(by)
        out += bests[-KEPT:]
    return out


def ratios(each: list[MilestoneRules], sets: list[Multipliers]) -> Floats:
    """Return the value of every set on every instance, relative to the best of the instance."""
    table = np.array([[value_of(rules, by) for by in sets] for rules in each])
    return np.asarray(table / table.min(axis=1, keepdims=True), dtype=float)


def cluster_sets() -> list[Multipliers]:
    """Return the sets of the file, the most useful first."""
    rows = json.loads(SETS.read_text(encoding="utf-8"))["multipliers"]
    return [Multipliers(**row) for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=160, help="per training instance")
    parser.add_argument("-o", "--output", type=Path, default=SETS)
    args = parser.parse_args()
    began = time.process_time()
    each = [rules_of(*case) for case in CASES]
    print(f"{len(each)} linear programmes: {time.process_time() - began:.0f} s", flush=True)
    sets = [*fixed_sets(), *(by for rules in each for by in last_bests(rules, args.draws))]
    print(f"{len(sets)} sets: {time.process_time() - began:.0f} s", flush=True)
    table = ratios(each, sets)
    order = chosen(table, CHOSEN)
    excess = {
        f"best of {number}": 100 * (float(table[:, order[:number]].min(axis=1).mean()) - 1)
        for number in (1, 4, 16, CHOSEN)
    }
    shipped = len(fixed_sets())
    excess["first set of lp_guided"] = 100 * (float(table[:, 0].mean()) - 1)
    excess[f"best of lp_guided's {shipped}"] = 100 * (
        float(table[:, :shipped].min(axis=1).mean()) - 1
    )
    found = {
        "multipliers": [
            {name: float(f"{value:.{SIGNIFICANT}g}") for name, value in asdict(sets[k]).items()}
            for k in order
        ],
        "chosen_on": [f"{spec}, seed {seed}" for spec, seed in CASES],
        "draws": args.draws,
        "percent_above_best_known": {name: round(value, 2) for name, value in excess.items()},
        "cpu_s": round(time.process_time() - began, 1),
    }
    args.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found["percent_above_best_known"]))


if __name__ == "__main__":
    main()
