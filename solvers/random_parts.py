"""Random balanced parts: what a partition is worth is measured against them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from optbench.plugins.protocol import Run, Solver
from optbench.shapes.gnn_training.part_labels import kept_labels
from optbench.shapes.gnn_training.training_data import Ints
from optbench.shapes.gnn_training.training_plan import TrainingPlan


@dataclass
class RandomParts(Solver):
    """Nodes in random order, dealt to the parts in turn: sizes differ by at most one."""

    shapes: ClassVar[frozenset[str]] = frozenset({"gnn_training"})

    def warm_up(self, instance: Any) -> None:
        import scipy.optimize  # noqa: F401  # for labels of a graph that changed

    def solve(self, instance: Any, run: Run) -> Any:
        data = instance.data
        part = dealt_parts(data.graph.num_nodes, data.num_parts, run.rng)
        run.report(TrainingPlan(kept_labels(data, part)))
        if run.stop_requested.is_set():
            run.report_termination("interrupted")
        return run.best


def dealt_parts(nodes: int, parts: int, rng: np.random.Generator) -> Ints:
    """Return the part of each node."""
    part = np.empty(nodes, dtype=np.int64)
    part[rng.permutation(nodes)] = np.arange(nodes) % parts
    return part
