"""The front of hgnn's reward weights: energy against makespan, and against tardiness, beside rules
and the certified floor; writes docs/results/hgnn_front.md with two pictures.

    python benchmarks/hgnn_front.py [--seeds 10-14]

One trained network serves all weights: they are among its features. At each weight w every method
plays the instance with the objective energy_j + w x, where x is the makespan or the tardiness. A
bound L of that objective, certified for each instance and weight, says of every schedule that

    energy_j >= L − w x,

a line in the plane of x and energy; what lies below any of the lines is impossible. What is
measured is kept in the folder of raw rows, so that the command goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import RESULTS, page_head, percent, play, tuned_rule  # noqa: E402
from benchmarks._pictures import Row, across, picture, upward  # noqa: E402

TRAINED_ON = ROOT / "solvers" / "hgnn" / "trained_on.txt"
RAW = RESULTS / "raw" / "hgnn_front.jsonl"
BASE = "gpu_cluster:nodes=16,tasks=400"
METHODS = {
    "hgnn": "hgnn",
    "hgnn, 32 samples": "hgnn:samples=32",
    "table of means": "hgnn:weights=table",
    "path_milestones": "path_milestones",
    "tuned rule": tuned_rule(),
    "heft": "heft",
}
RULES = ("path_milestones", "tuned rule", "heft")
LIMIT_S = 30.0
Measured = dict[str, float | str]


@dataclass(frozen=True)
class Plane:
    """Energy against one metric, and the weights of that metric: in units of the power that the
    whole cluster draws at rest for the makespan, of J per second for the tardiness.
    """

    metric: str
    name: str
    spec: str
    weights: tuple[float, ...]
    of_rest: bool


PLANES = (
    Plane(
        "makespan_s", "makespan", f"{BASE},deadlines=none,makespan_share=1",
        (0.0625, 0.25, 0.5, 1.0, 2.0, 4.0, 16.0), True,
    ),
    Plane(
        "tardiness_s", "tardiness", f"{BASE},deadlines=tight,makespan_share=0",
        (5.0, 20.0, 100.0, 500.0, 2500.0, 10_000.0), False,
    ),
)  # fmt: skip


def measure(plane: Plane, weight: float, seed: int) -> list[Measured]:
    """Return a row per method: its two metrics, its objective and the certified bound."""
    from optbench.api import bound, load_target, solve
    from optbench.model.instance import Instance
    from optbench.model.objective import Objective

    given = load_target(plane.spec, seed)
    assert isinstance(given, Instance)
    # The factor of the makespan in an instance with a share of 1.
    rest_w = dict(given.objective.levels[0])["makespan_s"] if plane.of_rest else 1.0
    factor = weight * rest_w
    instance = given.with_objective(Objective.weighted({"energy_j": 1.0, plane.metric: factor}))
    low = max(each.value for each in bound(instance, time_limit_s=LIMIT_S))
    rows: list[Measured] = []
    for name, spec in METHODS.items():
        if "samples" in spec:
            found = solve(instance, spec, time_limit_s=None, bound=False)
            assert isinstance(found.objective, float)
            energy, x, value = (
                found.metrics["energy_j"],
                found.metrics[plane.metric],
                found.objective,
            )
        else:
            run = play(spec, instance)
            energy, x, value = run.energy_j, getattr(run, plane.metric), run.objective
        about: Measured = {"plane": plane.name, "weight": weight, "factor": factor, "seed": seed}
        about |= {"method": name, "energy_j": energy, "x": x, "objective": value, "bound": low}
        rows.append(about)
    return rows


def gap(row: Measured) -> float:
    return 1.0 - float(row["bound"]) / float(row["objective"])


def page(rows: list[Measured], seeds: list[int]) -> str:
    lines = page_head("The front of hgnn's reward weights", "python benchmarks/hgnn_front.py")
    lines += [
        f"One network for all weights (the one that ships), `{BASE}`, report seeds {seeds[0]} to "
        f"{seeds[-1]}. Gaps are to the certified bound of each instance and weight, means with "
        "95 % intervals; the pictures are of the first seed. Grey is impossible, by the certified "
        "bounds of all weights together.",
        "",
        *trained_at(),
    ]
    for plane in PLANES:
        unit = "times the power at rest" if plane.of_rest else "J per second"
        mine = [row for row in rows if row["plane"] == plane.name]
        lines += [
            f"## Energy against {plane.name}: `{plane.spec}`",
            "",
            f"![energy against {plane.name}](hgnn_front_{plane.name}.svg)",
            "",
            f"| weight, {unit} | {' | '.join(METHODS)} | best rule less hgnn, points |",
            "| --- |" + " --- |" * (len(METHODS) + 1),
        ]
        behind = []
        for weight in plane.weights:
            gaps = {
                name: [gap(r) for r in mine if r["weight"] == weight and r["method"] == name]
                for name in METHODS
            }
            best = [min(pair) for pair in zip(*(gaps[name] for name in RULES), strict=True)]
            apart = [theirs - ours for theirs, ours in zip(best, gaps["hgnn"], strict=True)]
            behind.append(float(np.mean(apart)))
            cells = [percent(gaps[name]) for name in METHODS]
            lines.append(f"| {weight:g} | {' | '.join(cells)} | {percent(apart)} |")
        lines += [
            "",
            f"hgnn is nearer to the bound than the best of the rules of each instance at "
            f"{sum(each > 0 for each in behind)} of {len(behind)} weights.",
            "",
            *spans(mine, plane),
            "",
        ]
    return "\n".join(lines)


def trained_at() -> list[str]:
    """Say at which weights the network was trained, where that is one."""
    if "makespan_share" in TRAINED_ON.read_text(encoding="utf-8"):
        return []
    return [
        "All problems of its training have one weight of each (0.5 times the power at rest, 500 J "
        "per second), and one of eighteen has no deadlines: the weights are features of the "
        "network that never varied. A front that hardly moves with the weight, or moves the "
        "wrong way, is what that gives; with samples the objective itself chooses.",
        "",
    ]


def spans(rows: list[Measured], plane: Plane) -> list[str]:
    """Say how far each method moves along the front, from the least to the greatest weight."""
    head = f"{plane.name} at the least weight, s | at the greatest"
    lines = [f"| method | {head} | energy at the least weight, MJ | at the greatest |"]
    lines.append("| --- | --- | --- | --- | --- |")
    ends = plane.weights[0], plane.weights[-1]
    for name in METHODS:
        at = [[r for r in rows if r["method"] == name and r["weight"] == weight] for weight in ends]
        x = [f"{np.mean([float(r['x']) for r in each]):.1f}" for each in at]
        y = [f"{np.mean([float(r['energy_j']) for r in each]) / 1e6:.3f}" for each in at]
        lines.append(f"| {name} | {x[0]} | {x[1]} | {y[0]} | {y[1]} |")
    return lines


def drawn(rows: list[Measured], plane: Plane, seed: int) -> str:
    """Return the picture of one instance, in MJ and seconds."""
    mine = [row for row in rows if row["plane"] == plane.name and row["seed"] == seed]
    shown = []
    for name in METHODS:
        points = [(float(r["x"]), float(r["energy_j"]) / 1e6) for r in mine if r["method"] == name]
        shown.append(Row(name, points if name != "heft" else points[:1]))
    xs = [x for row in shown for x, _ in row.points]
    ys = [y for row in shown for _, y in row.points]
    lines = {(float(r["factor"]), float(r["bound"])) for r in mine}
    right = max(xs) + 0.05 * (max(xs) - min(xs))
    left = max(0.0, min(xs) - 0.15 * (max(xs) - min(xs)))
    grid = np.linspace(left, right, 200).tolist()
    floor = [(x, max((low - factor * x) / 1e6 for factor, low in lines)) for x in grid]
    bottom = min(*ys, floor[-1][1])
    top = max(ys) + 0.05 * (max(ys) - bottom)
    bottom -= 0.08 * (max(ys) - bottom)
    x = across(left, right, f"{plane.name}, s")
    y = upward(bottom, top, "energy, MJ")
    return picture(shown, x, y, f"energy against {plane.name}", floor)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="10-14")
    args = parser.parse_args()
    first, _, last = args.seeds.partition("-")
    seeds = list(range(int(first), int(last or first) + 1))
    lines = RAW.read_text(encoding="utf-8").splitlines() if RAW.exists() else []
    rows: list[Measured] = [json.loads(line) for line in lines]
    done = {(row["plane"], row["weight"], row["seed"]) for row in rows}
    for seed in seeds:
        for plane in PLANES:
            for weight in plane.weights:
                if (plane.name, weight, seed) in done:
                    continue
                found = measure(plane, weight, seed)
                rows += found
                with RAW.open("a", encoding="utf-8") as raw:
                    raw.writelines(json.dumps(row) + "\n" for row in found)
                print(seed, plane.name, weight, f"{100 * gap(found[0]):.1f} %", flush=True)
    rows = [row for row in rows if row["seed"] in seeds]
    for plane in PLANES:
        path = RESULTS / f"hgnn_front_{plane.name}.svg"
        path.write_text(drawn(rows, plane, seeds[0]), encoding="utf-8")
    text = page(rows, seeds)
    (RESULTS / "hgnn_front.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
