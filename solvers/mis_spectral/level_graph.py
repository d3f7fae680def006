"""A graph at one level of coarsening: weighted nodes and edges as compressed rows.

Node v has the neighbours adj[ptr[v] : ptr[v + 1]] by edges of ``weight``; both directions of an
edge are stored. ``size`` is what a node adds to the load of its part.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optbench.compiling.compiled import njit
from optbench.shapes.gnn_training.training_data import Ints


class LevelGraph(NamedTuple):
    """Compressed rows of a graph."""

    ptr: Ints
    adj: Ints
    weight: Ints
    size: Ints

    @property
    def num_nodes(self) -> int:
        return len(self.size)

    @staticmethod
    def of_edges(tail: Ints, head: Ints, size: Ints) -> LevelGraph:
        """The graph of these edges, each of weight 1."""
        ptr, adj = rows_of_edges(tail, head, len(size))
        return LevelGraph(ptr, adj, np.ones(len(adj), dtype=np.int64), size)

    def induced(self, nodes: Ints) -> LevelGraph:
        """The graph of some nodes, in their order, and the edges between them."""
        return LevelGraph(*induced_rows(*self, nodes))

    def cut_arcs(self, part: Ints) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether each stored direction of an edge joins two parts."""
        kept: np.ndarray[tuple[int], np.dtype[np.bool_]] = (
            np.repeat(part, np.diff(self.ptr)) != part[self.adj]
        )
        return kept


@njit()
def contracted(
    ptr: Ints, adj: Ints, weight: Ints, size: Ints, cluster: Ints, count: int
) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the graph of the clusters 0 to ``count`` - 1 of nodes, with summed weights."""
    nodes = len(size)
    first = np.zeros(count + 1, np.int64)
    for v in range(nodes):
        first[cluster[v] + 1] += 1
    for c in range(count):
        first[c + 1] += first[c]
    member, place = np.empty(nodes, np.int64), first.copy()
    total = np.zeros(count, np.int64)
    for v in range(nodes):
        c = cluster[v]
        member[place[c]] = v
        place[c] += 1
        total[c] += size[v]
    new_ptr, entry = np.zeros(count + 1, np.int64), np.full(count, -1, np.int64)
    new_adj, new_weight = np.empty(len(adj), np.int64), np.empty(len(adj), np.int64)
    end = 0
    for c in range(count):
        begin = end
        for i in range(first[c], first[c + 1]):
            v = member[i]
            for e in range(ptr[v], ptr[v + 1]):
                d = cluster[adj[e]]
                if d == c:
                    continue
                if entry[d] >= begin:
                    new_weight[entry[d]] += weight[e]
                else:
                    entry[d] = end
                    new_adj[end], new_weight[end] = d, weight[e]
                    end += 1
        new_ptr[c + 1] = end
    return new_ptr, new_adj[:end].copy(), new_weight[:end].copy(), total


@njit()
def cut_weight(ptr: Ints, adj: Ints, weight: Ints, part: Ints) -> int:
    """Return the summed weight of edges between parts."""
    total = 0
    for v in range(len(part)):
        for e in range(ptr[v], ptr[v + 1]):
            if part[adj[e]] != part[v]:
                total += weight[e]
    return total // 2


@njit()
def rows_of_edges(tail: Ints, head: Ints, nodes: int) -> tuple[Ints, Ints]:
    """Return the neighbours of each node as compressed rows."""
    ptr = np.zeros(nodes + 1, np.int64)
    for e in range(len(tail)):
        ptr[tail[e] + 1] += 1
        ptr[head[e] + 1] += 1
    for v in range(nodes):
        ptr[v + 1] += ptr[v]
    place, adj = ptr.copy(), np.empty(2 * len(tail), np.int64)
    for e in range(len(tail)):
        one, other = tail[e], head[e]
        adj[place[one]], adj[place[other]] = other, one
        place[one] += 1
        place[other] += 1
    return ptr, adj


@njit()
def induced_rows(
    ptr: Ints, adj: Ints, weight: Ints, size: Ints, nodes: Ints
) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the graph of some nodes and the edges between them."""
    place = np.full(len(size), -1, np.int64)
    for i in range(len(nodes)):
        place[nodes[i]] = i
    new_ptr = np.zeros(len(nodes) + 1, np.int64)
    new_adj, new_weight = np.empty(len(adj), np.int64), np.empty(len(adj), np.int64)
    end = 0
    for i in range(len(nodes)):
        v = nodes[i]
        for e in range(ptr[v], ptr[v + 1]):
            if place[adj[e]] >= 0:
                new_adj[end], new_weight[end] = place[adj[e]], weight[e]
                end += 1
        new_ptr[i + 1] = end
    return new_ptr, new_adj[:end].copy(), new_weight[:end].copy(), size[nodes]
