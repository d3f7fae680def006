"""OR-Tools CP-SAT on the CP view: exact, anytime, with bounds at every moment."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ortools.sat.python import cp_model

from optbench.bounds.auto import lower_bounds
from optbench.bounds.combinatorial import combinatorial_bounds
from optbench.model.features import FEATURES
from optbench.model.instance import Instance
from optbench.model.measures import gap
from optbench.model.result import OPTIMAL_GAP
from optbench.model.schedule import Schedule
from optbench.plugins.protocol import Run, Solver
from optbench.sim.primal import Improver, is_compiled, is_searchable
from optbench.sim.primal.shop import is_shop
from optbench.views.cpsat import CpsatView, build

# How often a stop request is looked for while CP-SAT searches.
POLL_S = 0.05
# A first search of this length, or share of the budget, comes before the compiled heuristics.
PROBE_S = 1.0
PROBE_SHARE = 0.05
# Then they run for this long, or this share of what is left (the long one for projects); with a work limit, for so many chunks.
POLISH_S = 30.0
# What they close within this time needs no deeper bounds.
ALONE_S = 0.4
POLISH_SHARE = 0.22
LONG_POLISH_SHARE = 0.4
POLISH_CHUNKS = 20
# And for this share of the rest in shops where CP-SAT is not likely to prove anything.
REST_SHARE = 0.75
# With two threads CP-SAT gives one to improving schedules; where that has been done, both prove instead.
PROVERS = ("no_lp", "lb_tree_search")
SMALL_TASKS = 150
PROVABLE_TASKS, PROVABLE_GAP = 300, 0.06
TIGHT_GAP = 0.03
# A run this long may compile the heuristics; a shorter one does without unless that was done before.
COMPILE_S = 40.0


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
        if is_searchable(instance) and not is_closed(run):
            if self.probe(view, run):
                return run.best
            self.polish(instance, run)
        if not is_closed(run):
            self.search(view, run)
        else:
            run.report_termination("finished")
        return run.best

    def probe(self, view: CpsatView, run: Run) -> bool:
        """A short search: what it closes needs no heuristic. Whether it did."""
        share = min(PROBE_S, PROBE_SHARE * run.time_left())
        status = _Search(view, run).run(share, PROBE_SHARE)
        return status in (cp_model.OPTIMAL, cp_model.INFEASIBLE) and self.conclude(status, view, run)

    def polish(self, instance: Instance, run: Run) -> None:
        """The compiled heuristics from the best schedule so far, at first with bounds beside them."""
        share = LONG_POLISH_SHARE if not is_shop(instance) else POLISH_SHARE
        seconds = min(POLISH_S, share * run.time_left())
        if run.work_limit is not None:
            improve(Improver(instance, run.best, run.seed), run, math.inf, POLISH_CHUNKS)
            return
        if not (is_compiled() or run.time_left() > COMPILE_S):
            report_bounds(run, seconds)
            return
        improver = Improver(instance, run.best, run.seed, run.threads)
        improve(improver, run, min(ALONE_S, seconds))
        if is_closed(run):
            return
        bounds = threading.Thread(target=report_bounds, args=(run, seconds / 2), name="bounds")
        bounds.start()
        if run.threads > 1:
            improve(improver, run, seconds / 2, spared=1)
        bounds.join()
        improve(improver, run, seconds / 2)
        if is_shop(instance) and not is_provable(instance, run) and not is_closed(run):
            improve(improver, run, min(2 * POLISH_S, REST_SHARE * run.time_left()))

    def search(self, view: CpsatView, run: Run) -> None:
        """CP-SAT with all that is left of the budget."""
        workers = PROVERS if run.threads == len(PROVERS) and run.work_limit is None and is_provable(view.instance, run) else ()
        self.conclude(_Search(view, run, workers=workers).run(), view, run)

    def conclude(self, status: Any, view: CpsatView, run: Run) -> bool:
        """Say what the status proves."""
        if status == cp_model.INFEASIBLE and run.best is None:
            run.report_infeasible()
        elif status == cp_model.OPTIMAL and run.best is None:  # rounding admitted schedules that the verifier rejects
            _Search(build(view.instance, inner=True), run, proves=False).run()
        return True


def report_bounds(run: Run, seconds: float) -> None:
    """Everything the bounds say within this time: the fluid programme, and what propagation refutes."""
    for bound in lower_bounds(run.instance, time_limit_s=seconds)[:1]:
        run.report_bound(bound.value, bound.source, bound.proof)


def improve(improver: Improver, run: Run, seconds: float, chunks: int | None = None, spared: int = 0) -> None:
    """Some time of the compiled heuristics, unless they meet the bound, on all threads but those spared."""
    metric, weight = run.instance.objective.levels[0][0]
    unit = weight * (run.instance.step_s if metric == "makespan_s" else 1.0)

    def target() -> float:
        return -math.inf if run.bound is None else math.ceil(run.bound / unit - 1e-6)

    improver.run(target, run.report, run.stop_requested.is_set, seconds, chunks, spared)


def is_provable(instance: Instance, run: Run) -> bool:
    """Whether CP-SAT should rather prove than improve: projects, and small shops whose gap is not the schedule's fault.

    It is the schedule's when the gap is small and the bound one of loads, which nothing deeper could raise.
    """
    difference = gap(run.objective, run.bound)
    if difference is None or not is_searchable(instance):
        return False
    if not is_shop(instance):
        return True
    raised = any(name in run.bounds[-1].source for name in ("destructive", "cpsat"))
    small = instance.num_tasks <= SMALL_TASKS or (instance.num_tasks <= PROVABLE_TASKS and difference <= PROVABLE_GAP)
    return small and (raised or difference > TIGHT_GAP)


def is_closed(run: Run) -> bool:
    """Whether the incumbent is as good as the bound."""
    difference = gap(run.objective, run.bound)
    return difference is not None and difference <= OPTIMAL_GAP


class _Search(cp_model.CpSolverSolutionCallback):
    """One CP-SAT search that reports to the run."""

    def __init__(self, view: CpsatView, run: Run, proves: bool = True, workers: Sequence[str] = ()) -> None:
        super().__init__()
        self.view, self.task, self.proves = view, run, proves
        self.solver = cp_model.CpSolver()
        self.solver.parameters.subsolvers.extend(workers)
        self.status: Any = cp_model.UNKNOWN

    def on_solution_callback(self) -> None:
        self.task.report(self.view.schedule(self.value))

    def on_bound(self, total: float) -> None:
        if self.proves and math.isfinite(total):
            self.task.report_bound(self.view.bound(total), "cpsat")

    def run(self, seconds: float = math.inf, work_share: float = 1.0) -> Any:
        """Search until done, out of budget or asked to stop; the status."""
        run, parameters = self.task, self.solver.parameters
        self.prepare()
        parameters.random_seed = run.seed % 2**31
        parameters.num_workers = run.threads
        parameters.catch_sigint_signal = False
        if run.work_limit is not None:
            parameters.max_deterministic_time = run.work_limit * work_share
            parameters.num_workers, parameters.interleave_search = 1, True
            seconds = math.inf
        seconds = min(seconds, run.time_left())
        if math.isfinite(seconds):
            parameters.max_time_in_seconds = seconds
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

    def prepare(self) -> None:
        """The incumbent as a hint, the bound as a floor."""
        view, run = self.view, self.task
        if not self.proves:
            return
        if run.best is not None:
            view.hint(run.best)
        if run.bound is not None:
            view.model.add(view.total >= view.floor(run.bound))

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
        else:
            run.report_termination("finished")
