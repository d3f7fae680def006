"""What the benchmarks of GNN training share: labelled graphs, partitions, fusion plans, runs."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

NETWORKS = ("gcn", "sage", "gat")
# Width of the hidden layer by network; a GAT has so many for each of its heads.
HIDDEN, HEADS = {"gcn": 16, "sage": 16, "gat": 8}, 8
LEARNING_RATE = {"gcn": 0.01, "sage": 0.01, "gat": 0.005}
PUBLIC = ("cora", "citeseer")
# Drawn graphs: features and classes, nodes of each class to train on, to validate and to test.
DRAWN_FEATURES, DRAWN_CLASSES, TRAINED_PER_CLASS, VALIDATED, TESTED = 32, 7, 20, 500, 1000


@dataclass(frozen=True)
class LabelledData:
    """A graph with features, labels, and what each node is for (values of ``split``)."""

    name: str
    graph: Any
    features: Any
    labels: Any
    split: Any
    classes: int


@lru_cache(maxsize=2)
def public_data(name: str) -> LabelledData:
    """Cora or CiteSeer with its public split: 20 nodes of each class to train on, 500 and 1,000.

    Rows of features are divided by their sums. The files leave some papers of CiteSeer out: they
    have no features and are used for nothing.
    """
    from scipy.sparse import lil_array

    from optbench.data.registry import data_path
    from optbench.plugins.problems._planetoid import planetoid, unpickled

    given = planetoid(name)
    n = given.graph.num_nodes
    parts = {
        key: unpickled(data_path(f"planetoid/ind.{name}.{key}").read_bytes())
        for key in ("allx", "ally", "tx", "ty", "y")
    }
    tests = np.loadtxt(data_path(f"planetoid/ind.{name}.test.index"), dtype=np.int64)
    features = lil_array((n, given.num_features), dtype=np.float32)
    one_hot = np.zeros((n, given.num_classes))
    known = parts["allx"].shape[0]
    features[:known], one_hot[:known] = parts["allx"], parts["ally"]
    features[tests], one_hot[tests] = parts["tx"], parts["ty"]
    dense = np.asarray(features.todense(), dtype=np.float32)
    dense /= np.maximum(dense.sum(axis=1, keepdims=True), 1)
    trained = len(parts["y"])
    split = np.zeros(n, dtype=np.int64)
    split[:trained], split[trained : trained + VALIDATED], split[tests] = 1, 2, 3
    return LabelledData(name, given.graph, dense, one_hot.argmax(1), split, given.num_classes)


def drawn_data(name: str, spec: str) -> LabelledData:
    """A drawn graph whose labels a teacher gives: the largest of 7 random combinations of features
    that were averaged twice over neighbours.
    """
    graph = instance_of(f"{spec},parts=2").data.graph
    rng = np.random.default_rng(0)
    n = graph.num_nodes
    features = rng.standard_normal((n, DRAWN_FEATURES))
    degree = np.bincount(np.concatenate([graph.tail, graph.head]), minlength=n) + 1.0
    smooth = features
    for _ in range(2):
        total = smooth.copy()
        np.add.at(total, graph.tail, smooth[graph.head])
        np.add.at(total, graph.head, smooth[graph.tail])
        smooth = total / degree[:, None]
    scores = smooth @ rng.standard_normal((DRAWN_FEATURES, DRAWN_CLASSES))
    labels = (scores - scores.mean(axis=0)).argmax(axis=1)
    split = np.zeros(n, dtype=np.int64)
    order = rng.permutation(n)
    for c in range(DRAWN_CLASSES):
        split[order[labels[order] == c][:TRAINED_PER_CLASS]] = 1
    rest = order[split[order] == 0]
    split[rest[:VALIDATED]], split[rest[VALIDATED : VALIDATED + TESTED]] = 2, 3
    return LabelledData(name, graph, features.astype(np.float32), labels, split, DRAWN_CLASSES)


def instance_of(spec: str) -> Any:
    """The instance of ``gnn_training`` with these settings."""
    from optbench.plugins.discovery import load_problem

    return load_problem(f"gnn_training:{spec}").instance(0)


def width_of(network: str) -> int:
    """The hidden width of all heads."""
    return HIDDEN[network] * (HEADS if network == "gat" else 1)


def modelled(spec: str, network: str, features: int, classes: int, more: str = "") -> Any:
    """The instance whose operators are those of a network with the widths of the runs."""
    widths = f"network={network},hidden={width_of(network)},features={features},classes={classes}"
    return instance_of(f"{spec},{widths}{more}")


def spectral_parts(instance: Any, seconds: float) -> Any:
    """The part of every node by ``mis_spectral``."""
    import optbench as ob

    found = ob.solve(instance, "mis_spectral", seed=0, time_limit_s=seconds, bound=False)
    decision: Any = found.schedule
    return np.asarray(decision.part)


def random_parts(nodes: int, parts: int) -> Any:
    """A random balanced partition."""
    return np.random.default_rng(0).permutation(nodes) % parts


def best_plan(instance: Any, network: str, repeats: int) -> tuple[str, ...]:
    """The best fusions, with factors of the cost model measured on this graph."""
    from optbench.gnn.kernels.fused_network import NetworkWidths
    from optbench.gnn.kernels.fusion_plan import best_fusions, fusion_names
    from optbench.gnn.kernels.kernel_rates import KernelCase, fitted_rates
    from optbench.gnn.runtime.measured_step import read_network

    data = instance.data
    widths: Any = read_network(data).widths
    heads = HEADS if network == "gat" else 1
    kind: Any = network
    features, hidden, classes = widths
    case = KernelCase(data, NetworkWidths(kind, features, hidden, classes, heads))
    chosen = best_fusions(data, fitted_rates(case, data.devices[0], repeats)).chosen
    return tuple(sorted(fusion_names(data.fusions, chosen)))


def job_of(network: str, classes: int, devices: int, **others: Any) -> Any:
    """A job with the usual settings: dropout 0.5, Adam, weight decay 5e-4."""
    from optbench.gnn.runtime.training_job import GraphNetworkSettings, TrainingJob

    kind: Any = network
    settings = GraphNetworkSettings(kind, (HIDDEN[network],), HEADS, 0.5)
    given: dict[str, Any] = {"speeds": (1.0,) * devices, "checkpoint_every": 0, **others}
    return TrainingJob(settings, classes, learning_rate=LEARNING_RATE[network], **given)


def nodes_of(data: LabelledData, device: Any) -> Any:
    """The arrays of a job."""
    from optbench.gnn.runtime.training_job import LabelledNodes

    return LabelledNodes(data.graph, data.features, data.labels, data.split, device)


def trained(root: Path, jobs: list[tuple[Any, Any]]) -> list[Any]:
    """The results of jobs on the same number of devices, by the same processes in turn.

    Processes keep the cores of the first job.
    """
    from optbench.gnn.runtime.training_job import write_job
    from optbench.gnn.runtime.training_processes import start_processes
    from optbench.gnn.runtime.training_result import read_result

    folders = []
    for k, (job, nodes) in enumerate(jobs):
        folder = root / f"{k}"
        write_job(folder, replace(job, timeout_s=600.0), nodes)
        folders.append(folder)
    start_processes(folders)
    return [read_result(folder) for folder in folders]


def machine_load() -> float:
    return os.getloadavg()[0]
