"""Modules as users write them, in a file, and a graph with labels that several processes train."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from optbench.gnn.own_model.own_model_job import OwnModelSettings, write_own_model
from optbench.gnn.runtime.training_job import (
    GraphNetworkSettings,
    LabelledNodes,
    TrainingJob,
    write_job,
)
from optbench.shapes.gnn_training.training_data import DataGraph

FEATURES, HIDDEN, CLASSES = 5, 6, 3
CODE = """
import torch
from torch import nn
from torch.nn import functional as F
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv


class TwoLayers(nn.Module):
    def __init__(self, one, two):
        super().__init__()
        self.one, self.two = one, two

    def forward(self, x, edge_index):
        x = F.dropout(F.relu(self.one(x, edge_index)), p=0.5, training=self.training)
        return self.two(x, edge_index)


class Gcn(TwoLayers):
    def __init__(self, features, hidden, classes):
        super().__init__(GCNConv(features, hidden), GCNConv(hidden, classes))


class Sage(TwoLayers):
    def __init__(self, features, hidden, classes):
        super().__init__(SAGEConv(features, hidden), SAGEConv(hidden, classes))


class Gat(TwoLayers):
    def __init__(self, features, hidden, classes):
        wide = GATConv(features, hidden, heads=2, dropout=0.4)
        super().__init__(wide, GATConv(2 * hidden, classes, dropout=0.4))


class Gin(TwoLayers):
    def __init__(self, features, hidden, classes):
        one = nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Dropout(0.3))
        super().__init__(GINConv(one), GINConv(nn.Linear(hidden, classes)))


class Batch(Gcn):
    def __init__(self, features, hidden, classes):
        super().__init__(features, hidden, classes)
        self.norm = nn.BatchNorm1d(features)

    def forward(self, x, edge_index):
        return super().forward(self.norm(x), edge_index)


class Pooled(Gcn):
    def forward(self, x, edge_index):
        return super().forward(x, edge_index) + x.mean()


class Noisy(Gcn):
    def forward(self, x, edge_index):
        return super().forward(x + 0.1 * torch.randn_like(x), edge_index)


class Counted(Gcn):
    def forward(self, x, edge_index):
        return super().forward(x, edge_index) * (2.0 if len(x) > 100 else 1.0)


class Single(Gcn):
    def forward(self, x, edge_index):
        return super().forward(x * torch.ones(x.shape[1]).float(), edge_index)


class Sum(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.weight = nn.Linear(a, b)

    def forward(self, x, edge_index):
        summed = torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])
        return self.weight(x + summed)


class Plain(TwoLayers):
    def __init__(self, features, hidden, classes):
        super().__init__(Sum(features, hidden), Sum(hidden, classes))


class Wide(Gcn):
    def __init__(self, features, hidden, classes):
        super().__init__(features, hidden, classes + 2)
"""


def write_code(folder: Path) -> Path:
    path = folder / "users_model.py"
    path.write_text(CODE)
    return path


def ring(n: int) -> DataGraph:
    """A ring with a chord over three nodes from every fifth one, and an isolated last node."""
    edges = {tuple(sorted((v, (v + 1) % (n - 1)))) for v in range(n - 1)}
    edges |= {tuple(sorted((v, (v + 3) % (n - 1)))) for v in range(0, n - 1, 5)}
    tail, head = np.array(sorted(edges), dtype=np.int64).T
    return DataGraph(n, np.ascontiguousarray(tail), np.ascontiguousarray(head))


def labelled_ring(devices: int, n: int = 120) -> LabelledNodes:
    """Nodes in one run for each device, so that neighbourhoods are small parts of the ring."""
    rng = np.random.default_rng(3)
    return LabelledNodes(
        ring(n),
        rng.standard_normal((n, FEATURES)),
        rng.integers(0, CLASSES, n),
        rng.permutation(np.arange(n) % 4),
        np.arange(n) * devices // n,
    )


def write_training(
    folder: Path,
    code: Path,
    name: str,
    devices: int,
    precision: str,
    fusions: tuple[str, ...] = (),
) -> None:
    """The job of one training."""
    job = TrainingJob(
        GraphNetworkSettings(),
        CLASSES,
        epochs=3,
        speeds=(1.0,) * devices,
        checkpoint_every=0,
        keep_gradients=True,
        most_restarts=0,
        precision=precision,  # type: ignore[arg-type]  # one of the two
    )
    write_job(folder, job, labelled_ring(devices))
    settings = OwnModelSettings(f"{code.resolve()}:{name}", FEATURES, HIDDEN, CLASSES, fusions)
    write_own_model(folder, settings)
