"""Projects for the compiled genetic search: which instances are projects, their arrays, and the
conversion to a schedule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Instance, Ints
from optbench.model.metrics import mode_uses
from optbench.model.schedule import Schedule
from optbench.model.windows import windows
from optbench.sim.primal.chance import RANDOM, TaskGraph, seeded
from optbench.sim.primal.genetic import BEST, BIG, DECODED, TARGET, TRIED, evolve
from optbench.sim.primal.serial_schedules import packed_demands
from optbench.sim.primal.shop import MAKESPANS, adjacency

# Features of a project: any other changes when a task can run or what is minimised.
FEATURES = frozenset({"precedence", "releases", "modes", "multi_resource", "pooled"})
# Limits on tables of usage per tick, so that decoding a list is fast.
MAX_TICKS = 20_000
MAX_TASKS = 3000
# Members of the population: fewer where lists are long, since fewer children are made in a second.
POPULATION, LEAST_POPULATION, POPULATION_ENTRIES = 1000, 100, 120_000


def is_project(instance: Instance) -> bool:
    """Whether the instance has only precedence and pools as constraints, the makespan as objective,
    and few enough ticks for tables.
    """
    return (
        instance.features <= FEATURES
        and {name for name, _ in instance.objective.levels[0]} <= MAKESPANS
        and instance.num_tasks <= MAX_TASKS
        and bool((np.diff(instance.pairs.ptr) > 0).all())
        and end_of_time(instance) <= MAX_TICKS
    )


def end_of_time(instance: Instance) -> int:
    """Return a time by which every list schedule has ended."""
    return int(instance.tasks.release.max(initial=0)) + int(windows(instance).longest.sum()) + 1


@dataclass(eq=False)
class ProjectSearch:
    """One population with its state; ``step`` may be called from a separate thread."""

    instance: Instance
    seed: int

    def __post_init__(self) -> None:
        instance, n = self.instance, self.instance.num_tasks
        edges, pairs = instance.edges, instance.pairs
        release = instance.tasks.release.astype(np.int64)
        predecessors = adjacency(edges.target, edges.source, n)
        self.graph = TaskGraph(*predecessors, *adjacency(edges.source, edges.target, n), release)
        self.rows = packed_demands(
            pairs.duration, mode_uses(instance)[pairs.mode], instance.pools.count
        )
        w = windows(instance)
        self.tails = (w.shortest + w.tail).astype(np.int64)
        self.horizon = end_of_time(instance)
        size = min(POPULATION, max(LEAST_POPULATION, POPULATION_ENTRIES // max(1, n)))
        self.lists, self.chosen = np.zeros((2, size, n), dtype=np.int64)
        self.fitness = np.full(size, BIG, dtype=np.int64)
        self.prints, self.ranked = np.zeros(size, dtype=np.int64), np.arange(size)
        self.best_row, self.best_start = np.zeros((2, n), dtype=np.int64)
        self.state = np.zeros(6, dtype=np.int64)
        self.state[[BEST, TARGET, RANDOM]] = BIG, -BIG, seeded(self.seed)

    @property
    def makespan(self) -> int:
        return int(self.state[BEST])

    @property
    def tried(self) -> int:
        return int(self.state[TRIED])

    @property
    def decoded(self) -> int:
        """Number of schedules made."""
        return int(self.state[DECODED])

    def aim(self, target: float) -> None:
        """Stop as soon as a makespan is not above this."""
        self.state[TARGET] = math.ceil(max(target, -1.0))

    def begin(self, row: Ints, start: Ints) -> None:
        """Add a schedule to the population."""
        position = np.empty(self.instance.num_tasks, dtype=np.int64)
        position[self.instance.order] = np.arange(self.instance.num_tasks)
        self.lists[0], self.chosen[0] = np.lexsort((position, start)), row
        self.fitness[0] = int((start + self.rows.duration[row]).max())

    def step(self, children: int) -> None:
        """Make ``children`` children."""
        evolve(
            self.graph,
            self.rows,
            self.instance.pairs.ptr,
            self.tails,
            self.lists,
            self.chosen,
            self.fitness,
            self.prints,
            self.ranked,
            self.best_row,
            self.best_start,
            self.state,
            self.horizon,
            children,
        )

    def schedule(self) -> Schedule:
        """The best schedule found."""
        return Schedule.of(self.instance, self.instance.pairs.mode[self.best_row], self.best_start)
