"""Every legal plan computes what PyTorch Geometric computes, forward and backward."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from optbench.errors import ModelError
from optbench.gnn.kernels.arc_rows import arc_rows, network_arcs
from optbench.gnn.kernels.counter_dropout import CounterDropout
from optbench.gnn.kernels.fused_network import (
    FusedNetwork,
    NetworkInputs,
    NetworkWidths,
    StepDropout,
    network_inputs,
)
from optbench.gnn.kernels.fusion_plan import legal_plans
from optbench.gnn.kernels.sparse_functions import Epilogue, finished_rows
from tests.gnn.kernels.kernel_cases import CLASSES, FEATURES, GRAPH, HEADS, training_of

KINDS: Any = ("gcn", "sage", "gat")
TYPES = {torch.float32: (np.float32, 1e-5), torch.float64: (np.float64, 1e-10)}


def features_of(dtype: torch.dtype, dense: bool = True) -> Any:
    from scipy.sparse import csr_array

    rng = np.random.default_rng(1)
    drawn = rng.standard_normal((8, FEATURES)) * (rng.random((8, FEATURES)) < 0.5)
    return torch.tensor(drawn, dtype=dtype) if dense else csr_array(drawn)


def network_of(kind: Any, hidden: int, dtype: torch.dtype) -> FusedNetwork:
    heads = HEADS if kind == "gat" else 1
    return FusedNetwork(NetworkWidths(kind, FEATURES, hidden, CLASSES, heads), 3, dtype)


def outcome(network: FusedNetwork, inputs: NetworkInputs, fused: Any, drop: Any = None) -> Any:
    """Outputs and gradients of a step."""
    network.zero_grad()
    out = network(inputs, fused, drop)
    out.square().sum().backward()
    return [out.detach(), *(each.grad.clone() for each in network.parameters())]  # type: ignore[union-attr]


def published(kind: str, network: FusedNetwork, dtype: torch.dtype) -> list[torch.Tensor]:
    """The same by the layers of PyTorch Geometric, with this network's parameters."""
    from torch_geometric.nn import GATConv, GCNConv, SAGEConv

    ends = np.array([[*GRAPH.tail, *GRAPH.head], [*GRAPH.head, *GRAPH.tail]])
    arcs, values = torch.from_numpy(ends), features_of(dtype)
    parameters = []
    for k in range(2):
        weight, bias = network.weights[k].detach(), network.biases[k].detach()
        b, a = len(bias), weight.shape[1]
        if kind == "gcn":
            layer = GCNConv(a, b).to(dtype)
            pairs = [(layer.lin.weight, weight), (layer.bias, bias)]
        elif kind == "sage":
            layer = SAGEConv(a, b).to(dtype)
            pairs = [(layer.lin_l.weight, weight[:b]), (layer.lin_r.weight, weight[b:])]
            pairs.append((layer.lin_l.bias, bias))
        else:
            scores = network.scores[k].detach()
            layer = GATConv(a, b // scores.shape[1], scores.shape[1]).to(dtype)
            pairs = [(layer.lin.weight, weight), (layer.bias, bias)]
            pairs += [(layer.att_src, scores[:1]), (layer.att_dst, scores[1:])]
        for own, given in pairs:
            own.data = given.clone()
        values = layer(values, arcs)
        if k == 0:
            values = torch.nn.functional.elu(values) if kind == "gat" else torch.relu(values)
        parameters.append([own for own, _ in pairs])
    values.square().sum().backward()
    found = [[each.grad for each in layer] for layer in parameters]
    if kind == "sage":
        found = [[torch.cat(each[:2]), each[2]] for each in found]
    if kind == "gat":
        found = [[*each[:2], torch.cat(each[2:])] for each in found]
    # In the order of the network: weights, biases, scores of both layers.
    return [values.detach(), *(layer[p] for p in range(len(found[0])) for layer in found)]


@cache
def plans(kind: str) -> list[frozenset[str]]:
    data = training_of(kind)
    legal = legal_plans(data.operators, data.fusions)
    return [frozenset(data.fusions[f].name for f in plan) for plan in legal]


def assert_close(found: list[torch.Tensor], expected: list[torch.Tensor], within: float) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        assert float((one - other).norm()) <= within * float(other.norm())


# 40 columns are summed by the compiled product, 16 by torch's.
@pytest.mark.parametrize("hidden", [16, 40])
@pytest.mark.parametrize("dtype", list(TYPES))
@pytest.mark.parametrize("kind", KINDS)
def test_every_plan_agrees_with_pytorch_geometric(
    kind: Any, dtype: torch.dtype, hidden: int
) -> None:
    number, within = TYPES[dtype]
    network, rows = network_of(kind, hidden, dtype), network_arcs(GRAPH, kind, number)
    expected = published(kind, network, dtype)
    for fused in plans(kind):
        inputs = network_inputs(kind, fused, rows, features_of(dtype))
        assert_close(outcome(network, inputs, fused), expected, within)


def test_plans_are_those_of_the_operator_graph() -> None:
    # GCN: four ways of the arcs of layer 1 (none, spmm, with epilogue, before), each but the one
    # with the epilogue with and without one_pass: 7; as many of layer 2.
    assert len(plans("gcn")) == 49
    assert len(plans("gat")) == 25


@pytest.mark.parametrize(
    ("kind", "fused"),
    [
        ("gcn", {"spmm1", "spmm2"}),
        ("gcn", {"aggregated_before", "spmm2"}),
        ("sage", {"aggregated_last_epilogue1", "spmm2"}),
        ("sage", {"aggregated_before"}),
        ("gat", {"attention1", "attention2"}),
    ],
)
def test_sparse_features_agree_with_dense_ones(kind: Any, fused: set[str]) -> None:
    network, rows = network_of(kind, 16, torch.float64), network_arcs(GRAPH, kind, np.float64)
    sparse, dense = (
        outcome(network, network_inputs(kind, fused, rows, features_of(torch.float64, form)), fused)
        for form in (False, True)
    )
    assert_close(sparse, dense, 1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_is_the_same_in_every_plan(kind: Any) -> None:
    network, rows = network_of(kind, 40, torch.float64), network_arcs(GRAPH, kind, np.float64)
    drop = StepDropout(CounterDropout(0.5, 1), 4, np.arange(8), attention=True)
    found = [
        outcome(
            network,
            network_inputs(kind, fused, rows, features_of(torch.float64)),
            fused,
            drop,
        )
        for fused in plans(kind)
    ]
    for each in found[1:]:
        assert_close(each, found[0], 1e-10)
    without = outcome(
        network, network_inputs(kind, (), rows, features_of(torch.float64)), frozenset()
    )
    assert not torch.allclose(found[0][0], without[0])


def test_what_cannot_be_computed_is_refused() -> None:
    features = features_of(torch.float32)
    rows = network_arcs(GRAPH, "gat")
    with pytest.raises(ModelError, match="leave it out for gat"):
        network_inputs("gat", {"aggregated_before"}, rows, features)
    with pytest.raises(ModelError, match="heads is 3"):
        NetworkWidths("gat", 9, 16, 4, 3)
    network, means = network_of("sage", 16, torch.float32), network_arcs(GRAPH, "sage")
    with pytest.raises(ModelError, match="make them new"):
        network(network_inputs("sage", (), means, features), {"aggregated_before"})
    sparse = network_inputs("sage", (), means, features_of(torch.float32, dense=False))
    with pytest.raises(ModelError, match="store the features densely"):
        network(sparse, {"spmm1"})
    with pytest.raises(ModelError, match="arc 1 has source 5"):
        arc_rows(np.array([0, 1]), np.array([4, 5]), np.ones(2), 2, 5)


def test_elu_keeps_its_digits_near_zero() -> None:
    # exp(x) − 1 at x = −1e-6 loses half of the digits of float32; ELU is −1e-6 + 5e-13 there.
    values: Any = torch.full((2, 3), -1e-6)
    found = finished_rows(values, torch.zeros(3), Epilogue("elu"))
    assert found[0, 0].item() == pytest.approx(-1e-6 + 5e-13, rel=1e-6)
