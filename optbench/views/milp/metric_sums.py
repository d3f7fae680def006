"""The objective and the limits on metrics of the disjunctive formulation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Floats
from optbench.model.objective import MAKESPANS
from optbench.model.timegrid import widened
from optbench.views.milp.arrays import BlockCollector, MilpArrays
from optbench.views.milp.frame import ENERGETIC, Frame, Transfers
from optbench.views.milp.priced import pair_amounts, rest_until


@dataclass(frozen=True, eq=False)
class Terms:
    """The metrics as linear functions; ``makespan`` and ``tardy`` are the first columns of those
    blocks.
    """

    base: Frame
    sent: Transfers
    makespan: int | None
    tardy: int | None

    def of(self, metric: str, num_columns: int) -> tuple[float, Floats]:
        """Return constant and coefficients of a metric."""
        instance, out = self.base.instance, np.zeros(num_columns)
        tasks, pairs, step = instance.tasks, instance.pairs, instance.tick_s
        modes = slice(instance.num_tasks, instance.num_tasks + len(pairs.task))
        if metric in MAKESPANS:
            assert self.makespan is not None  # Frame.needs_makespan
            out[self.makespan] = step if metric == "makespan_s" else 1.0
            return 0.0, out
        if metric == "flow_time_s":
            out[: instance.num_tasks] = tasks.weight * step
            out[modes] = tasks.weight[pairs.task] * pairs.duration * step
            return -float((tasks.weight * tasks.release).sum()) * step, out
        if metric == "tardiness_s":
            late = self.base.late_tasks
            if self.tardy is not None:
                out[self.tardy : self.tardy + len(late)] = tasks.weight[late] * step
            return 0.0, out
        assert metric in ENERGETIC
        out[modes] = pair_amounts(self.base, metric)
        out[self.sent.first : self.sent.first + len(self.sent.edge)] = self.sent.cost(
            self.base, metric
        )
        if instance.horizon is not None:
            return float(rest_until(self.base, metric, np.asarray([instance.horizon]))[0]), out
        if self.makespan is not None:
            out[self.makespan] = float(rest_until(self.base, metric, np.ones(1))[0])
        return 0.0, out


def finished(sheet: BlockCollector, terms: Terms) -> MilpArrays:
    """Add the limits on metrics, and return the model with its objective."""
    for name, limit in sorted(terms.base.instance.limits.metric_max.items()):
        fixed, vector = terms.of(name, sheet.num_columns)
        at = np.flatnonzero(vector)
        top = widened(limit) - fixed
        sheet.add_rows(
            f"limit_{name}",
            np.zeros((1, 0)),
            [(np.zeros(len(at)), at, vector[at])],
            -np.inf,
            top,
        )
    total, constant = np.zeros(sheet.num_columns), 0.0
    for name, weight in terms.base.weights.items():
        fixed, vector = terms.of(name, sheet.num_columns)
        total, constant = total + weight * vector, constant + weight * fixed
    return sheet.finish(total, constant)
