"""Ablations of hgnn, each trained anew at the same budget; writes docs/results/hgnn_ablation.md.

    python benchmarks/hgnn_ablation.py [--only flat,spectral] [--processes 2] [--work FOLDER]

Every variant, and ``vector_rl``, is trained from training seeds 0 and 1 on the problems that
``solvers/hgnn/trained_on.txt`` lists; what is trained already is kept, so that the same command
goes on after an interruption. Objectives, energies and processor times are relative to the full
network at the same budget, paired by instance and training seed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import (  # noqa: E402
    RESULTS,
    PlayedRun,
    Trained,
    above,
    file_name,
    page_head,
    play,
    train_all,
)

FULL, VECTOR = "full", "vector_rl: a state vector instead of a graph"
# What is switched off, as settings of ``optbench train hgnn``.
VARIANTS = {
    FULL: (),
    "flat: no nodes, no cluster": ("levels=flat",),
    "spectral convolution only": ("convolution=spectral",),
    "spatial convolution only": ("convolution=spatial",),
    "coarsening only": ("pooling=coarsening",),
    "differentiable pooling only": ("pooling=differentiable",),
    "edge pooling only": ("pooling=edge",),
    "importance sampling": ("sampling=importance",),
    "adaptive layer sampling": ("sampling=layer",),
    "subgraph sampling": ("sampling=subgraph",),
    "imitation first": ("imitate=0.2",),
    VECTOR: (),
}
SPECS = ("gpu_cluster:nodes=16,tasks=400", "gpu_cluster:nodes=64,tasks=2400")
SEEDS, TRAINING_SEEDS = (10, 11, 12, 13, 14), (0, 1)
# The budget of docs/results/hgnn_plan.md.
CPU_MINUTES = 3.0


def trained(work: Path, variant: str, seed: int) -> Trained:
    """Return the checkpoint of a variant; settings given later replace earlier ones."""
    settings = {"instances": "8", "imitate": "0", "label": "0", "cpu_minutes": f"{CPU_MINUTES:g}"}
    settings |= dict(setting.split("=") for setting in VARIANTS[variant])
    return Trained(
        work / f"{file_name(variant)}-{seed}.safetensors",
        tuple(f"{name}={value}" for name, value in settings.items()),
        seed,
        solver="vector_rl" if variant == VECTOR else "hgnn",
    )


def runs_of(work: Path, variant: str) -> list[PlayedRun]:
    """Return the runs on all report instances, training seed by training seed."""
    from optbench.api import load_target

    return [
        play(trained(work, variant, seed).spec(), instance, repeats=2)
        for spec in SPECS
        for instance in (load_target(spec, drawn) for drawn in SEEDS)
        for seed in TRAINING_SEEDS
    ]


def page(found: dict[str, list[PlayedRun]]) -> str:
    """Return the table of ratios to the full network."""
    lines = page_head("Ablations of hgnn", "python benchmarks/hgnn_ablation.py")
    lines += [
        f"Each variant is trained for {CPU_MINUTES:g} processor minutes from training seeds "
        f"{' and '.join(map(str, TRAINING_SEEDS))}; {' and '.join(f'`{s}`' for s in SPECS)}, "
        f"report seeds {SEEDS[0]} to {SEEDS[-1]}. Per cent above the full network of the same "
        "budget and training seed, mean and 95 % interval.",
        "",
        "| variant | objective | energy | processor time |",
        "| --- | --- | --- | --- |",
    ]
    for variant, runs in found.items():
        if variant != FULL:
            cells = [above(runs, found[FULL], name) for name in ("objective", "energy_j", "cpu_s")]
            lines.append(f"| {variant} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--work", type=Path, default=ROOT / ".optbench" / "hgnn_ablation")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    words = [word for word in args.only.split(",") if word]
    chosen = [v for v in VARIANTS if v == FULL or not words or any(word in v for word in words)]
    train_all(
        (trained(args.work, variant, seed) for variant in chosen for seed in TRAINING_SEEDS),
        args.processes,
    )
    text = page({variant: runs_of(args.work, variant) for variant in chosen})
    (RESULTS / "hgnn_ablation.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
