"""The fusion plan of an instance, and the instance as it is after fusing.

The programme of ``optbench.gnn.kernels.fusion_plan`` is solved once for each kind of device, since
what a fusion saves depends on rate and bandwidth. Of the plans found, the one under which a given
partition does best by the cost model, with its exchange of rows, is taken.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from optbench.gnn.kernels.fusion_plan import KernelRates, best_fusions
from optbench.shapes.gnn_training.operator_costs import FEATURES, Operator, costs_of_plan
from optbench.shapes.gnn_training.step_costs import step_costs
from optbench.shapes.gnn_training.training_data import GnnTraining, Ints
from optbench.shapes.gnn_training.training_plan import TrainingPlan


def fusion_plans(data: GnnTraining) -> list[Ints]:
    """The best fusions for each kind of device, each plan once."""
    kinds = {(each.gflops, each.gb_per_s, each.launch_s): each for each in reversed(data.devices)}
    found = {
        tuple(best_fusions(data, KernelRates(device)).chosen.tolist()) for device in kinds.values()
    }
    return [np.array(each, dtype=np.int64) for each in sorted(found)]


def best_plan(data: GnnTraining, plan: TrainingPlan, fusions: list[Ints]) -> Ints:
    """The fusions with the shortest step of a plan, or its least energy where that is the aim."""
    if len(fusions) == 1:
        return fusions[0]

    def cost(chosen: Ints) -> float:
        costs = step_costs(data, replace(plan, fusions=chosen))
        return costs.energy_j if data.minimize == "energy" else costs.step_s

    return min(fusions, key=cost)


def after_fusion(data: GnnTraining, chosen: Ints) -> GnnTraining:
    """The instance with its fused operators as operators, between which nothing is left to fuse.

    It serves to weigh nodes and devices: costs are kept, the order of operators is not.
    """
    costs = costs_of_plan(data.operators, data.fusions, chosen.tolist())
    operators = tuple(
        Operator(f"operator{k}", "fused", (FEATURES,), cost) for k, cost in enumerate(costs)
    )
    return replace(data, operators=operators, fusions=())
