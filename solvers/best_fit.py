"""Best-fit bin packing of jobs that share GPUs, blind to GPU generations.

Jobs are taken by decreasing need; each joins the GPU in use that it leaves with the least free
share, or takes a free GPU. Free GPUs are taken in a mixed order of types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from optbench.errors import ParameterError
from optbench.plugins.process_policy import Act, ProcessPolicy
from optbench.shapes.colocation.allocations import Placement
from optbench.shapes.colocation.colocation_process import Observation

from ._blind_sharing import MeanThroughputs, Shelves, needs


@dataclass(frozen=True)
class BestFit(ProcessPolicy):
    """Best fit of co-located jobs by one mean throughput per job type, whatever the GPU."""

    shapes: ClassVar[frozenset[str]] = frozenset({"colocation"})

    full: float = 1.0  # two jobs share a GPU if their needs add up to at most this

    def __post_init__(self) -> None:
        if not 0 < self.full < np.inf:
            raise ParameterError(f"best_fit: full is {self.full!r}; it must be above 0, and finite")

    def actor(self, rng: Generator) -> Act:
        known = MeanThroughputs()
        order: list[int] = []

        def act(seen: Observation) -> Placement:
            known.learn(seen)
            if not order:
                order.extend(rng.permutation(np.repeat(np.arange(len(seen.counts)), seen.counts)))
            return packed(seen, known, mixed(order, seen), self.full)

        return act


def mixed(order: list[int], seen: Observation) -> list[int]:
    """The available GPUs' types in the order drawn at the start."""
    left, out = seen.counts.copy(), []
    for g in [*order, *np.repeat(np.arange(len(left)), left).tolist()]:
        if left[g] > 0:
            left[g] -= 1
            out.append(int(g))
    return out


def packed(seen: Observation, known: MeanThroughputs, free: list[int], full: float) -> Placement:
    """Pack the present jobs."""
    shelves, need = Shelves(seen, known, free), needs(seen, known)
    for job in np.argsort(-np.array(need), kind="stable").tolist():
        room = [
            shelf
            for shelf in shelves.taken
            if shelf.used + need[job] <= full and shelves.fits_beside(shelf, job)
        ]
        if room:
            chosen = max(room, key=lambda shelf: shelf.used)
            chosen.jobs.append(job)
            chosen.used += need[job]
        else:
            shelves.take_free(job, need[job])
    return shelves.placement()
