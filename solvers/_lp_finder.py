"""Points from the fluid LP, and the local search that starts from the best of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np

from optbench.model.instance import Floats, Instance, Ints
from optbench.model.objective_prices import joule_price
from optbench.model.schedule import Schedule
from optbench.model.windows import latest_ends, windows
from optbench.sim.kernel.dispatch import Rule
from optbench.sim.kernel.plant import plant_of
from optbench.sim.kernel.pointers import addresses
from optbench.sim.kernel.state import new_state, schedule_of
from optbench.sim.rules import list_rule
from optbench.sim.sampling import DEEPEST

from ._lp_guide import Guide
from ._lp_search import (
    BEST_VALUE,
    NOW_VALUE,
    SPREAD,
    TEMPERATURE,
    anneal,
    consider,
    new_search,
    settle_all,
    value_now,
)

# Weights of a mode in the search: by loss, by share, uniform. Losses are relative to this share of
# the mean value of a task.
BY_LOSS, BY_SHARE, ALIKE = 0.5, 0.3, 0.2
LOSS_SCALE = 0.05
# Temperatures at the start and at the end, in mean values of a task, of a search of LONG steps per
# task; a shorter one starts cooler, by this power of its length, because with ten steps per task it
# cannot recover from 0.5.
HOT, COLD, LONG, HEATING = 0.5, 3e-3, 1_000, 0.75
# Keys move by up to this share of the makespan.
REACH = 0.25
# A key before every key that a search reaches, in ticks.
FIRST = -(2.0**60)
# The least price of time in a rule, per second: without a price, ends would not break ties.
LEAST_PRICE = 1e-9
# Prices of time in compromises, in mean watts of a task.
COMPROMISES = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
# Price rules: prices of time and devices, relative to those of the LP.
TIME_FACTORS, DEVICE_FACTORS = (0.1, 0.3, 1.0, 3.0), (0.0, 1.0)


class Finder:
    """The best known point, and the tables of the search for better ones; ``running`` tasks come
    first in every order.
    """

    def __init__(
        self, instance: Instance, known: Guide, seed: int, running: Ints | None = None
    ) -> None:
        self.instance, self.guide = instance, known
        self.running = np.zeros(0, dtype=np.int64) if running is None else running
        self.rng = np.random.default_rng(seed)
        self.plant = plant_of(instance)
        self.state = new_state(self.plant)
        n = instance.num_tasks
        self.rule = list_rule(instance, depth=min(DEEPEST, n), fixed=0)
        self.search = new_search(instance, known.ptr, known.mode, chances(instance, known), seed)
        self.rows = [addresses(table) for table in (self.plant, self.state, self.rule, self.search)]
        self.value = math.inf
        self.schedule: Schedule | None = None
        self.search.value[SPREAD] = REACH * max(known.makespan, 1.0)

    def first(self, roundings: int, time_left: Callable[[], float]) -> None:
        """Evaluate every point of the LP while there is time, at least one."""
        for rule in self.plain_rules():
            self.consider_rule(rule)
            if time_left() <= 0:
                return
        for mode, key in itertools.chain(self.points(roundings), self.compromises()):
            self.consider(mode, key)
            if time_left() <= 0:
                return
        for rule in self.price_rules():
            self.consider_rule(rule)
            if time_left() <= 0:
                return

    @cached_property
    def keys(self) -> tuple[Floats, ...]:
        """Return orders of the tasks: by start, by remaining path, by both, by the time left until
        dates.
        """
        known = self.guide
        return known.start, -known.tail, known.start - known.tail, latest_start(self.instance)

    def plain_rules(self) -> Iterator[Rule]:
        """Yield list rules that end each task as early as possible."""
        depth = min(DEEPEST, self.instance.num_tasks)
        for key in (*self.keys, windows(self.instance).shortest):
            for lookahead in (True, False):
                yield list_rule(
                    self.instance, base=key, depth=depth, lookahead=lookahead, end_weight=1.0
                )

    def points(self, roundings: int) -> Iterator[tuple[Ints, Floats]]:
        """Yield modes and keys: modes by loss, by share, by shares at random; in order of starts,
        of remaining paths, of both.
        """
        known, pairs = self.guide, self.instance.pairs
        for key in self.keys:
            yield best_mode(self.instance, known.share), key
            yield best_mode(self.instance, -known.loss), key
            for _ in range(roundings):
                # The first of exponential clocks with these rates: a draw by share.
                ring = self.rng.exponential(size=len(pairs.task)) / np.maximum(known.share, 1e-9)
                yield best_mode(self.instance, -ring), key

    def compromises(self) -> Iterator[tuple[Ints, Floats]]:
        """Yield points with every task in the mode of the best compromise between energy and time,
        or device-time, from low energy to short time.
        """
        pairs, modes = self.instance.pairs, self.instance.modes
        seconds = pairs.duration * self.instance.tick_s
        net_j = pairs.energy_j - self.instance.mode_rest_w[pairs.mode] * seconds
        watts = float(np.mean(np.abs(net_j)) / max(1e-12, float(np.mean(seconds))))
        for devices in (1.0, np.maximum(1, modes.devices)[pairs.mode]):
            for factor in COMPROMISES:
                yield (
                    best_mode(self.instance, -(net_j + factor * watts * devices * seconds)),
                    -self.guide.tail,
                )

    def price_rules(self) -> Iterator[Rule]:
        """Yield list rules that choose modes by the LP's prices at dispatch time."""
        instance, known = self.instance, self.guide
        weights = dict(instance.objective.levels[0])
        late = weights.get("tardiness_s", 0.0) * instance.tick_s
        joule = joule_price(instance)
        price = float(known.end_price.mean()) if instance.num_tasks else 0.0
        for lookahead in (True, False):
            for time_factor in TIME_FACTORS:
                for device_factor in DEVICE_FACTORS:
                    for key in self.keys:
                        yield list_rule(
                            instance,
                            base=key,
                            depth=min(DEEPEST, instance.num_tasks),
                            lookahead=lookahead,
                            late_weight=late,
                            end_weight=time_factor * max(price, LEAST_PRICE * instance.tick_s),
                            energy_weight=joule,
                            pool_cost=device_factor * known.pool_price,
                        )

    def consider(self, mode: Ints, key: Floats) -> None:
        """Evaluate a point."""
        self.rule.fixed[:], self.rule.base[:] = mode, key
        self.rule.base[self.running] = FIRST
        self.keep(consider(*self.rows))

    def value_of(self, rule: Rule) -> float:
        """Return the value of a rule's schedule, which is kept if it is the best."""
        rule.base[self.running] = FIRST
        value = float(value_now(self.rows[0], self.rows[1], addresses(rule), self.rows[3]))
        self.keep(value)
        return value

    def consider_rule(self, rule: Rule) -> None:
        """Evaluate a rule's schedule, and the point of its modes and starts."""
        value = self.value_of(rule)
        if value < math.inf:
            self.consider(self.state.mode.copy(), self.state.start.copy())

    @property
    def found(self) -> bool:
        """Whether some point has a schedule."""
        return bool(self.search.value[BEST_VALUE] < math.inf)

    def keep(self, value: float) -> None:
        """Keep the schedule in the state if it is the best so far."""
        if value < self.value:
            self.value, self.schedule = value, schedule_of(self.instance, self.plant, self.state)

    def anneal(self, steps: int, progress: float, whole: float) -> None:
        """Take ``steps`` steps at the temperature of this progress, 0 to 1, in a search of
        ``whole`` steps.
        """
        value = self.search.value
        if value[TEMPERATURE] == 0.0:
            if value[BEST_VALUE] < math.inf:
                self.rule.fixed[:], self.rule.base[:] = self.search.best_mode, self.search.best_key
            settle_all(self.rows[0], self.rows[2])
            value[NOW_VALUE] = value[BEST_VALUE]
        mean = value[BEST_VALUE] / self.instance.num_tasks if value[BEST_VALUE] < math.inf else 0.0
        hot = HOT * min(1.0, whole / (LONG * self.instance.num_tasks)) ** HEATING
        cold = min(COLD, hot)
        value[TEMPERATURE] = max(1e-300, mean * hot * (cold / hot) ** min(1.0, progress))
        anneal(*self.rows, steps)

    def twin(self, seed: int) -> Finder:
        """Return another search of the instance that goes on from the best point of this one."""
        other = Finder(self.instance, self.guide, seed, self.running)
        if self.found:
            other.consider(self.search.best_mode.copy(), self.search.best_key.copy())
        return other

    def restart(self) -> None:
        """Let the next annealing begin at the best point."""
        self.search.value[TEMPERATURE] = 0.0

    def go_on_from(self, mode: Ints, key: Floats) -> None:
        """Go on annealing from a point, which is kept where it is the best."""
        self.consider(mode, key)
        settle_all(self.rows[0], self.rows[2])
        self.search.value[NOW_VALUE] = value_now(*self.rows)

    def best_schedule(self) -> Schedule | None:
        """The best schedule so far."""
        if self.search.value[BEST_VALUE] < self.value:
            fixed, base = self.rule.fixed.copy(), self.rule.base.copy()
            self.consider(self.search.best_mode, self.search.best_key)
            self.rule.fixed[:], self.rule.base[:] = fixed, base
            settle_all(self.rows[0], self.rows[2])
        return self.schedule


