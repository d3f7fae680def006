"""The same instance in coarser ticks, where that is exact.

Let g divide every duration, lag, release, ingress latency, deadline and change of a tariff, and the
horizon, in ticks. In any feasible schedule keep the modes and the order of all starts and ends:
what is left are differences of starts bounded by multiples of g.

- Without tariffs that vary, every metric rises with every end, and limits bound metrics from above:
  the least solution of the
  differences, which consists of multiples of g, is no worse in any metric. No set of tasks runs
  together that did not before, so that pools and power caps hold.
- With tariffs that vary and no limit on a metric, the objective is linear between their changes,
  which are differences bounded
  by multiples of g too: some optimum is a vertex, and its starts are multiples of g.

So some optimum starts everything at a multiple of g. What was declared in whole seconds has small
numbers again in ticks of a nanosecond: CP-SAT is faster with them, and more objectives have an
exact scale.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from optbench.model.instance import Instance, Ints
from optbench.model.objective import Objective

# Lags of more pairs of pools and edges than this are not examined.
MAX_LAGS = 2_000_000


def in_grains(instance: Instance) -> tuple[Instance, int]:
    """Return the instance in its coarsest exact ticks, and how many of its own ticks one of them
    is.
    """
    if instance.is_open or ("tariffs" in instance.features and instance.limits.metric_max):
        return instance, 1
    lags = _lags(instance)
    if lags is None:
        return instance, 1
    grain = _divisor(instance, lags)
    if grain <= 1:
        return instance, 1
    coarse = _divided(instance, grain)
    again = _lags(coarse)
    same = [
        (coarse.pairs.duration, instance.pairs.duration),
        (coarse.pairs.ready, instance.pairs.ready),
        (again, lags),
    ]
    if any(
        not np.array_equal(np.asarray(a, dtype=float) * grain, np.asarray(b, dtype=float))
        for a, b in same
    ):
        return instance, 1  # a duration is not equal to its rounded value
    return coarse, grain


def _divisor(instance: Instance, lags: Ints) -> int:
    """Return the greatest common divisor of all times; 0 where all are 0."""
    tasks, pairs = instance.tasks, instance.pairs
    times: list[Any] = [pairs.duration, pairs.ready, tasks.release, tasks.deadline, lags]
    times.append([] if instance.horizon is None else [instance.horizon])
    times.append([] if instance.tariffs is None else instance.tariffs.times)
    out = 0
    for column in times:
        values = np.asarray(column, dtype=float)
        out = math.gcd(out, *(int(value) for value in np.unique(values[np.isfinite(values)])))
        if out == 1:
            break
    return out


def _lags(instance: Instance) -> Any:
    """Return the lag of every edge with data between all pools; None where these are too many."""
    heavy = instance.edges.data_gb[instance.edges.data_gb > 0]
    if instance.num_pools**2 * len(heavy) > MAX_LAGS:
        return None
    pools = np.arange(instance.num_pools)
    return np.asarray(
        instance.lag(pools[:, None, None], pools[None, :, None], heavy[None, None, :]), dtype=float
    )


def _divided(instance: Instance, grain: int) -> Instance:
    tasks, tariffs, limits = instance.tasks, instance.tariffs, dict(instance.limits.metric_max)
    if "makespan" in limits:
        limits["makespan"] = float(limits["makespan"] // grain)
    levels = tuple(
        tuple((name, weight * grain if name == "makespan" else weight) for name, weight in level)
        for level in instance.objective.levels
    )
    return replace(
        instance,
        tick_s=float(Fraction(repr(instance.tick_s)) * grain),
        horizon=None if instance.horizon is None else int(instance.horizon) // grain,
        tasks=replace(tasks, release=tasks.release // grain, deadline=tasks.deadline / grain),
        tariffs=None if tariffs is None else replace(tariffs, times=tariffs.times // grain),
        limits=replace(instance.limits, metric_max=limits),
        objective=Objective(levels),
    )
