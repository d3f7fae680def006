"""Can owners of private workloads train hgnn together? Federated averaging, each owner alone, and
all work pooled, at equal numbers of steps in all.

    python benchmarks/federated.py [-o docs/results/federated.md] [--rounds 6] [--steps 15]

Four owners have clusters, shapes of jobs, users and deadlines of their own. Per training seed three
ways take the same number of steps in all: federated averaging in rounds, every owner alone from the
same first weights, and one training on the work of all. The running means of the weights are then
played on held-out instances of every owner, each once and without noise; objectives are verified
and divided by those of the rule without a network. Some minutes on one core.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from optbench.api import load_target  # noqa: E402
from optbench.compiling.kernel_table import prepare  # noqa: E402
from optbench.evaluate.stats import bootstrap_interval  # noqa: E402
from optbench.model.instance import Instance  # noqa: E402
from solvers.hgnn import Hgnn  # noqa: E402
from solvers.hgnn.federated_averaging import train_federated  # noqa: E402
from solvers.hgnn.learning_settings import HgnnTraining  # noqa: E402
from solvers.hgnn.network_training import NetworkTraining  # noqa: E402
from solvers.hgnn.prepared_instances import PreparedInstance  # noqa: E402

OWNERS = {
    "A": (
        "gpu_cluster:nodes=4,profiles=[H100-SXM,A100-PCIe],tasks=60,shape=pipeline,users=2,"
        "deadlines=tight"
    ),
    "B": "gpu_cluster:nodes=6,profiles=[L4,T4],tasks=80,shape=batch,users=6,deadlines=flexible",
    "C": "gpu_cluster:nodes=4,profiles=[V100-PCIe,K40c,C2070],tasks=60,shape=data_parallel,users=1",
    "D": "gpu_cluster:nodes=6,profiles=[A30,L40S,T4],tasks=90,users=4,deadlines=none,scale=minutes",
}
TRAINING_SEEDS, FIRST_SEED, INSTANCES = (0, 1), 1000, 6
HELD_OUT = range(10)
WAYS = ("alone", "federated", "pooled")
Scores = dict[str, list[float]]


@dataclass(frozen=True)
class Lengths:
    """Rounds, and steps of each owner per round."""

    rounds: int
    steps: int

    @property
    def per_owner(self) -> int:
        return self.rounds * self.steps


def training(owners: list[str], steps: int, seed: int) -> NetworkTraining:
    """Return a training on the work of these owners that is over after so many steps."""
    settings = HgnnTraining(
        steps=steps, imitate=0.0, label=0.0, batch=4, samples=8, instances=INSTANCES
    )
    first = FIRST_SEED + 100 * seed
    made = [load_target(OWNERS[o], first + k) for o in owners for k in range(INSTANCES)]
    return NetworkTraining(made, made[:1], settings, seed)


def scores(held_out: dict[str, list[PreparedInstance]], weights: Mapping[str, object]) -> Scores:
    """Return objectives over those of no network, per owner and held-out instance."""
    arrays = {name: value.numpy() for name, value in weights.items()}  # type: ignore[attr-defined]
    network = HgnnTraining().design.forward_pass(arrays)
    return {
        owner: [each.value(network.answers(each.situation.seen)) / each.plain for each in group]
        for owner, group in held_out.items()
    }


def played(
    held_out: dict[str, list[PreparedInstance]], lengths: Lengths, seed: int
) -> list[Scores]:
    """Train in all ways from one seed; return scores of WAYS, and of networks of other owners."""
    names = list(OWNERS)
    singles = [training([name], lengths.per_owner, seed) for name in names]
    for each in singles:
        for _ in range(lengths.per_owner):
            each.advance()
    by_owner = [scores(held_out, each.mean) for each in singles]
    alone = {name: found[name] for name, found in zip(names, by_owner, strict=True)}
    foreign = {
        name: np.mean([found[name] for k, found in enumerate(by_owner) if names[k] != name], axis=0)
        for name in names
    }
    owners = [training([name], lengths.per_owner, seed) for name in names]
    together = train_federated(owners, lengths.rounds, [lengths.steps] * len(names))
    pooled = training(names, lengths.per_owner * len(names), seed)
    for _ in range(lengths.per_owner * len(names)):
        pooled.advance()
    others = {name: values.tolist() for name, values in foreign.items()}
    return [alone, scores(held_out, together), scores(held_out, pooled.mean), others]


def difference(one: list[Scores], two: list[Scores]) -> str:
    """Return the mean difference in per cent of no network, and its interval over pairs."""
    pairs = np.array([
        np.mean([a[owner] for a in one], axis=0) - np.mean([b[owner] for b in two], axis=0)
        for owner in OWNERS
    ]).ravel()  # fmt: skip
    low, high = bootstrap_interval((100 * pairs).tolist())
    return f"{100 * pairs.mean():+.2f} ({low:+.2f} to {high:+.2f})"


def page(found: list[list[Scores]], lengths: Lengths, seconds: float) -> str:
    """Return the page; ``found`` has the scores of each training seed."""
    ways = [[run[k] for run in found] for k in range(len(WAYS) + 1)]
    alone, federated, pooled, foreign = ways
    total = lengths.per_owner * len(OWNERS)

    def row(owner: str) -> str:
        means = [np.mean([run[owner] for run in way]) for way in (foreign, *ways[:3])]
        return f"| {owner} | " + " | ".join(f"{mean:.4f}" for mean in means) + " |"

    every = [np.mean([run[o] for run in way for o in OWNERS]) for way in (foreign, *ways[:3])]
    return "\n".join([
        "# Federated averaging over private workloads",
        "",
        f"`python benchmarks/federated.py --rounds {lengths.rounds} --steps {lengths.steps}`, "
        f"{seconds:.0f} s of processor time with all training.",
        f"{len(OWNERS)} owners, {len(found)} training seeds, {total} steps in all for each way: "
        f"each owner {lengths.per_owner} steps alone;",
        f"{lengths.rounds} rounds of {lengths.steps} steps per owner with weights averaged by "
        f"number of steps; {total} steps on the work of all, pooled. A step",
        f"is policy gradient on 4 instances with 8 samples each, from the same first weights; "
        f"{INSTANCES} training instances per owner. Played once, without",
        f"noise, on {len(HELD_OUT)} held-out instances per owner. Objectives are verified and "
        "divided by those of the rule without a network (1; less is better).",
        "",
        "| owner | networks of the other owners, mean | alone | federated | pooled |",
        "| --- | --- | --- | --- | --- |",
        *(row(owner) for owner in OWNERS),
        "| all | " + " | ".join(f"**{mean:.4f}**" for mean in every) + " |",
        "",
        "Differences in percentage points of the rule without a network, mean over training seeds, "
        f"95 % bootstrap interval over {len(OWNERS) * len(HELD_OUT)} held-out instances:",
        "",
        "| | difference |",
        "| --- | --- |",
        f"| federated − alone | {difference(federated, alone)} |",
        f"| federated − pooled | {difference(federated, pooled)} |",
        f"| pooled − alone | {difference(pooled, alone)} |",
        f"| networks of other owners − alone | {difference(foreign, alone)} |",
        "",
        *(f"- {name}: `{spec}`" for name, spec in OWNERS.items()),
        "",
        "Only weights leave an owner. What weights reveal of a workload is not measured here.",
        "",
    ])  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--steps", type=int, default=15)
    args = parser.parse_args()
    lengths = Lengths(args.rounds, args.steps)
    prepare(Hgnn.needs)
    began = time.process_time()
    instances: dict[str, list[Instance]] = {
        name: [load_target(spec, seed) for seed in HELD_OUT] for name, spec in OWNERS.items()
    }
    held_out = {name: [PreparedInstance(x) for x in group] for name, group in instances.items()}
    found = []
    for seed in TRAINING_SEEDS:
        found.append(played(held_out, lengths, seed))
        means = [np.mean(list(way.values())) for way in found[-1]]
        print(f"seed {seed}: " + ", ".join(f"{mean:.4f}" for mean in means), flush=True)
    text = page(found, lengths, time.process_time() - began)
    if args.output is not None:
        args.output.write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
