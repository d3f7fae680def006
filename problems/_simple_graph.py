"""Pairs of nodes as a simple graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from optbench.shapes.gnn_training.simple_graph import kept_pairs
from optbench.shapes.gnn_training.training_data import DataGraph


def simple_graph(num_nodes: int, one: Any, other: Any) -> DataGraph:
    """Return the graph of these pairs without directions, self-loops and repetitions."""
    one, other = np.asarray(one, dtype=np.int64), np.asarray(other, dtype=np.int64)
    kept = kept_pairs(num_nodes, one, other)
    one, other = one[kept], other[kept]
    return DataGraph(num_nodes, np.minimum(one, other), np.maximum(one, other))
