"""Milestones played by a list rule: the LP's ends as due dates, its prices of devices, and a few
multipliers on them.

Task i has the key start_i − tail · path_i and takes the mode k with the least

    time · R · end + late · R · max(0, end − stretch · milestone_i) + tardiness
      + energy · net energy + Σ_pools number · length · (devices · π + alike · R / N)

where start_i, milestone_i and π are the LP's, path_i is what must follow the task, tardiness and
net energy (beyond rest) cost what they do in the objective, R is the cost of the makespan (its own
price, and the rest of all devices), N the number of devices.
The multipliers say how far devices shared in time, which the LP does not see, delay its ends: the
first sets are fixed, then sets around the best so far are drawn.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np

from optbench.bounds.milestones import Milestones
from optbench.model.instance import Floats, Instance
from optbench.model.objective_prices import end_cost, joule_price
from optbench.model.schedule import Schedule
from optbench.model.windows import windows
from optbench.sim.kernel.dispatch import Rule
from optbench.sim.rules import has_choice, list_rule
from optbench.sim.sampling import DEEPEST

from ._lp_finder import Finder
from ._lp_guide import Guide

# How far each multiplier moves at most in a draw: by this number, or by this power of e.
STEPS = (0.1, 1.0, 0.5, 0.01, 0.3, 0.3, 0.2)
GEOMETRIC = (False, True, False, False, False, True, False)
LEAST = (0.8, 1e-4, 0.0, 1e-9, 0.0, 0.05, 0.0)
# Each multiplier is moved with this chance, and the scale of a draw is a power of ten up to this.
MOVED, SCALES = 0.5, 1.0
# Sets of multipliers of training instances, the most useful first
# (benchmarks/milestone_multipliers.py).
SETS = Path(__file__).with_name("_milestone_multipliers.json")


@dataclass(frozen=True)
class Multipliers:
    """Factors on the LP's ends and prices; see the module."""

    stretch: float = 1.0
    late: float = 0.1
    devices: float = 1.0
    time: float = 1e-9
    tail: float = 0.0
    energy: float = 1.0
    alike: float = 0.0


@dataclass(frozen=True, eq=False)
class Targets:
    """What a rule plays towards: a start and an end per task and a price per pool, of the LP or of
    a schedule.
    """

    start: Floats
    end: Floats
    pool_price: Floats


def targets_of(found: Milestones) -> Targets:
    return Targets(found.start, found.end, found.pool_price)


def targets_of_schedule(instance: Instance, schedule: Schedule) -> Targets:
    """Return the starts and ends of a schedule, without prices, for where there is no LP."""
    order = np.argsort(schedule.task)
    start, end = schedule.start[order].astype(float), schedule.end[order].astype(float)
    return Targets(start, end, np.zeros(instance.num_pools))


def guide_of(instance: Instance, found: Milestones) -> Guide:
    """Return milestones in the form in which the search around points takes them."""
    return Guide(
        found.value,
        instance.pairs.ptr,
        instance.pairs.mode,
        found.share,
        found.loss,
        found.start,
        windows(instance).tail,
        found.makespan,
        found.pool_price,
        found.end_price,
    )


def fixed_sets() -> list[Multipliers]:
    """Return the sets that are tried first, the most useful first."""
    rows = json.loads(SETS.read_text(encoding="utf-8"))["multipliers"]
    return [Multipliers(**row) for row in rows]


class MilestoneRules:
    """Runs of the milestone rule: the best set of multipliers so far, and how many were tried."""

    def __init__(self, finder: Finder, targets: Targets, seed: int) -> None:
        self.finder, self.targets, self.instance = finder, targets, finder.instance
        self.rng = np.random.default_rng(seed)
        self.best, self.value, self.runs = Multipliers(), np.inf, 0
        self.tail = windows(self.instance).tail
        self.end_cost = end_cost(self.instance)
        self.alike = self.end_cost / max(1.0, float(self.instance.pools.count.sum()))
        weights = dict(self.instance.objective.levels[0])
        hard = bool(self.instance.tasks.deadline_hard.any())
        self.late = max(
            weights.get("tardiness_s", 0.0) * self.instance.tick_s, self.end_cost if hard else 0.0
        )

    def rule(self, by: Multipliers) -> Rule:
        """Return the rule of these multipliers."""
        instance, targets = self.instance, self.targets
        return list_rule(
            instance,
            base=targets.start - by.tail * self.tail,
            depth=min(DEEPEST, max(1, instance.num_tasks)),
            lookahead=has_choice(instance),
            end_weight=by.time * self.end_cost,
            late_weight=self.late,
            energy_weight=by.energy * joule_price(instance),
            pool_cost=by.devices * targets.pool_price + by.alike * self.alike,
            due=by.stretch * targets.end,
            late_price=by.late * self.end_cost,
        )

    def run(self, by: Multipliers) -> bool:
        """Run the rule once; return whether it is the best so far."""
        self.runs += 1
        value = self.finder.value_of(self.rule(by))
        better = bool(value < self.value)
        if better:
            self.best, self.value = by, value
        return better

    def first(self, number: int, time_left: Callable[[], float]) -> None:
        """Run the first ``number`` fixed sets while there is time, at least one."""
        for by in fixed_sets()[:number]:
            self.run(by)
            if time_left() <= 0:
                return

    def search(self) -> bool:
        """Run one set drawn around the best; return whether it is better."""
        return self.run(self.drawn())

    def drawn(self) -> Multipliers:
        """Return the best multipliers with some of them moved."""
        scale = 10.0 ** -(SCALES * self.rng.random())
        moved = self.rng.random(len(STEPS)) < MOVED
        step = scale * moved * self.rng.normal(size=len(STEPS)) * np.asarray(STEPS)
        now = np.asarray(astuple(self.best))
        new = np.where(GEOMETRIC, now * np.exp(step), now + step)
        return Multipliers(*np.maximum(LEAST, new).tolist())

    def keep_point(self) -> None:
        """Give the search around points the schedule of the best run as a point."""
        if self.value < np.inf:
            self.finder.consider_rule(self.rule(self.best))
