"""The allocation ILP of each epoch with throughputs that a simple estimator expects.

These are the rivals of ``gogh``: same loop, same ILP, same measurements, another estimator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from numpy.random import Generator

from optbench.plugins.process_policy import Act, ProcessPolicy
from optbench.shapes.colocation.allocations import Placement
from optbench.shapes.colocation.colocation_process import Observation
from optbench.shapes.colocation.estimates import Estimator

from ._estimated_demand import AllocationSettings, placement_of

Named = Literal[
    "partner_mean", "frozen_partner_mean", "matrix_completion", "additive_completion", "trees", "networks", "frozen_networks"
]


@dataclass(frozen=True)
class EstimatedAllocation(ProcessPolicy):
    """The allocation ILP with a mean over partners, completed matrices, or boosted trees."""

    shapes: ClassVar[frozenset[str]] = frozenset({"colocation"})

    estimator: Named = "partner_mean"
    risk_w: float = 300.0  # price of missing a requirement, times its probability
    most_risk: float = 0.5  # the largest probability of missing one
    misfit_w: float = 300.0  # price of a pair that may not fit, times its probability
    least_fit: float = 0.5  # least probability to fit of a pair that is tried
    explore_w: float = 0.0  # reward of a pair of uncertain ratio
    waiting_w: float = 3000.0  # price of a job that waits
    progress_price: float = 0.8  # value of progress
    pairs: bool = True  # whether jobs may share GPUs

    def actor(self, rng: Generator) -> Act:
        settings = AllocationSettings(
            progress_price=self.progress_price,
            waiting_w=self.waiting_w,
            risk_w=self.risk_w,
            most_risk=self.most_risk,
            misfit_w=self.misfit_w,
            least_fit=self.least_fit,
            explore_w=self.explore_w,
            pairs=self.pairs,
        )
        estimators: list[Estimator] = []

        def act(seen: Observation) -> Placement:
            if not estimators:
                from optbench.learn.colocation.estimators import estimator_named

                estimators.append(estimator_named(self.estimator, seen.public))
            estimators[0].learn(seen)
            return placement_of(seen, estimators[0].estimates(), settings)

        return act
