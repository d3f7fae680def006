"""An instance whose operators are what chosen fusions leave of them."""

from __future__ import annotations

from dataclasses import replace

from optbench.shapes.gnn_training.operator_costs import Operator, costs_of_plan
from optbench.shapes.gnn_training.training_data import GnnTraining, Ints


def as_executed(data: GnnTraining, fusions: Ints) -> GnnTraining:
    """The same instance, whose operators are the kernels that are left, and no fusions."""
    kernels = costs_of_plan(data.operators, data.fusions, fusions.tolist())
    operators = (Operator(f"kernel{k}", "kernel", (), cost) for k, cost in enumerate(kernels))
    return replace(data, operators=tuple(operators), fusions=())
