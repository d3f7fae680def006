"""Nodes and arcs around own nodes, and the rows that are added to tell nodes from arcs."""

from __future__ import annotations

import numpy as np
import pytest

from optbench.gnn.own_model.node_neighbourhood import NodeNeighbourhood, neighbourhood
from optbench.shapes.gnn_training.training_data import DataGraph


def path(n: int) -> DataGraph:
    return DataGraph(n, np.arange(n - 1), np.arange(1, n))


def arcs(found: NodeNeighbourhood) -> set[tuple[int, int]]:
    """Arcs by global numbers."""
    ends = zip(found.nodes[found.source], found.nodes[found.target], strict=True)
    return {(int(a), int(b)) for a, b in ends}


@pytest.mark.parametrize(
    ("depth", "nodes", "edges"),
    [
        # Around nodes 4 and 3 of a path 0 - 1 - ... - 8.
        (1, [4, 3, 2, 5], [(2, 3), (3, 4), (4, 5)]),
        (2, [4, 3, 2, 5, 1, 6], [(1, 2), (2, 3), (3, 4), (4, 5), (5, 6)]),
    ],
)
def test_of_a_path(depth: int, nodes: list[int], edges: list[tuple[int, int]]) -> None:
    found = neighbourhood(path(9), np.array([4, 3]), depth)
    assert found.nodes.tolist() == nodes and found.num_own == 2
    assert arcs(found) == {*edges, *((b, a) for a, b in edges)}
    order = list(zip(found.source.tolist(), found.target.tolist(), strict=True))
    assert order == sorted(order)


def test_arcs_between_outermost_nodes_are_left_out() -> None:
    """In a triangle, the arc between the two neighbours of an own node has no use at depth 1."""
    triangle = DataGraph(3, np.array([0, 0, 1]), np.array([1, 2, 2]))
    assert arcs(neighbourhood(triangle, np.array([0]), 1)) == {(0, 1), (1, 0), (0, 2), (2, 0)}
    assert len(arcs(neighbourhood(triangle, np.array([0]), 2))) == 6


def test_rows_and_arcs_differ_in_number() -> None:
    """Depth 1 around node 1 of a path of four: three nodes and four arcs. Around nodes 1 and 3 of
    a ring of four: four nodes and eight arcs. Around two ends of two edges: four nodes, four arcs.
    """
    assert neighbourhood(path(4), np.array([1]), 1).padding == 0
    two = DataGraph(4, np.array([0, 2]), np.array([1, 3]))
    found = neighbourhood(two, np.array([0, 2]), 1)
    assert (found.num_arcs, len(found.nodes), found.padding, found.num_rows) == (4, 4, 1, 5)


def test_without_arcs_two_rows_are_added_that_are_neighbours() -> None:
    found = neighbourhood(path(4), np.array([2]), 0)
    assert (found.num_arcs, found.num_rows, found.padding) == (2, 3, 2)
    assert sorted(found.source.tolist()) == [1, 2] and 0 not in found.target.tolist()
