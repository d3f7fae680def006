"""OR-Tools CP-SAT on the CP view: exact and anytime, with bounds throughout."""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from optbench.bounds.auto import bound_kernels
from optbench.compiling.compile_meter import compiled_s
from optbench.model.features import FEATURES
from optbench.model.instance import Instance
from optbench.model.measures import gap
from optbench.model.measures import is_closed as proves
from optbench.model.schedule import Schedule
from optbench.model.time_cuts import has_cuts
from optbench.plugins.protocol import Run, Solver

from ._cpsat_formulated import solve_formulated
from ._first_schedules import KERNELS, first_schedules, one_schedule

if TYPE_CHECKING:
    from optbench.sim.primal import Improver
    from optbench.views.cpsat import CpsatView

# The first schedule and the fluid LP take at most this share of the remaining time, each.
FIRST_SHARE = 0.1
# Graphs of at least this many tasks start from a search around the milestones of the fluid LP,
# for this long at most, or this work, and for one of these shares of the time: the larger one
# where there are so many tasks that CP-SAT adds little.
MILESTONE_TASKS, MILESTONE_S, MILESTONE_WORK = 13, 30.0, 2.0
MILESTONE_SHARE, LONG_MILESTONE_SHARE, MANY_TASKS = 0.4, 0.7, 100
# Where the proof comes next the search is short.
SHORT_MILESTONE_SHARE = 0.03
# Where limits on metrics exclude every first schedule, reaching them comes first, for at most this
# share.
LIMITS_SHARE = 0.25
# A first search of this length, or share of the budget, comes before the compiled heuristics.
PROBE_S = 1.0
PROBE_SHARE = 0.05
# Then the heuristics run for this long, or this share of the remaining time (the longer one for
# projects); with a work limit, for this many chunks.
POLISH_S = 30.0
# Task graphs up to this size are searched for this time before anything else is done for them; then
# for their proof, with cuts.
EXACT_TASKS, GLANCE_S = 18, 0.05
# What they solve within this time needs no deeper bounds.
ALONE_S = 0.4
POLISH_SHARE = 0.22
LONG_POLISH_SHARE = 0.4
POLISH_CHUNKS = 20
# The share of the remaining time where CP-SAT is not likely to prove anything: shops, projects.
REST_SHARE, PROJECT_REST_SHARE = 0.75, 0.9
SMALL_TASKS = 150
PROVABLE_TASKS, PROVABLE_GAP = 300, 0.06
TIGHT_GAP = 0.03
# j60_5_3 and j90_37_3, which CP-SAT closed after the heuristics within 20 s, had a gap of up to
# 7.4 % then (on a busy machine). A smaller gap is no promise: j90_5_3 stays open with 6.7 %. No
# project with 120 tasks that this was chosen on was closed after the heuristics.
SMALL_PROJECT, LARGE_PROJECT, PROJECT_GAP = 40, 100, 0.08
# Where CP-SAT is likely to prove, the heuristics stop after this long without a better schedule.
PATIENCE_S = 1.0


