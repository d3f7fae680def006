"""Annealing of lp_guided in which only freed tasks change: the sub-solver of a large neighbourhood
search, for ``neighbourhood_oracle``.

A point is a mode and a key per task, as in ``solvers/_lp_search.py``, whose changes, decoder,
temperatures and rule of acceptance these are. A change concerns freed tasks alone; where a
neighbour would be moved along that is not freed, it stays. An attempt begins at the current point
and returns the best point on its way. Its temperatures are those of a search of the freed tasks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optbench.compiling.compiled import inner, njit
from optbench.model.instance import Floats, Ints
from optbench.plugins.solvers._lp_finder import COLD, HEATING, HOT, LONG, Finder
from optbench.plugins.solvers._lp_search import (
    AGAIN,
    BEST_VALUE,
    BOTH_STEPS,
    CHANGED,
    KEY_STEPS,
    MODE_STEPS,
    MOST_CHANGES,
    NEAR_STEPS,
    NOW_VALUE,
    SWAP_STEPS,
    TEMPERATURE,
    Search,
    evaluate,
    fraction,
    keep_best,
    remember,
    sampled_mode,
    search_at,
    settle,
    settle_all,
    shift,
    step_mode,
    swap,
    undo,
    value_now,
)
from optbench.sim.kernel.dispatch import Rule, rule_at
from optbench.sim.kernel.plant import Plant, plant_at
from optbench.sim.kernel.state import state_at
from optbench.sim.primal.chance import RANDOM, pick, seeded

# How often the temperature changes in an attempt.
STAGES = 8


@inner()
def move_freed_near(
    plant: Plant, rule: Rule, search: Search, freed: Ints, task: int, pool: int
) -> None:
    """Move a freed neighbour to the pool, if a few draws give it a mode there; perhaps its
    neighbour too.
    """
    while search.number[CHANGED] < MOST_CHANGES:
        before, after = plant.pred_ptr[task], plant.succ_ptr[task]
        many, more = plant.pred_ptr[task + 1] - before, plant.succ_ptr[task + 1] - after
        if many + more == 0:
            return
        k = pick(search.number, many + more)
        task = plant.pred[before + k] if k < many else plant.succ[after + k - many]
        at = np.searchsorted(freed, task)
        if at == len(freed) or freed[at] != task:
            return
        for _ in range(6):
            mode = sampled_mode(search, task)
            if plant.primary[mode] == pool:
                remember(rule, search, task)
                settle(plant, rule, task, mode)
                break
        if pick(search.number, 2) == 0:
            return


@inner()
def change_freed(plant: Plant, rule: Rule, search: Search, freed: Ints) -> None:
    """Make one change of freed tasks, often more than one, and save the previous values."""
    number = search.number
    number[CHANGED] = 0
    while number[CHANGED] < MOST_CHANGES:
        kind, task = pick(number, 100), freed[pick(number, len(freed))]
        remember(rule, search, task)
        if kind < MODE_STEPS:
            settle(plant, rule, task, sampled_mode(search, task))
        elif kind < KEY_STEPS:
            shift(rule, search, task)
        elif kind < BOTH_STEPS:
            shift(rule, search, task)
            settle(plant, rule, task, sampled_mode(search, task))
        elif kind < SWAP_STEPS:
            swap(plant, rule, search, task, freed[pick(number, len(freed))])
        elif kind < NEAR_STEPS:
            mode = sampled_mode(search, task)
            settle(plant, rule, task, mode)
            move_freed_near(plant, rule, search, freed, task, plant.primary[mode])
        else:
            step_mode(plant, rule, search, task)
        if pick(number, 100) >= AGAIN:
            return


@njit(cache=True)
def anneal_freed(
    plant_row: Ints, state_row: Ints, rule_row: Ints, search_row: Ints, freed: Ints, steps: int
) -> None:
    """Take ``steps`` steps among the freed tasks, in rising order, from the rule's point."""
    plant, state, rule = plant_at(plant_row), state_at(state_row), rule_at(rule_row)
    search = search_at(search_row)
    value = search.value
    for _ in range(steps):
        change_freed(plant, rule, search, freed)
        new = evaluate(plant, state, rule, search)
        if new <= value[NOW_VALUE] - value[TEMPERATURE] * math.log(
            max(1e-12, fraction(search.number))
        ):
            value[NOW_VALUE] = new
            if new < value[BEST_VALUE]:
                keep_best(plant, rule, search)
        else:
            undo(plant, rule, search)


@dataclass(frozen=True, eq=False)
class FreedPoint:
    """A point and its value."""

    value: float
    mode: Ints
    key: Floats


class FreedSearch:
    """The current point with its schedule, and attempts around it."""

    def __init__(self, finder: Finder, seed: int) -> None:
        self.finder, self.instance = finder, finder.instance
        search = finder.search
        search.number[RANDOM] = seeded(seed)
        self.move_to(
            FreedPoint(
                float(search.value[BEST_VALUE]), search.best_mode.copy(), search.best_key.copy()
            )
        )

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
        mean = self.point.value / self.instance.num_tasks
        hot = HOT * min(1.0, steps / (LONG * len(freed))) ** HEATING
        cold = min(COLD, hot)
        for stage in range(STAGES):
            search.value[TEMPERATURE] = mean * hot * (cold / hot) ** (stage / (STAGES - 1))
            done = steps * stage // STAGES
            anneal_freed(*self.finder.rows, freed, steps * (stage + 1) // STAGES - done)
        found = float(search.value[BEST_VALUE])
        if not found < self.point.value:
            return self.point
        return FreedPoint(found, search.best_mode.copy(), search.best_key.copy())

    def _put(self, point: FreedPoint) -> None:
        """Write a point into the rule."""
        rule = self.finder.rule
        rule.fixed[:], rule.base[:] = point.mode, point.key
        settle_all(self.finder.rows[0], self.finder.rows[2])
