"""The allocation ILP of each epoch with throughputs that a simple estimator expects.

These are the rivals of ``gogh``: same loop, same ILP, same measurements, another estimator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from numpy.random import Generator

from optbench.plugins.process_policy import Act, ProcessPolicy

from ._estimated_demand import AllocationSettings, acting_on

Named = Literal[
    "partner_mean",
    "frozen_partner_mean",
    "matrix_completion",
    "related_completion",
    "additive_completion",
    "trees",
]


@dataclass(frozen=True)
class EstimatedAllocation(AllocationSettings, ProcessPolicy):
    """The allocation ILP with a mean over partners, completed matrices, or boosted trees."""

    shapes: ClassVar[frozenset[str]] = frozenset({"colocation"})

    estimator: Named = "matrix_completion"

    def actor(self, rng: Generator) -> Act:
        from optbench.learn.colocation.estimators import estimator_named

        return acting_on(lambda facts: estimator_named(self.estimator, facts), self)
