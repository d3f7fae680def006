"""Pairs of nodes as a simple graph: each edge once, as tail < head, in lexicographic order."""

from __future__ import annotations

import numpy as np

from optbench.shapes.gnn_training.training_data import Ints


def kept_pairs(num_nodes: int, one: Ints, other: Ints) -> Ints:
    """Return the pairs to keep, in the order of edges: no self-loops, of equal ones the first."""
    key = np.minimum(one, other) * num_nodes + np.maximum(one, other)
    order = np.argsort(key, kind="stable")
    order = order[(one != other)[order]]
    kept: Ints = order[np.diff(key[order], prepend=-1) > 0]
    return kept
