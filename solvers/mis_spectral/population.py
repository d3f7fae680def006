"""A population of partitions: many cheap starts, then recombination.

The first ``opening`` cycles lead to the first answer: two start anew, the third recombines their
partitions, and of every three further ones the first starts anew, unless it is the last, and the
others recombine; their local search is more patient on larger graphs. Until ``STARTING`` of the
budget is spent all later ones start anew, with few nodes on the coarsest graph.
After that most cycles start from two partitions of the population, fewer from one, and few anew. A
new partition takes the place of the one most like it (by the edges cut) among those that are no
better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optbench.shapes.gnn_training.training_data import Ints

from .multilevel import CutScore, CycleSettings, Multilevel

STARTING = 0.1
MOST_MEMBERS = 12
# The first cycles, which start anew, and for all starts of the opening their nodes on the coarsest
# graph (in all, and per part) and their largest cluster.
FIRST_STARTS, FIRST_COARSEST, FIRST_PER_PART, FIRST_CLUSTER = 2, 60, 10, 1.2
# On larger graphs these start from a population of so many cycles on a graph of at most so many
# nodes, or a share of all.
NESTED_NODES, NESTED_CYCLES, NESTED_LEAST, NESTED_SHARE = 50_000, 4, 1_000, 1 / 32
# Rounds in which nodes move between clusters, in every other start of the opening and every
# other cycle after it.
ROUNDS = 4
# Nodes beyond which the patience of the opening grows, with their square root.
USUAL_NODES = 700
# Those of later cycles and the powers of degrees by which roots are drawn, in turn.
COARSEST, HUBS = (20, 40, 20, 60, 100), (0.0, 0.5, 1.0)
# Cumulative shares of cycles from two partitions and from one.
FROM_TWO, FROM_ONE = 0.75, 0.93


@dataclass(frozen=True)
class PartitionMember:
    """A partition, its score, and which stored directions of edges it cuts."""

    part: Ints
    score: CutScore
    cut: Any


@dataclass
class Population:
    """Partitions of one graph, the best first."""

    search: Multilevel
    rng: np.random.Generator
    opening: int = 3
    patience: int = 60
    members: list[PartitionMember] = field(default_factory=list)
    starts: int = 0
    cycles: int = 0

    @property
    def best(self) -> PartitionMember:
        return self.members[0]

    @property
    def _early_patience(self) -> int:
        """The patience of the opening: more on larger graphs, where one cycle has to do most."""
        return int(self.patience * max(1.0, (self.search.graph.num_nodes / USUAL_NODES) ** 0.5))

    @property
    def _rounds(self) -> int:
        """Rounds of moves between clusters, in every other cycle after the opening."""
        return ROUNDS * (self.cycles % 2 == 0)

    def improvements(self, progress: Callable[[], float]) -> Iterator[PartitionMember]:
        """Yield each best partition; ``progress`` is the share of the budget that is spent.

        After a cycle without improvement the best one is yielded again.
        """
        while True:
            self.run_cycle(progress())
            if self.members:
                yield self.best

    def run_cycle(self, progress: float) -> None:
        """Run the next cycle, and let its partition into the population."""
        found = self._cycle(progress)
        if found is not None:
            self._take(found)
        self.cycles += 1

    def _cycle(self, progress: float) -> Ints | None:
        """Run the next cycle."""
        if FIRST_STARTS <= self.cycles < self.opening and len(self.members) > 1:
            is_last = self.cycles == self.opening - 1
            return self._from_members(2) if is_last or self.cycles % 3 else self._start()
        if self.cycles < FIRST_STARTS or progress < STARTING:
            return self._start()
        kind = self.rng.random()
        if kind < FROM_TWO and len(self.members) > 1:
            return self._from_members(2)
        return self._from_members(1) if kind < FROM_ONE else self._start()

    def _start(self) -> Ints | None:
        """Make a partition anew, with the settings whose turn it is."""
        number = self.starts
        self.starts += 1
        hubs = HUBS[number % len(HUBS)]
        if self.cycles >= self.opening:
            nodes = COARSEST[number % len(COARSEST)]
            settings = CycleSettings(nodes, hubs, patience=self.patience, rounds=self._rounds)
            return self.search.cycle(settings, self.rng)
        settings = CycleSettings(
            FIRST_COARSEST + FIRST_PER_PART * len(self.search.limit),
            HUBS[number % FIRST_STARTS],
            patience=self._early_patience,
            cluster=FIRST_CLUSTER,
            rounds=ROUNDS * (number % FIRST_STARTS == 0),
        )
        if self.search.graph.num_nodes > NESTED_NODES:
            return self._nested(settings)
        return self.search.cycle(settings, self.rng)

    def _nested(self, settings: CycleSettings) -> Ints | None:
        """Start from the best of a small population on a coarser graph."""
        search = self.search
        enough = max(NESTED_LEAST, int(search.graph.num_nodes * NESTED_SHARE))
        levels = search.coarsened(settings, self.rng, enough=enough)
        coarse = Multilevel(levels.coarsest, search.soft_limit(levels.coarsest), search.expired)
        inner = Population(coarse, self.rng, NESTED_CYCLES, self.patience)
        while inner.cycles < NESTED_CYCLES:
            inner.run_cycle(0.0)
        if not inner.members:
            return None
        return search.uncoarsened(levels, inner.best.part, settings, self.rng)

    def _from_members(self, count: int) -> Ints | None:
        """Make a partition from random members; edges that none of them cuts stay together.

        In the opening the best one is always among them.
        """
        hubs, first = HUBS[int(self.rng.integers(2))], int(self.cycles < self.opening)
        patience = self._early_patience if first else self.patience
        settings = CycleSettings(
            COARSEST[0], hubs, patience=patience, rounds=0 if first else self._rounds
        )
        drawn = self.rng.choice(len(self.members) - first, count - first, replace=False) + first
        chosen = sorted([*range(first), *drawn.tolist()])
        return self.search.cycle(settings, self.rng, [self.members[i].part for i in chosen])

    def _take(self, part: Ints) -> None:
        """Let a partition into the population, unless it is there or worse than all of it."""
        new = PartitionMember(part, self.search.score(part), self.search.graph.cut_arcs(part))
        for each in self.members:
            if each.score == new.score and np.array_equal(each.cut, new.cut):
                return
        if len(self.members) < MOST_MEMBERS:
            self.members.append(new)
        else:
            replaced = [i for i, each in enumerate(self.members) if new.score <= each.score]
            if not replaced:
                return
            like = [int(np.count_nonzero(new.cut != self.members[i].cut)) for i in replaced]
            self.members[replaced[int(np.argmin(like))]] = new
        self.members.sort(key=lambda each: (each.score.excess, each.score.cut))
