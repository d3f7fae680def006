"""Why final losses of one process and of two differ: the step at which two trainings part, and the
value at a kink that does it; adds to docs/results/raw/gnn_loss_parting.json, which the page of
benchmarks/gnn_accuracy.py reads.

    python benchmarks/gnn_loss_parting.py [--data molecules --network sage --seed 6 --epochs 200]

The same training runs in one process and in two, by several random balanced partitions and two
fusion plans, in float32 and in float64. In float64 all losses should agree to their unit (2⁻³²:
losses of nodes are rounded to it and added as integers). Where float32 runs depart from each other,
gradients of single steps say when: the first step whose gradients differ. With its weights the
values before ReLU, or LeakyReLU in a GAT, are computed in float64, and the gradients once as they
are, and once with the other side of the kink for each of the values nearest to 0. If one of these
are the gradients of the departed run, the cause is this value and nothing else.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._cluster_runs import RESULTS  # noqa: E402
from benchmarks._gnn_trainings import (  # noqa: E402
    drawn_data,
    job_of,
    nodes_of,
    trained,
)
from benchmarks.gnn_accuracy import DRAWN  # noqa: E402

RAW = RESULTS / "raw" / "gnn_loss_parting.json"
PLANS: dict[str, tuple[tuple[str, ...], ...]] = {
    "gcn": (("spmm1", "spmm2"), ("aggregated_before", "aggregated_first2", "one_pass1")),
    "sage": (("spmm1", "spmm2"), ("aggregated_last2", "spmm1")),
    "gat": ((), ("attention1", "attention2", "one_pass1", "one_pass2")),
}
# Losses and gradients that rounding alone does not move so far.
LOSS_APART, GRADIENT_APART = 1e-6, 5e-6
# Values nearest to 0 that are tried.
NEAREST = 8


def part_of(nodes: int, number: int) -> Any:
    """A random balanced partition."""
    return np.random.default_rng(number).permutation(nodes) % 2


def all_runs(
    data: Any, network: str, seed: int, epochs: int, partitions: int
) -> list[dict[str, Any]]:
    """Losses and accuracies of all trainings."""
    n = len(data.labels)
    one, two = [np.zeros(n, dtype=np.int64)], [part_of(n, k) for k in range(partitions)]
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


class SingleSteps:
    """Gradients of single steps of a run in float32, and the weights before, by training anew."""

    def __init__(self, data: Any, network: str, seed: int, run: dict[str, Any]) -> None:
        n, devices = len(data.labels), run["devices"]
        part = part_of(n, run["partition"]) if devices > 1 else np.zeros(n, dtype=np.int64)
        self.nodes = nodes_of(data, part)
        self.job = job_of(network, data.classes, devices, seed=seed, fusions=tuple(run["plan"]),
                          keep_gradients=True, timeout_s=600.0)  # fmt: skip

    def at(self, step: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Gradients of a step, and the weights before it."""
        import torch

        from optbench.gnn.runtime.training_job import write_job
        from optbench.gnn.runtime.training_processes import start_processes
        from optbench.gnn.runtime.training_result import trained_weights
        from optbench.gnn.runtime.training_worker import GRADIENTS

        with tempfile.TemporaryDirectory(prefix="optbench-parting-") as root:
            folders = [Path(root) / str(epochs) for epochs in (step, step + 1)]
            for folder in folders:
                write_job(folder, replace(self.job, epochs=int(folder.name)), self.nodes)
            start_processes(folders)
            given = torch.load(folders[1] / GRADIENTS, weights_only=True)
            return given, trained_weights(folders[0])


def apart(one: dict[str, Any], other: dict[str, Any]) -> float:
    """The largest relative difference, by norm, of a tensor."""
    return max(
        float((one[name].double() - other[name].double()).norm() / other[name].double().norm())
        for name in other
    )


