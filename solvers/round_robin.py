"""Jobs go to GPUs in turn, blind to GPU generations: a second round shares GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from optbench.plugins.process_policy import Act, ProcessPolicy
from optbench.shapes.colocation.allocations import Placement
from optbench.shapes.colocation.colocation_process import Observation

from ._blind_sharing import MeanThroughputs, Shelves


@dataclass(frozen=True)
class RoundRobin(ProcessPolicy):
    """Each job takes the next GPU in turn; once all are in use, jobs share them in turn."""

    shapes: ClassVar[frozenset[str]] = frozenset({"colocation"})

    def actor(self, rng: Generator) -> Act:
        known = MeanThroughputs()

        def act(seen: Observation) -> Placement:
            known.learn(seen)
            shelves = Shelves(seen, known, in_turn(seen.counts.tolist()))
            for job in range(len(seen.jobs.job)):
                if shelves.take_free(job, 0.0):
                    continue
                room = [shelf for shelf in shelves.taken if shelves.fits_beside(shelf, job)]
                if room:
                    room[0].jobs.append(job)
            return shelves.placement()

        return act


def in_turn(counts: list[int]) -> list[int]:
    """One GPU of each type after the other, until none is left."""
    left, out = np.array(counts), list[int]()
    while left.sum() > 0:
        for g in np.flatnonzero(left > 0).tolist():
            left[g] -= 1
            out.append(g)
    return out
