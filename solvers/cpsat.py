"""OR-Tools CP-SAT on the CP view: exact, anytime, with bounds at every moment."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import Any, ClassVar

from ortools.sat.python import cp_model

from optbench.bounds.combinatorial import combinatorial_bounds
from optbench.model.features import FEATURES
from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.plugins.protocol import Run, Solver
from optbench.views.cpsat import CpsatView, build

# How often a stop request is looked for while CP-SAT searches.
POLL_S = 0.05


@dataclass
class CpSat(Solver):
    """Google's CP-SAT: proves optima of small instances, finds good schedules of large ones."""

    supports: ClassVar[frozenset[str]] = frozenset(FEATURES) - {"preemption", "seconds"}

    def solve(self, instance: Instance, run: Run) -> Schedule | None:
        if run.warm_start is not None:
            run.report(run.warm_start)
        for bound in combinatorial_bounds(instance)[:1]:
            run.report_bound(bound.value, bound.source, bound.proof)
        view = build(instance)
        if run.bound is not None:
            view.model.add(view.total >= view.floor(run.bound))
        if run.best is not None:
            view.hint(run.best)
        status = _Search(view, run).run()
        if status == cp_model.INFEASIBLE and run.best is None:
            run.report_infeasible()
        elif status == cp_model.OPTIMAL and run.best is None:
            _Search(build(instance, inner=True), run, proves=False).run()  # the optimum owed its place to rounding
        return run.best


class _Search(cp_model.CpSolverSolutionCallback):
    """One CP-SAT search that reports to the run."""

    def __init__(self, view: CpsatView, run: Run, proves: bool = True) -> None:
        super().__init__()
        self.view, self.task, self.proves = view, run, proves
        self.solver = cp_model.CpSolver()
        self.status: Any = cp_model.UNKNOWN

    def on_solution_callback(self) -> None:
        self.task.report(self.view.schedule(self.value))

    def on_bound(self, total: float) -> None:
        if self.proves and math.isfinite(total):
            self.task.report_bound(self.view.bound(total), "cpsat")

    def run(self) -> Any:
        """Search until done, out of budget or asked to stop; the status."""
        run, parameters = self.task, self.solver.parameters
        parameters.random_seed = run.seed % 2**31
        parameters.num_workers = run.threads
        parameters.catch_sigint_signal = False
        if run.work_limit is not None:
            parameters.max_deterministic_time = run.work_limit
            parameters.num_workers, parameters.interleave_search = 1, True
        if math.isfinite(run.time_left()):
            parameters.max_time_in_seconds = run.time_left()
        self.solver.best_bound_callback = self.on_bound
        worker = threading.Thread(target=self._solve, name="cpsat")
        worker.start()
        while worker.is_alive():
            try:
                worker.join(POLL_S)
            except KeyboardInterrupt:
                run.stop_requested.set()
            if run.stop_requested.is_set():
                self.solver.stop_search()
        self._conclude()
        return self.status

    def _solve(self) -> None:
        self.status = self.solver.solve(self.view.model, self)

    def _conclude(self) -> None:
        run = self.task
        if self.status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            run.report(self.view.schedule(self.solver.value))
        if self.status in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN):
            self.on_bound(self.solver.best_objective_bound)
        if self.status in (cp_model.FEASIBLE, cp_model.UNKNOWN):
            by_work = run.work_limit is not None and run.time_left() > 0
            run.report_termination("interrupted" if run.stop_requested.is_set() else "work_limit" if by_work else "time_limit")
