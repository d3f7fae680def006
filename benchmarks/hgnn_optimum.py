"""hgnn beside proven optima: 100 small instances of gpu_cluster, closed by CP-SAT where it can;
writes docs/results/hgnn_optimum.md.

    python benchmarks/hgnn_optimum.py [--trained FILE] [--raw FILE]

Instances have two types of GPUs, three clocks and one GPU per task; half of them have three tasks
per GPU and more. Sizes and seeds were fixed before the first run. CP-SAT has 60 s, one thread. On
the instances that it closes, the gap of the other methods is to that optimum. The raw file keeps
what is done: the same command goes on.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import RESULTS, page_head, percent  # noqa: E402

# GPUs of the larger node (the other has half), tasks, number of seeds: three tasks per GPU and
# more, then fewer.
FAMILIES = (
    (2, 10, 20), (2, 12, 15), (2, 15, 10), (2, 25, 5),
    (8, 10, 20), (8, 12, 15), (8, 20, 10), (8, 40, 5),
)  # fmt: skip
FIRST_SEED, EXACT_S, SEARCH_S = 10, 60.0, 2.0
RULES = ("path_milestones", "tuned_rule", "heft", "min_energy", "edf")


def specs() -> list[tuple[str, int]]:
    return [
        (f"gpu_cluster:nodes=2,types=2,gpus={gpus},tasks={tasks},clocks=3,cpus=no", seed)
        for gpus, tasks, count in FAMILIES
        for seed in range(FIRST_SEED, FIRST_SEED + count)
    ]


def row_of(spec: str, seed: int, checkpoint: str) -> dict[str, object]:
    """Solve one instance by every method; objectives by method, and what CP-SAT says."""
    import optbench as ob
    from optbench.api import load_target

    instance = load_target(spec, seed)
    hgnn = f"hgnn:checkpoint={checkpoint}"
    exact = ob.solve(instance, "cpsat", time_limit_s=EXACT_S, seed=0, bound=False)
    values: dict[str, object] = {"cpsat": exact.objective}
    others = {
        "hgnn": (hgnn, None),
        "hgnn, 32 samples": (f"{hgnn},samples=32", None),
        "no network, 32 samples": (f"{hgnn},samples=32,weights=none", None),
        "random weights, 32 samples": (f"{hgnn},samples=32,weights=random", None),
        "permuted weights, 32 samples": (f"{hgnn},samples=32,weights=permuted", None),
        "random_rules, 32 samples": ("random_rules:k=32", None),
        "random_rules, 2 s": ("random_rules", SEARCH_S),
        "lp_guided, 2 s": ("lp_guided", SEARCH_S),
        "lp_guided:improve=none": ("lp_guided:improve=none", SEARCH_S),
        **{rule: (rule, None) for rule in RULES},
    }
    for name, (solver, limit) in others.items():
        found = ob.solve(instance, solver, time_limit_s=limit, seed=0, bound=False)
        values[name] = found.objective
    return {
        "spec": spec, "seed": seed, "status": exact.status, "wall_s": exact.wall_s,
        "gap": exact.gap, "objectives": values,
    }  # fmt: skip


def page(rows: list[dict[str, object]]) -> str:
    """Return the tables: how many are closed, and gaps to the optima."""
    lines = page_head("hgnn beside proven optima", "python benchmarks/hgnn_optimum.py")
    closed = [row for row in rows if row["status"] == "optimal"]
    lines += [
        f"{len(rows)} instances, of which CP-SAT closes {len(closed)} in {EXACT_S:g} s.",
        "",
        "| GPUs | tasks | instances | closed |",
        "| --- | --- | --- | --- |",
    ]
    for gpus, tasks, _ in FAMILIES:
        part = f"gpus={gpus},tasks={tasks},"
        mine = [row for row in rows if part in str(row["spec"])]
        done = sum(row["status"] == "optimal" for row in mine)
        lines.append(f"| {gpus + gpus // 2} | {tasks} | {len(mine)} | {done} |")
    lines += [
        "",
        "Excess over the optimum on the closed instances, mean and 95 % interval, in per cent:",
        "",
        "| method | all | three tasks per GPU and more | fewer |",
        "| --- | --- | --- | --- |",
    ]
    for name in dict(closed[0]["objectives"]):  # type: ignore[call-overload]
        cells = [
            percent([excess(row, name) for row in closed if part in str(row["spec"])])
            for part in ("gpus=", "gpus=2,", "gpus=8,")
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def excess(row: dict[str, object], name: str) -> float:
    values = row["objectives"]
    assert isinstance(values, dict)
    return float(values[name] / values["cpsat"] - 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    shipped = ROOT / "solvers" / "hgnn" / "clusters.safetensors"
    parser.add_argument("--trained", default=str(shipped))
    parser.add_argument("--raw", type=Path, default=RESULTS / "raw" / "hgnn_optimum.jsonl")
    args = parser.parse_args()
    text = args.raw.read_text(encoding="utf-8") if args.raw.exists() else ""
    rows = [json.loads(line) for line in text.splitlines()]
    done = {(row["spec"], row["seed"]) for row in rows}
    with args.raw.open("a", encoding="utf-8") as file:
        for spec, seed in specs():
            if (spec, seed) not in done:
                rows.append(row_of(spec, seed, args.trained))
                file.write(json.dumps(rows[-1]) + "\n")
                file.flush()
                print(spec, seed, rows[-1]["status"], flush=True)
    (RESULTS / "hgnn_optimum.md").write_text(page(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
