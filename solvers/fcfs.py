"""First come, first served: tasks in the order in which they become ready, each in the mode that
ends first of those free now.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import optbench as ob
from optbench.rules import Rule, RulePolicy, list_rule


@dataclass(frozen=True)
class Fcfs(RulePolicy):
    """First come, first served: no task overtakes the one that has been ready longest."""

    job_by_job: ClassVar[bool] = True

    def rule(self, instance: ob.Instance, rng: np.random.Generator) -> Rule:
        return list_rule(instance, ready_weight=1.0, end_weight=1.0, strict=True)
