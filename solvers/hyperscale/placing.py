"""The device of every part, by the methods of ``optbench.gnn.placement``.

Searches make their fixed number of rounds, so that the same partition is placed alike, and end
where the run's time is over; they make one where the cut alone counts. The exact programme has a
share of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
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


# The share of a run's time for the programme of one partition, and seconds where time is unlimited.
MILP_SHARE, MILP_S = 0.1, 5.0
# Seconds of a placement that only loads code.
SHORT_S = 1e-3


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
    return place(method, table, rng, _time_left(method, data.minimize == "cut", run))


def warm_up(method: Placement, data: GnnTraining) -> None:
    """Load what a method needs, and its compiled code, by a placement that is cut short."""
    if method == "identity" or data.num_devices == 1:
        return
    from optbench.gnn.placement.placement_methods import place
    from optbench.gnn.placement.placement_table import placement_table

    part = np.arange(data.graph.num_nodes, dtype=np.int64) % data.num_parts
    left = iter([SHORT_S])
    table = placement_table(data, TrainingPlan(part))
    place(method, table, np.random.default_rng(0), lambda: next(left, 0.0))


def _time_left(method: Placement, is_brief: bool, run: Run) -> Callable[[], float]:
    """What a method is told of the time: none is left after the first round of a brief search."""
    if method == "milp":
        share = MILP_S if run.time_limit_s is None else MILP_SHARE * run.time_limit_s
        end = run.elapsed_s() + share
        return lambda: min(run.time_left(), end - run.elapsed_s())
    asked = count()

    def left() -> float:
        is_over = run.time_left() <= 0 or (is_brief and next(asked) > 0)
        return 0.0 if is_over else np.inf

    return left
