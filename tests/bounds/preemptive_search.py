"""Least makespan and least energy of tiny preemptive instances, by dynamic programming over ticks,
from the numbers alone.

In each tick every task runs in one of its modes or stands still; its progress is the sum of 1 / D
over its ticks, in fractions. A task that is complete may run on. Starts and ends at whole ticks are
all there are, so that nothing is left out.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

from optbench.model.instance import Instance

Progress = tuple[Fraction, ...]
Choice = tuple[int | None, ...]


def whole_ticks(instance: Instance, task: int, mode: int) -> int:
    """D, for products that are clearly whole or clearly not."""
    ticks = float(instance.tasks.units[task]) * (
        float(instance.modes.time_per_unit_s[mode]) / instance.tick_s
    )
    nearest = round(ticks)
    return nearest if abs(ticks - nearest) <= 1e-12 * max(1.0, ticks) else math.ceil(ticks)


def needs(instance: Instance, mode: int) -> list[tuple[int, int]]:
    modes = instance.modes
    rows = range(int(modes.req_ptr[mode]), int(modes.req_ptr[mode + 1]))
    return [(int(modes.req_pool[row]), int(modes.req_count[row])) for row in rows]


def choices(instance: Instance) -> list[Choice]:
    """Every way to spend one tick within the pools."""
    ptr = instance.modes.kind_ptr
    ways = [
        [None, *range(int(ptr[kind]), int(ptr[kind + 1]))] for kind in instance.tasks.kind.tolist()
    ]
    out = []
    for choice in product(*ways):
        left = instance.pools.count.tolist()
        for mode in choice:
            for pool, count in [] if mode is None else needs(instance, mode):
                left[pool] -= count
        if min(left) >= 0:
            out.append(choice)
    return out


def allowed(instance: Instance, now: int, choice: Choice, done: Progress) -> bool:
    """Whether everything that runs is released, and what it waits for complete."""
    tasks, edges = instance.tasks, instance.edges
    running = {task for task, mode in enumerate(choice) if mode is not None}
    early = any(now < tasks.release[task] for task in running)
    waits = zip(edges.source.tolist(), edges.target.tolist(), strict=True)
    return not early and all(done[a] >= 1 for a, b in waits if b in running)


def joules(instance: Instance, choice: Choice) -> float:
    """Energy of one tick: the shares of what runs, and the rest of what does not."""
    pools = instance.pools
    resting = pools.count.tolist()
    total = 0.0
    for task, mode in enumerate(choice):
        if mode is not None:
            whole = float(instance.tasks.units[task]) * float(
                instance.modes.energy_per_unit_j[mode]
            )
            total += whole / whole_ticks(instance, task, mode)
            for pool, count in needs(instance, mode):
                resting[pool] -= count
    rest_w = [
        float(pools.sleep_w[p] if pools.gated[p] else pools.idle_w[p])
        for p in range(instance.num_pools)
    ]
    return total + instance.tick_s * math.fsum(n * w for n, w in zip(resting, rest_w, strict=True))


def least(instance: Instance, ticks: int) -> tuple[int | None, float | None]:
    """Least makespan within so many ticks; least energy of a schedule that is paid over all of
    them. None where there is none.
    """
    ways = [(choice, joules(instance, choice)) for choice in choices(instance)]
    step = {
        (i, k): Fraction(1, whole_ticks(instance, i, k))
        for choice, _ in ways
        for i, k in enumerate(choice)
        if k is not None
    }
    one = Fraction(1)
    complete = (one,) * instance.num_tasks
    states: dict[Progress, float] = {(Fraction(0),) * instance.num_tasks: 0.0}
    makespan = None
    for now in range(ticks):
        after: dict[Progress, float] = {}
        for done, spent in states.items():
            for choice, energy in ways:
                if allowed(instance, now, choice, done):
                    new = tuple(
                        done[i] if k is None else min(one, done[i] + step[i, k])
                        for i, k in enumerate(choice)
                    )
                    after[new] = min(after.get(new, math.inf), spent + energy)
        states = after
        if makespan is None and complete in states:
            makespan = now + 1
    return makespan, states.get(complete)
