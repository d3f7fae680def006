"""Instances of GNN training: graphs from files and families, devices, networks, max_part."""

from __future__ import annotations

import os
import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from optbench.data.registry import DataError, data_path
from optbench.errors import FileFormatError, ParameterError, UnknownNameError
from optbench.plugins.discovery import load_problem
from optbench.plugins.problems._graph_families import FAMILIES
from optbench.plugins.problems._metis_limits import default_largest_part
from optbench.plugins.problems._modelled_networks import modelled
from optbench.plugins.problems._planetoid import unpickled
from optbench.plugins.problems._simple_graph import simple_graph
from optbench.plugins.problems._training_devices import CORE, training_devices
from optbench.shapes.gnn_training.adjacency import adjacency_of
from optbench.shapes.gnn_training.operator_costs import check_fusions, check_operators


def here(name: str) -> bool:
    try:
        return data_path(f"planetoid/ind.{name}.graph").exists()
    except DataError:
        return False


def made(spec: str, seed: int = 0) -> Any:
    return load_problem(f"gnn_training:{spec}").instance(seed).data


@pytest.mark.skipif(not here("cora"), reason="needs the planetoid files in $OPTBENCH_DATA")
@pytest.mark.parametrize(
    ("name", "nodes", "edges", "isolated", "parameters"),
    # (features + 1) × 16 hidden + 17 × classes, 4 bytes each.
    [("cora", 2708, 5278, 0, 1434 * 16 + 17 * 7), ("citeseer", 3327, 4552, 48, 3704 * 16 + 17 * 6)],
)
def test_public_graphs(name: str, nodes: int, edges: int, isolated: int, parameters: int) -> None:
    data = made(f"graph={name},parts=8")
    assert (data.graph.num_nodes, data.graph.num_edges) == (nodes, edges)
    ptr, _ = adjacency_of(data.graph)
    assert int((np.diff(ptr) == 0).sum()) == isolated
    assert data.parameter_bytes == 4 * parameters


def test_pickles_that_name_anything_else_are_refused() -> None:
    with pytest.raises(FileFormatError, match=r"names (posix|nt)\.system"):
        unpickled(pickle.dumps(os.system, protocol=2))
    with pytest.raises(FileFormatError, match="no pickle"):
        unpickled(b"no pickle at all")


@pytest.mark.parametrize("name", FAMILIES)
def test_families_are_seeded_and_have_their_size(name: str) -> None:
    """A mean degree of 10 within a tenth where it can be chosen: some pairs are drawn twice."""
    family = FAMILIES[name]
    one, again, other = (family.draw(500, 10.0, np.random.default_rng(s)) for s in (1, 1, 2))
    assert one.num_nodes == 500
    assert (one.tail == again.tail).all() and (one.head == again.head).all()
    if name != "grid":
        assert one.num_edges != other.num_edges or (one.head != other.head).any()
    if family.degree is not None:
        assert 9.0 <= 2 * one.num_edges / 500 <= 10.0


def test_a_grid_of_three_by_three_has_twelve_edges() -> None:
    graph = FAMILIES["grid"].draw(9, 0.0, np.random.default_rng(0))
    pairs = list(zip(graph.tail.tolist(), graph.head.tolist(), strict=True))
    right = [(0, 1), (1, 2), (3, 4), (4, 5), (6, 7), (7, 8)]
    assert pairs == sorted(right + [(v, v + 3) for v in range(6)])


def test_molecules_are_small_and_connected_in_themselves() -> None:
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    graph = FAMILIES["molecules"].draw(600, 0.0, np.random.default_rng(0))
    ones = np.ones(graph.num_edges)
    matrix = csr_matrix((ones, (graph.tail, graph.head)), shape=(600, 600))
    sizes = np.bincount(connected_components(matrix, directed=False)[1])
    assert sizes.max() <= 40 and sorted(sizes)[1] >= 8  # the last molecule may be cut off


def test_nodes_that_come_early_have_high_degrees() -> None:
    """Preferential attachment: the greatest degree is many times the mean of 8."""
    ptr, _ = adjacency_of(FAMILIES["power"].draw(2000, 8.0, np.random.default_rng(0)))
    assert np.diff(ptr).max() > 80


def test_pairs_become_a_simple_graph() -> None:
    graph = simple_graph(4, [3, 1, 1, 2, 0], [1, 3, 1, 0, 2])
    assert graph.tail.tolist() == [0, 1] and graph.head.tolist() == [2, 3]
    ptr, neighbour = adjacency_of(simple_graph(4, [2, 0, 1, 3], [1, 1, 3, 2]))
    assert ptr.tolist() == [0, 1, 4, 6, 8]
    assert neighbour.tolist() == [1, 0, 2, 3, 1, 3, 1, 2]


