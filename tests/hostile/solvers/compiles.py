"""Compiles code of its own, honestly."""

from __future__ import annotations

from dataclasses import dataclass

import optbench as ob
from optbench.compiling.compiled import njit

from ._everything import EVERYTHING
from ._honest import honest


@njit()
def add(a: int, b: int) -> int:
    return a + b


@dataclass(frozen=True)
class Compiles(ob.Solver):
    """Says how often its function came from the cache, and how often it had to be compiled."""

    supports = EVERYTHING

    def solve(self, instance: ob.Instance, run: ob.Run) -> ob.Schedule | None:
        assert add(1, 2) == 3
        stats = add.stats
        print(
            f"loaded {sum(stats.cache_hits.values())}, compiled {sum(stats.cache_misses.values())}"
        )
        return honest(instance)
