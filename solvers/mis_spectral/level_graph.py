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
    """Compressed rows; ``LevelGraph.of`` checks nothing."""

    ptr: Ints
    adj: Ints
    weight: Ints
    size: Ints

    @property
    def num_nodes(self) -> int:
        return len(self.size)

    def induced(self, nodes: Ints) -> LevelGraph:
        """The graph of some nodes, ascending, and the edges between them."""
        place = np.full(self.num_nodes, -1, dtype=np.int64)
        place[nodes] = np.arange(len(nodes))
        row = np.repeat(place, np.diff(self.ptr))
        kept = (row >= 0) & (place[self.adj] >= 0)
        ptr = np.zeros(len(nodes) + 1, dtype=np.int64)
        np.cumsum(np.bincount(row[kept], minlength=len(nodes)), out=ptr[1:])
        return LevelGraph(ptr, place[self.adj[kept]], self.weight[kept], self.size[nodes])

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
