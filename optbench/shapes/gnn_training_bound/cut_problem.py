"""The cut alone: fewest edges between at most k parts of at most M nodes.

Sizes, devices and operators are left out, and so are components that are small beside the graph: a
decision restricted to the nodes that are kept cuts no more edges, in parts that are no larger.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optbench.compiling.compiled import njit
from optbench.shapes.gnn_training.training_data import GnnTraining, Ints

# Components of less than this share of the nodes are left out: they fill the parts like sand.
SMALL_SHARE = 100


@dataclass(frozen=True)
class Arcs:
    """The edges from each node: those of node v are first[v] to first[v + 1]."""

    first: Ints
    other: Ints
    edge: Ints


@dataclass(frozen=True)
class CutProblem:
    """A graph, the number of parts k and the most nodes M of a part; n ≤ k M."""

    num_nodes: int
    tail: Ints
    head: Ints
    num_parts: int
    max_part: int

    @property
    def num_edges(self) -> int:
        return len(self.tail)

    @cached_property
    def arcs(self) -> Arcs:
        source = np.concatenate([self.tail, self.head])
        order = np.argsort(source, kind="stable")
        edge = np.tile(np.arange(self.num_edges, dtype=np.int64), 2)[order]
        counts = np.bincount(source, minlength=self.num_nodes)
        first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return Arcs(first, np.concatenate([self.head, self.tail])[order], edge)

    @cached_property
    def degrees(self) -> Ints:
        return np.diff(self.arcs.first)

    @cached_property
    def components(self) -> Ints:
        """The component of each node, numbered by its first node."""
        arcs = self.arcs
        return np.asarray(_components(arcs.first, arcs.other))

    @property
    def pairs_apart(self) -> int:
        """The fewest pairs of nodes in different parts: full parts, and one with the rest."""
        full, rest = divmod(self.num_nodes, self.max_part)
        together = full * self.max_part**2 + rest**2
        return (self.num_nodes**2 - together) // 2


def cut_problem(data: GnnTraining) -> CutProblem:
    """Return the problem of the whole graph."""
    graph = data.graph
    most = min(data.max_part, graph.num_nodes)
    return CutProblem(graph.num_nodes, graph.tail, graph.head, data.num_parts, most)


def without_small_components(problem: CutProblem) -> CutProblem:
    """Return the problem of the components that are not small; the nodes are numbered anew."""
    sizes = np.bincount(problem.components)
    keeps = sizes[problem.components] * SMALL_SHARE >= problem.num_nodes
    keeps |= problem.components == sizes.argmax()
    number = np.cumsum(keeps) - 1
    inside = keeps[problem.tail]
    ends = number[problem.tail[inside]], number[problem.head[inside]]
    return CutProblem(int(keeps.sum()), *ends, problem.num_parts, problem.max_part)


@njit(cache=True)
def _components(first: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    n = len(first) - 1
    label, stack = np.full(n, -1, np.int64), np.empty(n, np.int64)
    found = 0
    for root in range(n):
        if label[root] >= 0:
            continue
        label[root], stack[0], height = found, root, 1
        while height > 0:
            height -= 1
            v = stack[height]
            for a in range(first[v], first[v + 1]):
                u = other[a]
                if label[u] < 0:
                    label[u] = found
                    stack[height] = u
                    height += 1
        found += 1
    return label
