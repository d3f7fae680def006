"""Column generation over patterns of alike jobs, then a search for whole numbers of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from optbench.plugins.protocol import Run, Solver
from optbench.shapes.colocation.epoch_allocator import allocate
from optbench.shapes.colocation.pattern_certificate import certificate_of_relaxation


@dataclass
class ColumnGeneration(Solver):
    """Column generation with HiGHS and a search over near columns, for one epoch's allocation."""

    gap: float = 0.0

    shapes: ClassVar[frozenset[str]] = frozenset({"epoch_allocation"})

    def __post_init__(self) -> None:
        if not 0 <= self.gap < 1:
            raise ValueError(f"gap is {self.gap}; it must be at least 0 and below 1")

    def solve(self, instance: Any, run: Run) -> Any:
        found = allocate(instance.data, run.time_left(), self.gap)
        run.report(found.rows)
        run.report_bound(found.bound_w, "column_generation")
        if found.duals is not None:
            text = certificate_of_relaxation(instance.formulation, found.duals)
            run.report_certificate(text)
        if found.gap_w > 0 and run.time_left() <= 0:
            run.report_termination("time_limit")
        return run.best
