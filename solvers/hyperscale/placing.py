"""The device of every part, by the methods of ``optbench.gnn.placement``.

All but identity and the rules may leave devices out where that shortens the step. Searches make
their fixed number of rounds, so that the same partition is placed alike, and end where the run's
time is over. The exact programme has a share of the time, or a number of nodes for each set of
devices where work is limited.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from optbench.plugins.protocol import Run
from optbench.shapes.gnn_training.training_data import GnnTraining, Ints
from optbench.shapes.gnn_training.training_plan import TrainingPlan

Placement = Literal[
    "agent",
    "policy_gradient",
    "milp",
    "annealing",
    "local_search",
    "greedy",
    "identity",
    "random_weights",
    "permuted_weights",
    "argmin",
]


# The share of a run's time for the programme of one partition.
MILP_SHARE = 0.1


def placed(
    method: Placement, data: GnnTraining, plan: TrainingPlan, rng: np.random.Generator, run: Run
) -> Ints:
    """Return the device of every part of a plan."""
    if method == "identity" or data.num_devices == 1:
        return plan.device_of(data)
    from optbench.gnn.placement.placement_methods import place
    from optbench.gnn.placement.placement_table import placement_table

    table = placement_table(data, plan)
    if not plan.overlap:
        table = replace(table, overlap=0.0)
    return place(method, table, rng, _time_left(method, run), run.time_left())


def is_within_memory(data: GnnTraining, plan: TrainingPlan) -> bool:
    """Whether the parts of a plan surely fit the memories of their devices."""
    if all(each.memory_gb is None for each in data.devices):
        return True
    from optbench.gnn.placement.placement_table import memory_excess_bytes, placement_table

    return not memory_excess_bytes(placement_table(data, plan), plan.device_of(data)).any()


def warm_up(method: Placement, data: GnnTraining) -> None:
    """Load what a method needs, and its compiled code, by placing two parts on two devices."""
    if method == "identity" or data.num_devices == 1:
        return
    from optbench.gnn.placement.placement_methods import place
    from optbench.gnn.placement.placement_table import smallest_table

    place(method, smallest_table(), np.random.default_rng(0), lambda: np.inf)


def _time_left(method: Placement, run: Run) -> Callable[[], float]:
    """What a method is told of the time: a share, or infinity until the run's time is over."""
    if method == "milp" and run.work_limit is None and run.time_limit_s is not None:
        end = run.elapsed_s() + MILP_SHARE * run.time_limit_s
        return lambda: min(run.time_left(), end - run.elapsed_s())
    return lambda: np.inf if run.time_left() > 0 else 0.0
