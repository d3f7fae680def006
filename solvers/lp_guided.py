"""Routing and clocks by the fluid LP: first its milestones and prices, then a search around them;
online it is solved again.

The linear programme behind the certified bound (``optbench.bounds.fluid.fluid_program``) prices a
device-second of each pool, a watt of each cap and a second of each task, and shares tasks among
modes; its primal ends are milestones. As a solver a list rule plays them as due dates, at the LP's
prices and with a few multipliers (``_lp_milestones``); the best run is improved by other
multipliers, then by simulated annealing whose modes are drawn from the LP. With ``guide=duals``
points are made instead of its shares (rounded at random), of its least losses, and of list rules
that weigh its prices. As a policy it does the same for the tasks known so far, repeatedly on their
remaining part.

Open streams, and those too long to search, are routed by an index that charges the LP's prices
(``_lp_stream``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from optbench.errors import ParameterError
from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.model.windows import windows
from optbench.plugins.policy import CARRIED_OUT, Policy, settle
from optbench.plugins.protocol import Run
from optbench.sim.kernel.plant import Fault
from optbench.sim.rules import Trace
from optbench.sim.sites.plans import expected_end_s
from optbench.sim.sites.routes import play_routes
from optbench.sim.sites.sites import grid_of, why_unsupported
from optbench.units import DAY_S

from ._lp_annealing import (
    STEPS,
    SharedPoint,
    anneal_beside,
    report,
    search_for_a_time,
    search_for_work,
)
from ._lp_finder import Finder
from ._lp_guide import Guide, guide, guide_from_windows
from ._lp_online import play
from ._lp_stream import follow
from ._milestone_search import MilestoneSearch
from ._routers import budget_of, index, require_at_least

# Units of work where nothing limits a run.
DEFAULT_WORK = 20.0
# Share of the time that the LP may take where its duals alone guide the search.
LP_SHARE = 0.4
# With more pairs of task and mode than this a stream is routed, not searched.
MOST_PAIRS = 2_000_000


@dataclass(frozen=True)
class LpGuided(Policy):
    """Milestones of the fluid LP, played by a list rule, then annealed in the event kernel; online,
    solved again as time goes on.

    ``guide`` is what of the LP guides the search: its ``milestones``, or its ``duals`` alone.
    ``runs`` is the number of multipliers that are tried first; ``improve=none`` stops after them.
    ``roundings`` is the number of random roundings per order of tasks; ``search=false`` stops after
    the first points, and ``prices=false`` solves no LP and only searches, for comparison. Online,
    ``resolve_every`` is the share of the time that the known work takes between two solutions, each
    with ``steps`` of search.

    Open streams are routed: at a mean time in the system of ``latency_budget_s``, charging
    ``price_share`` of what devices are worth; ``gain`` is watts per second by which the budget was
    exceeded.
    """

    supports: ClassVar[frozenset[str] | set[str]] = CARRIED_OUT | {"preemption", "outages"}
    needs: ClassVar[frozenset[str] | set[str]] = frozenset({"lp_search", "going_on", "routes"})

    roundings: int = 10
    search: bool = True
    prices: bool = True
    resolve_every: float = 0.1
    steps: int = 300
    latency_budget_s: float | None = None
    price_share: float = 0.9
    gain: float = 3e-4
    guide: Literal["milestones", "duals"] = "milestones"
    improve: Literal["anneal", "none"] = "anneal"
    runs: int = 16

    def __post_init__(self) -> None:
        for name, value in (("roundings", self.roundings), ("steps", self.steps)):
            if value < 0:
                raise ParameterError(f"lp_guided: {name} is {value!r}; it must be at least 0")
        if self.runs < 1:
            raise ParameterError(f"lp_guided: runs is {self.runs!r}; it must be at least 1")
        if not 0.0 < self.resolve_every < math.inf:
            raise ParameterError(
                f"lp_guided: resolve_every is {self.resolve_every!r}; it must be positive and "
                "finite"
            )
        require_at_least("lp_guided", "latency_budget_s", self.latency_budget_s, 1e-9)
        for name in ("price_share", "gain"):
            require_at_least("lp_guided", name, getattr(self, name), 0)

    def kernels(self, instance: Instance) -> frozenset[str]:
        return frozenset({"routes"} if is_routed(instance) else {"lp_search", "going_on"})

    def refuse(self, instance: Instance) -> str | None:
        if is_routed(instance):
            return why_unsupported(instance)
        if instance.preemptive:
            return (
                "its search starts each task once, in one mode; -s drift_penalty routes work "
                "that outages interrupt"
            )
        return None

    def solve(self, instance: Instance, run: Run) -> Schedule | None:
        if is_routed(instance):
            return super().solve(instance, run)
        if run.warm_start is not None:
            run.report(run.warm_start)
        improves = self.search and self.improve != "none"
        work = DEFAULT_WORK if run.work_limit is None else run.work_limit
        if self.guide == "milestones" and self.prices:
            search = MilestoneSearch(instance, run, self.runs, improves)
            finder = search.solve(self.roundings, work)
        else:
            finder = self.solve_by_duals(instance, run, improves, work)
        if run.time_left() <= 0:
            run.report_termination("time_limit")
        elif improves and run.work_limit is not None:
            run.report_termination("work_limit")
        return run.best if run.best is not None else settle(instance, run, finder.best_schedule())

    def solve_by_duals(self, instance: Instance, run: Run, improves: bool, work: float) -> Finder:
        """Search from points of the LP's shares, losses and prices."""
        timed = run.work_limit is None and run.time_limit_s is not None
        limit_s = LP_SHARE * run.time_left() if timed else math.inf
        finder = Finder(instance, self.known(instance, limit_s), run.seed)
        finder.first(self.roundings, run.time_left)
        report(finder, run)
        if improves:
            if timed:
                self.anneal(finder, run)
            else:
                search_for_work(finder, run, max(1, round(work * STEPS)))
            report(finder, run)
        return finder

    def anneal(self, finder: Finder, run: Run) -> None:
        """Anneal for the rest of the time, on a second thread too where there is one."""
        shared = SharedPoint()
        with anneal_beside(finder, run, run.time_left, shared) as second:
            search_for_a_time(finder, run, run.time_left, shared)
            if second is not None:
                second.join()

    def known(self, instance: Instance, time_limit_s: float) -> Guide:
        return (
            guide(instance, time_limit_s)
            if self.prices
            else guide_from_windows(instance, windows(instance))
        )

    def play(
        self,
        instance: Instance,
        rng: np.random.Generator,
        faults: Sequence[Fault] = (),
        until: float = math.inf,
    ) -> Trace:
        if not is_routed(instance):
            return play(
                instance,
                rng,
                faults,
                until,
                self.resolve_every,
                self.roundings,
                self.steps if self.search else 0,
                self.guide == "milestones" and self.prices,
                self.runs,
            )
        grid, budget_s = grid_of(instance), budget_of(instance, self.latency_budget_s)
        routes = index(grid, budget_s=budget_s, gain=self.gain)
        update = follow(instance, self.price_share, budget_s) if self.prices else None
        return play_routes(
            grid,
            routes,
            faults,
            until,
            update=update,
            every=self.resolve_every * length_of(instance),
        )


def is_routed(instance: Instance) -> bool:
    """Whether arriving work is sent to sites job by job instead of being ordered: the instance is
    open, has outages, or is too large.
    """
    stream = instance.stream
    if stream is None:
        return False
    many = instance.num_tasks * instance.num_modes > MOST_PAIRS * len(instance.modes.kind_names)
    return instance.is_open or len(stream.outages.time) > 0 or many


def length_of(instance: Instance) -> float:
    """Return the time over which work is expected to arrive."""
    if instance.horizon is not None:
        return float(instance.horizon)
    return (expected_end_s(instance) or DAY_S) / instance.tick_s
