"""Earliest deadline first. A task inherits the urgency of its successors:

    due_i = min(deadline_i, min_j due_j − p_j − l_ij)

over the successors j, p_j the shortest duration and l_ij the shortest transfer. Tasks without a
date come last, longest remaining path first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

import optbench as ob
from optbench.rules import Rule, RulePolicy, latest_ends, list_rule, windows


@dataclass(frozen=True)
class Edf(RulePolicy):
    """Earliest deadline first, hard and soft ones alike; each task in the mode that ends first of
    those free now.
    """

    job_by_job: ClassVar[bool] = True

    def rule(self, instance: ob.Instance, rng: np.random.Generator) -> Rule:
        known = windows(instance)
        dates = replace(instance.tasks, deadline_hard=np.ones(instance.num_tasks, dtype=bool))
        due = latest_ends(replace(instance, tasks=dates), known)
        dated = np.isfinite(due)
        path = known.shortest + known.tail
        last = due[dated].max(initial=0.0) + 1.0 + path.max(initial=0.0)
        return list_rule(instance, base=np.where(dated, due, last - path), end_weight=1.0)
