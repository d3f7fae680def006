"""Why final losses of one process and of two differ: the step at which two trainings part, and the
value before ReLU that does it; writes docs/results/raw/gnn_loss_parting.json, which the page of
benchmarks/gnn_accuracy.py reads.

    python benchmarks/gnn_loss_parting.py [--data molecules --network sage --seed 6 --epochs 200]

The same training runs in one process and in two, by several random balanced partitions and two
fusion plans, in float32 and in float64. In float64 all losses should agree to their unit (2⁻³²:
losses of nodes are rounded to it and added as integers). Where a float32 run departs from the
others, the gradients of single steps say when: the first step whose gradients differ. With its
weights the values before ReLU are computed in float64, and the gradients once as they are, once
with the sign of the value nearest to 0 changed. If the second are those of the departed run, the
cause is this sign and nothing else.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import RESULTS  # noqa: E402
from benchmarks._fusion_cases import PlainCsr  # noqa: E402
from benchmarks._gnn_trainings import (  # noqa: E402
    drawn_data,
    job_of,
    modelled,
    nodes_of,
    trained,
    width_of,
)
from benchmarks.gnn_accuracy import DRAWN  # noqa: E402

RAW = RESULTS / "raw" / "gnn_loss_parting.json"
PLANS = {
    "gcn": (("spmm1", "spmm2"), ("aggregated_before", "aggregated_first2", "one_pass1")),
    "sage": (("spmm1", "spmm2"), ("aggregated_last2", "spmm1")),
}
PARTITIONS = 5
# Losses and gradients that rounding alone does not move so far.
LOSS_APART, GRADIENT_APART = 1e-6, 1e-4
# Steps before a loss departs in which gradients may have done so.
STEPS_BEFORE = 4


def part_of(nodes: int, number: int) -> Any:
    """A random balanced partition."""
    return np.random.default_rng(number).permutation(nodes) % 2


def all_runs(data: Any, network: str, seed: int, epochs: int) -> list[dict[str, Any]]:
    """Losses and accuracies of all trainings."""
    n = len(data.labels)
    one, two = [np.zeros(n, dtype=np.int64)], [part_of(n, k) for k in range(PARTITIONS)]
    out = []
    for devices, parts in ((1, one), (2, two)):
        wanted = [
            (precision, plan, number)
            for precision in ("float32", "float64")
            for plan in PLANS[network]
            for number in range(len(parts))
        ]
        jobs = [
            (job_of(network, data.classes, devices, seed=seed, fusions=plan, epochs=epochs,
                    precision=precision), nodes_of(data, parts[number]))
            for precision, plan, number in wanted
        ]  # fmt: skip
        with tempfile.TemporaryDirectory(prefix="optbench-parting-") as folder:
            found = trained(Path(folder), jobs)
        for (precision, plan, number), result in zip(wanted, found, strict=True):
            about = {"devices": devices, "precision": precision, "partition": number}
            given = {"losses": result.losses, "test": result.accuracy["test"]}
            out.append({**about, "plan": list(plan), **given})
    return out


def departed(run: dict[str, Any], exact: dict[str, Any]) -> int | None:
    """The first step whose loss is apart from that of the run in float64."""
    apart = np.abs(np.array(run["losses"]) / np.array(exact["losses"]) - 1)
    steps = np.flatnonzero(apart > LOSS_APART)
    return int(steps[0]) if len(steps) else None


def gradients_of(
    data: Any, network: str, seed: int, run: dict[str, Any], steps: range
) -> dict[int, tuple[dict[str, Any], dict[str, Any]]]:
    """By step, the gradients of a run in float32, and the weights before."""
    import torch

    from optbench.gnn.runtime.training_job import write_job
    from optbench.gnn.runtime.training_processes import start_processes
    from optbench.gnn.runtime.training_result import trained_weights
    from optbench.gnn.runtime.training_worker import GRADIENTS

    n, devices = len(data.labels), run["devices"]
    part = part_of(n, run["partition"]) if devices > 1 else np.zeros(n, dtype=np.int64)
    job = job_of(network, data.classes, devices, seed=seed, fusions=tuple(run["plan"]),
                 keep_gradients=True, timeout_s=600.0)  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="optbench-parting-") as root:
        folders = [Path(root) / str(epochs) for epochs in range(steps.start, steps.stop + 1)]
        for folder in folders:
            write_job(folder, replace(job, epochs=int(folder.name)), nodes_of(data, part))
        start_processes(folders)
        weights = [trained_weights(folder) for folder in folders]
        given = [torch.load(folder / GRADIENTS, weights_only=True) for folder in folders]
    return {step: (given[k + 1], weights[k]) for k, step in enumerate(steps)}


def apart(one: dict[str, Any], other: dict[str, Any]) -> float:
    """The largest relative difference, by norm, of a tensor."""
    return max(
        float((one[name].double() - other[name].double()).norm() / other[name].double().norm())
        for name in other
    )


class ExactStep:
    """A step of the training in float64, with weights that are given."""

    def __init__(self, spec: str, data: Any, network: str, seed: int, weights: Any) -> None:
        import torch

        from optbench.gnn.kernels.fused_network import FusedNetwork, NetworkWidths
        from optbench.gnn.kernels.kernel_rates import KernelCase

        kind: Any = network
        features = torch.from_numpy(data.features).double()
        widths = NetworkWidths(kind, features.shape[1], width_of(network), data.classes)
        instance = modelled(spec, network, features.shape[1], data.classes)
        self.network = FusedNetwork(widths, seed, torch.float64)
        self.network.load_state_dict(weights)
        self.plain = PlainCsr(KernelCase(instance.data, widths), self.network, features)
        self.data, self.seed = data, seed
        self.before = self.plain.layer(0, features).detach()

    def gradients(self, step: int, positive: Any) -> dict[str, Any]:
        """Gradients where ReLU passes the values at ``positive``."""
        import torch

        from optbench.gnn.kernels.counter_dropout import CounterDropout

        labels = torch.from_numpy(np.asarray(self.data.labels, dtype=np.int64))
        chosen = torch.from_numpy(np.flatnonzero(self.data.split == 1))
        nodes = np.arange(len(labels))
        kept = CounterDropout(0.5, self.seed).kept(step, 1, nodes, positive.shape[1])
        self.network.zero_grad()
        hidden = self.plain.layer(0, self.plain.features) * positive * torch.from_numpy(kept) * 2
        scores = self.plain.layer(1, hidden)[chosen]
        loss: Any = torch.nn.functional.cross_entropy(scores, labels[chosen])
        loss.backward()
        named = self.network.named_parameters()
        return {name: each.grad.clone() for name, each in named if each.grad is not None}


def parting(
    spec: str, data: Any, network: str, seed: int, usual: dict[str, Any], other: dict[str, Any]
) -> dict[str, Any]:
    """The step at which gradients of two runs part, and the value that has another sign."""
    first = int(other["departs"])
    steps = range(max(first - STEPS_BEFORE, 1), first + 1)
    one, two = (gradients_of(data, network, seed, run, steps) for run in (usual, other))
    differ = {step: apart(two[step][0], one[step][0]) for step in steps}
    step = next(each for each in steps if differ[each] > GRADIENT_APART)
    exact = ExactStep(spec, data, network, seed, one[step][1])
    nearest = int(exact.before.abs().argmin())
    node, column = divmod(nearest, exact.before.shape[1])
    signs = (exact.before > 0).double()
    changed = signs.clone()
    changed[node, column] = 1 - changed[node, column]
    kept, turned = exact.gradients(step, signs), exact.gradients(step, changed)
    return {
        "step": step,
        "gradients_apart": {str(each): value for each, value in differ.items()},
        "node": node,
        "column": column,
        "value": float(exact.before[node, column]),
        "deviation": float(exact.before.std()),
        "usual_from_signs": apart(one[step][0], kept),
        "usual_from_changed": apart(one[step][0], turned),
        "other_from_signs": apart(two[step][0], kept),
        "other_from_changed": apart(two[step][0], turned),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="molecules", choices=tuple(DRAWN))
    parser.add_argument("--network", default="sage", choices=tuple(PLANS))
    parser.add_argument("--seed", type=int, default=6)
    parser.add_argument("--epochs", type=int, default=200)
    args = parser.parse_args()
    spec, found = DRAWN[args.data], dict[str, Any](vars(args))
    data = drawn_data(args.data, spec)
    runs = all_runs(data, args.network, args.seed, args.epochs)
    exact = next(run for run in runs if run["precision"] == "float64")
    for run in runs:
        run["departs"] = departed(run, exact)
        run["final_apart"] = abs(run["losses"][-1] / exact["losses"][-1] - 1)
    single = [run for run in runs if run["precision"] == "float32"]
    usual = next((run for run in single if run["departs"] is None), None)
    other = next((run for run in single if run["departs"] is not None), None)
    if usual and other:
        found["parting"] = parting(spec, data, args.network, args.seed, usual, other)
    found["runs"] = [{k: v for k, v in run.items() if k != "losses"} for run in runs]
    RAW.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
