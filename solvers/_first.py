"""A first schedule for the exact solvers: the best of some randomised dispatching rules, run by the event kernel."""

from __future__ import annotations

import math
import time

from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.model.verify import verify
from optbench.sim.sampling import Sampler, is_compiled

# Samples at least, at most, and together this many tasks: a tenth of a second or two of work.
FEWEST, MOST, MOST_TASKS = 20, 2000, 400_000
# Looks at the clock.
PORTIONS = 10
# Where nothing is compiled yet, shorter times are not worth the wait.
COMPILE_S = 20.0


def first_schedules(instance: Instance, seconds: float = math.inf, seed: int = 0) -> list[Schedule]:
    """One feasible schedule, or none: a deadline or a limit may be too much for rules.

    Without a limit of time the same instance and seed give the same schedule.
    """
    if seconds < COMPILE_S and not is_compiled():
        return []
    sampler = Sampler(instance, seed)
    samples = max(FEWEST, min(MOST, MOST_TASKS // max(1, instance.num_tasks)))
    sampler.sample(1)  # with it the compiled code is loaded
    until = time.perf_counter() + seconds
    while sampler.made < samples and time.perf_counter() < until:
        sampler.sample(samples // PORTIONS)
    found = sampler.schedule()
    return [found] if found is not None and verify(instance, found).feasible else []
