"""Least energy under a limit on the makespan, for studies that draw fronts.

The limit is a multiple of the makespan of a fast rule: longest remaining path first, each task in
the mode that ends first. From 1 on a schedule within the limit exists. A multiple of a lower bound
would not guarantee that: on graphs of ten tasks the best combinatorial bound is half the optimum.
Below 1 there may be no schedule; an exact solver then reports that the instance is infeasible.

Idle energy is paid until the end of the schedule in which every task has its cheapest mode,
whatever the limit. If it were paid until completion, slower schedules would pay for more of it,
and the front would shrink towards one point. (The same holds for ``ob.pareto``, which draws the
same front of one instance.)
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
    """Limit the makespan, remove its price, and set a horizon that is the same for every limit."""
    ticks = math.floor(multiple * fast_ticks(instance) + 1e-9)
    weights = {
        metric: weight for metric, weight in instance.objective.levels[0] if metric not in MAKESPANS
    }
    limited = replace(instance, horizon=int(idle_horizon(instance))).with_limits(
        makespan_s=max(1, ticks) * instance.tick_s
    )
    return limited.with_objective(Objective.weighted(weights))


def fast_ticks(instance: Instance) -> float:
    """The makespan of the fast rule, in ticks.

    Where the rule cannot finish (a missing link), it is the time of all tasks one after another."""
    known = windows(instance)
    rule = list_rule(instance, base=-(known.shortest + known.tail), end_weight=1.0, lookahead=True)
    schedule = run_rule(instance, rule).schedule
    return time_horizon(instance) if schedule is None else float(schedule.end.max(initial=0.0))


def idle_horizon(instance: Instance) -> float:
    """The horizon until which idle energy is paid, never before the end of the fast schedule.

    It is the end of the cheapest schedule, or of the longest where a cap forbids the cheapest."""
    cheapest = cheapest_schedule(instance)
    if cheapest is None or not verify(instance, cheapest).feasible:
        return time_horizon(instance)
    return max(float(cheapest.end.max(initial=0.0)), fast_ticks(instance))
