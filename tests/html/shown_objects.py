"""A result and a front of a few numbers known by hand, made once."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import optbench as ob


def two_jobs(name: str = "two jobs") -> ob.Model:
    """3 s and 2 s, one after the other on one device: makespan 5 s, energy 600 + 400 J."""
    m = ob.Model(name)
    gpu = m.pool("gpu", count=1, idle_w=10)
    a = m.task("a", modes=[m.mode(gpu, time_s=3, energy_j=600)])
    m.task("b", modes=[m.mode(gpu, time_s=2, energy_j=400)], after=a)
    m.minimize(energy_j=1.0)
    return m


@cache
def solved() -> ob.Result:
    return replace(ob.solve(two_jobs().build(), "fcfs", time_limit_s=5), wall_s=0.25)


@cache
def three_points() -> ob.Front:
    """Until 20 s: 80 + 40 J, 60 + 40 J and -20 + 40 J of energy net of rest and of rest."""
    m = ob.Model("three modes")
    gpu = m.pool("gpu", idle_w=2)
    m.task("a", modes=[m.mode(gpu, 10, 100), m.mode(gpu, 15, 90), m.mode(gpu, 20, 20)])
    m.minimize(energy_j=1.0)
    return ob.pareto(m.build(), points=3, time_limit_s=5)
