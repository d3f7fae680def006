"""Shops for the tests of HiGHS, and solving them."""

from __future__ import annotations

from typing import Any

import numpy as np

import optbench as ob
from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.plugins.protocol import Run
from optbench.plugins.solvers.highs import Highs


def shop(jobs: int, **options: Any) -> Instance:
    """Jobs of two operations on two machines: 3 ticks on the first, 2 on the second, in
    that order.
    """
    m = ob.Model("shop", **options)
    first, second = m.pool("m0"), m.pool("m1")
    for _ in range(jobs):
        m.task(modes=[m.mode(second, 2.0)], after=m.task(modes=[m.mode(first, 3.0)]))
    m.minimize(makespan=1.0)
    return m.build()


def solved(instance: Instance, solver: Highs | None = None, **budget: Any) -> Run:
    run = Run(instance, **budget)
    assert (solver or Highs()).solve(instance, run) is run.best
    return run


def jagged() -> Instance:
    """Ten jobs on three machines in random order: more than one node's work."""
    rng = np.random.default_rng(0)
    m = ob.Model("jagged")
    machines = [m.pool(f"m{p}") for p in range(3)]
    for _ in range(10):
        before: Any = ()
        for p in rng.permutation(3).tolist():
            before = m.task(modes=[m.mode(machines[p], float(rng.integers(1, 20)))], after=before)
    m.minimize(makespan=1.0)
    return m.build()


def serial(instance: Instance) -> Schedule:
    """One task after the other, in the order declared."""
    end = np.cumsum(instance.pairs.duration)
    return Schedule.of(instance, instance.pairs.mode, end - instance.pairs.duration)
