"""How long a whole decision of gogh takes by the size of the cluster: estimates, the demand that is
made of them, and the ILP; writes docs/results/gogh_latency.md.

    python benchmarks/gogh_latency.py [--gpus 24,100,300,1000] [--epochs 80]

Figures are seconds of processor time on one thread. What is trained and loaded before the clock
starts is none of a decision, and stands apart.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import RESULTS, page_head  # noqa: E402

PAGE = RESULTS / "gogh_latency.md"
# Jobs per GPU, and offered loads: at the second one jobs wait.
JOBS_PER_GPU, LOADS = 5.6, (0.9, 1.1)
GOAL_S = 1.0


@dataclass
class Decisions:
    """Seconds of each part of each decision of a run, and the jobs that were present."""

    estimates: list[float] = field(default_factory=list)
    demand: list[float] = field(default_factory=list)
    ilp: list[float] = field(default_factory=list)
    present: list[int] = field(default_factory=list)

    @property
    def whole(self) -> list[float]:
        return [sum(each) for each in zip(self.estimates, self.demand, self.ilp, strict=True)]


def played(gpus: int, load: float, epochs: int, seed: int) -> Decisions:
    """Play the first epochs with jobs, and measure the parts of each decision."""
    from optbench.plugins.discovery import load_class, load_problem, load_solver
    from optbench.shapes.epoch_allocation.epoch_allocator import allocate_within
    from optbench.shapes.epoch_allocation.pattern_solver import SearchLimits

    jobs = round(JOBS_PER_GPU * gpus)
    instance: Any = load_problem(f"colocation:gpus={gpus},jobs={jobs},load={load}").instance(seed)
    policy: Any = load_solver("gogh")[1]
    module = sys.modules[load_class("solver", "gogh").__mro__[1].__module__]
    policy.warm_up(instance)
    process = instance.shape.process_of(instance, seed)
    estimator = policy._estimator(process.observe().public)
    out = Decisions()
    for _ in range(epochs):
        if process.done:
            break
        seen = process.observe()
        marks = [time.process_time()]
        estimator.learn(seen)
        expected = estimator.estimates()
        marks.append(time.process_time())
        demand = module.demand_of(seen, expected, policy)
        marks.append(time.process_time())
        limits = SearchLimits.within(policy.ilp_limit_s, policy.nodes)
        found = allocate_within(demand, limits, policy.gap)
        action = found.rows.placement(seen.jobs.job)
        marks.append(time.process_time())
        parts = (out.estimates, out.demand, out.ilp)
        for part, spent_s in zip(parts, np.diff(marks).tolist(), strict=True):
            part.append(spent_s)
        out.present.append(len(seen.jobs.job))
        process.act(action)
    return out


def both(values: Sequence[float]) -> str:
    return f"{np.median(values):.3f} / {np.percentile(values, 99):.3f}"


def row(gpus: int, load: float, found: Decisions) -> str:
    parts = [found.whole, found.estimates, found.demand, found.ilp]
    cells = [
        f"{gpus:,}",
        f"{load:g}",
        f"{max(found.present):,}",
        str(len(found.present)),
        *map(both, parts),
    ]
    return f"| {' | '.join([*cells, f'{found.whole[0]:.3f}'])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", default="24,100,300,1000")
    parser.add_argument("--epochs", type=int, default=80)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    lines = page_head("A whole decision of gogh", "python benchmarks/gogh_latency.py")
    lines += [
        f"`colocation:gpus=N,jobs={JOBS_PER_GPU:g} N,load=…`, seed {args.seed}, `gogh` with its "
        f"defaults, the first {args.epochs} epochs with jobs. Seconds of processor time on one "
        "thread, median / 99th percentile over epochs. A decision is what the policy does with an "
        "observation: it learns and estimates (P1, P2, look-up), makes the demand of the epoch, "
        "and solves the ILP to a gap of 0.1 %. Networks are trained and loaded before the clock "
        f"starts. Goal at 1,000 GPUs: a median of at most {GOAL_S:g} s.",
        "",
        "| GPUs | load | most jobs present | epochs | whole decision | estimates | demand | ILP "
        "| the first one |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for gpus in map(int, args.gpus.split(",")):
        for load in LOADS:
            lines.append(row(gpus, load, played(gpus, load, args.epochs, args.seed)))
            print(lines[-1], flush=True)
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
