"""Least energy within a time: the makespan as a limit in place of a price, for studies that draw fronts.

The limit is a multiple of what the fastest of the simple rules takes: longest remaining path first, in the mode that ends first.
From 1 on there is a schedule within it, which a multiple of a lower bound does not promise: on graphs of ten tasks the
best combinatorial bound is half the optimum. Below 1 there may be none, and an exact solver says so.

Devices rest until the end of the schedule in which every task has its cheapest mode, whatever the limit. Were rest paid until
completion, every slower schedule would pay for more of it, and the front would shrink towards one point (as for ``ob.pareto``,
which draws the same front of one instance).
"""

from __future__ import annotations

import math
from dataclasses import replace

from optbench.model.cheapest import cheapest_schedule
from optbench.model.instance import Instance
from optbench.model.objective import MAKESPANS, Objective
from optbench.model.verify import verify
from optbench.model.windows import time_horizon, windows
from optbench.sim.rules import list_rule, run_rule


def within_time(instance: Instance, multiple: float) -> Instance:
    """The instance with its makespan limited, no longer priced, and rest until a horizon that is the same for every limit."""
    ticks = math.floor(multiple * fast_ticks(instance) + 1e-9)
    weights = {metric: weight for metric, weight in instance.objective.levels[0] if metric not in MAKESPANS}
    limited = replace(instance, horizon=int(rest_until(instance))).with_limits(makespan_s=max(1, ticks) * instance.tick_s)
    return limited.with_objective(Objective.weighted(weights))


def fast_ticks(instance: Instance) -> float:
    """What the rule takes; where it comes to no end, which a missing link can do, what one task after the other would."""
    known = windows(instance)
    rule = list_rule(instance, base=-(known.shortest + known.tail), end_weight=1.0, lookahead=True)
    schedule = run_rule(instance, rule).schedule
    return time_horizon(instance) if schedule is None else float(schedule.end.max(initial=0.0))


def rest_until(instance: Instance) -> float:
    """The end of the cheapest schedule, or of the longest where a cap forbids that one; never before the fast one ends."""
    cheapest = cheapest_schedule(instance)
    if cheapest is None or not verify(instance, cheapest).feasible:
        return time_horizon(instance)
    return max(float(cheapest.end.max(initial=0.0)), fast_ticks(instance))
