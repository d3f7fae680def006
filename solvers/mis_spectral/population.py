"""A population of partitions: many cheap starts, then recombination.

During the first ``STARTING`` of the budget every cycle starts anew. After that most cycles start
from two partitions of the population, fewer from one, and few start anew. A new partition takes the
place of the one most like it (by the edges cut) among those that are no better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optbench.shapes.gnn_training.training_data import Ints

from .multilevel import CycleSettings, Multilevel, Score

STARTING = 0.25
MOST_MEMBERS = 12
# Nodes per part of the coarsest graph and powers of degrees, in the order of the first starts.
COARSEST, HUBS = (20, 40, 20, 60, 100), (0.0, 0.5, 1.0)
# Cumulative shares of cycles from two partitions and from one.
FROM_TWO, FROM_ONE = 0.75, 0.93


@dataclass(frozen=True)
class Member:
    """A partition, its score, and which stored directions of edges it cuts."""

    part: Ints
    score: Score
    cut: Any


@dataclass
class Population:
    """Partitions of one graph, the best first."""

    search: Multilevel
    rng: np.random.Generator
    patience: int = 60
    members: list[Member] = field(default_factory=list)
    starts: int = 0

    @property
    def best(self) -> Member:
        return self.members[0]

    def improvements(self, progress: Callable[[], float]) -> Iterator[Member]:
        """Yield each best partition; ``progress`` is the share of the budget that is spent.

        After a cycle without improvement the best one is yielded again."""
        while True:
            starting = progress() < STARTING or not self.members
            found = self._start() if starting else self._step()
            if found is not None:
                self._take(found)
            if self.members:
                yield self.best

    def _start(self) -> Ints | None:
        """Make a partition anew, with the settings whose turn it is."""
        number = self.starts
        self.starts += 1
        settings = CycleSettings(
            COARSEST[number % len(COARSEST)], HUBS[number % len(HUBS)], patience=self.patience
        )
        return self.search.cycle(settings, self.rng)

    def _step(self) -> Ints | None:
        kind, count = self.rng.random(), len(self.members)
        hubs = (0.0, 0.5)[int(self.rng.integers(2))]
        settings = CycleSettings(COARSEST[0], hubs, patience=self.patience)
        if kind < FROM_TWO and count > 1:
            chosen = sorted(self.rng.choice(count, 2, replace=False).tolist())
        elif kind < FROM_ONE:
            chosen = [int(self.rng.integers(count))]
        else:
            return self._start()
        return self.search.cycle(settings, self.rng, [self.members[i].part for i in chosen])

    def _take(self, part: Ints) -> None:
        """Let a partition into the population, unless it is there or worse than all of it."""
        new = Member(part, self.search.score(part), self.search.graph.cut_arcs(part))
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
