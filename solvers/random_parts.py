"""Random balanced parts: what a partition is worth is measured against them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from optbench.plugins.protocol import Run, Solver
from optbench.shapes.gnn_training.training_plan import TrainingPlan


@dataclass
class RandomParts(Solver):
    """Nodes in random order, dealt to the parts in turn: sizes differ by at most one."""

    shapes: ClassVar[frozenset[str]] = frozenset({"gnn_training"})

    def solve(self, instance: Any, run: Run) -> Any:
        nodes = instance.data.graph.num_nodes
        part = np.empty(nodes, dtype=np.int64)
        part[run.rng.permutation(nodes)] = np.arange(nodes) % instance.data.num_parts
        run.report(TrainingPlan(part))
        if run.stop_requested.is_set():
            run.report_termination("interrupted")
        return run.best
