"""Shards of many small graphs: whole molecules stay together; writes
docs/results/molecule_shards.md.

    python benchmarks/molecule_shards.py [--seconds 10]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import RESULTS, page_head  # noqa: E402

PAGE = RESULTS / "molecule_shards.md"
SIZES = ((2_000, 8), (20_000, 8), (20_000, 64), (200_000, 32))
METHODS = ("mis_spectral", "metis", "random_parts")
SEEDS = 3


def rows(seconds: float) -> list[str]:
    """A line for each size and method: means over seeds."""
    import optbench as ob
    from optbench.plugins.discovery import load_problem

    lines = []
    for nodes, parts in SIZES:
        problem = load_problem(f"gnn_training:graph=molecules,nodes={nodes},parts={parts}")
        made = [problem.instance(seed) for seed in range(SEEDS)]
        for method in METHODS:
            found = [
                ob.solve(instance, method, seed=seed, time_limit_s=seconds, bound=False)
                for seed, instance in enumerate(made)
            ]
            cuts = ", ".join(f"{each.metrics['cut_edges']:,.0f}" for each in found)
            worst = max(each.metrics["imbalance"] for each in found)
            slowest = max(each.wall_s for each in found)
            lines.append(
                f"| {nodes:,} | {parts} | {method} | {cuts} | {worst:.2%} | {slowest:.2f} |"
            )
            print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    found = rows(parser.parse_args().seconds)
    head = page_head("Shards of molecules", "python benchmarks/molecule_shards.py")
    lines = [
        *(line.replace("Times are those of the processor", "Times are wall time") for line in head),
        "Molecule-like graphs of 8 to 40 atoms, never joined to each other, within the largest "
        f"part of METIS's default; seeds 0 to {SEEDS - 1}. A cut of 0 means that every molecule is "
        "whole: components smaller than a twentieth of a part are packed by mis_spectral and never "
        "cut. A real data set comes in by `data=ogb:ogbg-molhiv`, or its folder.",
        "",
        "| atoms | parts | method | cut edges by seed | largest imbalance | longest s |",
        "|---:|---:|---|---|---:|---:|",
        *found,
        "",
    ]
    PAGE.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
