"""Linear deterministic greedy streaming (Stanton and Kliot, 2012): one look at each node.

A node v goes to the part p, of those below C = max_part nodes, with the greatest

    (neighbours of v in p so far) × (1 − |p| / C)

and to the least of these where several are equal. Nodes arrive in random order, or in the order in
which they are numbered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from optbench.compiling.compiled import njit
from optbench.plugins.protocol import Run, Solver
from optbench.shapes.gnn_training.adjacency import adjacency_of
from optbench.shapes.gnn_training.part_labels import kept_labels
from optbench.shapes.gnn_training.training_data import Ints
from optbench.shapes.gnn_training.training_plan import TrainingPlan


@dataclass
class Ldg(Solver):
    """Streaming: each node joins the part with most of its neighbours, weighted by its room."""

    order: Literal["random", "given"] = "random"

    shapes: ClassVar[frozenset[str]] = frozenset({"gnn_training"})
    needs: ClassVar[frozenset[str]] = frozenset({"streaming"})

    def warm_up(self, instance: Any) -> None:
        import scipy.optimize  # noqa: F401  # for labels of a graph that changed

    def solve(self, instance: Any, run: Run) -> Any:
        data = instance.data
        nodes = data.graph.num_nodes
        order = run.rng.permutation(nodes) if self.order == "random" else np.arange(nodes)
        part = streamed(*adjacency_of(data.graph), order, data.num_parts, data.max_part)
        run.report(TrainingPlan(kept_labels(data, part)))
        if run.stop_requested.is_set():
            run.report_termination("interrupted")
        return run.best


@njit()
def streamed(ptr: Ints, adj: Ints, order: Ints, parts: int, most: int) -> Ints:
    """Return the part of each node; ``most`` is the most nodes of a part."""
    part, load = np.full(len(order), -1, np.int64), np.zeros(parts, np.int64)
    near = np.zeros(parts, np.int64)
    for v in order:
        near[:] = 0
        for e in range(ptr[v], ptr[v + 1]):
            if part[adj[e]] >= 0:
                near[part[adj[e]]] += 1
        chosen, best = -1, -1.0
        for p in range(parts):
            if load[p] >= most:
                continue
            score = near[p] * (1.0 - load[p] / most)
            if score > best or (score == best and load[p] < load[chosen]):
                chosen, best = p, score
        part[v] = chosen
        load[chosen] += 1
    return part
