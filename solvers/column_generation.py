"""Column generation over patterns of alike jobs, then a search for whole numbers of each.

The relaxation over all patterns (``optbench.shapes.epoch_allocation.pattern_program``) is solved by
generating columns, and its duals are reported as a certificate, which the core proves again. The
patterns that it uses, rounded down, leave a small demand over, which is allocated exactly; at last
the patterns whose reduced cost is within the gap are searched. A work limit is the number of nodes
of a search.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from optbench.plugins.protocol import Run, Solver
from optbench.shapes.epoch_allocation.epoch_allocator import allocate_within
from optbench.shapes.epoch_allocation.pattern_certificate import certificate_of_relaxation
from optbench.shapes.epoch_allocation.pattern_solver import SearchLimits


@dataclass
class ColumnGeneration(Solver):
    """Column generation with HiGHS and a search over near columns, for one epoch's allocation.

    It stops within ``gap``, a share of the power of the GPUs in use.
    """

    gap: float = 0.0

    shapes: ClassVar[frozenset[str]] = frozenset({"epoch_allocation"})

    def __post_init__(self) -> None:
        if not 0 <= self.gap < 1:
            raise ValueError(f"gap is {self.gap}; it must be at least 0 and below 1")

    def solve(self, instance: Any, run: Run) -> Any:
        if run.warm_start is not None:
            run.report(run.warm_start)
        nodes = None if run.work_limit is None else max(0, math.ceil(run.work_limit))
        limits = SearchLimits.within(run.time_left(), nodes, run.stop_requested.is_set)
        found = allocate_within(instance.data, limits, self.gap, known=run.best)
        run.report(found.rows)
        run.report_bound(found.bound_w, "column_generation")
        if found.duals is not None:
            run.report_certificate(certificate_of_relaxation(instance.formulation, found.duals))
        if run.stop_requested.is_set():
            run.report_termination("interrupted")
        elif found.gap_w > 0 and run.time_left() <= 0:
            run.report_termination("time_limit")
        elif found.gap_w > 0 and nodes is not None:
            run.report_termination("work_limit")
        return run.best
