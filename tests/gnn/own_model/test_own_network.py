"""What a module needs is found by running it, and modules that mix all nodes are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from optbench.errors import ModelError
from optbench.gnn.operators.model_files import load_model
from optbench.gnn.own_model.needed_rows import agree, needed_rows
from optbench.gnn.own_model.node_neighbourhood import neighbourhood
from optbench.gnn.own_model.own_network import first_rows
from optbench.gnn.own_model.row_refresh import RecordedRows, RowPlan
from tests.gnn.own_model.users_models import CLASSES, FEATURES, HIDDEN, ring, write_code


def made(folder: Path, name: str) -> torch.nn.Module:
    spec = f"{write_code(folder)}:{name}"
    module: torch.nn.Module = load_model(spec, FEATURES, HIDDEN, CLASSES)
    return module


@pytest.mark.parametrize(
    ("name", "plan"),
    [
        # GCN divides by the degrees of the halo, whose neighbours are two arcs away. Its tensors
        # are the inputs of two sums, and the second one is refreshed.
        ("Gcn", RowPlan(2, frozenset({1}))),
        ("Sage", RowPlan(1, frozenset({1}))),
        ("Gin", RowPlan(1, frozenset({1}))),
        # Of each layer: scores of sources, scores of targets, values.
        ("Gat", RowPlan(1, frozenset({3, 5}))),
        ("Single", RowPlan(2, frozenset({1}))),
        # Sums in its own code are not refreshed, so that two of them need two arcs.
        ("Plain", RowPlan(2)),
    ],
)
def test_plans(name: str, plan: RowPlan, tmp_path: Path) -> None:
    module = made(tmp_path, name)
    assert needed_rows(module, FEATURES, 0, name) == plan


def test_recorded_rows_of_the_halo_make_own_rows_right(tmp_path: Path) -> None:
    """On a ring, with the plan and with less than it."""
    module, graph, own = made(tmp_path, "Gcn"), ring(120), np.arange(40, 60)
    x = torch.randn((120, FEATURES), generator=torch.Generator().manual_seed(0))
    everything, recorded = neighbourhood(graph, np.arange(120), 1), RecordedRows()
    whole = first_rows(module, everything, x, 120, 0, "Gcn", recorded.record)[own]

    def rows(plan: RowPlan) -> torch.Tensor:
        around = neighbourhood(graph, own, plan.depth)
        refresh = recorded.replay(around, plan)
        return first_rows(module, around, x[around.nodes], 120, 0, "Gcn", refresh)

    assert agree(rows(RowPlan(2, frozenset({1}))), whole) and agree(rows(RowPlan(3)), whole)
    assert not agree(rows(RowPlan(2)), whole) and not agree(rows(RowPlan(1, frozenset({1}))), whole)
    assert "propagate" not in vars(module.one)


def test_a_module_without_sums_needs_no_neighbours() -> None:
    class Rows(torch.nn.Linear):
        def forward(self, x: torch.Tensor, edge_index: object = None) -> torch.Tensor:
            return super().forward(x)

    assert needed_rows(Rows(FEATURES, CLASSES), FEATURES, 0, "Rows") == RowPlan(0)


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
        needed_rows(made(tmp_path, name), FEATURES, 0, name)
