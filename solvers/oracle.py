"""Perfect information, epoch by epoch: the reference of ``regret``, and no bound.

It knows the true throughputs, not the future, and minimises the same surrogate as the policies that
have to estimate them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.random import Generator

from optbench.plugins.process_policy import Act, ProcessPolicy
from optbench.shapes.colocation.allocations import Placement
from optbench.shapes.colocation.colocation_process import Observation

from ._estimated_demand import AllocationSettings, placement_of, true_estimates


@dataclass(frozen=True)
class Oracle(AllocationSettings, ProcessPolicy):
    """The allocation ILP of each epoch with the true throughputs."""

    shapes: ClassVar[frozenset[str]] = frozenset({"colocation"})
    clairvoyant: ClassVar[bool] = True

    progress_price: float = 0.8

    def clairvoyant_actor(self, instance: Any, rng: Generator) -> Act:
        expected = true_estimates(instance.data)

        def act(seen: Observation) -> Placement:
            return placement_of(seen, expected, self)

        return act
