"""A small graph in several parts, and jobs that train on it."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from optbench.gnn.runtime.training_job import GraphNetworkSettings, LabelledNodes, TrainingJob
from optbench.shapes.gnn_training.training_data import DataGraph, Ints

Kind = Literal["gcn", "sage", "gat"]
CLASSES, FEATURES = 3, 5


def ring_with_chords(n: int) -> DataGraph:
    """A ring, a chord from every third node, and an isolated last node."""
    edges = {tuple(sorted((v, (v + 1) % (n - 1)))) for v in range(n - 1)}
    edges |= {tuple(sorted((v, (v + 7) % (n - 1)))) for v in range(0, n - 1, 3)}
    tail, head = np.array(sorted(edges), dtype=np.int64).T
    return DataGraph(n, np.ascontiguousarray(tail), np.ascontiguousarray(head))


def labelled(devices: int, n: int = 40) -> LabelledNodes:
    """Nodes in runs of five, given to the devices in turn: several parts for each."""
    rng = np.random.default_rng(1)
    device: Ints = (np.arange(n) // 5) % devices
    return LabelledNodes(
        ring_with_chords(n),
        rng.standard_normal((n, FEATURES)),
        rng.integers(0, CLASSES, n),
        rng.permutation(np.arange(n) % 4),
        device,
    )


def small_job(network: Kind, devices: int, **others: Any) -> TrainingJob:
    given: dict[str, Any] = {"epochs": 3, "checkpoint_every": 0, "speeds": (1.0,) * devices}
    return TrainingJob(GraphNetworkSettings(network, (6,), heads=2), CLASSES, **{**given, **others})
