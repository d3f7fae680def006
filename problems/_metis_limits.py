"""The largest part of METIS's default on a graph, which is what instances allow by default."""

from __future__ import annotations

import numpy as np

from optbench.shapes.gnn_training.adjacency import adjacency_of
from optbench.shapes.gnn_training.training_data import DataGraph


def default_largest_part(graph: DataGraph, num_parts: int) -> int:
    """Return the nodes of the largest part; METIS is not run where it has nothing to cut."""
    fair = -(-graph.num_nodes // num_parts)
    if num_parts == 1 or graph.num_edges == 0 or graph.num_nodes < 2 * num_parts:
        return fair
    import pymetis

    adjacency = pymetis.CSRAdjacency(*adjacency_of(graph))
    part = pymetis.part_graph(num_parts, adjacency)[1]
    return max(fair, int(np.bincount(part, minlength=num_parts).max()))