class KinkedStep:
    """A step of the training in float64, with weights that are given, whose values at kinks are
    kept, and one of which may be passed on as if it had the other sign.
    """

    def __init__(self, spec: str, data: Any, network: str, seed: int, weights: Any) -> None:
        import torch

        from optbench.gnn.kernels.arc_rows import network_arcs
        from optbench.gnn.kernels.fused_network import FusedNetwork, network_inputs
        from optbench.gnn.runtime.training_worker import network_widths

        kind: Any = network
        self.data, self.seed = data, seed
        features = torch.from_numpy(data.features).double()
        widths = network_widths(job_of(network, data.classes, 1), features.shape[1])
        self.network = FusedNetwork(widths, seed, torch.float64)
        self.network.load_state_dict(weights)
        rows = network_arcs(data.graph, kind, np.float64)
        self.inputs = network_inputs(kind, (), rows, features)
        self.values: list[Any] = []

    def _kinked(self, changed: tuple[int, int] | None) -> Any:
        def passed(values: Any, slope: float = 0.0) -> Any:
            import torch

            rising, call = values.detach() > 0, len(self.values)
            if changed is not None and changed[0] == call:
                rising.view(-1)[changed[1]] ^= True
            self.values.append(values.detach())
            return torch.where(rising, values, values * slope)

        return passed

    def gradients(self, step: int, changed: tuple[int, int] | None = None) -> dict[str, Any]:
        """Gradients of a step; ``changed`` is the number of a call and of its value."""
        import torch

        from optbench.gnn.kernels.counter_dropout import CounterDropout
        from optbench.gnn.kernels.fused_network import StepDropout

        labels = torch.from_numpy(np.asarray(self.data.labels, dtype=np.int64))
        chosen = torch.from_numpy(np.flatnonzero(self.data.split == 1))
        dropout = CounterDropout(0.5, self.seed)
        masks = StepDropout(dropout, step, np.arange(len(labels)), attention=True)
        self.values = []
        self.network.zero_grad()
        kinked = self._kinked(changed)
        with (
            patch.object(torch, "relu", kinked),
            patch.object(torch.nn.functional, "leaky_relu", kinked),
        ):
            scores = self.network(self.inputs, frozenset(), masks)[chosen]
        loss: Any = torch.nn.functional.cross_entropy(scores, labels[chosen])
        loss.backward()
        named = self.network.named_parameters()
        return {name: each.grad.clone() for name, each in named if each.grad is not None}

    def nearest(self) -> list[tuple[int, int]]:
        """The values nearest to 0 of the last step, by the numbers of their calls."""
        near = [
            (float(size), call, int(k))
            for call, values in enumerate(self.values)
            for size, k in zip(*values.abs().view(-1).topk(NEAREST, largest=False), strict=True)
        ]
        return [(call, k) for _, call, k in sorted(near)[:NEAREST]]


def parting(
    spec: str, data: Any, network: str, seed: int, usual: dict[str, Any], other: dict[str, Any]
) -> dict[str, Any]:
    """The step at which gradients of two runs part, and the value on the other side of a kink."""
    one, two = (SingleSteps(data, network, seed, run) for run in (usual, other))
    low, high, differ = 0, int(other["departs"]) + 1, dict[int, float]()
    while high - low > 1:
        step = (low + high) // 2
        differ[step] = apart(two.at(step)[0], one.at(step)[0])
        low, high = (step, high) if differ[step] < GRADIENT_APART else (low, step)
    step = high
    (from_one, weights), (from_two, _) = one.at(step), two.at(step)
    exact = KinkedStep(spec, data, network, seed, weights)
    kept = exact.gradients(step)
    tried = exact.nearest()
    errors = [apart(from_two, exact.gradients(step, each)) for each in tried]
    best = int(np.argmin(errors))
    call, number = tried[best]
    row, column = divmod(number, exact.values[call].shape[1])
    return {
        "step": step,
        "before_apart": apart(two.at(step - 1)[0], one.at(step - 1)[0]),
        "step_apart": apart(from_two, from_one),
        "layer": call + 1,
        "row": row,
        "column": column,
        "value": float(exact.values[call][row, column]),
        "deviation": float(exact.values[call].std()),
        "usual_from_exact": apart(from_one, kept),
        "other_from_exact": apart(from_two, kept),
        "other_from_changed": errors[best],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="molecules", choices=tuple(DRAWN))
    parser.add_argument("--network", default="sage", choices=tuple(PLANS))
    parser.add_argument("--seed", type=int, default=6)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--partitions", type=int, default=5)
    args = parser.parse_args()
    spec, found = DRAWN[args.data], dict[str, Any](vars(args))
    data = drawn_data(args.data, spec)
    runs = all_runs(data, args.network, args.seed, args.epochs, args.partitions)
    exact = next(run for run in runs if run["precision"] == "float64")
    for run in runs:
        run["departs"] = departed(run, exact)
        run["final_apart"] = abs(run["losses"][-1] / exact["losses"][-1] - 1)
    found["runs"] = [{k: v for k, v in run.items() if k != "losses"} for run in runs]
    keep(found)
    single = [run for run in runs if run["precision"] == "float32"]
    order = sorted(
        single, key=lambda run: args.epochs if run["departs"] is None else run["departs"]
    )
    if order[0]["departs"] is not None:
        found["parting"] = parting(spec, data, args.network, args.seed, order[-1], order[0])
        keep(found)
    print(json.dumps(found, indent=1))


def keep(found: dict[str, Any]) -> None:
    """Put a training among those that are known, in place of the same one."""
    known = json.loads(RAW.read_text(encoding="utf-8")) if RAW.exists() else []
    names = ("data", "network", "seed")
    rest = [each for each in known if any(each[name] != found[name] for name in names)]
    RAW.write_text(json.dumps([*rest, found], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
