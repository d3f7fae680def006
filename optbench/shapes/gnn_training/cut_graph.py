"""What a partition makes of a graph: sizes, edges inside and between parts, rows to exchange."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from optbench.shapes.gnn_training.training_data import DataGraph, Ints


@dataclass(frozen=True)
class CutGraph:
    """A graph and the part of each node, from 0 to ``num_parts`` - 1."""

    graph: DataGraph
    part: Ints
    num_parts: int

    @cached_property
    def nodes(self) -> Ints:
        """Nodes of each part."""
        return np.bincount(self.part, minlength=self.num_parts)

    @cached_property
    def sizes(self) -> Ints:
        """Summed sizes of the nodes of each part."""
        weights = self.graph.sizes
        total = np.zeros(self.num_parts, dtype=np.int64)
        np.add.at(total, self.part, weights)
        return total

    @cached_property
    def is_cut(self) -> NDArray[np.bool_]:
        """Whether each edge joins two parts."""
        joins: NDArray[np.bool_] = self.part[self.graph.tail] != self.part[self.graph.head]
        return joins

    @property
    def cut_edges(self) -> int:
        return int(self.is_cut.sum())

    @cached_property
    def arcs(self) -> Ints:
        """Arcs that end in each part: both directions of inner edges, one of each cut edge."""
        ends = np.concatenate([self.part[self.graph.tail], self.part[self.graph.head]])
        return np.bincount(ends, minlength=self.num_parts)

    @cached_property
    def rows(self) -> Ints:
        """rows[p, q]: nodes of part p with a neighbour in part q ≠ p, whose rows q needs."""
        tail, head = self.graph.tail[self.is_cut], self.graph.head[self.is_cut]
        node, other = np.concatenate([tail, head]), self.part[np.concatenate([head, tail])]
        pairs = np.unique(node * self.num_parts + other)
        at = self.part[pairs // self.num_parts] * self.num_parts + pairs % self.num_parts
        counts = np.bincount(at, minlength=self.num_parts**2)
        return counts.reshape(self.num_parts, self.num_parts)

    def merged(self, device: Ints, num_devices: int) -> CutGraph:
        """The same graph cut by devices: parts on one device exchange nothing."""
        return CutGraph(self.graph, device[self.part], num_devices)
