"""A user's module with fused kernels computes what the user's module computes."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.nn import GATConv, GCNConv, GraphConv, SAGEConv

from optbench.errors import ModelError
from optbench.gnn.kernels.fusion_plan import fusion_names, legal_plans
from optbench.gnn.operators.exported_model import GraphSize, inputs_of
from optbench.gnn.operators.fused_module import fused_module
from optbench.gnn.operators.fusion_candidates import fusion_candidates
from optbench.gnn.operators.operator_graph import OperatorGraph, operator_graph

FEATURE, HIDDEN, CLASS = 16, 8, 4
LAYERS: dict[str, Any] = {"gcn": GCNConv, "sage": SAGEConv, "gat": GATConv}
# Of several hundred legal plans, every twelfth: all fusions occur.
EVERY = {"gcn": 3, "sage": 12, "gat": 90}


class TwoLayers(torch.nn.Module):
    def __init__(self, layer: Any, **options: Any) -> None:
        super().__init__()
        self.one, self.two = layer(FEATURE, HIDDEN, **options), layer(HIDDEN, CLASS, **options)
        self.same = False

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> Any:
        summed = self.one(x, edge_index)
        hidden = torch.nn.functional.relu(summed)
        self.same = hidden is summed
        hidden = torch.nn.functional.dropout(hidden, 0.5, self.training)
        return self.two(hidden, edge_index)


def made(layer: Any, **options: Any) -> TwoLayers:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return TwoLayers(layer, **options)


@pytest.fixture(scope="module")
def cases() -> dict[str, tuple[TwoLayers, OperatorGraph]]:
    models = {name: made(each) for name, each in LAYERS.items()}
    return {name: (each, operator_graph(each, FEATURE)) for name, each in models.items()}


def given(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    x, arcs, _ = inputs_of(GraphSize(23, 90 + seed), FEATURE, CLASS)
    return x, arcs


def step(
    module: Any, x: torch.Tensor, arcs: torch.Tensor, dtype: torch.dtype = torch.float32
) -> list[torch.Tensor]:
    """Outputs and gradients, with the same random numbers whatever the module."""
    module, x = (module, x) if dtype == torch.float32 else (deepcopy(module).double(), x.double())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        module.train().zero_grad()
        out = module(x, arcs)
    out.square().sum().backward()
    return [out.detach(), *(each.grad.clone() for each in module.parameters())]


def assert_alike(
    found: list[torch.Tensor], expected: list[torch.Tensor], within: float = 1e-5
) -> None:
    for one, other in zip(found, expected, strict=True):
        assert float((one - other).norm()) <= within * float(other.norm())


@pytest.mark.parametrize("name", LAYERS)
def test_plans_compute_what_the_module_computes(
    name: str, cases: dict[str, tuple[TwoLayers, OperatorGraph]]
) -> None:
    model, graph = cases[name]
    candidates = fusion_candidates(graph)
    plans = list(legal_plans(graph.operators, candidates))[:: EVERY[name]]
    x, arcs = given()
    # Gradients of the vectors of attention are small differences: 1e-5 in float32 is no measure.
    single, seen = step(model, x, arcs), set[str]()
    double = step(model, x, arcs, torch.float64)
    for plan in plans[:14]:
        chosen = fusion_names(candidates, np.array(plan, dtype=np.int64))
        fused = fused_module(model, graph, chosen)
        assert_alike(step(fused, x, arcs, torch.float64), double, 1e-10)
        for _ in range(2):  # what is kept of the first step is used in the second
            assert_alike(step(fused, x, arcs), single, 1e-4 if name == "gat" else 1e-5)
        assert set(fused.fusions.executed) | set(fused.fusions.left) == chosen
        seen |= set(fused.fusions.executed)
    assert seen


def test_weights_go_back_to_the_class_of_the_user(
    cases: dict[str, tuple[TwoLayers, OperatorGraph]],
) -> None:
    model, graph = cases["gcn"]
    fused = fused_module(model, graph, {"aggregated_before1", "spmm_epilogue2", "chain_add"})
    before = model.one.lin.weight.detach().clone()
    with torch.no_grad():
        fused.one.lin.weight.mul_(2.0)
    # The user's module is a different one, and its own until the weights are loaded.
    assert torch.equal(model.one.lin.weight, before)
    again = made(GCNConv)
    again.load_state_dict(fused.state_dict())
    assert torch.equal(again.one.lin.weight, 2 * before)
    assert isinstance(fused, TwoLayers)
    assert isinstance(fused.one, GCNConv)
    x, arcs = given()
    assert_alike(step(fused, x, arcs), step(again, x, arcs))


def test_relu_behind_a_layer_is_computed_once(
    cases: dict[str, tuple[TwoLayers, OperatorGraph]],
) -> None:
    model, graph = cases["gcn"]
    x, arcs = given()
    plain = fused_module(model, graph, {"spmm1"})
    plain(x, arcs)
    assert not plain.same
    fused = fused_module(model, graph, {"spmm_epilogue1"})
    fused(x, arcs)
    assert fused.same
    assert fused.fusions.partly == {
        "spmm_epilogue1": "dropout behind the layer: calls of torch",
    }


@pytest.mark.parametrize("fusion", ["aggregated_before1", "spmm1"])
def test_other_features_and_arcs_are_not_mistaken_for_those_of_the_step_before(
    fusion: str, cases: dict[str, tuple[TwoLayers, OperatorGraph]]
) -> None:
    model, graph = cases["sage"]
    fused = fused_module(model, graph, {fusion, "one_product_add"})
    x, arcs = given()
    step(fused, x, arcs)
    x.mul_(3.0)  # in place: the same tensor with other values
    assert_alike(step(fused, x, arcs), step(model, x, arcs))
    _, others = given(7)
    assert_alike(step(fused, x, others), step(model, x, others))
    # Arcs that repeat are summed as often as they stand there.
    doubled = torch.cat([arcs, arcs[:, :5]], 1)
    assert_alike(step(fused, x, doubled), step(model, x, doubled))


def test_options_of_layers_are_kept() -> None:
    # No self-loops, no bias, the other direction of arcs; heads that are averaged.
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (GCNConv, {"add_self_loops": False, "bias": False}, "spmm_epilogue1"),
        (GCNConv, {"flow": "target_to_source"}, "spmm1"),
        (SAGEConv, {"aggr": "sum", "root_weight": False}, "aggregated_last1"),
        (GATConv, {"heads": 3, "concat": False}, "attention_epilogue1"),
    ]
    x, arcs = given()
    for layer, options, fusion in cases:
        model = made(layer, **options)
        fused = fused_module(model, operator_graph(model, FEATURE), {fusion})
        assert fused.fusions.executed == [fusion]
        exact = step(model, x, arcs, torch.float64)
        assert_alike(step(fused, x, arcs, torch.float64), exact, 1e-10)


class Twice(torch.nn.Module):
    """Calls one layer twice, and another one that has no kernels."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = GCNConv(FEATURE, FEATURE), GraphConv(FEATURE, CLASS)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> Any:
        hidden = torch.tanh(self.one(x, edge_index))
        return self.two(torch.relu(self.one(hidden, edge_index)), edge_index)


