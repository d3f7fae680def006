"""A small graph with an isolated node, for the tests of the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from optbench.plugins.discovery import load_problem
from optbench.shapes.gnn_training.training_data import DataGraph, GnnTraining

# A hub 0, a triangle 1-2-3 that it touches, a chain behind, and node 7 alone.
GRAPH = DataGraph(8, np.array([0, 0, 0, 1, 1, 2, 4, 5]), np.array([1, 2, 4, 2, 3, 3, 5, 6]))
FEATURES, CLASSES, HEADS = 9, 4, 4


def training_of(network: str, hidden: int = 16) -> GnnTraining:
    """The operators and fusions of a network, on some graph."""
    text = f"gnn_training:graph=grid,nodes=12,parts=1,network={network},hidden={hidden}"
    instance: Any = load_problem(f"{text},features={FEATURES},classes={CLASSES}").instance(0)
    data: GnnTraining = instance.data
    return data
