"""Compiled code of tree packing, in whole numbers: shortest-path trees and the loads of their
edges.

Whoever runs these kernels on the same lengths gets the same trees, so that a certificate need not
contain any.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optbench.compiling.compiled import inner, njit

Array = NDArray[Any]
FAR = np.int64(1) << 61
# Lengths of edges grow from 2^0 to 2^LENGTH_BITS with their load.
LENGTH_BITS = 24
# The most that a tree adds to the load of an edge; no tree of a graph has as many nodes.
TREE_LOAD = 1 << 32


@inner()
def _push(keys: Array, nodes: Array, size: int, key: int, node: int) -> int:
    i = size
    while i > 0 and keys[(i - 1) // 2] > key:
        keys[i], nodes[i] = keys[(i - 1) // 2], nodes[(i - 1) // 2]
        i = (i - 1) // 2
    keys[i], nodes[i] = key, node
    return size + 1


@inner()
def _pop(keys: Array, nodes: Array, size: int) -> int:
    """Remove the least key; the heap's last entry takes its place."""
    size -= 1
    key, node, i = keys[size], nodes[size], 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[i], nodes[i] = keys[child], nodes[child]
        i = child
    keys[i], nodes[i] = key, node
    return size


@njit(cache=True)
def shortest_paths(
    first: Array, other: Array, edge: Array, lengths: Array, root: int, limit: int
) -> tuple[Array, Array, Array, Array]:
    """Return the nodes nearer than a limit in the order of their distance from a root; the parent
    of each node, the edge to it, and the distances.
    """
    n = len(first) - 1
    distance, parent = np.full(n, FAR, np.int64), np.full(n, -1, np.int64)
    to_parent = np.full(n, -1, np.int64)
    done = np.zeros(n, np.uint8)
    order = np.empty(n, np.int64)
    keys, nodes = np.empty(len(other) + 1, np.int64), np.empty(len(other) + 1, np.int64)
    distance[root] = 0
    size, count = _push(keys, nodes, 0, 0, root), 0
    while size > 0:
        v = nodes[0]
        size = _pop(keys, nodes, size)
        if done[v]:
            continue
        if distance[v] >= limit:
            break
        done[v], order[count] = 1, v
        count += 1
        for a in range(first[v], first[v + 1]):
            u = other[a]
            reached = distance[v] + lengths[edge[a]]
            if done[u] == 0 and reached < distance[u]:
                distance[u] = reached
                parent[u], to_parent[u] = v, edge[a]
                size = _push(keys, nodes, size, distance[u], u)
    return order[:count], parent, to_parent, distance


@njit(cache=True)
def best_size(order: Array, distance: Array, max_part: int) -> int:
    """The number s of nearest nodes with the largest (s − M) / (sum of distances); 0 where there
    are no more than M.
    """
    best, ratio, total = 0, 0.0, 0.0
    for s in range(len(order)):
        total += distance[order[s]]
        if s + 1 > max_part and (s + 1 - max_part) > ratio * total:
            best, ratio = s + 1, (s + 1 - max_part) / max(total, 1e-300)
    return best


@njit(cache=True)
def tree_loads(
    order: Array, parent: Array, to_parent: Array, size: int, most: int
) -> tuple[Array, Array]:
    """Return the edges of the tree of the first ``size`` nodes of an order, and how many of these
    nodes lie beyond each, at most ``most``.
    """
    below = np.zeros(len(parent), np.int64)
    edges, loads = np.empty(max(size - 1, 0), np.int64), np.empty(max(size - 1, 0), np.int64)
    for s in range(size - 1, 0, -1):
        v = order[s]
        below[v] += 1
        edges[s - 1], loads[s - 1] = to_parent[v], min(below[v], most)
        below[parent[v]] += below[v]
    return edges, loads


@njit(cache=True)
def grown_lengths(load: Array, bits: int, out: Array) -> None:
    """Set lengths to about 2^(bits × load / largest load), in whole numbers."""
    top = max(load.max(), 1)
    for e in range(len(load)):
        # Eight bits after the point of the exponent, which the line between two powers rounds.
        exponent = (load[e] >> 8) * (bits << 8) // max(top >> 8, 1)
        out[e] = (256 + (exponent & 255)) << (exponent >> 8)


@njit(cache=True)
def add_tree(load: Array, edges: Array, loads: Array) -> int:
    """Add a tree as often as its most loaded edge allows; return how often."""
    times: int = TREE_LOAD // max(loads.max(), 1)
    for t in range(len(edges)):
        load[edges[t]] += times * loads[t]
    return times
