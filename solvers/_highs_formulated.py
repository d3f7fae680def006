"""HiGHS on the formulation of an instance that is no schedule: points are made exact, then decoded.

A point within HiGHS's tolerances is no solution yet. Its integers are rounded and its continuous
columns solved again in rationals; where no exact point results, ``info["within_tolerance"]`` says
what HiGHS found.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from optbench.errors import OptbenchError
from optbench.model.result import Termination
from optbench.plugins.protocol import Run
from optbench.shapes.milp.exact_point import as_floats, exact_point, within_tolerance
from optbench.shapes.milp.relaxation_proof import highs_model

from ._highs_statuses import SOLVED, STOPPED, WRONG_PRESOLVE

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
class FormulatedSession:
    """One run of HiGHS; ``sign`` turns the minimisation back into the programme's own sense."""

    run: Run
    formulation: Any
    error: BaseException | None = None

    def __post_init__(self) -> None:
        import highspy

        self.api = highspy
        self.program = self.formulation.program
        self.sign = 1.0 if self.program.sense == "min" else -1.0

    def solve(self) -> None:
        run = self.run
        highs = self._prepared()
        highs.passModel(highs_model(self.program, whole=True))
        if run.warm_start is not None:
            run.report(run.warm_start)
            solution = self.api.HighsSolution()
            solution.col_value = as_floats(self.formulation.encode(run.warm_start)).tolist()
            highs.setSolution(solution)
        highs.cbMipImprovingSolution += self._on_solution
        highs.cbMipInterrupt += self._on_interrupt
        highs.cbSimplexInterrupt += self._on_interrupt
        highs.run()
        if self.error is not None:
            raise self.error
        self._settle(highs)

    def _prepared(self) -> Any:
        self.api.Highs.resetGlobalScheduler(True)
        highs = self.api.Highs()
        options: dict[str, Any] = {
            "output_flag": False,
            "threads": self.run.threads,
            "random_seed": self.run.seed % 2**31,
            "mip_rel_gap": 0.0,
            "mip_abs_gap": 1e-9,
        }
        if highs.version() in WRONG_PRESOLVE and self.program.integer.any():
            options["presolve"] = "off"
        if math.isfinite(self.run.time_left()):
            options["time_limit"] = self.run.time_left()
        if self.run.work_limit is not None:
            options["mip_max_nodes"] = max(0, min(int(self.run.work_limit), 2**31 - 1))
        for name, value in options.items():
            highs.setOptionValue(name, value)
        return highs

    def _settle(self, highs: Any) -> None:
        run, info = self.run, highs.getInfo()
        status = str(highs.getModelStatus()).rsplit(".", 1)[-1]
        if status == "kUnboundedOrInfeasible":
            status = self._without_objective(highs, status)
        run.info |= {"highs_status": status, "nodes": max(0, int(info.mip_node_count))}
        feasible = int(self.api.SolutionStatus.kSolutionStatusFeasible)
        found = info.primal_solution_status == feasible
        if found and status not in ("kUnbounded", "kInfeasible"):
            self._report(np.asarray(highs.getSolution().col_value))
        if status in SOLVED or status in STOPPED:
            is_mip = bool(self.program.integer.any())
            self._report_bound(info.mip_dual_bound if is_mip else info.objective_function_value)
        if status == "kInfeasible":
            run.report_infeasible("highs")
        elif status == "kUnbounded":
            run.report_unbounded()
        elif status in STOPPED:
            ours = STOPPED[status] in ("time_limit", "interrupted")
            ended: Termination = "interrupted" if run.stop_requested.is_set() else "time_limit"
            run.report_termination(ended if ours else STOPPED[status])
        elif status not in SOLVED:
            run.report_termination("crashed")

    def _without_objective(self, highs: Any, status: str) -> str:
        """Solve again without an objective, whose bounds must not be reported."""
        highs.disableCallbacks()
        number = self.program.num_columns
        highs.changeColsCost(number, np.arange(number, dtype=np.int32), np.zeros(number))
        highs.run()
        again = str(highs.getModelStatus()).rsplit(".", 1)[-1]
        return {"kInfeasible": "kInfeasible", "kOptimal": "kUnbounded"}.get(again, status)

    def _report(self, values: Any) -> None:
        deadline = time.perf_counter() + max(GRACE_S, self.run.time_left())
        point = exact_point(self.program, values, deadline)
        if point is None:
            self.run.info["within_tolerance"] = within_tolerance(self.program, values)
            self.run.report_message(NO_EXACT_POINT)
            return
        verdict = self.run.report(self.formulation.decode(point))
        self.run.shape.check_decoded(self.run.instance, point, verdict)

    def _report_bound(self, dual: float) -> None:
        """HiGHS bounds the minimisation without its constant."""
        if math.isfinite(dual):
            dual -= 1e-9 + 1e-9 * abs(dual)
            self.run.report_bound(self.sign * dual + self.program.constant, "highs")

    def _guarded(self, event: Any, act: Any) -> None:
        """An exception must not cross HiGHS: keep it, stop HiGHS, raise it afterwards."""
        try:
            act()
        except (OptbenchError, KeyboardInterrupt) as error:
            self.error = error
        event.data_in.user_interrupt = self.error is not None or self.run.time_left() <= 0

    def _on_solution(self, event: Any) -> None:
        values = np.asarray(event.data_out.mip_solution, dtype=float).copy()
        self._guarded(event, lambda: self._report(values))

    def _on_interrupt(self, event: Any) -> None:
        self._guarded(event, lambda: None)
