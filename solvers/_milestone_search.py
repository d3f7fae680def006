"""lp_guided by milestones: the LP, runs of its rule, then a search around the best of them.

With a time limit the LP may take most of what is left: played once, the ends of the whole programme
are better than those of two modes per task with a search around them. Simple rules are played
before it, so that a schedule exists whatever the LP does. Where it would not end in its time, it is
solved over two modes per task; where not even that would, the best schedule takes its place as the
target of the rule. What happened is said in the remarks of the run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from optbench.bounds.combinatorial.merging import merge_pools
from optbench.bounds.milestones import (
    MARGIN,
    ROUGH_SHARE,
    Milestones,
    expected_s,
    find_milestones,
)
from optbench.model.instance import Instance
from optbench.model.windows import windows
from optbench.plugins.protocol import Run
from optbench.sim.rules import run_rule

from ._lp_annealing import (
    STEPS,
    SharedPoint,
    anneal_beside,
    report,
    search_for_a_time,
    search_for_work,
)
from ._lp_finder import Finder
from ._lp_guide import guide_from_windows
from ._lp_milestones import (
    MilestoneRules,
    Targets,
    guide_of,
    targets_of,
    targets_of_schedule,
)
from .heft import Heft
from .min_energy import MinEnergy
from .tuned_rule import TunedRule

# Share of the time left that the LP may take.
LP_SHARE = 0.9
# Runs of rules around the best: at least this many in a row without a better one end them, and they
# take at most this share of the time left, or of the work.
PATIENCE, RULES_SHARE, RULES_WORK = 150, 0.4, 0.05
# Points of the LP and of plain rules take at most this share of the time left.
POINTS_SHARE = 0.1
# With fewer annealing steps per task than this the time is better spent on rules.
WORTH_ANNEALING = 0.5
# Seconds between two reports of better rules.
REPORT_S = 0.5
# Sets of multipliers that are tried first.
RUNS = 16
SIMPLE_RULES = (TunedRule, MinEnergy, Heft)


class MilestoneSearch:
    """One solve; ``remark`` collects what was done."""

    def __init__(
        self, instance: Instance, run: Run, runs: int, improve: bool, seconds: float = math.inf
    ) -> None:
        self.instance, self.run, self.runs, self.improve = instance, run, runs, improve
        self.until = time.perf_counter() + seconds
        self.timed = run.work_limit is None and self.time_left() < math.inf
        self.remark: list[str] = []

    def time_left(self) -> float:
        """Seconds left of the run, or of what the search may take of it."""
        return max(0.0, min(self.run.time_left(), self.until - time.perf_counter()))

    def solve(self, roundings: int, work: float) -> Finder:
        """Run everything; return the finder, whose best schedule has been reported."""
        limit = LP_SHARE * self.time_left()
        if self.improve or MARGIN * ROUGH_SHARE * self.expected_s() > limit:
            self.play_simple_rules()
            limit = LP_SHARE * self.time_left()
        found = find_milestones(self.instance, limit)
        rules = self.rules(found, limit)
        rules.first(max(1, self.runs), self.time_left)
        report(rules.finder, self.run)
        if self.improve:
            self.improve_from(rules, roundings, work)
            report(rules.finder, self.run)
        self.run.info["milestones"] = "; ".join([*self.remark, f"{rules.runs:,} runs of its rule"])
        return rules.finder

    def expected_s(self) -> float:
        return expected_s(merge_pools(self.instance).instance)

    def play_simple_rules(self) -> None:
        """Report the schedules of simple rules."""
        for kind in SIMPLE_RULES:
            rule = kind().rule(self.instance, np.random.default_rng(self.run.seed))
            schedule = run_rule(self.instance, rule).schedule
            if schedule is not None:
                self.run.report(schedule)
            if self.time_left() <= 0:
                return

    def rules(self, found: Milestones | None, limit: float) -> MilestoneRules:
        """Return the rule that plays the LP's milestones, or those of the best simple rule."""
        instance, run = self.instance, self.run
        if found is not None:
            run.report_certificate(found.bound.certificate or "")
            over = " over two modes per task" * found.rough
            self.remark.append(f"linear programme{over} in {sum(found.timings_s.values()):.1f} s")
            targets, guide = targets_of(found), guide_of(instance, found)
        else:
            known = windows(instance)
            self.remark.append(
                f"the linear programme did not end in {limit:.1f} s, most of the time left: the "
                "best simple rule gave the milestones"
                if limit < math.inf
                else "no linear programme"
            )
            guide = guide_from_windows(instance, known)
            targets = (
                targets_of_schedule(instance, run.best)
                if run.best is not None
                else Targets(known.head, known.head + known.shortest, np.zeros(instance.num_pools))
            )
        return MilestoneRules(Finder(instance, guide, run.seed), targets, run.seed)

    def improve_from(self, rules: MilestoneRules, roundings: int, work: float) -> None:
        """Search around the best multipliers, then around the best point; a second thread does the
        latter from the start.
        """
        if not self.timed:
            self.improve_by_work(rules, roundings, max(1, round(work * STEPS)))
            return
        rules.keep_point()
        began = time.perf_counter()
        rules.finder.anneal(1, 1.0, 1.0)
        step_s = max(1e-9, time.perf_counter() - began)
        if self.time_left() / step_s < WORTH_ANNEALING * self.instance.num_tasks:
            self.search_rules(rules, math.inf)
            rules.keep_point()
            return
        shared = SharedPoint()
        with anneal_beside(rules.finder, self.run, self.time_left, shared) as second:
            self.search_rules(rules, RULES_SHARE * self.time_left())
            rules.keep_point()
            rules.finder.first(roundings, self.share_left(POINTS_SHARE))
            report(rules.finder, self.run)
            steps = 0
            if self.time_left() > 0:
                rules.finder.restart()
                steps = search_for_a_time(rules.finder, self.run, self.time_left, shared)
            self.annealed(steps + (second.join() if second else 0))

    def improve_by_work(self, rules: MilestoneRules, roundings: int, total: int) -> None:
        """Search for an amount of work, so that the same seed gives the same schedule."""
        for _ in range(round(RULES_WORK * total)):
            rules.search()
        rules.keep_point()
        rules.finder.first(roundings, self.time_left)
        report(rules.finder, self.run)
        self.annealed(search_for_work(rules.finder, self.run, total))

    def annealed(self, steps: int) -> None:
        self.remark.append(f"{steps:,} steps of annealing")

    def search_rules(self, rules: MilestoneRules, seconds: float) -> None:
        """Draw multipliers for some time, or until many in a row are no better."""
        until, since = time.perf_counter() + seconds, 0
        reported = time.perf_counter()
        while time.perf_counter() < until and self.time_left() > 0:
            since = 0 if rules.search() else since + 1
            if seconds < math.inf and since >= PATIENCE:
                return
            if since == 0 and time.perf_counter() > reported + REPORT_S:
                report(rules.finder, self.run)
                reported = time.perf_counter()

    def share_left(self, share: float) -> Callable[[], float]:
        """Return a function of the time left of this share."""
        if not self.timed:
            return self.time_left
        until = time.perf_counter() + share * self.time_left()
        return lambda: until - time.perf_counter()
