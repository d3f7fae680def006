"""A training instance small enough to compute by hand: a square with a diagonal on two devices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from optbench.shapes.gnn_training.gnn_training_shape import GnnTrainingShape
from optbench.shapes.gnn_training.operator_costs import Fusion, Operator, OperatorCost
from optbench.shapes.gnn_training.training_data import (
    DataGraph,
    DeviceLinks,
    GnnTraining,
    TrainingDevice,
)
from optbench.shapes.gnn_training.training_plan import TrainingPlan
from optbench.shapes.protocol.shaped_instance import ShapedInstance

# Nodes 0-1-3-2-0 and the edge 1-2.
SQUARE = DataGraph(4, np.array([0, 0, 1, 1, 2]), np.array([1, 2, 2, 3, 3]))
DENSE = OperatorCost(flop_per_node=1e9, bytes_per_node=4e8, kept_bytes_per_node=1e9, launches=1)
AGGREGATE = OperatorCost(
    flop_per_arc=1e8, bytes_per_arc=5e8, row_bytes=2e8, exchanges=2, launches=1
)
OPERATORS = (Operator("xw", "dense", (-1,), DENSE), Operator("ax", "aggregate", (0,), AGGREGATE))
BOTH = Fusion("ax_w", (0, 1), OperatorCost(flop_per_node=1.5e9, launches=1))
FAST = TrainingDevice("fast", 2.0, 1.0, 10.0, 100.0, 50.0, 20.0, (0.5, 1.0), 5.0, 0.01)
SLOW = TrainingDevice("slow", 1.0, 1.0, 5.0, 40.0, 20.0, 10.0, (1.0,), 5.0, 0.01)
LINKS = DeviceLinks(np.full((2, 2), 0.5), np.full((2, 2), 0.125), 0.25, 2.0)


def training(**changes: Any) -> GnnTraining:
    """The instance's data with changes."""
    data = GnnTraining(SQUARE, OPERATORS, (BOTH,), 1e9, (FAST, SLOW), LINKS, 2, 3)
    return replace(data, **changes)


def instance(**changes: Any) -> ShapedInstance:
    return GnnTrainingShape().instance("square", training(**changes))


def plan(part: list[int], **others: list[int]) -> TrainingPlan:
    columns: Any = {name: np.array(values, dtype=np.int64) for name, values in others.items()}
    return TrainingPlan(np.array(part, dtype=np.int64), **columns)
