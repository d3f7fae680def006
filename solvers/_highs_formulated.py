"""HiGHS on the formulation of an instance that is no schedule: points are made exact, then decoded.

A point within HiGHS's tolerances is no solution yet. Its integers are rounded and its continuous
columns solved again in rationals; where no exact point results, ``info["within_tolerance"]`` says
what HiGHS found.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from optbench.model.instance import Floats
from optbench.plugins.protocol import Run
from optbench.shapes.milp.exact_point import as_floats, exact_point, within_tolerance
from optbench.shapes.milp.lp_relaxation import highs_model
from optbench.shapes.milp.program import Milp

from ._highs_session import HighsSession

# HiGHS's duals are off by its tolerances: bounds are lowered by this much and by this share.
SLACK = 1e-9
# Seconds for making a point exact once the time of the run is spent.
GRACE_S = 1.0
NO_EXACT_POINT = (
    "HiGHS found a point within its tolerances, but none with these integers that holds exactly "
    "(see info.within_tolerance)"
)


def solve_formulated(run: Run) -> None:
    """Solve the instance of a run by its formulation."""
    instance: Any = run.instance
    FormulatedSession(run, instance.formulation).solve()


@dataclass
class FormulatedSession(HighsSession):
    """Points are those of the formulation; ``sign`` turns the minimisation into its own sense."""

    formulation: Any

    def __post_init__(self) -> None:
        self.program: Milp = self.formulation.program
        self.sign = 1.0 if self.program.sense == "min" else -1.0

    def solve(self) -> None:
        run, highs = self.run, self.prepared(mip_abs_gap=1e-9)
        highs.passModel(highs_model(self.program, whole=True))
        # A formulation may come with a decision of its own to start from.
        start = run.warm_start or getattr(self.formulation, "start", None)
        if start is not None:
            run.report(start)
            self.start_from(highs, as_floats(self.formulation.encode(start)))
        self.run_to_end(highs)

    def last_dual(self, info: Any) -> float:
        is_mip = bool(self.program.integer.any())
        return super().last_dual(info) if is_mip else float(info.objective_function_value)

    def report_values(self, values: Floats) -> None:
        deadline = time.perf_counter() + max(GRACE_S, self.run.time_left())
        point = exact_point(self.program, values, deadline)
        if point is None:
            self.run.info["within_tolerance"] = within_tolerance(self.program, values)
            self.run.report_message(NO_EXACT_POINT)
            return
        verdict = self.run.report(self.formulation.decode(point))
        self.run.shape.check_decoded(self.run.instance, point, verdict)

    def report_dual(self, dual: float) -> None:
        """HiGHS bounds the minimisation without its constant."""
        dual -= SLACK + SLACK * abs(dual)
        self.run.report_bound(self.sign * dual + self.program.constant, "highs")
