"""Pairs of nodes as a simple graph: each edge once, as tail < head, in lexicographic order."""

from __future__ import annotations

from typing import Any

import numpy as np

from optbench.shapes.gnn_training.training_data import DataGraph


def simple_graph(num_nodes: int, one: Any, other: Any) -> DataGraph:
    """Return the graph of these pairs without directions, self-loops and repetitions."""
    one, other = np.asarray(one, dtype=np.int64), np.asarray(other, dtype=np.int64)
    tail, head = np.minimum(one, other), np.maximum(one, other)
    key = np.sort((tail * num_nodes + head)[tail != head])
    key = key[np.diff(key, prepend=-1) > 0]
    return DataGraph(num_nodes, key // num_nodes, key % num_nodes)
