"""The part of a graph that one process computes, and the rows that it exchanges with others.

A process owns the nodes of its device. An own node is *inner* if all neighbours are own nodes, and
otherwise on the *boundary*; own nodes stand in the order inner, boundary, each ascending. *Halo*
nodes are neighbours on other processes, grouped by process and ascending. Columns count own nodes,
then halo nodes. Because edges go both ways, the rows that p sends to q are those that q keeps of p.

Several parts on one device are one block: nothing is exchanged between them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.shapes.gnn_training.adjacency import adjacency_of
from optbench.shapes.gnn_training.training_data import DataGraph, Ints


@dataclass(frozen=True)
class Peer:
    """Another process: own rows (indices) to send, and where its rows stand in the halo."""

    rank: int
    send: Ints
    first: int
    last: int


@dataclass(frozen=True)
class LocalGraph:
    """Own and halo nodes (global numbers), and the arcs that end in own nodes.

    Arc j leads from column ``source[j]`` to own row ``target[j]``.
    """

    rank: int
    own: Ints
    num_inner: int
    halo: Ints
    peers: tuple[Peer, ...]
    target: Ints
    source: Ints
    degree: Ints

    @property
    def num_own(self) -> int:
        return len(self.own)

    @property
    def num_columns(self) -> int:
        return len(self.own) + len(self.halo)

    @property
    def columns(self) -> Ints:
        """The global numbers of own and halo nodes."""
        return np.concatenate([self.own, self.halo])


def local_graph(graph: DataGraph, device: Ints, rank: int) -> LocalGraph:
    """Return what the process ``rank`` computes, where ``device`` has the process of each node."""
    ptr, neighbour = adjacency_of(graph)
    degree = np.diff(ptr)
    target = np.repeat(np.arange(graph.num_nodes), degree)
    mine = device[target] == rank
    target, source = target[mine], neighbour[mine]
    outside = device[source] != rank
    nodes = np.flatnonzero(device == rank)
    on_boundary = np.isin(nodes, target[outside])
    own = np.concatenate([nodes[~on_boundary], nodes[on_boundary]])
    halo = np.unique(source[outside])
    halo = halo[np.argsort(device[halo], kind="stable")]
    column = np.full(graph.num_nodes, -1, dtype=np.int64)
    column[own] = np.arange(len(own))
    column[halo] = len(own) + np.arange(len(halo))
    peers = []
    for other in np.unique(device[halo]).tolist():
        needed = np.unique(target[outside & (device[source] == other)])
        first, last = np.searchsorted(device[halo], [other, other + 1]).tolist()
        peers.append(Peer(other, column[needed], first, last))
    rows = column[target]
    order = np.argsort(rows, kind="stable")
    columns = np.concatenate([own, halo])
    return LocalGraph(
        rank,
        own,
        int((~on_boundary).sum()),
        halo,
        tuple(peers),
        rows[order],
        column[source][order],
        degree[columns],
    )
