"""The instance of two tasks for the tests of the environments."""

from __future__ import annotations

import optbench as ob


def two_tasks() -> ob.Instance:
    """a (2 s) and b (3 s) on one device that idles at 10 W and works at 50 W, released at 0
    and 1.
    """
    m = ob.Model("two tasks")
    gpu = m.pool("gpu", idle_w=10)
    m.task("a", modes=[m.mode(gpu, time_s=2, energy_j=100)])
    m.task("b", modes=[m.mode(gpu, time_s=3, energy_j=150)], release_s=1)
    m.minimize(energy_j=1.0, makespan_s=7.0)
    return m.build()
