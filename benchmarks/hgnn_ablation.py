"""Ablations of hgnn, each trained anew at the same budget; writes docs/results/hgnn_ablation.md.

    python benchmarks/hgnn_ablation.py [--cpu-minutes 6] [--only flat,spectral] [--work FOLDER]

Every variant is trained from training seeds 0 and 1 on the problems that
``solvers/hgnn/trained_on.txt`` lists, two at a time; what is trained already is kept, so that the
same command goes on after an interruption. Objectives, energies and processor times are relative
to the full network at the same budget, paired by instance and training seed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import RESULTS, PlayedRun, page_head, percent, play  # noqa: E402

PROBLEMS = ROOT / "solvers" / "hgnn" / "trained_on.txt"
FULL = "full"
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
}
SPECS = ("gpu_cluster:nodes=16,tasks=400", "gpu_cluster:nodes=64,tasks=2400")
SEEDS, TRAINED = (10, 11, 12, 13, 14), (0, 1)
COMMON = ("instances=8", "imitate=0", "label=0")


def checkpoint(work: Path, variant: str, seed: int) -> Path:
    name = "".join(letter if letter.isalnum() else "_" for letter in variant)
    return work / f"{name}-{seed}.safetensors"


def train(work: Path, variant: str, seed: int, minutes: float) -> None:
    """Train one variant, unless it is trained."""
    path = checkpoint(work, variant, seed)
    if path.exists() and not path.with_name(f"{path.name}.state").exists():
        return
    problems = PROBLEMS.read_text(encoding="utf-8").split()
    command = [sys.executable, "-m", "optbench.cli.main", "train", "hgnn", "--seed", str(seed)]
    command += ["-o", str(path), "--no-track", "-q"]
    for problem in problems:
        command += ["--on", f"gpu_cluster:{problem}"]
    for setting in (f"cpu_minutes={minutes:g}", *COMMON, *VARIANTS[variant]):
        command += ["-p", setting]
    subprocess.run(command, check=True, cwd=ROOT)
    print(f"trained: {variant}, seed {seed}", flush=True)


def runs_of(work: Path, variant: str) -> list[PlayedRun]:
    """Return the runs on all report instances, training seed by training seed."""
    from optbench.api import load_target

    out = []
    for spec in SPECS:
        for seed in SEEDS:
            instance = load_target(spec, seed)
            for trained in TRAINED:
                path = checkpoint(work, variant, trained)
                out.append(play(f"hgnn:checkpoint={path}", instance, repeats=2))
    return out


def page(found: dict[str, list[PlayedRun]], minutes: float) -> str:
    """Return the table of ratios to the full network."""
    lines = page_head(
        "Ablations of hgnn", f"python benchmarks/hgnn_ablation.py --cpu-minutes {minutes:g}"
    )
    lines += [
        f"Each variant is trained for {minutes:g} processor minutes from training seeds "
        f"{' and '.join(map(str, TRAINED))}; {' and '.join(f'`{spec}`' for spec in SPECS)}, report "
        f"seeds {SEEDS[0]} to {SEEDS[-1]}. Per cent above the full network of the same budget and "
        "training seed, mean and 95 % interval.",
        "",
        "| variant | objective | energy | processor time |",
        "| --- | --- | --- | --- |",
    ]
    full = found[FULL]
    for variant, runs in found.items():
        pairs = list(zip(runs, full, strict=True))
        cells = [
            percent([getattr(mine, name) / getattr(base, name) - 1.0 for mine, base in pairs])
            for name in ("objective", "energy_j", "cpu_s")
        ]
        if variant != FULL:
            lines.append(f"| {variant} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpu-minutes", type=float, default=6.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--work", type=Path, default=ROOT / ".optbench" / "hgnn_ablation")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    words = [word for word in args.only.split(",") if word]
    chosen = [v for v in VARIANTS if v == FULL or not words or any(word in v for word in words)]
    with ThreadPoolExecutor(2) as two:
        jobs = [
            two.submit(train, args.work, variant, seed, args.cpu_minutes)
            for variant in chosen
            for seed in TRAINED
        ]
        for job in jobs:
            job.result()
    found = {variant: runs_of(args.work, variant) for variant in chosen}
    text = page(found, args.cpu_minutes)
    (RESULTS / "hgnn_ablation.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
