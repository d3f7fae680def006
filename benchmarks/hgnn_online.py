"""hgnn on streams of 256 nodes beside list rules; writes docs/results/raw/hgnn_online.jsonl, a row
per run, and docs/results/hgnn_online.md.

    python benchmarks/hgnn_online.py [--methods hgnn,tuned_rule] [--seeds 10-14] [--minutes 30]
    python benchmarks/hgnn_online.py --page

Rows that are there already are kept: a run that is stopped goes on where it was. Each stream has
26,000 tasks; what is counted begins after a fifth of the span of the arrivals and ends at nine
tenths (``_stream_accounts``). All schedules are verified whole.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import RESULTS, page_head, stream_rule  # noqa: E402
from benchmarks._online_page import decisions, overall, tables  # noqa: E402
from benchmarks._stream_accounts import account  # noqa: E402

RAW = RESULTS / "raw" / "hgnn_online.jsonl"
SCALES, LOADS = ("seconds", "minutes"), ("0.5", "0.8", "0.95")
TUNED = "tuned_rule"
# Method to the solver that plays it; the tuned rule has the numbers of hgnn_rules.py --streams.
METHODS = {
    "hgnn": "hgnn",
    TUNED: "",
    "hgnn, read-outs alone": "hgnn:weights=readouts",
    "hgnn, random weights": "hgnn:weights=random",
    "hgnn, permuted weights": "hgnn:weights=permuted",
    "hgnn, table": "hgnn:weights=table",
    "hgnn, plain rule": "hgnn:weights=none",
    "tuned_rule as it ships": "tuned_rule",
    "min_energy": "min_energy",
    "heft": "heft",
    "fcfs": "fcfs",
    "path_milestones": "path_milestones",
    "lp_guided": "lp_guided",
}
Row = dict[str, Any]


def spec_of(nodes: int, tasks: int, load: str, scale: str) -> str:
    return f"gpu_cluster:nodes={nodes},tasks={tasks},load={load},load_of=capacity,scale={scale}"


def measured(spec: str, seed: int, method: str) -> Row:
    """Play one stream by one method."""
    from optbench.api import load_target
    from optbench.model.instance import task_instance
    from optbench.plugins.discovery import load_solver
    from optbench.plugins.policy import Policy
    from optbench.sim.moments import TimedTrace

    instance = task_instance(load_target(spec, seed), "a benchmark of hgnn")
    solver = METHODS.get(method, method) or stream_rule(int(instance.pools.count.sum()))
    policy = load_solver(solver)[1]
    assert isinstance(policy, Policy)
    began = time.process_time()
    trace = policy.play(instance, np.random.default_rng(0))
    cpu_s = time.process_time() - began
    if trace.schedule is None:
        raise RuntimeError(f"{method} left work of {spec} undone")
    row = {"spec": spec, "seed": seed, "method": method, "solver": solver, "cpu_s": cpu_s}
    if isinstance(trace, TimedTrace):
        p50, p99 = np.percentile(1e3 * trace.decision_s, (50, 99))
        row |= {"p50_ms": float(p50), "p99_ms": float(p99)}
    row["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found = account(instance, trace.schedule)
    return row | asdict(found) | {"energy_j": found.energy_j}


def known_rows() -> list[Row]:
    if not RAW.exists():
        return []
    return [json.loads(line) for line in RAW.read_text(encoding="utf-8").splitlines()]


def collect(
    methods: Sequence[str], seeds: Sequence[int], size: tuple[int, int], minutes: float
) -> None:
    """Add the rows that are missing, all methods of a stream in turn; stop after ``minutes``."""
    began = time.monotonic()
    done = {(row["spec"], row["seed"], row["method"]) for row in known_rows()}
    for seed in seeds:
        for scale in SCALES:
            for load in LOADS:
                for method in methods:
                    spec = spec_of(*size, load, scale)
                    if (spec, seed, method) in done:
                        continue
                    if time.monotonic() - began > 60 * minutes:
                        return
                    row = measured(spec, seed, method)
                    with RAW.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")
                    print(
                        f"{scale} {load} {seed} {method}: {row['value']:.2f} = "
                        f"{row['energy_j']:.2f} J + {row['tardiness_s']:.4f} s late "
                        f"in {row['cpu_s']:.1f} s",
                        flush=True,
                    )


def memory(method: str, tasks: Sequence[int]) -> None:
    """Print the peak memory of traces of these lengths, each in a process of its own."""
    for number in tasks:
        code = (
            "import sys; sys.path.insert(0, sys.argv[1])\n"
            "from benchmarks.hgnn_online import measured\n"
            "print(measured(sys.argv[2], 10, sys.argv[3])['peak_mb'])"
        )
        spec = spec_of(256, number, "0.8", "seconds")
        command = [sys.executable, "-c", code, str(ROOT), spec, method]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        print(f"{number} tasks: {float(done.stdout):.0f} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", default=f"hgnn,{TUNED}")
    parser.add_argument("--seeds", default="10-14")
    parser.add_argument("--nodes", type=int, default=256)
    parser.add_argument("--tasks", type=int, default=26_000)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--page", action="store_true")
    args = parser.parse_args()
    if args.memory:
        memory("hgnn", (20_000, 40_000, 80_000))
        return
    if not args.page:
        first, _, last = args.seeds.partition("-")
        seeds = range(int(first), int(last or first) + 1)
        collect(args.methods.split(";"), seeds, (args.nodes, args.tasks), args.minutes)
    (RESULTS / "hgnn_online.md").write_text(page(known_rows()), encoding="utf-8")


def page(rows: list[Row]) -> str:
    """Return the page of all rows."""
    large = [row for row in rows if "nodes=256," in row["spec"]]
    small = [row for row in rows if row not in large]
    command = "python benchmarks/hgnn_online.py --page"
    least = min((row["started"] for row in large), default=0)
    lines = page_head("hgnn on streams", command)
    lines += [
        "Seeds so far: see the column of streams (planned: 10 to 14). "
        "Counted are the tasks of jobs that arrive from a fifth to nine tenths of "
        f"the span of the arrivals; at least {least:,} tasks start after the warm-up. Energy is "
        "per unit of work, with the rest of all devices, which no policy changes; lateness is "
        "weighted seconds of tardiness per unit of work; the cost adds 500 J per second of it. "
        "Differences are paired by stream, with 95 % bootstrap intervals. The tuned rule is that "
        "of `hgnn_rules.py --streams`.",
        *overall(large, METHODS),
        *tables(large, METHODS),
        "",
        decisions(large, "hgnn"),
    ]
    if small:
        lines += ["", "## Small streams", *tables(small, METHODS)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
