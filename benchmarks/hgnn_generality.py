"""One network of hgnn on clusters and task graphs that it never saw, beside the same network
trained there; writes docs/results/hgnn_generality.md.

    python benchmarks/hgnn_generality.py [--processes 2] [--work FOLDER]

The network is the full one of ``hgnn_ablation.py``: trained on up to 32 nodes, 1,200 tasks and six
types of GPUs. For each place (256 nodes; four other types; three times as many tasks) two more are
trained with the same budget and the same training seeds: one there from nothing, one that goes on
there from the full network. Excess is the paired difference of verified objectives. Training
instances have seeds from 1000 on, the instances of this page 10 to 14.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import (  # noqa: E402
    RESULTS,
    TRAINED_ON,
    Trained,
    above,
    file_name,
    page_head,
    play,
    train_all,
    tuned_rule,
)
from benchmarks.hgnn_ablation import (  # noqa: E402
    CPU_MINUTES,
    FULL,
    SEEDS,
    TRAINING_SEEDS,
    trained,
)

OTHER_TYPES = "profiles=[H200,L40S,A30,T4]"


@dataclass(frozen=True)
class Place:
    """Where the network is played, and the problems on which one is trained for it."""

    name: str
    played: tuple[str, ...]
    problems: tuple[str, ...]


def larger(problem: str, factor: int) -> str:
    """Return the problem with so many times as many tasks."""
    return re.sub(r"tasks=(\d+)", lambda found: f"tasks={factor * int(found[1])}", problem)


def with_other_types(problem: str) -> str:
    return f"{re.sub(r',types=[0-9]+', '', problem)},{OTHER_TYPES}"


PLACES = (
    Place(
        "256 nodes instead of up to 32",
        ("gpu_cluster:nodes=256,tasks=4800",),
        ("gpu_cluster:nodes=256,tasks=2400", "gpu_cluster:nodes=256,tasks=6000"),
    ),
    Place(
        f"types never trained on, {OTHER_TYPES}",
        (f"gpu_cluster:nodes=16,tasks=400,{OTHER_TYPES}",),
        tuple(with_other_types(problem) for problem in TRAINED_ON),
    ),
    Place(
        "task graphs three times as large",
        ("gpu_cluster:nodes=16,tasks=2400", "gpu_cluster:nodes=32,tasks=3600"),
        tuple(larger(problem, 3) for problem in TRAINED_ON),
    ),
)


def network(work: Path, place: Place, seed: int, goes_on: bool) -> Trained:
    """Return a network trained there, from nothing or from the full network."""
    full = trained(work, FULL, seed)
    words = file_name(f"{place.name} {'goes on' if goes_on else 'there'}")
    begin = (f"start={full.path}",) if goes_on else ()
    return Trained(
        work / f"{words}-{seed}.safetensors", (*full.settings, *begin), seed, place.problems
    )


def rows_of(work: Path, place: Place) -> list[str]:
    """Return the rows of one place: what the full network has above each other method."""
    from optbench.api import load_target

    pairs = [
        (load_target(spec, drawn), seed)
        for spec in place.played
        for drawn in SEEDS
        for seed in TRAINING_SEEDS
    ]
    methods: dict[str, Callable[[int], str]] = {
        "trained there": lambda seed: network(work, place, seed, goes_on=False).spec(),
        "goes on there": lambda seed: network(work, place, seed, goes_on=True).spec(),
        "no network": lambda _: "hgnn:weights=none",
        "tuned_rule": lambda _: tuned_rule(),
        "path_milestones": lambda _: "path_milestones",
    }
    full = [play(trained(work, FULL, seed).spec(), given) for given, seed in pairs]
    rows = []
    for name, spec in methods.items():
        runs = [play(spec(seed), given) for given, seed in pairs]
        rows.append(f"| {place.name} | {name} | {above(full, runs)} |")
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--work", type=Path, default=ROOT / ".optbench" / "hgnn_ablation")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    train_all((trained(args.work, FULL, seed) for seed in TRAINING_SEEDS), args.processes)
    wanted = [
        network(args.work, place, seed, goes_on)
        for goes_on in (False, True)
        for place in PLACES
        for seed in TRAINING_SEEDS
    ]
    train_all(wanted, args.processes)
    lines = page_head("Generality of hgnn", "python benchmarks/hgnn_generality.py")
    lines += [
        f"Each network is trained for {CPU_MINUTES:g} processor minutes from training seeds "
        f"{' and '.join(map(str, TRAINING_SEEDS))}, the one that goes on for as many again; report "
        f"seeds {SEEDS[0]} to {SEEDS[-1]}. What the network that was never there has above each "
        "method, in per cent of its objective, mean and 95 % interval; a negative figure means "
        "that it is better.",
        "",
        "| place | beside | excess |",
        "| --- | --- | --- |",
    ]
    for place in PLACES:
        lines += rows_of(args.work, place)
    (RESULTS / "hgnn_generality.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
