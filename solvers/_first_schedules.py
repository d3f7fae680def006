"""A first schedule for the exact solvers: the best of some randomised dispatching rules, run by the
event kernel.

Where rules for the objective alone break a limit on a metric, the metric m gets a price in the
objective,

    objective + w · v Σ_m m / limit_m        v what the objective is without the limits,

which rises while the limits are broken and falls once they hold.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

from optbench.model.instance import Instance
from optbench.model.objective import Objective
from optbench.model.schedule import Schedule
from optbench.model.verify import verify
from optbench.sim.sampling import Sampler

# Samples at least and at most, and tasks times samples: a tenth of a second or two of work.
FEWEST, MOST, MOST_TASKS = 20, 2000, 400_000
# Samples between two checks of the clock.
PORTIONS = 10
# The kernels that this module runs.
KERNELS = frozenset({"sampling"})
# The first price of a limit, the factor by which it changes, and how often.
FIRST_PRICE, STEP, STEPS = 1.0, 3.0, 6


def one_schedule(instance: Instance, seed: int = 0) -> list[Schedule]:
    """Return the schedule of a single rule if it is feasible: within milliseconds."""
    sampler = Sampler(instance, seed)
    sampler.sample(1)
    found = sampler.schedule()
    return [found] if found is not None and verify(instance, found).feasible else []


def first_schedules(instance: Instance, seconds: float = math.inf, seed: int = 0) -> list[Schedule]:
    """Return one feasible schedule, or none: rules may fail to meet a deadline or a limit.

    Without a time limit the same instance and seed give the same schedule.
    """
    sampler = Sampler(instance, seed)
    samples = max(FEWEST, min(MOST, MOST_TASKS // max(1, instance.num_tasks)))
    until = time.perf_counter() + seconds
    while sampler.made < samples and time.perf_counter() < until:
        sampler.sample(samples // PORTIONS)
    found = sampler.schedule()
    if found is not None and verify(instance, found).feasible:
        return [found]
    return (
        within_limits(instance, samples // STEPS + 1, until, seed)
        if instance.limits.metric_max
        else []
    )


def within_limits(instance: Instance, samples: int, until: float, seed: int) -> list[Schedule]:
    """Return the schedules that rules find under prices of the limits, the best last."""
    limits = dict(instance.limits.metric_max)
    free = replace(instance, limits=replace(instance.limits, metric_max={}))
    weights = dict(instance.objective.levels[0])
    scale, price, found = 0.0, FIRST_PRICE, list[tuple[float, Schedule]]()
    for step in range(STEPS):
        rates = {m: price * scale / limit for m, limit in limits.items() if limit > 0 and scale > 0}
        priced = weights | {m: weights.get(m, 0.0) + rate for m, rate in rates.items()}
        sampler = Sampler(free.with_objective(Objective.weighted(priced)), seed + step)
        sampler.sample(samples)
        schedule = sampler.schedule()
        if schedule is None or time.perf_counter() > until:
            break
        verdict = verify(instance, schedule)
        if verdict.feasible:
            found.append((verdict.objectives[0], schedule))
        if scale == 0.0:
            # A schedule that breaks more than the limits has no objective from which to take the
            # scale.
            scale = next(iter(verify(free, schedule).objectives), 0.0)
        else:
            price = price / STEP if verdict.feasible else price * STEP
    return [schedule for _, schedule in sorted(found, key=lambda entry: -entry[0])]
