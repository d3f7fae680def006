"""Runs of METIS on the graph of a training instance; METIS balances numbers of nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from optbench.plugins.protocol import Run
from optbench.shapes.gnn_training.adjacency import adjacency_of
from optbench.shapes.gnn_training.cut_graph import CutGraph
from optbench.shapes.gnn_training.training_data import GnnTraining, Ints

# METIS takes the largest imbalance in thousandths, and wants at least one.
LEAST_UFACTOR = 1
# Runs where neither a work limit nor a time limit ends a search.
MOST_RUNS = 1000
# Between METIS's seeds of two seeds of a run.
SEEDS_APART = 100_003


class MetisRuns:
    """The graph in the form that METIS takes, made once for many runs."""

    def __init__(self, data: GnnTraining) -> None:
        import pymetis

        self.data = data
        ptr, neighbour = adjacency_of(data.graph)
        kind = pymetis.zero_copy_dtype()
        self.adjacency = pymetis.CSRAdjacency(ptr.astype(kind), neighbour.astype(kind))

    @property
    def ufactor(self) -> int:
        """The imbalance that ``max_part`` allows, in METIS's unit."""
        nodes, parts = self.data.graph.num_nodes, self.data.num_parts
        return max(LEAST_UFACTOR, 1000 * self.data.max_part * parts // nodes - 1000)

    def many(self, run: Run) -> Iterator[tuple[int, Ints]]:
        """Yield cut and parts of METIS's default, then of recursive and k-way runs in turn with
        many seeds, up to the imbalance that is allowed; a work limit is a number of runs.
        """
        most = run.work_limit or (MOST_RUNS if run.time_limit_s is None else float("inf"))
        yield self.part()
        number = 1
        while number < most and run.time_left() > 0:
            yield self.part(number % 2 == 1, run.seed * SEEDS_APART + number, self.ufactor)
            number += 1

    def part(
        self,
        recursive: bool | None = None,
        seed: int | None = None,
        ufactor: int | None = None,
        shares: Sequence[float] | None = None,
    ) -> tuple[int, Ints]:
        """Return the cut and the part of every node; METIS's defaults where nothing is given.

        ``shares`` of the nodes for each part (``tpwgts``) add up to 1; by default they are equal.
        """
        import pymetis

        nodes, parts = self.data.graph.num_nodes, self.data.num_parts
        if parts == 1 or self.data.graph.num_edges == 0 or nodes < 2 * parts:
            part = np.arange(nodes, dtype=np.int64) % parts  # METIS may crash on these
            return CutGraph(self.data.graph, part, parts).cut_edges, part
        given = {"seed": seed, "ufactor": ufactor}
        options = pymetis.Options(**{k: v for k, v in given.items() if v is not None})
        found = pymetis.part_graph(
            parts, self.adjacency, recursive=recursive, options=options, tpwgts=shares
        )
        return int(found[0]), np.array(found[1], dtype=np.int64)

    def fits(self, part: Ints) -> bool:
        """Whether no part is larger than ``max_part``."""
        largest = np.bincount(part, minlength=self.data.num_parts).max()
        return bool(largest <= self.data.max_part)
