"""The verifier: feasibility and every metric, from the instance and the schedule alone.

A schedule is feasible when each of CONSTRAINTS holds; a violation names the constraint, the place and the amount.
Energy is the sum of the segments' energy data, of the transfers, and of resting power over the horizon:

    E = Σ_s u_s e_k(s) + Σ_edges transfer_j + Σ_pools rest_w · (count · H − Σ_s n_s · (end_s − start_s))

with H the fixed horizon, or the makespan. Cost and carbon weigh the same power with the pool's tariff at the time: a
segment draws its energy evenly over its length, a transfer draws at the sender the moment the producer ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.model import metrics as measure
from optbench.model.checks import CONSTRAINTS, Violation, check
from optbench.model.instance import Instance
from optbench.model.schedule import Schedule

__all__ = ["CONSTRAINTS", "Verdict", "Violation", "verify"]


@dataclass(frozen=True)
class Verdict:
    """What the verifier says. ``objectives`` has one value per level and is empty for an infeasible schedule."""

    feasible: bool
    violations: tuple[Violation, ...]
    objectives: tuple[float, ...]
    metrics: dict[str, float]

    @property
    def objective(self) -> float | tuple[float, ...] | None:
        """A number, a tuple when the objective has several levels, None when infeasible."""
        if not self.objectives:
            return None
        return self.objectives[0] if len(self.objectives) == 1 else self.objectives


def verify(instance: Instance, schedule: Schedule) -> Verdict:
    """Check every constraint and recompute every metric."""
    violations = check(instance, schedule)
    if any(violation.constraint == "form" for violation in violations):
        return Verdict(False, tuple(violations), (), {})
    values = measure.metrics_of(instance, schedule)
    for name, limit in sorted(instance.limits.metric_max.items()):
        if not values[name] <= limit + measure.slack(limit):
            message = f"{name} is {values[name]:.9g}, the limit {limit:.9g}"
            violations.append(Violation(f"limit:{name}", message, values[name] - limit))
    if instance.is_open and values["units_done"] <= 0:
        violations.append(Violation("assignment", "no unit of work is done before the horizon: there is no energy per unit"))
    feasible = not violations and all(np.isfinite(value) for value in values.values())
    objectives = instance.objective.values(values) if feasible else ()
    return Verdict(feasible, tuple(violations), objectives, values)