@dataclass
class CpSat(Solver):
    """Google's CP-SAT: proves optima of small instances, finds good schedules of large ones.

    ``cuts``: small task graphs get cuts on work between two times, and threads that only prove.
    """

    cuts: bool = True

    supports: ClassVar[frozenset[str]] = frozenset(FEATURES) - {
        "preemption",
        "checkpoints",
        "waking",
        "outages",
        "cooling",
        "congestion",
        "open_end",
        "per_unit",
    }

    shapes: ClassVar[frozenset[str]] = frozenset({"schedule", "formulate"})
    needs: ClassVar[frozenset[str] | set[str]] = KERNELS | {
        "shop_search",
        "project_search",
        "lp_search",
    }

    def kernels(self, instance: Any) -> frozenset[str]:
        if not isinstance(instance, Instance):
            return frozenset()
        from optbench.sim.primal import search_kernels

        own = search_kernels(instance) or KERNELS
        if starts_from_milestones(instance):
            own |= {"lp_search"}
        return own | bound_kernels(instance)

    def solve(self, instance: Any, run: Run) -> Any:
        if not isinstance(instance, Instance):
            solve_formulated(run)
            return run.best
        from optbench.sim.primal import is_searchable
        from optbench.views.cpsat import build
        from optbench.views.cpsat.cpsat_view import with_cuts

        if run.warm_start is not None:
            run.report(run.warm_start)
        run.prove_bounds(0.0, "cheap")
        if not is_searchable(instance):
            exact = self.cuts and is_exact(instance)
            view = build(instance) if exact else None
            if view is not None and self.glance(view, run):
                return run.best
            self.open(instance, run)
            view = build(instance) if view is None else with_cuts(view)
        else:
            view = build(instance)
            if not is_closed(run):
                if self.probe(view, run):
                    return run.best
                before = compiled_s()
                self.polish(instance, run)
                say_what_compiling_took(run, compiled_s() - before)
        if is_closed(run):
            run.report_termination("finished")
        else:
            self.search(view, run)
        return run.best

    def glance(self, view: CpsatView, run: Run) -> bool:
        """Search for an instant: what it solves needs no first schedule, bound or cut. Return
        whether it did.
        """
        from ._cpsat_search import search

        return run.work_limit is None and search(view, run, seconds=GLANCE_S)

    def open(self, instance: Instance, run: Run) -> None:
        """Find a first schedule where there is none, and the bound of the fluid LP."""
        from ._cpsat_search import reach_limits

        if run.best is None:
            for schedule in one_schedule(instance):
                run.report(schedule)
            for schedule in first_schedules(instance, run.time_left() * FIRST_SHARE):
                run.report(schedule)
        if starts_from_milestones(instance) and not is_closed(run):
            from ._milestone_search import RUNS, MilestoneSearch

            seconds = min(MILESTONE_S, milestone_share(instance) * run.time_left())
            MilestoneSearch(instance, run, RUNS, improve=True, seconds=seconds).solve(
                0, MILESTONE_WORK
            )
        if run.best is None and instance.limits.metric_max:
            reach_limits(instance, run, LIMITS_SHARE * run.time_left(), LIMITS_SHARE)
        if run.work_limit is None and not is_closed(run):
            report_bounds(run, min(POLISH_S, FIRST_SHARE * run.time_left()))

    def probe(self, view: CpsatView, run: Run) -> bool:
        """Search briefly: what it solves needs no heuristic. Return whether it did."""
        from ._cpsat_search import search

        return search(
            view, run, seconds=min(PROBE_S, PROBE_SHARE * run.time_left()), work_share=PROBE_SHARE
        )

    def polish(self, instance: Instance, run: Run) -> None:
        """Run the compiled heuristics from the best schedule so far, at first with bounds beside
        them.
        """
        from optbench.sim.primal import Improver
        from optbench.sim.primal.shop import is_shop

        share = LONG_POLISH_SHARE if not is_shop(instance) else POLISH_SHARE
        seconds = min(POLISH_S, share * run.time_left())
        if run.work_limit is not None:
            improve(Improver(instance, run.best, run.seed), run, math.inf, POLISH_CHUNKS)
            return
        improver = Improver(instance, run.best, run.seed, run.threads)
        improve(improver, run, min(ALONE_S, seconds))
        if is_closed(run):
            return
        with ThreadPoolExecutor(1, thread_name_prefix="bounds") as pool:
            bounds = pool.submit(report_bounds, run, seconds / 2)
            if run.threads > 1:
                improve(improver, run, seconds / 2, spared=1)
            bounds.result()
        provable = instance.num_tasks <= SMALL_TASKS and not is_far_from_closed(instance, run)
        improve(improver, run, seconds / 2, patience=PATIENCE_S if provable else math.inf)
        if is_far_from_closed(instance, run) and not is_closed(run):
            share = REST_SHARE if is_shop(instance) else PROJECT_REST_SHARE
            improve(improver, run, min(2 * POLISH_S, share * run.time_left()))

    def search(self, view: CpsatView, run: Run) -> None:
        """Run CP-SAT with the rest of the budget."""
        from optbench.sim.primal import is_searchable

        from . import _cpsat_search as tools

        if view.cuts and run.threads <= tools.PROVING_THREADS:
            tools.prove(view, run)
            return
        alone = run.threads == 1 and run.work_limit is None
        if (
            alone
            and not is_searchable(view.instance)
            and tools.STAGED_S <= run.time_left() < math.inf
        ):
            tools.search_in_stages(view, run)
            return
        provable = (
            run.threads == tools.PROVING_THREADS
            and run.work_limit is None
            and is_provable(view.instance, run)
        )
        tools.search(view, run, workers=tools.PROVERS if provable else tools.OWN)


