"""Operators of PyG's layers against the modelled networks, legal fusions, models that fail."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch_geometric.nn import ARMAConv, GATConv, GCNConv, SAGEConv

from optbench.errors import ModelError
from optbench.gnn.operators.fusion_candidates import fusion_candidates
from optbench.gnn.operators.operator_graph import OperatorGraph, operator_graph
from optbench.plugins.problems._modelled_networks import ModelledNetwork, modelled
from optbench.shapes.gnn_training.operator_costs import (
    FEATURES,
    OperatorCost,
    check_fusions,
    check_operators,
)

FEATURE, HIDDEN, CLASS = 16, 8, 4
LAYERS: dict[str, Any] = {"gcn": GCNConv, "sage": SAGEConv, "gat": GATConv}


class TwoLayers(torch.nn.Module):
    def __init__(self, layer: Any, dropout: float = 0.0, **options: Any) -> None:
        super().__init__()
        self.dropout = dropout
        self.one, self.two = layer(FEATURE, HIDDEN, **options), layer(HIDDEN, CLASS, **options)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> Any:
        hidden = torch.relu(self.one(x, edge_index))
        hidden = torch.nn.functional.dropout(hidden, self.dropout, self.training)
        return self.two(hidden, edge_index)


@pytest.fixture(scope="module")
def traced() -> dict[str, OperatorGraph]:
    return {name: operator_graph(TwoLayers(each), FEATURE) for name, each in LAYERS.items()}


def costs(graph: OperatorGraph, kind: str) -> list[OperatorCost]:
    return [each.cost for each in graph.operators if each.kind == kind]


def fused(graph: OperatorGraph) -> dict[str, OperatorCost]:
    return {each.name: each.cost for each in fusion_candidates(graph)}


def modelled_costs(network: ModelledNetwork) -> dict[str, OperatorCost]:
    named = [*network.operators, *network.fusions]
    return {each.name: each.cost for each in named}


@pytest.mark.parametrize("name", LAYERS)
def test_graphs_are_valid_and_have_the_bytes_of_their_parameters(
    name: Any, traced: dict[str, OperatorGraph]
) -> None:
    graph, network = traced[name], modelled(name, FEATURE, HIDDEN, CLASS)
    check_operators(graph.operators)
    check_fusions(graph.operators, fusion_candidates(graph))
    assert graph.parameter_bytes == network.parameter_bytes
    assert (graph.operators[-1].name, graph.num_classes) == ("loss", CLASS)


def test_products_of_gcn_cost_what_is_modelled(traced: dict[str, OperatorGraph]) -> None:
    """Two products of 2 × 16 × 8 operations in the first layer, three of 2 × 8 × 4 in the second;
    each reads and writes rows of 16 + 8, or 8 + 4, floats.
    """
    wanted = modelled_costs(modelled("gcn", FEATURE, HIDDEN, CLASS))
    for found, name in zip(costs(traced["gcn"], "dense"), ("dense1", "dense2"), strict=True):
        assert found.flop_per_node == wanted[name].flop_per_node
        assert found.bytes_per_node == wanted[name].bytes_per_node
        assert found.launches == wanted[name].launches
    assert costs(traced["gcn"], "dense")[0].flop_per_node == 512.0


@pytest.mark.parametrize("name", LAYERS)
def test_rows_that_cross_devices_are_those_modelled(
    name: Any, traced: dict[str, OperatorGraph]
) -> None:
    """The rows of SAGE's first layer are features, whose gradients nobody needs: one exchange of
    16 floats, where the modelled network has two.
    """
    network = modelled(name, FEATURE, HIDDEN, CLASS)
    wanted = [each.cost for each in network.operators if each.cost.row_bytes]
    found = [each.cost for each in traced[name].operators if each.cost.row_bytes]
    pairs = [(each.row_bytes, each.exchanges) for each in found]
    expected = [(each.row_bytes, each.exchanges) for each in wanted]
    if name == "sage":
        expected[0] = (64.0, 1)
    assert pairs == expected


def bytes_per_arc(graph: OperatorGraph) -> float:
    return sum(each.cost.bytes_per_arc for each in graph.operators)


def test_bytes_per_arc_are_the_modelled_ones(traced: dict[str, OperatorGraph]) -> None:
    """GCN also reads the coefficient of an arc, 4 bytes in both passes of both layers. SAGE scales
    per node, not per arc, and its first layer has no backward pass. The kernels of GAT's softmax
    are more than is modelled.
    """
    gcn, sage, gat = (modelled(name, FEATURE, HIDDEN, CLASS) for name in ("gcn", "sage", "gat"))
    costs = {each.name: each.cost.bytes_per_arc for each in sage.operators}
    total = [sum(each.cost.bytes_per_arc for each in net.operators) for net in (gcn, sage, gat)]
    less = costs["scale1"] + costs["scale2"] + (costs["gather1"] + costs["scatter1"]) / 2
    assert bytes_per_arc(traced["gcn"]) == total[0] + 2 * 2 * 4
    assert bytes_per_arc(traced["sage"]) == total[1] - less
    assert total[2] < bytes_per_arc(traced["gat"]) < 2 * total[2]


def test_fused_aggregation_moves_rows_and_constants_alone(
    traced: dict[str, OperatorGraph],
) -> None:
    """Both passes read a row of 8 floats, two indices of 8 bytes and a coefficient per arc; and
    write a row per node. A self-loop costs each node as much as an arc.
    """
    per_arc = 2 * (4 * 8 + 2 * 8 + 4)
    cost = fused(traced["gcn"])["spmm1"]
    assert (cost.bytes_per_arc, cost.kept_bytes_per_arc) == (per_arc, 0.0)
    assert cost.bytes_per_node == per_arc + 2 * 4 * 8
    wanted = modelled_costs(modelled("gcn", FEATURE, HIDDEN, CLASS))["spmm1"]
    assert cost.flop_per_arc == wanted.flop_per_arc
    assert (cost.row_bytes, cost.exchanges) == (wanted.row_bytes, wanted.exchanges)


def test_reorderings_are_found_where_they_are_legal(traced: dict[str, OperatorGraph]) -> None:
    """GCN multiplies first, SAGE aggregates first; attention depends on rows and cannot move."""
    gcn, sage, gat = (fused(traced[name]) for name in LAYERS)
    assert {"aggregated_before1", "aggregated_first2"} <= gcn.keys()
    assert {"aggregated_before1", "aggregated_last1", "aggregated_last2"} <= sage.keys()
    assert not any("aggregated" in name for name in gat)
    assert {"attention1", "attention2"} <= gat.keys()
    wanted = modelled_costs(modelled("gcn", FEATURE, HIDDEN, CLASS))
    before = gcn["aggregated_before1"]
    assert (before.row_bytes, before.flop_per_arc, before.bytes_per_arc) == (0.0, 0.0, 0.0)
    assert before.flop_per_node == wanted["aggregated_before"].flop_per_node
    # The second layer then exchanges rows of 8 floats, forward and backward, instead of 4.
    assert gcn["aggregated_first2"].row_bytes == wanted["aggregated_first2"].row_bytes == 64.0
    assert sage["aggregated_last2"].row_bytes == 2 * 4 * CLASS


def test_attention_keeps_no_values_of_arcs(traced: dict[str, OperatorGraph]) -> None:
    graph = traced["gat"]
    apart = sum(each.cost.kept_bytes_per_arc for each in graph.operators)
    cost = fused(graph)["attention1"]
    assert apart > 0 and cost.kept_bytes_per_arc == 0
    (members,) = (each.replaces for each in fusion_candidates(graph) if each.name == "attention1")
    moved = sum(graph.operators[k].cost.bytes_per_arc for k in members)
    assert 0 < cost.bytes_per_arc < moved / 2
    assert cost.flop_per_arc > sum(graph.operators[k].cost.flop_per_arc for k in members)


def test_random_numbers_and_other_aggregations_forbid_reordering() -> None:
    """A maximum is no A X; features that are dropped at random differ in every step."""

    class Dropped(TwoLayers):
        def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> Any:
            return super().forward(torch.nn.functional.dropout(x, 0.5, self.training), edge_index)

    greatest = fused(operator_graph(TwoLayers(SAGEConv, aggr="max"), FEATURE))
    assert "aggregate1" in greatest and "aggregated_last2" not in greatest
    dropped = fused(operator_graph(Dropped(GCNConv, 0.5), FEATURE))
    assert "aggregated_before1" not in dropped and "aggregated_first1" in dropped


def test_a_weight_per_column_does_not_commute_with_a_product() -> None:
    """A (X W) diag(c) is not (A X) diag(c) W."""

    class Columns(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Linear(FEATURE, CLASS, bias=False)
            self.again = torch.nn.Linear(CLASS, CLASS, bias=False)
            self.column = torch.nn.Parameter(torch.arange(1.0, CLASS + 1))

        def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
            hidden = torch.relu(self.weight(x))
            rows = self.again(hidden)[edge_index[0]] * self.column
            return torch.zeros_like(x[:, :CLASS]).index_add_(0, edge_index[1], rows)

    names = fused(operator_graph(Columns(), FEATURE))
    assert "aggregate1" in names and not any("aggregated" in name for name in names)


def test_a_layer_that_remembers_its_graph_costs_what_another_does(
    traced: dict[str, OperatorGraph],
) -> None:
    """GCN with cached=True keeps the coefficients of the first graph that it sees."""
    again = operator_graph(TwoLayers(GCNConv, cached=True), FEATURE)
    assert again.operators == traced["gcn"].operators


def test_rows_may_lie_in_any_dimension() -> None:
    """ARMA keeps its stacks before the nodes: rows of 8 and 4 floats, in both passes, and 2 stacks
    make twice of it.
    """
    graph = operator_graph(TwoLayers(ARMAConv, num_stacks=2), FEATURE)
    rows = [each.cost.row_bytes for each in graph.operators if each.cost.row_bytes]
    assert rows == [2 * 2 * 4 * HIDDEN, 2 * 2 * 4 * CLASS]


def test_inputs_are_earlier_operators(traced: dict[str, OperatorGraph]) -> None:
    """SAGE: both products of the first layer read features, one of them through the means."""
    graph = traced["sage"]
    first, second = [k for k, each in enumerate(graph.operators) if each.kind == "dense"][:2]
    assert graph.operators[second].inputs == (FEATURES,)
    assert graph.operators[first].inputs == (first - 1,) and graph.operators[0].inputs == (-1,)


class Dense(torch.nn.Module):
    """Every node sees every node."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Linear(FEATURE, CLASS)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> Any:
        return torch.softmax(x @ x.T, dim=1) @ self.weight(x)


class OneScore(Dense):
    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> Any:
        return self.weight(x).mean(dim=0)


class Narrow(Dense):
    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> Any:
        return self.weight(x[:, 1:])


class Branches(Dense):
    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> Any:
        return self.weight(x) if float(x.sum()) > 0 else self.weight(-x)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Dense(), "only models whose cost grows in proportion"),
        (OneScore(), r"returns \(4,\) for 12 nodes"),
        (Narrow(), r"forward\(x, edge_index\) fails for x of shape \(12, 16\)"),
        (Branches(), "torch.export cannot follow its code"),
        ("GCN", "model is a str"),
    ],
)
def test_models_that_cannot_be_cut_are_refused(model: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        operator_graph(model, FEATURE)
