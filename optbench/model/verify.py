"""The verifier: feasibility and every metric, from the instance and the schedule alone.

A schedule is feasible when each of CONSTRAINTS holds; a violation names the constraint, the place
and the amount. Energy is the sum of the energy of segments and transfers, and of idle power over
the horizon:

    E = Σ_s share_s u_i(s) e_k(s) + Σ_edges transfer_j
        + Σ_pools rest_w (count (H − O) − Σ_s n_s |[start_s, end_s] ∩ [O, H]|)

(``model.sleeping`` says what rows of devices that sleep change), with share_s = (end_s − start_s) /
D, O the opening (0 where none is given) and H the fixed horizon, or the makespan. Cost and carbon
weigh the same power with the pool's tariff at the time: a segment draws its energy evenly over its
length, a transfer draws at the sender the moment the producer ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.errors import ParameterError
from optbench.model.checks import CONSTRAINTS, Violation, check, check_form
from optbench.model.instance import Instance
from optbench.model.metrics import metrics_of
from optbench.model.objective import MAKESPANS
from optbench.model.physical_metrics import physical_metrics
from optbench.model.schedule import Schedule
from optbench.model.sleeping import kept_awake
from optbench.model.task_progress import progress
from optbench.model.timegrid import exceeds, grid_down

__all__ = ["CONSTRAINTS", "Verdict", "Violation", "verify"]


@dataclass(frozen=True)
class Verdict:
    """The verifier's result; ``objectives`` has a value per level and is empty if infeasible."""

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
    for name, value, expected in (
        ("instance", instance, Instance),
        ("schedule", schedule, Schedule),
    ):
        if not isinstance(value, expected):
            raise ParameterError(
                f"verify: the {name} is a {type(value).__name__}; it must be an "
                f"ob.{expected.__name__}"
            )
    if bad_form := check_form(instance, schedule):
        return Verdict(False, (bad_form,), (), {})
    schedule = schedule.as_int64()
    instance = kept_awake(instance)
    made = progress(instance, schedule)
    violations = check(instance, schedule, made)
    # Values that are too large for a float are reported below.
    with np.errstate(over="ignore", invalid="ignore"):
        values = metrics_of(instance, schedule, made) | physical_metrics(instance, schedule, made)
    violations.extend(_broken_limits(instance, values))
    if instance.is_open and values["units_done"] <= 0:
        violations.append(
            Violation(
                "assignment",
                "no unit of work is done before the horizon: there is no energy per unit",
            )
        )
    elif not violations:
        levels = {
            f"objective level {k}": value
            for k, value in enumerate(instance.objective.values(values))
        }
        violations.extend(_not_finite(values | levels))
    feasible = not violations
    objectives = instance.objective.values(values) if feasible else ()
    return Verdict(feasible, tuple(violations), objectives, values)


def _broken_limits(instance: Instance, values: dict[str, float]) -> list[Violation]:
    """Violated limits on metrics, beyond the rounding of sums; makespans in ticks."""
    broken = []
    for name, limit in sorted(instance.limits.metric_max.items()):
        value = values[name]
        if name in MAKESPANS:
            ticks = limit if name == "makespan" else float(grid_down(limit / instance.tick_s))
            above = values["makespan"] > ticks
        else:
            above = exceeds(value, limit)
        if above:
            message = f"{name} is {value:.9g}, the limit {limit:.9g}"
            broken.append(Violation(f"limit:{name}", message, value - limit))
    return broken


def _not_finite(values: dict[str, float]) -> list[Violation]:
    """Metrics that overflow, so that they cannot be compared."""
    names = [name for name, value in values.items() if not np.isfinite(value)]
    return [
        Violation("finite", f"{name} is {values[name]}: its terms are too large to add up")
        for name in names[:1]
    ]
