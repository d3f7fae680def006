"""The depth of a neighbourhood is found by running a module, and global modules are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from optbench.errors import ModelError
from optbench.gnn.operators.model_files import load_model
from optbench.gnn.own_model.node_neighbourhood import neighbourhood
from optbench.gnn.own_model.own_network import agree, first_rows, needed_depth
from tests.gnn.own_model.users_models import CLASSES, FEATURES, HIDDEN, ring, write_code


def made(folder: Path, name: str) -> torch.nn.Module:
    spec = f"{write_code(folder)}:{name}"
    module: torch.nn.Module = load_model(spec, FEATURES, HIDDEN, CLASSES)
    return module


@pytest.mark.parametrize(
    ("name", "depth"),
    # Two sums over neighbours; GCN also divides by the degrees of the nodes that are two arcs away.
    [("Gcn", 3), ("Sage", 2), ("Gat", 2), ("Gin", 2), ("Single", 3)],
)
def test_depths(name: str, depth: int, tmp_path: Path) -> None:
    module = made(tmp_path, name)
    assert needed_depth(module, FEATURES, 0, name) == depth
    graph, own = ring(120), np.arange(40, 60)
    x = torch.randn((120, FEATURES), generator=torch.Generator().manual_seed(0))

    def rows(nodes: np.ndarray, depth: int) -> torch.Tensor:
        around = neighbourhood(graph, nodes, depth)
        return first_rows(module, around, x[around.nodes], 120, 0, name)

    whole = rows(np.arange(120), 1)[own]
    assert agree(rows(own, depth), whole) and not agree(rows(own, depth - 1), whole)


def test_a_module_without_sums_needs_no_neighbours() -> None:
    class Rows(torch.nn.Linear):
        def forward(self, x: torch.Tensor, edge_index: object = None) -> torch.Tensor:
            return super().forward(x)

    assert needed_depth(Rows(FEATURES, CLASSES), FEATURES, 0, "Rows") == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Batch", r"on all nodes, because of norm \(BatchNorm1d\), so that several devices cannot"),
        ("Pooled", r"on all nodes, so that several devices cannot train it\. Normalise each row"),
        ("Noisy", r"draws random numbers by randn_like, which differ from process to process"),
    ],
)
def test_modules_that_several_devices_cannot_train(name: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=words):
        needed_depth(made(tmp_path, name), FEATURES, 0, name)
