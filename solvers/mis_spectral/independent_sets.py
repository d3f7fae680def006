"""Clusters around a maximal independent set, by which a graph is coarsened.

Nodes are taken in a given order; one without a neighbour in the set joins the set and is a *root*.
Every other node joins the neighbouring root r with the greatest

    (weight of the edge)² / (size of the node × size of r's cluster)

as long as the cluster stays within ``most``. A root that nobody has joined joins its strongest
neighbour's cluster, where that has room. Nodes that find no room pair up with others that found
none at the same root, and nodes without neighbours pair up with each other: else stars and graphs
of many components would not shrink. Nodes of different ``label`` are never together.

Then, if that is wanted, nodes move in ``rounds`` to the cluster of most of their edges, where it
has room (label propagation): where edges have equal weights the first choice is blind, and clusters
of a graph of communities would mix these.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optbench.compiling.compiled import inner, njit
from optbench.shapes.gnn_training.training_data import Ints

FREE, ROOT, BESIDE_ROOT = 0, 1, 2
# Rounds of moves end where fewer than one in so many nodes has moved.
FEW_MOVED = 50


class Clustering(NamedTuple):
    """``root`` of each node, the ``size`` of its cluster, and the state of the node."""

    state: Ints
    root: Ints
    cluster_size: Ints
    label: Ints


@njit()
def clusters(
    ptr: Ints,
    adj: Ints,
    weight: Ints,
    size: Ints,
    order: Ints,
    label: Ints,
    most: int,
    rounds: int,
) -> tuple[Ints, int]:
    """Return the cluster of each node, and how many there are."""
    nodes = len(size)
    made = Clustering(
        np.full(nodes, FREE, np.int64), np.full(nodes, -1, np.int64), size.copy(), label
    )
    choose_roots(ptr, adj, order, made)
    for i in range(nodes - 1, -1, -1):
        v = order[i]
        if made.state[v] != ROOT:
            join_best_root(ptr, adj, weight, size, most, v, made)
    pair_up(ptr, adj, weight, size, order, most, made)
    out, count = numbered(made.root)
    if rounds:
        gather(ptr, adj, weight, size, order, label, most, rounds, out, count)
        return numbered_again(out, count)
    return out, count


@inner()
def choose_roots(ptr: Ints, adj: Ints, order: Ints, made: Clustering) -> None:
    """Choose a maximal independent set, greedily in the order given."""
    for v in order:
        if made.state[v] != FREE:
            continue
        made.state[v], made.root[v] = ROOT, v
        for e in range(ptr[v], ptr[v + 1]):
            u = adj[e]
            if made.state[u] == FREE and made.label[u] == made.label[v]:
                made.state[u] = BESIDE_ROOT


@inner()
def join_best_root(
    ptr: Ints, adj: Ints, weight: Ints, size: Ints, most: int, v: int, made: Clustering
) -> None:
    """Let a node join a neighbouring root with room, or stay alone."""
    best, chosen = -1.0, -1
    for e in range(ptr[v], ptr[v + 1]):
        r = adj[e]
        if made.state[r] != ROOT or made.label[r] != made.label[v]:
            continue
        if made.cluster_size[r] + size[v] > most:
            continue
        score = float(weight[e]) * weight[e] / (float(size[v]) * made.cluster_size[r])
        if score > best:
            best, chosen = score, r
    if chosen < 0:
        made.root[v] = v
    else:
        made.root[v] = chosen
        made.cluster_size[chosen] += size[v]


@inner()
def pair_up(
    ptr: Ints, adj: Ints, weight: Ints, size: Ints, order: Ints, most: int, made: Clustering
) -> None:
    """Join nodes that are alone to a neighbour's cluster, else to another one alone beside it."""
    nodes = len(size)
    waiting = np.full(nodes + 1, -1, np.int64)
    for v in order:
        is_alone = made.root[v] == v and made.cluster_size[v] == size[v]
        if not is_alone:
            continue
        hub = nodes
        if ptr[v] < ptr[v + 1]:
            hub = last_root(made.root, adj[strongest_edge(ptr, weight, v)])
            if joined(made, v, hub, size[v], most):
                continue
        mate = waiting[hub]
        if mate < 0 or not joined(made, v, mate, size[v], most):
            waiting[hub] = v
        elif 2 * made.cluster_size[mate] > most:
            waiting[hub] = -1


@inner()
def joined(made: Clustering, v: int, root: int, size: int, most: int) -> bool:
    """Let a node that is alone join a cluster with room and its label; whether it has."""
    if root == v or made.label[root] != made.label[v] or made.cluster_size[root] + size > most:
        return False
    made.root[v] = root
    made.cluster_size[root] += size
    return True


@inner()
def strongest_edge(ptr: Ints, weight: Ints, v: int) -> int:
    """The first of the edges with most weight of a node that has edges."""
    best = ptr[v]
    for e in range(ptr[v], ptr[v + 1]):
        if weight[e] > weight[best]:
            best = e
    return int(best)


@inner()
def last_root(root: Ints, v: int) -> int:
    """The root of a node's cluster, whose root is itself."""
    while root[v] != v:
        v = root[v]
    return v


@inner()
def numbered(root: Ints) -> tuple[Ints, int]:
    """Number the clusters by their first node."""
    nodes, count = len(root), 0
    number, out = np.full(nodes, -1, np.int64), np.empty(nodes, np.int64)
    for v in range(nodes):
        r = last_root(root, v)
        if number[r] < 0:
            number[r] = count
            count += 1
        out[v] = number[r]
    return out, count


@inner()
def gather(
    ptr: Ints,
    adj: Ints,
    weight: Ints,
    size: Ints,
    order: Ints,
    label: Ints,
    most: int,
    rounds: int,
    cluster: Ints,
    count: int,
) -> None:
    """Move nodes to the clusters of most of their edges, until few still move."""
    load, pull = np.zeros(count, np.int64), np.zeros(count, np.int64)
    label_of = np.empty(count, np.int64)
    for v in range(len(size)):
        load[cluster[v]] += size[v]
        label_of[cluster[v]] = label[v]
    for _ in range(rounds):
        moved = 0
        for v in order:
            for e in range(ptr[v], ptr[v + 1]):
                pull[cluster[adj[e]]] += weight[e]
            own = cluster[v]
            chosen = own
            for e in range(ptr[v], ptr[v + 1]):
                c = cluster[adj[e]]
                if pull[c] > pull[chosen] and label_of[c] == label[v] and load[c] + size[v] <= most:
                    chosen = c
            for e in range(ptr[v], ptr[v + 1]):
                pull[cluster[adj[e]]] = 0
            if chosen != own:
                load[own] -= size[v]
                load[chosen] += size[v]
                cluster[v] = chosen
                moved += 1
        if moved * FEW_MOVED < len(size):
            break


@inner()
def numbered_again(cluster: Ints, count: int) -> tuple[Ints, int]:
    """Number the clusters that are left by their first node."""
    number, used = np.full(count, -1, np.int64), 0
    for v in range(len(cluster)):
        c = cluster[v]
        if number[c] < 0:
            number[c] = used
            used += 1
        cluster[v] = number[c]
    return cluster, used
