"""One run of HiGHS: options, callbacks, and the meaning of its final status.

Subclasses say how a point is reported (``report_values``) and a dual bound (``report_dual``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optbench.errors import OptbenchError
from optbench.model.instance import Floats
from optbench.model.result import Termination
from optbench.plugins.protocol import Run

# Versions of HiGHS whose MIP presolve reports a suboptimal solution as optimal: singleton columns
# are stuffed against row activities that were computed for other columns (HiGHS issues 2957, 3043,
# 3073, 3094; not in 1.13.1, corrected in 1.15).
WRONG_PRESOLVE = ("1.14.0",)

# The reason for every HiGHS status without optimum or proof. A status that is absent here is a
# failure of HiGHS.
STOPPED: dict[str, Termination] = {
    "kTimeLimit": "time_limit",
    "kIterationLimit": "work_limit",
    "kSolutionLimit": "work_limit",
    "kMemoryLimit": "memory_limit",
    "kInterrupt": "interrupted",
    "kHighsInterrupt": "interrupted",
}
SOLVED = ("kOptimal", "kObjectiveBound", "kObjectiveTarget", "kModelEmpty")


@dataclass
class HighsSession:
    """``bounding`` is off while a model without its objective is solved."""

    run: Run
    error: BaseException | None = field(default=None, init=False)
    bounding: bool = field(default=True, init=False)

    def report_values(self, values: Floats) -> None:
        """Report a point of HiGHS as an incumbent."""
        raise NotImplementedError

    def report_dual(self, dual: float) -> None:
        """Report a finite dual bound of HiGHS."""
        raise NotImplementedError

    def last_dual(self, info: Any) -> float:
        """Return the dual bound of a finished or stopped run."""
        return float(info.mip_dual_bound)

    def prepared(self, **options: Any) -> Any:
        """Return HiGHS with the limits of the run and these options."""
        import highspy

        # HiGHS keeps one pool of threads per process and refuses another number of them later:
        # start afresh.
        highspy.Highs.resetGlobalScheduler(True)
        highs = highspy.Highs()
        options = {
            "output_flag": False,
            "threads": self.run.threads,
            "random_seed": self.run.seed % 2**31,
            "mip_rel_gap": 0.0,
            **options,
        }
        if highs.version() in WRONG_PRESOLVE:
            options["presolve"] = "off"
        if math.isfinite(self.run.time_left()):
            options["time_limit"] = self.run.time_left()
        if self.run.work_limit is not None:
            options["mip_max_nodes"] = max(0, min(int(self.run.work_limit), 2**31 - 1))
        for name, value in options.items():
            highs.setOptionValue(name, value)
        return highs

    def start_from(self, highs: Any, values: Floats) -> None:
        import highspy

        solution = highspy.HighsSolution()
        solution.col_value = values.tolist()
        highs.setSolution(solution)

    def run_to_end(self, highs: Any) -> None:
        """Run HiGHS on the model that it holds, and report what it says."""
        highs.cbMipImprovingSolution += self._on_solution
        highs.cbMipInterrupt += self._on_interrupt
        highs.cbSimplexInterrupt += self._on_interrupt
        highs.run()
        if self.error is not None:
            raise self.error
        self._settle(highs)

    def _settle(self, highs: Any) -> None:
        """Translate the model status: solution, bound, proof or reason for stopping."""
        import highspy

        run, info = self.run, highs.getInfo()
        status = _status_of(highs)
        if status == "kUnboundedOrInfeasible":
            status = self._without_objective(highs, status)
        run.info |= {"highs_status": status, "nodes": max(0, int(info.mip_node_count))}
        found = info.primal_solution_status == int(highspy.SolutionStatus.kSolutionStatusFeasible)
        if found and status not in ("kUnbounded", "kInfeasible"):
            self.report_values(np.asarray(highs.getSolution().col_value))
        if status in SOLVED or status in STOPPED:
            dual = self.last_dual(info)
            if self.bounding and math.isfinite(dual):
                self.report_dual(dual)
        if status == "kInfeasible":  # if there is a verified decision, the core raises an error
            run.report_infeasible("highs")
        elif status == "kUnbounded":
            run.report_unbounded()
        elif status in STOPPED:
            # A spent budget and a stop request end with either.
            ours = STOPPED[status] in ("time_limit", "interrupted")
            ended: Termination = "interrupted" if run.stop_requested.is_set() else "time_limit"
            run.report_termination(ended if ours else STOPPED[status])
        elif status not in SOLVED:  # an error of HiGHS: the status is in run.info
            run.report_termination("crashed")

    def _without_objective(self, highs: Any, status: str) -> str:
        """Solve again without an objective, whose bounds must not be reported."""
        highs.disableCallbacks()
        self.bounding = False
        number = highs.getNumCol()
        highs.changeColsCost(number, np.arange(number, dtype=np.int32), np.zeros(number))
        highs.run()
        again = _status_of(highs)
        known = {"kInfeasible": "kInfeasible", "kOptimal": "kUnbounded"}
        return known.get(again, again if again in STOPPED else status)

    def _guarded(self, event: Any, act: Callable[[], None]) -> None:
        """An exception must not cross HiGHS: keep it, stop HiGHS, raise it afterwards."""
        try:
            act()
        except (OptbenchError, KeyboardInterrupt) as error:
            self.error = error
        event.data_in.user_interrupt = self.error is not None or self.run.time_left() <= 0

    def _on_solution(self, event: Any) -> None:
        values = np.asarray(event.data_out.mip_solution, dtype=float).copy()
        self._guarded(event, lambda: self.report_values(values))

    def _on_interrupt(self, event: Any) -> None:
        # No bound is read here: it can wait, and in these events HiGHS may be between two nodes.
        self._guarded(event, lambda: None)


def _status_of(highs: Any) -> str:
    return str(highs.getModelStatus()).rsplit(".", 1)[-1]
