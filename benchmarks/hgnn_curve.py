"""hgnn from 256 to 4,096 nodes: time, memory, and objective beside two rules; writes
docs/results/hgnn_curve.md with a picture of time and memory.

    python benchmarks/hgnn_curve.py [--tasks-per-node 4] [--seeds 10-14] [--nodes 256,512]

Every size and seed runs in a process of its own, in which hgnn plays first: its peak memory holds
imports, instance, features, forward pass and run, and not what rules and verifier take. What hgnn
allocates itself is the peak of a second run under tracemalloc, which is not timed. Growth is the
exponent b of a b-th power of the nodes, by least squares of logarithms.
What is measured is kept in the folder of raw rows, so that the command goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import RESULTS, page_head, percent  # noqa: E402
from benchmarks._pictures import Row, across, logarithmic, picture, upward  # noqa: E402
from optbench.api import load_target  # noqa: E402
from optbench.model.instance import Instance  # noqa: E402
from optbench.model.verify import verify  # noqa: E402
from optbench.plugins.discovery import load_solver  # noqa: E402
from optbench.plugins.policy import Policy  # noqa: E402

NODES = (256, 512, 1024, 2048, 4096)
RULES = ("tuned_rule", "path_milestones")
RAW = RESULTS / "raw" / "hgnn_curve.jsonl"
Measured = dict[str, float]


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(nodes: int, tasks: int, seed: int) -> Measured:
    """Return seconds, megabytes and verified objectives of one size."""
    policies = {name: load_solver(name)[1] for name in ("hgnn", *RULES)}
    small = load_target("gpu_cluster:nodes=4,tasks=40", 0)
    for policy in policies.values():
        assert isinstance(policy, Policy)
        policy.play(small, np.random.default_rng(0))  # loads compiled code
    found: Measured = {"nodes": nodes, "tasks": tasks, "seed": seed, "imports_mb": peak_mb()}
    began = time.process_time()
    instance = load_target(f"gpu_cluster:nodes={nodes},tasks={tasks}", seed)
    assert isinstance(instance, Instance)
    found |= {"instance_s": time.process_time() - began, "instance_mb": peak_mb()}
    found["devices"] = int(instance.pools.count.sum())
    found["links_mb"] = sum(each.nbytes for each in vars(instance.links).values()) / 2**20
    for name, policy in policies.items():
        assert isinstance(policy, Policy)
        began = time.process_time()
        schedule = policy.play(instance, np.random.default_rng(0)).schedule
        found[f"{name}_s"] = time.process_time() - began
        found[f"{name}_mb"] = peak_mb()
        assert schedule is not None
        verdict = verify(instance, schedule)
        assert isinstance(verdict.objective, float), verdict.violations
        found[f"{name}_objective"] = verdict.objective
        found.setdefault("verified_mb", peak_mb())
    found["own_mb"] = own_mb(policies["hgnn"], instance)
    return found


def own_mb(policy: object, instance: Instance) -> float:
    """Return the peak of what a run allocates by itself."""
    assert isinstance(policy, Policy)
    tracemalloc.start()
    policy.play(instance, np.random.default_rng(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def growth(rows: list[Measured], name: str, base: float = 0.0) -> float:
    """Return the exponent of the nodes that fits a column best, less a constant."""
    nodes = np.log([row["nodes"] for row in rows])
    values = np.log([max(1e-9, row[name] - base) for row in rows])
    return float(np.polyfit(nodes, values, 1)[0])


def page(rows: list[Measured], command: str) -> str:
    base = float(np.mean([row["imports_mb"] for row in rows]))
    per_node = rows[0]["tasks"] / rows[0]["nodes"]
    seeds = sorted({int(row["seed"]) for row in rows})
    lines = page_head("hgnn from 256 to 4,096 nodes", command)
    lines += [
        f"`gpu_cluster` with {per_node:g} tasks per node, report seeds {seeds[0]} to {seeds[-1]}, "
        "means over the seeds; each size and seed in a process of its own. Peak memory holds "
        "imports, instance and the run of hgnn; links are the tables of latency, bandwidth and "
        "energy between pools, within it; the last column is what hgnn allocates by itself. "
        "Objectives are verified, of hgnn above that of a rule, with 95 % intervals.",
        "",
        "| nodes | GPUs and CPUs | tasks | instance, s | hgnn, s | tuned_rule, s | "
        "path_milestones, s | above tuned_rule, % | above path_milestones, % | peak, MB | "
        "links, MB | hgnn itself, MB |",
        "| --- |" + " --- |" * 11,
    ]
    sizes = sorted({row["nodes"] for row in rows})
    for nodes in sizes:
        mine = [row for row in rows if row["nodes"] == nodes]

        def mean(name: str, of: list[Measured] = mine) -> float:
            return float(np.mean([row[name] for row in of]))

        excess = [
            percent([row["hgnn_objective"] / row[f"{name}_objective"] - 1.0 for row in mine])
            for name in RULES
        ]
        seconds = [f"{mean(f'{name}_s'):.2f}" for name in ("instance", "hgnn", *RULES)]
        memory = [f"{mean(name):,.0f}" for name in ("hgnn_mb", "links_mb", "own_mb")]
        cells = [f"{mean(name):,.0f}" for name in ("nodes", "devices", "tasks")]
        lines.append(f"| {' | '.join([*cells, *seconds, *excess, *memory])} |")
    last = [row for row in rows if row["nodes"] >= sizes[-1] / 4]
    seconds = [f"{name} {growth(rows, f'{name}_s'):.2f}" for name in ("hgnn", *RULES)]
    above, steep = growth(rows, "hgnn_mb", base), growth(last, "hgnn_mb", base)
    lines += [
        "",
        "![time and memory](hgnn_curve.svg)",
        "",
        f"Exponents of the number of nodes: seconds of {', '.join(seconds)}; peak memory above "
        f"that of imports ({base:.0f} MB) {above:.2f} over all sizes and {steep:.2f} over the "
        f"last three; what hgnn allocates by itself {growth(rows, 'own_mb'):.2f}. The paper claims "
        "linear memory, an exponent of 1. The tables of links are quadratic: one row and one "
        "column per pool.",
    ]
    return "\n".join(lines) + "\n"


def drawn(rows: list[Measured]) -> str:
    """Return the picture: seconds and gigabytes by nodes, both logarithmic."""
    nodes = sorted({row["nodes"] for row in rows})

    def mean(name: str, factor: float = 1.0) -> list[tuple[float, float]]:
        found = [np.mean([row[name] for row in rows if row["nodes"] == n]) for n in nodes]
        return [(n, factor * float(value)) for n, value in zip(nodes, found, strict=True)]

    base = float(np.mean([row["imports_mb"] for row in rows]))
    first = mean("hgnn_mb")[0][1] - base
    shown = [
        Row("hgnn, seconds", mean("hgnn_s")),
        Row("tuned_rule, seconds", mean("tuned_rule_s")),
        Row("path_milestones, seconds", mean("path_milestones_s")),
        Row("peak memory, GB", mean("hgnn_mb", 1e-3)),
        Row("hgnn itself, GB", mean("own_mb", 1e-3)),
        Row("were the peak linear, GB", [(n, 1e-3 * (base + first * n / nodes[0])) for n in nodes]),
    ]
    values = [value for row in shown for _, value in row.points]
    low, high = min(values) / 1.3, 1.3 * max(values)
    ticks = [t for t in (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0) if low <= t <= high]
    x = logarithmic(across(nodes[0] / 1.1, nodes[-1] * 1.1, "nodes"), nodes)
    y = logarithmic(upward(low, high, "seconds, or GB"), ticks)
    return picture(shown, x, y, "time and memory of hgnn by the number of nodes")


def kept() -> dict[tuple[int, int, int], Measured]:
    """Return the rows measured before, by nodes, tasks and seed."""
    lines = RAW.read_text(encoding="utf-8").splitlines() if RAW.exists() else []
    rows = (json.loads(line) for line in lines)
    return {(int(row["nodes"]), int(row["tasks"]), int(row["seed"])): row for row in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks-per-node", type=int, default=4)
    parser.add_argument("--seeds", default="10-14")
    parser.add_argument("--nodes", default=",".join(map(str, NODES)))
    parser.add_argument("--one", nargs=3, type=int)
    args = parser.parse_args()
    if args.one is not None:
        print(json.dumps(measure(*args.one)))
        return
    rows, found = [], kept()
    begin, _, end = args.seeds.partition("-")
    for nodes in map(int, args.nodes.split(",")):
        for seed in range(int(begin), int(end or begin) + 1):
            key = nodes, nodes * args.tasks_per_node, seed
            if key not in found:
                command = [sys.executable, __file__, "--one", *map(str, key)]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                found[key] = json.loads(done.stdout.splitlines()[-1])
                with RAW.open("a", encoding="utf-8") as raw:
                    raw.write(json.dumps(found[key]) + "\n")
            rows.append(found[key])
            print(rows[-1], flush=True)
    (RESULTS / "hgnn_curve.svg").write_text(drawn(rows), encoding="utf-8")
    text = page(rows, " ".join(["python benchmarks/hgnn_curve.py", *sys.argv[1:]]))
    (RESULTS / "hgnn_curve.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