def latest_start(instance: Instance) -> Floats:
    """Return when each task must start to meet every date, hard or soft; by the longest path where
    there is none.
    """
    known = windows(instance)
    dates = replace(instance.tasks, deadline_hard=np.ones(instance.num_tasks, dtype=bool))
    start = latest_ends(replace(instance, tasks=dates), known) - known.shortest
    dated = np.isfinite(start)
    return np.where(dated, start, start[dated].max(initial=0.0) - known.shortest - known.tail)


def chances(instance: Instance, known: Guide) -> Floats:
    """Return the weight of each (task, mode) in the search."""
    task, n = instance.pairs.task, instance.num_tasks
    likely = np.exp(-known.loss / max(1e-12, LOSS_SCALE * known.value / max(1, n)))
    out = ALIKE / np.diff(known.ptr)[task]
    for weight, part in ((BY_LOSS, likely), (BY_SHARE, known.share)):
        whole = np.bincount(task, weights=part, minlength=n)[task]
        out = out + weight * part / np.maximum(whole, 1e-12)
    return np.asarray(out, dtype=float)


def best_mode(instance: Instance, worth: Floats) -> Ints:
    """Return each task's mode of the highest worth; the first of ties."""
    pairs = instance.pairs
    order = np.lexsort((-worth, pairs.task))
    return np.asarray(pairs.mode[order[pairs.ptr[:-1]]], dtype=np.int64)
