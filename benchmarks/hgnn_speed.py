"""hgnn on large clusters beside rules, sampled rules and LP milestones; writes
docs/results/hgnn_speed.md.

    python benchmarks/hgnn_speed.py [--spec gpu_cluster:nodes=128,tasks=5000] [--seeds 10-14]
        [--trained FILE ...] [--no-lp]

Every schedule of an instance is measured against one certified bound, that of the fluid LP. The
milestones of the LP are those of ``lp_guided:improve=none``; the tuned rule is that of
``benchmarks/hgnn_rules.py``, chosen on training seeds. ``random_rules`` gets a second, rules and
milestones what they take. Each row of hgnn's weights is a mean over its trainings,
those of ``benchmarks/networks`` (training seed 2, which ships, then 0 and 1).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import RESULTS, page_head, percent, play, tuned_rule  # noqa: E402

SPEC = "gpu_cluster:nodes=128,tasks=5000"
SEEDS = (10, 11, 12, 13, 14)
RULES = (
    "path_milestones",
    "path_milestones:depth=250",
    "tuned_rule",
    "min_energy",
    "edf",
    "heft",
    "fixed_dvfs",
)
LP, SAMPLED = "lp_guided:improve=none", "random_rules"
PLAIN = ("random", "permuted", "table", "none")
WORDS = {
    "random": "random weights",
    "permuted": "permuted weights",
    "table": "a table of mean answers by device",
    "none": "the same rule without the network",
}
# More than twice what hgnn takes, since it counts on the wall.
LP_SECONDS, SAMPLED_S = 300.0, 1.0


def rows_of(spec: str, seed: int, trained: list[str], lp: bool) -> dict[str, list[float]]:
    """Return per method its gap and its seconds on one instance; hgnn by checkpoint."""
    import optbench as ob
    from optbench.api import load_target
    from optbench.rules import find_milestones

    instance = load_target(spec, seed)
    found = find_milestones(instance)
    if found is None:
        raise RuntimeError(f"{spec}, seed {seed}: the LP has no bound")
    bound, out = found.bound.value, {}

    def put(name: str, objective: float, seconds: float) -> None:
        out[name] = [1.0 - bound / objective, seconds, objective]
        print(f"{spec} {seed} {name}: {100 * out[name][0]:.2f} % in {seconds:.3f} s", flush=True)

    for k, path in enumerate(trained):
        run = play(f"hgnn:checkpoint={path}", instance, repeats=2)
        put(f"hgnn {k}", run.objective, run.cpu_s)
    for weights in PLAIN:
        run = play(f"hgnn:checkpoint={trained[0]},weights={weights}", instance, repeats=2)
        put(f"weights={weights}", run.objective, run.cpu_s)
    for name, solver in (("tuned rule", tuned_rule()), *((each, each) for each in RULES)):
        run = play(solver, instance, repeats=2)
        put(name, run.objective, run.cpu_s)
    sampled = ob.solve(instance, SAMPLED, time_limit_s=SAMPLED_S, seed=seed, bound=False)
    put(SAMPLED, value_of(sampled.objective), sampled.wall_s)
    if lp:
        guided = ob.solve(instance, LP, time_limit_s=LP_SECONDS, seed=seed, bound=False)
        put(LP, value_of(guided.objective), guided.wall_s)
    return out


def value_of(objective: object) -> float:
    if not isinstance(objective, float):
        raise RuntimeError("no schedule was found")
    return objective


def page(spec: str, seeds: list[int], rows: list[dict[str, list[float]]], command: str) -> str:
    """Return the table of means and differences to hgnn."""
    ours = [name for name in rows[0] if name.startswith("hgnn ")]
    mean = [sum(row[name][0] for name in ours) / len(ours) for row in rows]
    lines = page_head("hgnn on large clusters", command)
    lines += [
        f"`{spec}`, report seeds {seeds[0]} to {seeds[-1]}; gap to the certified bound of the "
        "fluid LP, mean and 95 % interval; the difference to hgnn is paired by instance. hgnn is "
        f"the mean of {len(ours)} training seeds.",
        "",
        "| method | gap, % | less hgnn, points | seconds |",
        "| --- | --- | --- | --- |",
        f"| hgnn | {percent(mean)} | | {middle(rows, ours[0]):.2f} |",
    ]
    lines += [
        f"| {name}, this training alone | {percent([row[name][0] for row in rows])} | | "
        f"{middle(rows, name):.2f} |"
        for name in ours
    ]
    for name in rows[0]:
        if name not in ours:
            label = WORDS.get(name.removeprefix("weights="), name)
            gaps = [row[name][0] for row in rows]
            less = percent([gap - own for gap, own in zip(gaps, mean, strict=True)])
            lines.append(f"| {label} | {percent(gaps)} | {less} | {middle(rows, name):.2f} |")
    if LP in rows[0]:
        lines += ["", closed(rows, ours)]
    return "\n".join(lines) + "\n"


def middle(rows: list[dict[str, list[float]]], name: str) -> float:
    values = sorted(row[name][1] for row in rows)
    return values[len(values) // 2]


def closed(rows: list[dict[str, list[float]]], ours: list[str]) -> str:
    """Return how much of the way from the tuned rule to LP milestones hgnn closes."""

    def mean(name: str) -> float:
        return sum(row[name][2] for row in rows) / len(rows)

    policy = sum(mean(name) for name in ours) / len(ours)
    rules = {name: mean(name) for name in ("tuned rule", "path_milestones")}
    parts = [
        f"{100 * (rule - policy) / (rule - mean(LP)):.0f} % from {name}"
        for name, rule in rules.items()
    ]
    return (
        "Of the way to LP milestones, (rule - policy) / (rule - milestones) of mean verified "
        f"objectives, hgnn closes {', '.join(parts)}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", default=SPEC)
    parser.add_argument("--seeds", default="10-14")
    trained = [str(ROOT / "benchmarks" / "networks" / f"hgnn-{k}.safetensors") for k in (2, 0, 1)]
    parser.add_argument("--trained", nargs="+", default=trained)
    parser.add_argument("--no-lp", action="store_true")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "hgnn_speed.md")
    args = parser.parse_args()
    first, _, last = args.seeds.partition("-")
    seeds = list(range(int(first), int(last or first) + 1))
    rows = [rows_of(args.spec, seed, args.trained, not args.no_lp) for seed in seeds]
    raw = RESULTS / "raw" / f"{args.output.stem}.json"
    raw.write_text(json.dumps(dict(zip(seeds, rows, strict=True)), indent=1), encoding="utf-8")
    command = f"python benchmarks/hgnn_speed.py --spec {args.spec} --seeds {args.seeds}"
    args.output.write_text(page(args.spec, seeds, rows, command), encoding="utf-8")


if __name__ == "__main__":
    main()
