"""Coarsening: contraction by hand, clusters around independent sets, components."""

from __future__ import annotations

import numpy as np
import pytest

from optbench.plugins.solvers.mis_spectral.components import components_of, packed
from optbench.plugins.solvers.mis_spectral.independent_sets import clusters
from optbench.plugins.solvers.mis_spectral.level_graph import LevelGraph, contracted, cut_weight
from tests.solvers.mis_spectral.small_graphs import clique, lattice, path, rows_of, star


def ints(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


def test_contraction_adds_weights_and_drops_inner_edges() -> None:
    """The square 0-1-3-2-0 with 1-2; 0 and 1 become one node, joined to 2 by 0-2 and 1-2, to 3 by
    1-3; the edge 2-3 stays.
    """
    graph = LevelGraph(*rows_of(4, [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]))
    coarse = LevelGraph(*contracted(*graph, ints(0, 0, 1, 2), 3))
    assert coarse.size.tolist() == [2, 1, 1]
    found = {
        (c, int(coarse.adj[e])): int(coarse.weight[e])
        for c in range(3)
        for e in range(coarse.ptr[c], coarse.ptr[c + 1])
    }
    assert found == {(0, 1): 2, (1, 0): 2, (0, 2): 1, (2, 0): 1, (1, 2): 1, (2, 1): 1}
    part = ints(0, 1, 1)
    assert cut_weight(coarse.ptr, coarse.adj, coarse.weight, part) == 3
    assert coarse.cut_arcs(part).sum() == 4  # both directions of 0-1 and 0-2


def test_induced_graphs_keep_inner_edges() -> None:
    graph = LevelGraph(*rows_of(5, [*path(5), (0, 4)])).induced(ints(1, 2, 4))
    assert graph.ptr.tolist() == [0, 1, 2, 2] and graph.adj.tolist() == [1, 0]


def clustered(
    nodes: int, edges: list[tuple[int, int]], most: int, label: list[int], rounds: int = 0
) -> list[int]:
    rows = rows_of(nodes, edges)
    order = np.random.default_rng(0).permutation(nodes)
    return list(clusters(*rows, order, ints(*label), most, rounds)[0].tolist())


@pytest.mark.parametrize("rounds", [0, 4])
def test_clusters_are_within_their_size_and_label(rounds: int) -> None:
    label = [v % 2 for v in range(36)]
    edges = [*lattice(6), *((v, v + 2) for v in range(34))]
    found = clustered(36, edges, 4, label, rounds)
    assert max(np.bincount(found)) <= 4
    for cluster in set(found):
        assert len({label[v] for v in range(36) if found[v] == cluster}) == 1


def test_nodes_move_to_the_cluster_of_most_of_their_edges() -> None:
    """Four cliques of 6 in a ring have a root each, whose inner nodes are beside no other one. The
    two nodes of a clique with an edge to the next may join that root, and return to their own.
    """
    edges = [edge for first in range(0, 24, 6) for edge in clique(first, 6)]
    edges += [(5, 6), (11, 12), (17, 18), (23, 0)]
    found = clustered(24, edges, 8, [0] * 24, rounds=4)
    assert found == [v // 6 for v in range(24)]


def test_clusters_join_neighbours() -> None:
    """In a path every node without a root beside it is one itself: at most 2 in 3 are left."""
    assert len(set(clustered(30, path(30), 3, [0] * 30))) <= 20


def test_stars_and_isolated_nodes_shrink() -> None:
    """Leaves that find no room at the centre pair up, as do nodes without neighbours."""
    assert len(set(clustered(41, star(41), 4, [0] * 41))) <= 21
    assert len(set(clustered(40, [], 4, [0] * 40))) <= 20


def test_nodes_of_large_components_are_numbered_breadth_first() -> None:
    """A path 0-2-4-1-3 of five nodes in three parts, none of which is small."""
    graph = LevelGraph(*rows_of(5, [(0, 2), (2, 4), (1, 4), (1, 3)]))
    assert components_of(graph, 2.0).main.tolist() == [0, 2, 4, 1, 3]


def test_small_components_are_packed_where_they_fit() -> None:
    """A clique of 40 nodes; components of 2, 1 and 1 nodes, at most 5 % of a fair part of 44, for
    which one part has 3 places and the other one.
    """
    edges = [*clique(0, 40), (40, 41)]
    graph = LevelGraph(*rows_of(44, edges))
    found = components_of(graph, 44.0)
    assert found.main.tolist() == list(range(40)) and len(found.small) == 3
    part = np.full(44, -1, dtype=np.int64)
    part[:40] = ints(*[0] * 19, *[1] * 21)
    out = packed(found, part, ints(19, 21), ints(22, 22), np.random.default_rng(0))
    assert np.bincount(out).tolist() == [22, 22] and out[40] == out[41]


def test_what_fits_nowhere_exceeds_a_limit_by_as_little_as_possible() -> None:
    graph = LevelGraph(*rows_of(42, [*clique(0, 40), (40, 41)]))
    found = components_of(graph, 42.0)
    part = np.full(42, -1, dtype=np.int64)
    part[:40] = ints(*[0] * 20, *[1] * 20)
    out = packed(found, part, ints(20, 20), ints(21, 21), np.random.default_rng(0))
    assert sorted(np.bincount(out).tolist()) == [20, 22]
