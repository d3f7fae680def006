"""A partition carried over to a graph that has changed: few nodes move, and few edges are cut.

With the part before b_v of a node, the price P of a move and the parts x_v, what is minimised is

    (number of cut edges) + P × (number of nodes v with x_v ≠ b_v)

within ``max_part``. New nodes first join the part of most of their neighbours. Then nodes are moved
by the local search of mis_spectral, on the graph with one node more for each part, its *anchor*,
which stays there and has an edge of weight P to every node that was in that part. Cycles of
coarsening, of edges that the partition does not cut, and of local search on the way back follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from optbench.plugins.protocol import Run, Solver
from optbench.shapes.gnn_training.training_data import GnnTraining, Ints
from optbench.shapes.gnn_training.training_plan import TrainingPlan

from . import mis_spectral
from .mis_spectral.level_graph import LevelGraph, rows_of_edges
from .mis_spectral.local_search import refine
from .mis_spectral.multilevel import CycleSettings, Multilevel

# The weight of an edge of the graph; prices are rounded to so many parts of it.
EDGE = 100
# Where parts are not limited, they keep their share of the nodes within this.
TOLERANCE = 0.03
COARSEST, PATIENCE, ROUNDS, REPAIR_ROUNDS = 60, 60, 4, 20
Score = tuple[int, int]


@dataclass
class Repartition(Solver):
    """Parts for a graph that has changed, from the parts before.

    ``move_price`` is what moving a node may cost, in edges cut; ``cycles`` of coarsening and local
    search follow the first answer. A work limit is a number of cycles.
    """

    move_price: float = 0.1
    cycles: int = 4

    shapes: ClassVar[frozenset[str]] = frozenset({"gnn_training"})
    needs: ClassVar[frozenset[str]] = frozenset({"partitioning"})

    def __post_init__(self) -> None:
        if not 0 <= self.move_price <= 1e6:
            raise ValueError(f"move_price is {self.move_price}; it must be from 0 to 1,000,000")
        if self.cycles < 0:
            raise ValueError(f"cycles is {self.cycles}; it must be at least 0")

    def refuse(self, instance: Any) -> str | None:
        if not len(instance.data.previous):
            return (
                "the instance has no partition from before; use mis_spectral, or a problem such "
                "as gnn_training:changed=0.05"
            )
        return mis_spectral.MisSpectral().refuse(instance)

    def solve(self, instance: Any, run: Run) -> Any:
        search = _PricedSearch(instance.data, round(EDGE * self.move_price), run)
        part = search.first(instance.data)
        run.report(TrainingPlan(part))
        most = self.cycles if run.work_limit is None else min(self.cycles, int(run.work_limit))
        best = search.score(part)
        for _ in range(most):
            if run.time_left() <= 0:
                break
            found = search.improved(part)
            if found is None:
                break
            score = search.score(found)
            if score < best:
                best, part = score, found
                run.report(TrainingPlan(part))
        if run.stop_requested.is_set():
            run.report_termination("interrupted")
        elif run.time_left() <= 0:
            run.report_termination("time_limit")
        return run.best


class _PricedSearch:
    """Search on the graph with anchors; partitions that are taken and returned are without them."""

    def __init__(self, data: GnnTraining, price: int, run: Run) -> None:
        self.data, self.price, self.run, self.rng = data, price, run, run.rng
        self.nodes, self.parts = data.graph.num_nodes, data.num_parts
        self.limit = _limits(data)
        # Anchors that nothing holds would be moved about.
        self.anchors = self.parts if price else 0
        self.graph = self._with_anchors()

    def _with_anchors(self) -> LevelGraph:
        graph = self.data.graph
        if not self.anchors:
            ptr, adj = rows_of_edges(graph.tail, graph.head, self.nodes)
            edges = np.full(len(adj), EDGE, dtype=np.int64)
            return LevelGraph(ptr, adj, edges, np.ones(self.nodes, dtype=np.int64))
        known = np.flatnonzero(self.data.previous >= 0)
        anchor = self.nodes + self.data.previous[known]
        tail, head = np.concatenate([graph.tail, known]), np.concatenate([graph.head, anchor])
        total = self.nodes + self.parts
        ptr, adj = rows_of_edges(tail, head, total)
        row = np.repeat(np.arange(total), np.diff(ptr))
        is_price = (row >= self.nodes) | (adj >= self.nodes)
        weight = np.where(is_price, self.price, EDGE).astype(np.int64)
        return LevelGraph(ptr, adj, weight, np.ones(total, dtype=np.int64))

    def score(self, part: Ints) -> Score:
        """The nodes over the limits, then the cut edges with the price of moves."""
        graph, previous = self.data.graph, self.data.previous
        over = np.bincount(part, minlength=self.parts) - self.limit
        cut = int((part[graph.tail] != part[graph.head]).sum())
        moved = int(((previous >= 0) & (previous != part)).sum())
        return int(np.maximum(over, 0).sum()), EDGE * cut + self.price * moved

    def first(self, data: GnnTraining) -> Ints:
        """The parts before, with new nodes, repaired and refined."""
        start = joined_parts(self.graph, data.previous, self.limit)
        slack = max(2, int(self.limit.min()) // 100)
        best = start
        for rounds in (ROUNDS, REPAIR_ROUNDS):
            part = self._anchored(best)
            seed = int(self.rng.integers(1 << 40))
            refine(*self.graph, part, self._room, slack, PATIENCE, rounds, seed)
            if self.score(part[: self.nodes]) < self.score(best):
                best = part[: self.nodes].copy()
            if self.score(best)[0] == 0:
                break
        return best

    def improved(self, part: Ints) -> Ints | None:
        """The partition after a cycle; None where the time is over before."""
        search = Multilevel(self.graph, self._room, lambda: self.run.time_left() <= 0)
        settings = CycleSettings(COARSEST, patience=PATIENCE)
        found = search.cycle(settings, self.rng, [self._anchored(part)])
        return None if found is None else found[: self.nodes].copy()

    @property
    def _room(self) -> Ints:
        """The limits of parts that hold their anchors."""
        return self.limit + (1 if self.anchors else 0)

    def _anchored(self, part: Ints) -> Ints:
        return np.concatenate([part, np.arange(self.anchors, dtype=np.int64)])


def _limits(data: GnnTraining) -> Ints:
    """The most nodes of each part."""
    most = np.full(data.num_parts, data.max_part, dtype=np.int64)
    if data.minimize == "cut":
        return most
    before = np.bincount(data.previous[data.previous >= 0], minlength=data.num_parts)
    share = before / max(1, before.sum())
    return np.minimum(most, np.ceil((1 + TOLERANCE) * share * data.graph.num_nodes) + 1).astype(int)


def joined_parts(graph: LevelGraph, previous: Ints, limit: Ints) -> Ints:
    """Return ``previous`` with every new node in the part of most of its neighbours with room.

    Nodes are placed in rounds, those with most neighbours in their part first; what has no
    neighbour in a part at all goes where most room is left."""
    nodes, parts = len(previous), len(limit)
    part = previous.copy()
    closed = np.zeros(parts, dtype=bool)
    while True:
        room = limit - np.bincount(part[part >= 0], minlength=parts)
        closed |= room <= 0
        waiting = np.flatnonzero(part < 0)
        pull = _pulls(graph, part, waiting, nodes, parts)
        pull[:, closed] = 0
        target, strength = pull.argmax(axis=1), pull.max(axis=1)
        order = np.argsort(-strength, kind="stable")
        order = order[strength[order] > 0]
        if not len(order):
            break
        for p in range(parts):
            coming = order[target[order] == p][: max(0, int(room[p]))]
            part[waiting[coming]] = p
    room = limit - np.bincount(part[part >= 0], minlength=parts)
    for v in np.flatnonzero(part < 0).tolist():
        part[v] = p = int(room.argmax())
        room[p] -= 1
    return part


def _pulls(graph: LevelGraph, part: Ints, waiting: Ints, nodes: int, parts: int) -> Ints:
    """The neighbours of waiting nodes in each part."""
    degree = graph.ptr[waiting + 1] - graph.ptr[waiting]
    row = np.repeat(np.arange(len(waiting)), degree)
    first = np.repeat(graph.ptr[waiting] - np.cumsum(degree) + degree, degree)
    other = graph.adj[first + np.arange(int(degree.sum()))]
    known = other < nodes
    known[known] = part[other[known]] >= 0
    pull = np.zeros((len(waiting), parts), dtype=np.int64)
    np.add.at(pull, (row[known], part[other[known]]), 1)
    return pull
