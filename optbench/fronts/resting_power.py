"""What a front is drawn of: the horizon over which resting devices are paid for, and how they rest.

Paid for until completion, resting devices make every longer schedule dearer, and the front shrinks
towards one point. So the horizon is fixed: the instance's own; or the end of the schedule in which
every task has its cheapest mode (energy net of the rest it replaces) and starts as soon as its
devices are free, longest remaining path first. More time than that buys no energy. Where that
schedule breaks a constraint, or rates vary in time, it is ``time_horizon``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from optbench.errors import ParameterError
from optbench.fronts.points import Rest
from optbench.model.cheapest import cheapest_schedule
from optbench.model.instance import Instance
from optbench.model.objective import Objective
from optbench.model.timegrid import grid_down
from optbench.model.verify import verify
from optbench.model.windows import time_horizon

UNTIL_COMPLETION = "completion"
# Metrics in which resting devices count.
RESTING = frozenset({"energy_j", "cost_usd", "carbon_g"})


@dataclass(frozen=True)
class Declared:
    """An instance with its horizon settled, and where that came from."""

    instance: Instance
    horizon_from: str
    rest_energy: Rest

    @property
    def horizon_s(self) -> float | None:
        horizon = self.instance.horizon
        return None if horizon is None else float(horizon) * self.instance.tick_s


def declare(
    instance: Instance, metrics: set[str], horizon_s: float | str | None, asleep: bool
) -> Declared:
    """Settle horizon and rest of an instance for a front between these metrics."""
    if asleep:
        instance = replace(
            instance, pools=replace(instance.pools, gated=np.ones(instance.num_pools, dtype=bool))
        )
    kinds = set(instance.pools.gated.tolist())
    rest: Rest = "mixed" if len(kinds) > 1 else "asleep" if kinds == {True} else "idle"
    if horizon_s == UNTIL_COMPLETION:
        return Declared(replace(instance, horizon=None), "completion", rest)
    if horizon_s is not None:
        return Declared(replace(instance, horizon=_given(instance, horizon_s)), "given", rest)
    if instance.horizon is not None:
        return Declared(instance, "instance", rest)
    if not metrics & RESTING:
        return Declared(instance, "none", rest)
    between = instance.with_objective(Objective.weighted(dict.fromkeys(metrics, 1.0)))
    fixed = "tariffs" not in between.features and not instance.preemptive
    schedule = cheapest_schedule(instance) if fixed else None
    if schedule is None or not verify(instance, schedule).feasible:
        return Declared(replace(instance, horizon=int(time_horizon(between))), "longest", rest)
    return Declared(
        replace(instance, horizon=int(schedule.end.max(initial=0))), "cheapest_modes", rest
    )


def _given(instance: Instance, horizon_s: float | str) -> int:
    value = float(horizon_s) if not isinstance(horizon_s, str) else float("nan")
    if not 0 < value < float("inf"):
        raise ParameterError(
            f"horizon_s is {horizon_s!r}; give a positive number of seconds, or "
            f"{UNTIL_COMPLETION!r}"
        )
    return int(grid_down(value / instance.tick_s))
