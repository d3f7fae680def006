"""The neighbours of each node as compressed rows."""

from __future__ import annotations

import numpy as np

from optbench.shapes.gnn_training.training_data import DataGraph, Ints


def adjacency_of(graph: DataGraph) -> tuple[Ints, Ints]:
    """Return ``ptr`` and ``neighbour``: node v has neighbour[ptr[v] : ptr[v + 1]], ascending."""
    # Edges ascend, so that a stable sort leaves smaller neighbours, then larger ones, in order.
    node = np.concatenate([graph.head, graph.tail])
    other = np.concatenate([graph.tail, graph.head])
    ptr = np.zeros(graph.num_nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(node, minlength=graph.num_nodes), out=ptr[1:])
    return ptr, other[np.argsort(node, kind="stable")]
