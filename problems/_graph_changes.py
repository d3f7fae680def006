"""A graph some time later: nodes and edges are deleted, others come.

Of n nodes and m edges, a change by the share c

    deletes   c n / 2 nodes with their edges, then c m / 2 of the edges that are left
    inserts   as many nodes, each beside a random node u that was there: it joins u, and every
              neighbour of u with probability 1/2
              as many edges, each between the ends of a walk of two steps from a random node

so that the graph stays of its kind: new edges close triangles, new nodes are like their neighbours.
Pairs that come out twice, and walks back to where they began, are left out. Nodes that stay keep
their order; new ones are numbered after them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.shapes.gnn_training.adjacency import adjacency_of
from optbench.shapes.gnn_training.training_data import NEW, DataGraph, Ints

from ._simple_graph import simple_graph

JOINS = 0.5


@dataclass(frozen=True)
class ChangedGraph:
    """A graph after a change; ``origin`` is the number of each node before, -1 of a new one."""

    graph: DataGraph
    origin: Ints

    def carried(self, part: Ints) -> Ints:
        """The part of each node before the change, -1 of new ones."""
        return np.where(self.origin >= 0, part[self.origin], NEW).astype(np.int64)


def changed_graph(graph: DataGraph, share: float, rng: np.random.Generator) -> ChangedGraph:
    """Return the graph after a change by this share of its nodes and edges."""
    gone = round(share * graph.num_nodes / 2)
    stays = np.ones(graph.num_nodes, dtype=bool)
    stays[rng.choice(graph.num_nodes, min(gone, graph.num_nodes - 1), replace=False)] = False
    rest = _rest(graph, stays, round(share * graph.num_edges / 2), rng)
    beside, joined = _beside(rest, gone, rng)
    walks = _walks(rest, round(share * graph.num_edges / 2), rng)
    nodes = rest.num_nodes + gone
    made = simple_graph(
        nodes,
        np.concatenate([rest.tail, beside, walks[0]]),
        np.concatenate([rest.head, joined, walks[1]]),
    )
    new = np.full(gone, NEW, dtype=np.int64)
    return ChangedGraph(made, np.concatenate([np.flatnonzero(stays), new]))


def _rest(
    graph: DataGraph, stays: np.ndarray[tuple[int], np.dtype[np.bool_]], edges: int,
    rng: np.random.Generator,
) -> DataGraph:  # fmt: skip
    """What is left of a graph of some nodes when so many edges have gone, too."""
    number = np.cumsum(stays) - 1
    kept = np.flatnonzero(stays[graph.tail] & stays[graph.head])
    kept = np.sort(rng.choice(kept, max(0, len(kept) - edges), replace=False))
    return DataGraph(int(stays.sum()), number[graph.tail[kept]], number[graph.head[kept]])


def _beside(graph: DataGraph, count: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """The edges of new nodes, which are numbered after the graph's own."""
    ptr, neighbour = adjacency_of(graph)
    model = rng.integers(0, graph.num_nodes, count)
    number = graph.num_nodes + np.arange(count)
    degree = ptr[model + 1] - ptr[model]
    first = np.repeat(ptr[model] - np.cumsum(degree) + degree, degree)
    around = neighbour[first + np.arange(int(degree.sum()))]
    joins = rng.random(len(around)) < JOINS
    return (
        np.concatenate([number, np.repeat(number, degree)[joins]]),
        np.concatenate([model, around[joins]]),
    )


def _walks(graph: DataGraph, count: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """The ends of walks of two steps, from random ends of random edges."""
    if graph.num_edges == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    ptr, neighbour = adjacency_of(graph)
    edge = rng.integers(0, graph.num_edges, count)
    is_tail = rng.random(count) < 0.5
    start = np.where(is_tail, graph.tail[edge], graph.head[edge])
    middle = np.where(is_tail, graph.head[edge], graph.tail[edge])
    step = (rng.random(count) * (ptr[middle + 1] - ptr[middle])).astype(np.int64)
    return start, neighbour[ptr[middle] + step]