def test_the_limit_is_metis_s_own_unless_it_is_given() -> None:
    """1,000 nodes in 7 parts: 142.9 on average, floor(1.1 × 142.9) = 157, at least 143."""
    data = made("graph=community,nodes=1000,parts=7")
    assert data.max_part == default_largest_part(data.graph, 7) >= 143
    assert made("graph=community,nodes=1000,parts=7,imbalance=0.1").max_part == 157
    assert made("graph=community,nodes=1000,parts=7,imbalance=0").max_part == 143
    assert made("graph=community,nodes=1000,parts=7,max_part=200").max_part == 200
    assert made("graph=community,nodes=1000,parts=7,minimize=step").max_part == 1000
    assert made("graph=grid,nodes=9,parts=9").max_part == 1


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("graph=corra", "graph is 'corra'"),
        ("graph=cora,nodes=5", "nodes is 5"),
        ("graph=mesh,degree=5", "degree is 5.0"),
        ("parts=0", "parts is 0"),
        ("graph=grid,nodes=4,parts=5", "parts is 5; it must be at most the 4 nodes"),
        ("imbalance=-1", "imbalance is -1"),
        ("imbalance=0.1,max_part=900", "imbalance is 0.1"),
        ("graph=grid,nodes=9,parts=2,max_part=4", "max_part is 4; it must be at least 5"),
        ("devices=2:0", "devices is '2:0'"),
        ("devices=-2:1", "devices is '-2:1'; it must be relative speeds, positive numbers"),
        ("devices=nan:1", "devices is 'nan:1'"),
        ("devices=inf:1", "devices is 'inf:1'"),
        ("devices=2:x", "devices is '2:x'; it must be relative speeds"),
        ("devices=", "devices is ''; .* a file such as cores.json"),
        ("link_gb_per_s=0", "link_gb_per_s is 0.0; it must be positive"),
        ("latency_s=inf", "latency_s is inf; it must be at least 0"),
    ],
)
def test_wrong_parameters_are_refused(spec: str, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        made(spec)


def test_devices_of_relative_speed() -> None:
    """The faster of 4 : 2 is the core; the other works half of the time."""
    fast, slow = training_devices("4:2", 2)
    assert (fast.gflops, slow.gflops) == (CORE.gflops, CORE.gflops / 2)
    assert (fast.gb_per_s, slow.gb_per_s) == (CORE.gb_per_s, CORE.gb_per_s / 2)
    assert fast.power_w(1.0) - slow.power_w(1.0) == (CORE.alpha_w + CORE.beta_w) / 2
    assert len(training_devices("equal", 3)) == 3


def test_devices_of_shipped_profiles() -> None:
    names = [each.name for each in training_devices("A100-PCIe+L4", 2)]
    assert names == ["A100-PCIe", "L4"]
    (single,) = training_devices("L4", 1)
    assert (single.gb_per_s, single.memory_gb, single.gflops) == (300.0, 24.0, 12_100.0)
    with pytest.raises(UnknownNameError, match="L44"):
        training_devices("L44", 1)


def test_two_layers_of_gcn_by_hand() -> None:
    """Features 10 → hidden 4 → classes 3. The first dense operator has no gradient of its input:
    2 × 10 × 4 flop forward and backward; the second has three products of 2 × 4 × 3.
    """
    made = modelled("gcn", 10, 4, 3)
    costs = {each.name: each.cost for each in made.operators}
    assert (costs["dense1"].flop_per_node, costs["dense2"].flop_per_node) == (160.0, 72.0)
    # Rows of 4 values cross devices forward, their gradients backward.
    assert (costs["gather1"].row_bytes, costs["gather1"].exchanges) == (32.0, 2)
    assert made.parameter_bytes == 4 * (11 * 4 + 5 * 3)
    before = next(each for each in made.fusions if each.name == "aggregated_before")
    assert before.cost.row_bytes == 0 and before.cost.flop_per_arc == 0


@pytest.mark.parametrize("network", ["gcn", "sage", "gat"])
def test_fusions_are_legal_and_move_less_per_arc(network: Any) -> None:
    made = modelled(network, 100, 16, 7)
    check_operators(made.operators)
    check_fusions(made.operators, made.fusions)
    for fusion in made.fusions:
        parts = [made.operators[i].cost for i in fusion.replaces]
        on_arcs = any(each.bytes_per_arc for each in parts)
        if on_arcs and not fusion.name.startswith("aggregated_first"):
            assert fusion.cost.bytes_per_arc < sum(each.bytes_per_arc for each in parts)
    names = [each.name for each in made.operators]
    assert len(set(names)) == len(names) and all(a != b for a, b in pairwise(names))


def test_a_network_of_each_kind_makes_an_instance() -> None:
    costs = [made(f"graph=grid,nodes=9,parts=2,network={each}") for each in ("gcn", "sage", "gat")]
    assert len({each.parameter_bytes for each in costs}) == 3
