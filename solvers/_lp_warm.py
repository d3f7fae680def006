"""Compiling lp_guided's search into numba's cache, so that no run has to wait for it."""

from __future__ import annotations

import math

from optbench.model.builder import Model
from optbench.sim.compiled import in_cache

from ._lp_finder import Finder
from ._lp_guide import guide
from ._lp_search import anneal, consider, settle_all, value_now


def is_compiled() -> bool:
    """Whether every entry lies in the cache."""
    return in_cache(anneal, consider, settle_all, value_now)


def compile_ahead() -> None:
    """Run everything once, on one task in two modes."""
    m = Model("warm")
    gpu = m.pool("gpu")
    m.task(modes=[m.mode(gpu, time_s=2), m.mode(gpu, time_s=3)])
    m.minimize(makespan=1.0)
    instance = m.build()
    finder = Finder(instance, guide(instance, math.inf), 0)
    finder.first(1, lambda: math.inf)
    finder.anneal(1, 0.0, 1)
    finder.best_schedule()
