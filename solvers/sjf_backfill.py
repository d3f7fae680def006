"""Shortest job first with backfilling: free devices go to the shortest ready task that fits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Instance
from optbench.model.windows import windows
from optbench.plugins.policy import RulePolicy
from optbench.sim.kernel.dispatch import Rule
from optbench.sim.rules import list_rule


@dataclass(frozen=True)
class SjfBackfill(RulePolicy):
    """Shortest job first; where it does not fit, others overtake it (there is no reservation: a
    wide task may wait long).
    """

    def rule(self, instance: Instance, rng: np.random.Generator) -> Rule:
        return list_rule(instance, base=windows(instance).shortest, end_weight=1.0)
