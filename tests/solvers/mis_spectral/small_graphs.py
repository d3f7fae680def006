"""Small graphs to partition, and instances of training on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from optbench.plugins.discovery import load_problem
from optbench.shapes.gnn_training.adjacency import adjacency_of
from optbench.shapes.gnn_training.gnn_training_shape import GnnTrainingShape
from optbench.shapes.gnn_training.training_data import DataGraph
from optbench.shapes.protocol.shaped_instance import ShapedInstance

Edges = Iterable[tuple[int, int]]


def graph_of(nodes: int, edges: Edges) -> DataGraph:
    pairs = np.array(sorted({(min(e), max(e)) for e in edges}), dtype=np.int64).reshape(-1, 2)
    return DataGraph(nodes, pairs[:, 0].copy(), pairs[:, 1].copy())


@cache
def template() -> Any:
    """The data of a training instance, whose graph is exchanged."""
    return load_problem("gnn_training:graph=grid,nodes=4,parts=2,imbalance=0").instance(0).data


def training_on(
    nodes: int, edges: Edges, parts: int, max_part: int | None = None, **changes: Any
) -> ShapedInstance:
    """Training on a graph in parts; ``max_part`` is the fair share unless it is given."""
    most = -(-nodes // parts) if max_part is None else max_part
    data = replace(
        template(), graph=graph_of(nodes, edges), num_parts=parts, max_part=most, **changes
    )
    return GnnTrainingShape().instance("small", data)


def rows_of(nodes: int, edges: Edges) -> tuple[Any, Any, Any, Any]:
    """Compressed rows with weights and sizes of 1."""
    ptr, adj = adjacency_of(graph_of(nodes, edges))
    return ptr, adj, np.ones(len(adj), dtype=np.int64), np.ones(nodes, dtype=np.int64)


def path(nodes: int) -> list[tuple[int, int]]:
    return [(v, v + 1) for v in range(nodes - 1)]


def cycle(nodes: int) -> list[tuple[int, int]]:
    return [*path(nodes), (0, nodes - 1)]


def star(nodes: int) -> list[tuple[int, int]]:
    return [(0, v) for v in range(1, nodes)]


def clique(first: int, nodes: int) -> list[tuple[int, int]]:
    return [(first + a, first + b) for a in range(nodes) for b in range(a + 1, nodes)]


def lattice(side: int) -> list[tuple[int, int]]:
    right = [(v, v + 1) for v in range(side * side) if v % side < side - 1]
    return right + [(v, v + side) for v in range(side * (side - 1))]
