"""One multilevel cycle: coarsen, partition the coarsest graph, and refine on the way back.

On coarse levels, where nodes are large, parts may exceed their limits by a node or ``SOFT``,
whichever is less: demanded there, exact balance costs more edges than it saves later. On the level
of single nodes the limits hold.

A cycle that starts from partitions contracts only edges that none of them cuts, so that each
survives on the coarsest graph, which starts with the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from optbench.shapes.gnn_training.training_data import Ints

from .independent_sets import clusters
from .level_graph import LevelGraph, contracted, cut_weight
from .local_search import refine
from .spectral_start import spectral_partitions

# The share by which parts may exceed their limits on coarse levels.
SOFT = 0.03
# Coarsening ends where a level keeps more than this share of its nodes, and of a graph at most
# four times the coarsest one where it keeps more than the second share.
MOST_KEPT, FEW_KEPT = 0.98, 0.8
ROUNDS = 4
# Roots are drawn in random order within blocks of so many nodes, whose numbers are near in memory.
BLOCK_NODES = 2048


@dataclass(frozen=True)
class CycleSettings:
    """``coarsest`` nodes at the end; roots are drawn in the order of random / degree^``hubs``.

    A cluster holds at most ``cluster`` nodes of average size of the coarsest graph;
    in ``rounds`` nodes move between clusters.
    """

    coarsest: int = 60
    hubs: float = 0.0
    tries: int = 2
    patience: int = 60
    cluster: float = 2.0
    rounds: int = 0


@dataclass(frozen=True)
class CutScore:
    """The excess over the limits, then the cut; the less, the better."""

    excess: int
    cut: int

    def __lt__(self, other: CutScore) -> bool:
        return (self.excess, self.cut) < (other.excess, other.cut)

    def __le__(self, other: CutScore) -> bool:
        return not other < self


@dataclass(frozen=True)
class Levels:
    """Graphs with the cluster of each node, the ``coarsest`` one, and its part in the first of the
    partitions that the coarsening started from.
    """

    finer: list[tuple[LevelGraph, Ints]]
    coarsest: LevelGraph
    start: Ints | None


@dataclass(frozen=True)
class Multilevel:
    """Cycles on one graph under the limits of its parts."""

    graph: LevelGraph
    limit: Ints
    expired: Callable[[], bool]

    def score(self, part: Ints) -> CutScore:
        graph = self.graph
        load = np.bincount(part, graph.size, len(self.limit)).astype(np.int64)
        over = int(np.maximum(load - self.limit, 0).sum())
        return CutScore(over, int(cut_weight(graph.ptr, graph.adj, graph.weight, part)))

    def cycle(
        self, settings: CycleSettings, rng: np.random.Generator, parents: Sequence[Ints] = ()
    ) -> Ints | None:
        """Return a partition; None where the time is over before."""
        levels = self.coarsened(settings, rng, parents)
        if levels.start is None:
            part = self._first(levels.coarsest, settings, rng)
        else:
            part = levels.start.copy()
            self._refine(levels.coarsest, part, settings, rng)
        return self.uncoarsened(levels, part, settings, rng)

    def coarsened(
        self,
        settings: CycleSettings,
        rng: np.random.Generator,
        parents: Sequence[Ints] = (),
        enough: int = 0,
    ) -> Levels:
        """Contract clusters again and again; end early with at most ``enough`` nodes."""
        label = self._label(parents)
        graph, finer = self.graph, list[tuple[LevelGraph, Ints]]()
        end = max(settings.coarsest, 2 * len(self.limit))
        most = max(2, int(settings.cluster * graph.size.sum() / end), int(graph.size.max()))
        start = parents[0] if parents else None
        while graph.num_nodes > max(end, enough):
            order = _order(graph, settings.hubs, rng)
            cluster, count = clusters(*graph, order, label, most, settings.rounds)
            most_kept = MOST_KEPT if graph.num_nodes > 4 * end else FEW_KEPT
            if count > most_kept * graph.num_nodes:
                break
            finer.append((graph, cluster))
            graph = LevelGraph(*contracted(*graph, cluster, count))
            label = _of_clusters(label, cluster, count)
            start = None if start is None else _of_clusters(start, cluster, count)
        return Levels(finer, graph, start)

    def uncoarsened(
        self, levels: Levels, part: Ints, settings: CycleSettings, rng: np.random.Generator
    ) -> Ints | None:
        """Refine a partition of the coarsest graph from level to level."""
        for finer, cluster in reversed(levels.finer):
            if self.expired():
                return None
            part = part[cluster]
            self._refine(finer, part, settings, rng)
        return part

    def _label(self, parents: Sequence[Ints]) -> Ints:
        """A number for each combination of parts: nodes of different ones stay apart."""
        label = np.zeros(self.graph.num_nodes, dtype=np.int64)
        for each in parents:
            label = label * len(self.limit) + each
        return label

    def _first(self, graph: LevelGraph, settings: CycleSettings, rng: np.random.Generator) -> Ints:
        """The best of a few spectral partitions of the coarsest graph."""
        soft = self.soft_limit(graph)
        found = list[tuple[int, int, Ints]]()
        for part in spectral_partitions(graph, soft, rng, settings.tries):
            slack, seed = int(graph.size.max()), int(rng.integers(1 << 40))
            refine(*graph, part, soft, slack, settings.patience, ROUNDS, seed)
            load = np.bincount(part, graph.size, len(soft)).astype(np.int64)
            over = int(np.maximum(load - soft, 0).sum())
            cut = cut_weight(graph.ptr, graph.adj, graph.weight, part)
            found.append((over, int(cut), part))
        return min(found, key=lambda each: each[:2])[2]

    def soft_limit(self, graph: LevelGraph) -> Ints:
        largest = int(graph.size.max())
        if largest == int(self.graph.size.max()):
            return self.limit
        return self.limit + np.minimum(largest, np.maximum(1, (self.limit * SOFT).astype(np.int64)))

    def _refine(
        self, graph: LevelGraph, part: Ints, settings: CycleSettings, rng: np.random.Generator
    ) -> None:
        """Refine one level; on that of single nodes a second time with more slack."""
        largest, typical = int(graph.size.max()), int(self.limit.min())
        seed, soft, slack = int(rng.integers(1 << 40)), self.soft_limit(graph), largest
        if graph is self.graph:
            slack = max(2 * largest, typical // 100)
        refine(*graph, part, soft, slack, settings.patience, ROUNDS, seed)


def _order(graph: LevelGraph, hubs: float, rng: np.random.Generator) -> Ints:
    """The order in which nodes may become roots."""
    key = rng.random(graph.num_nodes)
    if not hubs:
        key += np.arange(graph.num_nodes) // BLOCK_NODES
    else:
        key /= np.maximum(1, np.diff(graph.ptr)) ** hubs
    return np.argsort(key)


def _of_clusters(value: Ints, cluster: Ints, count: int) -> Ints:
    """What all nodes of each cluster have in common."""
    out = np.empty(count, dtype=np.int64)
    out[cluster] = value
    return out