def starts_from_milestones(instance: Instance) -> bool:
    """Whether the schedule that the fluid LP leads to is worth its time: graphs that no search of
    ours knows, of more than a handful of tasks.
    """
    from optbench.sim.primal import is_searchable

    return (
        instance.num_tasks >= MILESTONE_TASKS
        and len(instance.edges.source) > 0
        and not is_searchable(instance)
    )


def milestone_share(instance: Instance) -> float:
    """Return the share of the time that the search around milestones takes."""
    if instance.num_tasks <= EXACT_TASKS:
        return SHORT_MILESTONE_SHARE
    return LONG_MILESTONE_SHARE if instance.num_tasks >= MANY_TASKS else MILESTONE_SHARE


def say_what_compiling_took(run: Run, seconds: float) -> None:
    """Remark that kernels were compiled within the time limit, which left less of it, or nothing,
    to the compiled heuristics: ``solve`` of a run that nobody prepared.
    """
    if seconds > 0:
        run.info["compiling"] = (
            f"{seconds:.1f} s of the time limit went into compiling the heuristics instead of "
            "running them; a second run finds them compiled"
        )


def report_bounds(run: Run, seconds: float) -> None:
    """Report the bounds found within this time: the fluid LP, and what propagation refutes."""
    run.prove_bounds(seconds)


def improve(
    improver: Improver,
    run: Run,
    seconds: float,
    chunks: int | None = None,
    spared: int = 0,
    patience: float = math.inf,
) -> None:
    """Run the compiled heuristics for some time, unless they meet the bound or find nothing better
    for ``patience`` seconds, on all threads but those spared.
    """
    metric, weight = run.instance.objective.levels[0][0]
    unit = weight * (run.instance.tick_s if metric == "makespan_s" else 1.0)

    def target() -> float:
        return -math.inf if run.bound is None else math.ceil(run.bound / unit - 1e-6)

    last = time.perf_counter()

    def report(schedule: Schedule) -> None:
        nonlocal last
        run.report(schedule)
        last = time.perf_counter()

    def stop() -> bool:
        return run.stop_requested.is_set() or time.perf_counter() > last + patience

    improver.run(target, report, stop, seconds, chunks, spared)


def is_exact(instance: Instance) -> bool:
    """Whether cuts and provers are worth their time: in small graphs whose tasks choose their mode.

    Shops and projects never get here: their models and heuristics are stronger. Without precedence
    the loads of pools, which every model has, are the same as the cuts.
    """
    chooses = {"precedence", "modes"} <= instance.features
    return chooses and instance.num_tasks <= EXACT_TASKS and has_cuts(instance)


def is_provable(instance: Instance, run: Run) -> bool:
    """Whether CP-SAT should prove rather than improve: for projects, and small shops whose gap is
    due to the bound.

    The gap is due to the schedule when it is small and the bound is one of loads, which nothing
    deeper could raise.
    """
    from optbench.sim.primal import is_searchable
    from optbench.sim.primal.shop import is_shop

    difference = gap(run.objective, run.bound)
    if difference is None or not is_searchable(instance):
        return False
    if not is_shop(instance):
        return True
    raised = any(name in run.bounds[-1].source for name in ("destructive", "cpsat"))
    small = instance.num_tasks <= SMALL_TASKS or (
        instance.num_tasks <= PROVABLE_TASKS and difference <= PROVABLE_GAP
    )
    return small and (raised or difference > TIGHT_GAP)


def is_far_from_closed(instance: Instance, run: Run) -> bool:
    """Whether the heuristics keep most of the time, since CP-SAT is not likely to prove anything:
    shops where it should not, and projects with many tasks and a large gap.
    """
    from optbench.sim.primal.shop import is_shop

    difference = gap(run.objective, run.bound)
    if difference is None or is_shop(instance):
        return not is_provable(instance, run)
    most = TIGHT_GAP if instance.num_tasks > LARGE_PROJECT else PROJECT_GAP
    return instance.num_tasks > SMALL_PROJECT and difference > most


def is_closed(run: Run) -> bool:
    """Whether the incumbent meets the bound."""
    return proves(run.instance, run.objective, run.bound)
