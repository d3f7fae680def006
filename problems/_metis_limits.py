"""METIS's default on a graph: its largest part is what instances allow by default, and where a
graph has changed it is the partition before.
"""

from __future__ import annotations

import numpy as np

from optbench.shapes.gnn_training.adjacency import adjacency_of
from optbench.shapes.gnn_training.training_data import DataGraph, Ints


def default_largest_part(graph: DataGraph, num_parts: int) -> int:
    """Return the nodes of the largest part."""
    fair = -(-graph.num_nodes // num_parts)
    part = default_partition(graph, num_parts)
    return max(fair, int(np.bincount(part, minlength=num_parts).max()))


def default_partition(graph: DataGraph, num_parts: int) -> Ints:
    """Return METIS's default, or parts in turn where it has nothing to cut and is not run."""
    if num_parts == 1 or graph.num_edges == 0 or graph.num_nodes < 2 * num_parts:
        return np.arange(graph.num_nodes, dtype=np.int64) % num_parts
    import pymetis

    adjacency = pymetis.CSRAdjacency(*adjacency_of(graph))
    return np.array(pymetis.part_graph(num_parts, adjacency)[1], dtype=np.int64)