def test_fusions_without_a_kernel_are_listed_with_the_reason(
    cases: dict[str, tuple[TwoLayers, OperatorGraph]],
) -> None:
    model = Twice()
    graph = operator_graph(model, FEATURE)
    fused = fused_module(model, graph, {"spmm1", "spmm3"})
    assert fused.fusions.executed == []
    assert fused.fusions.left["spmm1"] == "layer 'one' is called more than once in a step"
    assert "no kernels of GraphConv" in fused.fusions.left["spmm3"]
    attention = made(GATConv, negative_slope=0.1)
    fused = fused_module(attention, operator_graph(attention, FEATURE), {"attention1"})
    assert "negative_slope=0.1" in fused.fusions.left["attention1"]
    with pytest.raises(ModelError, match=r"'spmm9' is no candidate.*spmm"):
        fused_module(cases["gcn"][0], cases["gcn"][1], {"spmm9"})


class WithoutRelu(TwoLayers):
    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> Any:
        return self.two(self.one(x, edge_index), edge_index)


def test_a_graph_of_another_module_is_noticed(
    cases: dict[str, tuple[TwoLayers, OperatorGraph]],
) -> None:
    # The graph says that ReLU follows the first layer; in this module it does not.
    with pytest.raises(ModelError, match=r"fusions spmm_epilogue1 .*differ by"):
        fused_module(WithoutRelu(GCNConv), cases["gcn"][1], {"spmm_epilogue1"})
