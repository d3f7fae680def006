"""The nodes around own ones that a module needs to compute the rows of the own ones.

A module that sums over neighbours L times needs the rows of nodes up to L arcs away, and one more
arc where it divides by the degrees of nodes. The neighbourhood of depth h has

    nodes   at a distance of at most h from an own node,
    arcs    with an end at a distance of at most h - 1, in both directions,

so that nodes at distance h - 1 have all their arcs. Own nodes stand first, in the order in which
they are given, then the halo, their neighbours, then the others; arcs ascend by (source, target).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.shapes.gnn_training.adjacency import adjacency_of
from optbench.shapes.gnn_training.training_data import DataGraph, Ints


@dataclass(frozen=True)
class NodeNeighbourhood:
    """``nodes`` are global numbers; ``source`` and ``target`` count rows of ``nodes``.

    ``padding`` more rows without a node in the graph stand last: they make the numbers of rows and
    of arcs different, so that a row of a tensor is known to be a node's or an arc's.
    """

    num_own: int
    num_halo: int
    nodes: Ints
    source: Ints
    target: Ints
    padding: int

    @property
    def num_rows(self) -> int:
        return len(self.nodes) + self.padding

    @property
    def num_arcs(self) -> int:
        return len(self.source)


def neighbourhood(
    graph: DataGraph, own: Ints, depth: int, halo: Ints | None = None
) -> NodeNeighbourhood:
    """Return the neighbourhood of depth ``depth`` of own nodes; the halo ascends, or has the order
    that is given.
    """
    ptr, neighbour = adjacency_of(graph)
    distance = np.full(graph.num_nodes, -1, dtype=np.int64)
    distance[own] = 0
    rings, ring = [own], own
    for step in range(1, depth + 1):
        around = np.unique(_neighbours(ptr, neighbour, ring))
        ring = around[distance[around] < 0]
        if step == 1 and halo is not None:
            ring = halo
        distance[ring] = step
        rings.append(ring)
    nodes = np.concatenate(rings)
    row = np.full(graph.num_nodes, -1, dtype=np.int64)
    row[nodes] = np.arange(len(nodes))
    inside = (distance >= 0) & (distance < depth)
    kept = inside[graph.tail] | inside[graph.head]
    one, other = row[graph.tail[kept]], row[graph.head[kept]]
    source, target = np.concatenate([one, other]), np.concatenate([other, one])
    num_halo = len(rings[1]) if depth else 0
    return _padded(len(own), num_halo, nodes, source, target)


def _neighbours(ptr: Ints, neighbour: Ints, nodes: Ints) -> Ints:
    """The neighbours of nodes, one after the other."""
    length = ptr[nodes + 1] - ptr[nodes]
    first = np.repeat(ptr[nodes] - np.cumsum(length) + length, length)
    found: Ints = neighbour[first + np.arange(length.sum())]
    return found


def _padded(
    num_own: int, num_halo: int, nodes: Ints, source: Ints, target: Ints
) -> NodeNeighbourhood:
    """Sort arcs, and pad: with two nodes that are neighbours where there is no arc."""
    padding = 0
    if not len(source):
        padding = 2
        source = np.array([len(nodes), len(nodes) + 1])
        target = source[::-1].copy()
    padding += int(len(nodes) + padding == len(source))
    order = np.lexsort((target, source))
    return NodeNeighbourhood(num_own, num_halo, nodes, source[order], target[order], padding)
