"""Shortest job first with backfilling: free devices go to the shortest ready task that fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import optbench as ob
from optbench.rules import Rule, RulePolicy, list_rule, windows


@dataclass(frozen=True)
class SjfBackfill(RulePolicy):
    """Shortest job first; where it does not fit, others overtake it (there is no reservation: a
    wide task may wait long).
    """

    job_by_job: ClassVar[bool] = True

    def rule(self, instance: ob.Instance, rng: np.random.Generator) -> Rule:
        return list_rule(instance, base=windows(instance).shortest, end_weight=1.0)
