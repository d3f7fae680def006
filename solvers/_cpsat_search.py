"""A CP-SAT search that reports to a run."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any

from ortools.sat.python import cp_model

from optbench.model.instance import Instance
from optbench.model.measures import is_closed, level_tolerance
from optbench.model.objective import Objective
from optbench.plugins.protocol import Run
from optbench.views.cpsat import CpsatView, build
from optbench.views.cpsat.scaling import FINER


@dataclass(frozen=True)
class Strategies:
    """Strategies of CP-SAT by name; by default its own choice.

    Beside them CP-SAT improves schedules: of two threads it gives one to neighbourhoods, whatever
    it is told. ``alone``: every strategy searches the whole problem, and nothing else runs.
    """

    names: tuple[str, ...] = ()
    alone: bool = False


OWN = Strategies()
# Seconds between two checks for a stop request while CP-SAT searches.
POLL_S = 0.05
# Stages of one thread without a work limit and without our heuristics: plain CP-SAT; then tasks
# without shared resources, for a bound; then neighbourhoods interleaved with two proving
# strategies; then whichever bounds better, plain search or the tree from below. These are the
# shares of the remaining time at which each begins.
PLAIN_SHARE, UNSHARED_SHARE, MIXED_SHARE = 0.4, 0.15, 0.65
# Finer scales than the coarse one get this share of the remaining time, the finest all of it.
STAGE_SHARE = 0.3
# A search of no more than this work (in CP-SAT's deterministic time) is repeated at once in the
# first scale that leaves no gap.
QUICK_WORK = 0.5
# Source of the bounds of the whole model.
WHOLE = "cpsat"
MIXED = Strategies(("default_lp", "lb_tree_search"))
FROM_BELOW = Strategies(("lb_tree_search",))
# With more threads CP-SAT has several strategies of its own that prove.
PROVING_THREADS = 2
# Two threads that prove after the heuristics of shops and projects.
PROVERS = Strategies(("no_lp", "lb_tree_search"))
# Where cuts make the LP strong, both branch on it and neither improves schedules.
LP_PROVERS = Strategies(("pseudo_costs", "reduced_costs"), alone=True)
# Up to this many tasks the whole model alone proves sooner.
DIRECT_TASKS = 15
# With less time than this the stages are not worth their start-up.
STAGED_S = 4.0


def search_in_stages(view: CpsatView, run: Run) -> bool:
    """Run the stages of one thread one after the other; return whether nothing is left to
    search.
    """
    if search(view, run, seconds=PLAIN_SHARE * run.time_left()):
        return True
    plain = run.bound
    if bound_unshared(view.instance, run):
        return True
    # Plain search bounds better than tasks without shared resources.
    conflicts_matter = plain is not None and run.bound == plain
    if search(view, run, seconds=MIXED_SHARE * run.time_left(), workers=MIXED, interleaved=True):
        return True
    return search(view, run, workers=OWN if conflicts_matter else FROM_BELOW)


def prove(view: CpsatView, run: Run) -> bool:
    """Search a model with cuts on one or two threads, mostly for its proof; return whether nothing
    is left to search. Larger graphs get the bound of their tasks without shared resources first.
    """
    larger = view.instance.num_tasks > DIRECT_TASKS and run.work_limit is None
    if larger and bound_unshared(view.instance, run, LP_PROVERS):
        return True
    return search(view, run, workers=LP_PROVERS)


def bound_unshared(instance: Instance, run: Run, provers: Strategies = OWN) -> bool:
    """Report the bound of the same tasks without shared resources, with cuts where these are its
    ``provers``; return whether nothing is left to search.
    """
    view = build(instance, shared=False, cuts=bool(provers.names))
    relaxed = _Search(view, run, workers=provers, source="cpsat:unshared")
    status = relaxed.run(UNSHARED_SHARE * run.time_left())
    if status == cp_model.INFEASIBLE:
        run.report_infeasible(relaxed.source)
    if status == cp_model.OPTIMAL and run.best is not None:
        run.report(view.schedule(relaxed.solver.value))  # its optimum may happen to be feasible
    return is_closed(instance, run.objective, run.bound) or status == cp_model.INFEASIBLE


def search(
    view: CpsatView,
    run: Run,
    *,
    seconds: float = math.inf,
    work_share: float = 1.0,
    workers: Strategies = OWN,
    interleaved: bool = False,
) -> bool:
    """Search within the rest of the budget; return whether nothing is left to search."""
    searching = _Search(view, run, workers=workers, interleaved=interleaved)
    status = searching.run(seconds, work_share)
    if status == cp_model.INFEASIBLE:
        run.report_infeasible(WHOLE)
        return True
    if status != cp_model.OPTIMAL:
        return False
    if view.draft.coarse > 1:  # a relaxation has no finer scale, and no inner approximation
        return True
    if run.best is None:  # rounding admitted schedules that the verifier rejects
        _Search(build(view.instance, inner=True), run, proves=False).run()
    if run.best is not None and view.numbers.error > 0:
        sharpen(
            view.instance,
            run,
            view.numbers.error,
            work_share,
            searching.work <= QUICK_WORK,
            workers if view.cuts else OWN,
        )
    return True


def sharpen(
    instance: Instance,
    run: Run,
    error: float = math.inf,
    work_share: float = 1.0,
    quick: bool = False,
    provers: Strategies = OWN,
) -> None:
    """Repeat a finished search in finer integers while rounding leaves a gap; only schedules that
    are no worse are searched.

    ``error`` is what the scale of that search may leave. Scales that may leave as much are skipped,
    and after a ``quick`` search all that may leave a gap, except the last. Where the last optimum
    still violates a limit by less than the rounding, a search among schedules that certainly keep
    it follows. With ``provers`` the models have cuts, and only these search them.
    """
    for stage in range(1, len(FINER) + 1):
        if is_sharp(instance, run):
            return
        view = build(
            instance,
            stage=stage,
            cutoff=math.inf if run.objective is None else run.objective,
            cuts=bool(provers.names),
        )
        sharp = run.objective is not None and view.numbers.error <= level_tolerance(
            instance, run.objective
        )
        if stage < len(FINER) and not sharp and (quick or view.numbers.error >= error):
            continue
        seconds = run.time_left() * (1.0 if stage == len(FINER) else STAGE_SHARE)
        searching = _Search(view, run, workers=provers)
        if searching.run(seconds, work_share / len(FINER)) == cp_model.OPTIMAL:
            error = run.info["scaling_error"] = view.numbers.error
    if run.termination == "finished" and not is_sharp(instance, run, error):
        _Search(build(instance, stage=len(FINER), inner=True), run, proves=False).run(
            work_share=work_share
        )


def is_sharp(instance: Instance, run: Run, error: float = 0.0) -> bool:
    """Whether the bound meets the objective up to the rounding of floats and of the scale."""
    if run.objective is None or run.bound is None:
        return True
    return run.objective - run.bound <= error + level_tolerance(instance, run.objective)


def reach_limits(instance: Instance, run: Run, seconds: float, work_share: float) -> None:
    """Find a first schedule where limits on metrics are hard to keep: minimise the limited metrics,
    each relative to its limit, until the limits hold.
    """
    limits = instance.limits
    prices = {metric: 1.0 / limit for metric, limit in limits.metric_max.items() if limit > 0}
    if not prices:
        return
    free = replace(
        instance, limits=replace(limits, metric_max={}), objective=Objective.weighted(prices)
    )
    _Search(build(free), run, proves=False, until_found=True).run(seconds, work_share)


class _Search(cp_model.CpSolverSolutionCallback):
    """A solver callback; ``source`` names the bounds. Only schedules of the whole model are
    reported.
    """

    def __init__(
        self,
        view: CpsatView,
        run: Run,
        proves: bool = True,
        workers: Strategies = OWN,
        interleaved: bool = False,
        source: str = WHOLE,
        until_found: bool = False,
    ) -> None:
        super().__init__()
        self.until_found = until_found
        self.view, self.task, self.proves, self.source = view, run, proves, source
        self.solver = cp_model.CpSolver()
        self.solver.parameters.subsolvers.extend(workers.names)
        self.solver.parameters.interleave_search = interleaved
        if workers.alone:
            self.solver.parameters.num_full_subsolvers = len(workers.names)
            self.solver.parameters.use_lns = False
            self.solver.parameters.interleave_search = run.threads < len(workers.names)
        self.status: Any = cp_model.UNKNOWN
        self.work = 0.0

    def on_solution_callback(self) -> None:
        if self.source == WHOLE:
            self.task.report(self.view.schedule(self.value))
        if self.until_found and self.task.best is not None:
            self.stop_search()

    def on_bound(self, total: float) -> None:
        if self.proves and math.isfinite(total):
            self.task.report_bound(self.view.bound(total), self.source)

    def run(self, seconds: float = math.inf, work_share: float = 1.0) -> Any:
        """Search until done, out of budget or stopped; return the status."""
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
        with ThreadPoolExecutor(1, thread_name_prefix="cpsat") as pool:
            answer = pool.submit(self.solver.solve, self.view.model, self)
            while not answer.done():
                try:
                    wait([answer], POLL_S)
                except KeyboardInterrupt:
                    run.stop_requested.set()
                if run.stop_requested.is_set():
                    self.solver.stop_search()
        self.status = answer.result()
        self.work = self.solver.response_proto.deterministic_time
        self._conclude()
        return self.status

    def prepare(self) -> None:
        """Pass the incumbent as a hint and the bound as a floor."""
        view, run = self.view, self.task
        if not self.proves:
            return
        if run.best is not None:
            view.hint(run.best)
        # In coarse ticks the sum of a schedule may lie below the bound on its objective: a floor
        # would cut off the best.
        if run.bound is not None and view.draft.coarse == 1:
            view.model.add(view.total >= view.floor(run.bound))

    def _conclude(self) -> None:
        run = self.task
        if self.status == cp_model.MODEL_INVALID:
            raise RuntimeError(
                f"CP-SAT calls the model of {run.instance.name!r} invalid: "
                f"{self.view.model.validate()}"
            )
        if self.source == WHOLE and self.status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            run.report(self.view.schedule(self.solver.value))
        if self.status == cp_model.OPTIMAL and self.proves:
            run.report_bound(self.view.reached(self.solver.value), self.source)
        elif self.status == cp_model.FEASIBLE:  # with UNKNOWN, CP-SAT's own field may be a default
            self.on_bound(self.solver.best_objective_bound)
        if self.status in (cp_model.FEASIBLE, cp_model.UNKNOWN):
            by_work = run.work_limit is not None and run.time_left() > 0
            run.report_termination(
                "interrupted"
                if run.stop_requested.is_set()
                else "work_limit"
                if by_work
                else "time_limit"
            )
        else:
            run.report_termination("finished")
