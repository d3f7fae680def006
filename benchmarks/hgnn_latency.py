"""Decisions of hgnn online at 16 to 256 nodes: milliseconds per started task, memory, growth;
writes docs/results/hgnn_latency.md.

    python benchmarks/hgnn_latency.py [--trained FILE] [--tasks 4000]

Work arrives over time at half of the cluster's capacity. A decision is a (task, mode) that is
started; its time is that of encoding the last arrival, of the answers and of the kernel until the
next arrival, shared among the tasks that start in between: events that start nothing are charged
too. Each size runs in a process of its own, whose peak memory includes imports and the instance.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import RESULTS, page_head  # noqa: E402

NODES = (16, 64, 256)
SEEDS = (10, 11, 12, 13, 14)


def measure(nodes: int, tasks: int, load: str, seed: int, checkpoint: str) -> dict[str, float]:
    """Play one stream, and return percentiles of decisions and the peak memory."""
    from optbench.api import load_target
    from optbench.model.verify import verify
    from optbench.plugins.discovery import load_solver
    from optbench.plugins.policy import Policy
    from optbench.sim.moments import TimedTrace

    spec = f"gpu_cluster:nodes={nodes},tasks={tasks},{load}"
    small = load_target(f"gpu_cluster:nodes=4,tasks=40,{load}", 0)
    instance = load_target(spec, seed)
    policy = load_solver(f"hgnn:checkpoint={checkpoint}")[1]
    assert isinstance(policy, Policy)
    policy.play(small, np.random.default_rng(0))  # loads compiled code
    trace = policy.play(instance, np.random.default_rng(0))
    assert isinstance(trace, TimedTrace) and trace.schedule is not None
    assert verify(instance, trace.schedule).feasible
    p50, p99 = np.percentile(1e3 * trace.decision_s, (50, 99))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "decisions": len(trace.decision_s), "p50_ms": float(p50), "p99_ms": float(p99),
        "mean_ms": float(1e3 * trace.decision_s.mean()), "peak_mb": peak,
        "gpus": float(instance.pools.count[1::2].sum()),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trained", default="solvers/hgnn/clusters.safetensors")
    parser.add_argument("--load", default="load=0.5")
    parser.add_argument("--tasks-per-node", type=int, default=16)
    parser.add_argument("--one", nargs=2, type=int)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "hgnn_latency.md")
    args = parser.parse_args()
    if args.one is not None:
        nodes, seed = args.one
        tasks = nodes * args.tasks_per_node
        print(json.dumps(measure(nodes, tasks, args.load, seed, args.trained)))
        return
    command = [sys.executable, __file__, "--trained", args.trained, "--load", args.load]
    command += ["--tasks-per-node", str(args.tasks_per_node)]
    rows: dict[int, list[dict[str, float]]] = {}
    for nodes in NODES:
        for seed in SEEDS:
            one = [*command, "--one", str(nodes), str(seed)]
            done = subprocess.run(one, check=True, capture_output=True, text=True)
            rows.setdefault(nodes, []).append(json.loads(done.stdout.splitlines()[-1]))
            print(nodes, seed, rows[nodes][-1], flush=True)
    args.output.write_text(page(rows, args.load), encoding="utf-8")


def page(rows: dict[int, list[dict[str, float]]], load: str) -> str:
    def mean(nodes: int, name: str) -> float:
        return float(np.mean([row[name] for row in rows[nodes]]))

    lines = page_head("Decisions of hgnn online", "python benchmarks/hgnn_latency.py")
    lines += [
        f"`{load}`, report seeds {SEEDS[0]} to {SEEDS[-1]}, means over the seeds; the worst "
        "p99 of a seed in brackets.",
        "",
        "| nodes | decisions | p50, ms | p99, ms | mean, ms | peak memory, MB |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for nodes in rows:
        worst = max(row["p99_ms"] for row in rows[nodes])
        lines.append(
            f"| {nodes} | {mean(nodes, 'decisions'):.0f} | {mean(nodes, 'p50_ms'):.3f} | "
            f"{mean(nodes, 'p99_ms'):.2f} ({worst:.2f}) | {mean(nodes, 'mean_ms'):.3f} | "
            f"{mean(nodes, 'peak_mb'):.0f} |"
        )
    small, large = min(rows), max(rows)
    growth = [mean(large, name) / mean(small, name) for name in ("p50_ms", "p99_ms", "mean_ms")]
    lines += [
        "",
        f"Growth from {small} to {large} nodes: p50 {growth[0]:.1f}, p99 {growth[1]:.1f}, mean "
        f"{growth[2]:.1f} times.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
