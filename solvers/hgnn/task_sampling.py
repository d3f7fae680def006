"""Which edges of the task graph carry messages in each round: all, or a ``keep`` share of them.

importance  the edges with the most critical ends, the same in every round: how close a task is to
            the critical path, times its work
layer       adaptive: in each round after the first, the most critical edges at the tasks that the
            round before has reached, without those that have carried messages
subgraph    edges around the tasks that wait for nothing, one step farther in each pass until the
            share is used up
"""

from __future__ import annotations

import numpy as np

from optbench.model.instance import Floats, Ints

from .network_settings import NetworkSettings
from .seen_arrays import SeenArrays

EdgeEnds = tuple[Ints, Ints]


def taking_part(seen: SeenArrays, settings: NetworkSettings) -> list[EdgeEnds]:
    """Return source and target of the edges of each round."""
    source, target = seen.source, seen.target
    if settings.sampling == "none" or len(source) == 0:
        return [(source, target)] * settings.rounds
    most = max(1, round(settings.keep * len(source)))
    value = np.maximum(seen.importance[source], seen.importance[target])
    if settings.sampling == "importance":
        kept = best(value, most)
        return [(source[kept], target[kept])] * settings.rounds
    if settings.sampling == "layer":
        return layers(seen, value, most, settings.rounds)
    kept = around_waiting(seen, most)
    return [(source[kept], target[kept])] * settings.rounds


def best(value: Floats, most: int) -> Ints:
    """Return the rows of the highest values in their order; the first of ties."""
    return np.sort(np.argsort(-value, kind="stable")[:most])


def layers(seen: SeenArrays, value: Floats, most: int, rounds: int) -> list[EdgeEnds]:
    out, kept = [], best(value, most)
    for _ in range(rounds):
        out.append((seen.source[kept], seen.target[kept]))
        reached = np.zeros(len(seen.importance), dtype=bool)
        reached[seen.source[kept]] = reached[seen.target[kept]] = True
        near = reached[seen.source] | reached[seen.target]
        value = np.where(near, value, -1.0)
        value[kept] = -2.0
        kept = best(value, most)
    return out


def around_waiting(seen: SeenArrays, most: int) -> Ints:
    """Return edges by their distance from the tasks without predecessors, nearest first."""
    n = len(seen.importance)
    distance = np.full(n, n)
    distance[np.bincount(seen.target, minlength=n) == 0] = 0
    kept, step = np.zeros(0, dtype=np.int64), 0
    while len(kept) < most:
        here = np.flatnonzero(distance[seen.source] == step)
        if len(here) == 0:
            break
        kept = np.concatenate((kept, here))
        after = seen.target[here]
        distance[after] = np.minimum(distance[after], step + 1)
        step += 1
    return np.sort(kept[:most])
