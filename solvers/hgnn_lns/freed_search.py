"""The sub-solver of large neighbourhood search: simulated annealing in the event kernel, in which
only freed tasks change.

The current schedule is a point (mode and key of each task). An attempt starts at it, takes a number
of steps that draw changes among the freed tasks alone (``_lp_search``), cooling from a low
temperature, and returns the best point on its way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from optbench.model.instance import Floats, Ints

from .._lp_finder import Finder
from .._lp_search import (
    BEST_VALUE,
    NOW_VALUE,
    TEMPERATURE,
    anneal,
    free_tasks,
    settle_all,
    value_now,
)

# Temperatures at the start and at the end of an attempt, in mean values of a task, and how often
# they change.
WARM, COOL, STAGES = 0.03, 0.001, 8


@dataclass(frozen=True, eq=False)
class FreedPoint:
    """A point and its value."""

    value: float
    mode: Ints
    key: Floats


class FreedSearch:
    """The current point, its schedule, and attempts around it; ``steps`` counts those of all."""

    def __init__(self, finder: Finder) -> None:
        self.finder, self.instance, self.steps = finder, finder.instance, 0
        search = finder.search
        self.point = FreedPoint(
            float(search.value[BEST_VALUE]), search.best_mode.copy(), search.best_key.copy()
        )
        self.move_to(self.point)

    def move_to(self, point: FreedPoint) -> None:
        """Let a point be the current one."""
        self.point = point
        self._put(point)
        value_now(*self.finder.rows)
        state = self.finder.state
        self.mode, self.start, self.end = state.mode.copy(), state.start.copy(), state.end.copy()

    def attempt(self, freed: Ints, steps: int) -> FreedPoint:
        """Return the best point that so many steps among the freed tasks find: no worse than the
        current one.
        """
        search = self.finder.search
        self._put(self.point)
        search.value[[NOW_VALUE, BEST_VALUE]] = self.point.value
        search.best_mode[:], search.best_key[:] = self.point.mode, self.point.key
        free_tasks(search, freed)
        mean = self.point.value / self.instance.num_tasks
        for stage in range(STAGES):
            share = stage / (STAGES - 1)
            search.value[TEMPERATURE] = mean * WARM * (COOL / WARM) ** share
            done = steps * stage // STAGES
            anneal(*self.finder.rows, steps * (stage + 1) // STAGES - done)
        self.steps += steps
        found = float(search.value[BEST_VALUE])
        if not found < self.point.value or math.isinf(found):
            return self.point
        return FreedPoint(found, search.best_mode.copy(), search.best_key.copy())

    def _put(self, point: FreedPoint) -> None:
        """Write a point into the rule."""
        rule = self.finder.rule
        rule.fixed[:], rule.base[:] = point.mode, point.key
        settle_all(self.finder.rows[0], self.finder.rows[2])
