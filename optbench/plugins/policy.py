"""Policies: solvers that decide online while the event kernel carries out their decisions."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from math import inf
from typing import ClassVar

from numpy.random import Generator

from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.plugins.author_errors import refuse_result
from optbench.plugins.protocol import Run, Solver
from optbench.sim.kernel.dispatch import Rule
from optbench.sim.kernel.plant import Fault
from optbench.sim.rules import Trace, run_rule

# Features that the kernel handles for every policy. It respects caps, keeps places cool and waits
# for data. Deadlines, limits and a fixed horizon are left to the policy; the verifier refuses a
# schedule that breaks one.
CARRIED_OUT = frozenset(
    {
        "precedence",
        "transfers",
        "releases",
        "deadlines",
        "modes",
        "multi_resource",
        "pooled",
        "power_cap",
        "cooling",
        "congestion",
        "checkpoints",
        "waking",
        "limits",
        "tariffs",
        "fixed_horizon",
        "energy",
        "due_dates",
        "access",
        "open_end",
        "per_unit",
    }
)


class Policy(Solver):
    """An online method. ``play`` runs it in the kernel; its schedule is verified like any other."""

    to_define: ClassVar[tuple[str, ...]] = ("play", "solve")
    supports: ClassVar[frozenset[str] | set[str]] = CARRIED_OUT
    may_break: ClassVar[frozenset[str] | set[str]] = frozenset({"deadline", "horizon", "limit"})
    # True if it uses jobs before they arrive: a reference for comparisons that could not be
    # deployed. Rules and policies in Python are then given the whole instance.
    clairvoyant: ClassVar[bool] = False
    needs: ClassVar[frozenset[str] | set[str]] = frozenset({"rules"})
    # The method that messages name where a policy raises an exception.
    deciding: ClassVar[str] = "play"

    def play(
        self, instance: Instance, rng: Generator, faults: Sequence[Fault] = (), until: float = inf
    ) -> Trace:
        """Run from time 0 until everything has ended, or until the time given."""
        raise NotImplementedError

    def solve(self, instance: Instance, run: Run) -> Schedule | None:
        trace = self.play(instance, run.rng)
        return settle(instance, run, trace.schedule)


def settle(instance: Instance, run: Run, schedule: Schedule | None) -> Schedule | None:
    """Report and return a policy's schedule; where it is not feasible, state the reason and
    remedy.
    """
    if schedule is None:
        run.report_message(
            f"{instance.name}: some tasks never ran: power caps allow none of their modes, or "
            "their data "
            "cannot reach a pool on which they can run; raise the cap, add the link (m.link), or "
            "use "
            "-s cpsat to find out whether any schedule exists"
        )
        return None
    verdict = run.report(schedule)
    if not verdict.feasible:
        run.report_message(
            f"its schedule is not feasible: {verdict.violations[0]}. Rules decide online and "
            "guarantee "
            "neither deadlines nor limits: -s edf orders tasks by deadline, -s random_rules "
            "tries many "
            "rules, -s cpsat and -s highs respect both"
        )
        return None
    return schedule


class RulePolicy(Policy):
    """A policy given as a list rule: arrays of numbers for the compiled dispatcher.

    Where tasks arrive over time, ``rule`` is called at each arrival with the tasks that have
    arrived, in order of arrival, and the run goes on with the new numbers. A generator in the same
    state is given to each call. Of busy links it is given what has been seen by then.
    """

    to_define: ClassVar[tuple[str, ...]] = ("rule", "play", "solve")
    deciding: ClassVar[str] = "rule"
    # True if the numbers of a task depend on no task but those of its own job (what edges connect):
    # then ``rule`` is called once, with all tasks. The conformance suite holds the class to it.
    job_by_job: ClassVar[bool] = False

    def rule(self, instance: Instance, rng: Generator) -> Rule:
        raise NotImplementedError

    def kernels(self, instance: Instance) -> frozenset[str] | set[str]:
        return {*self.needs, "arrivals"} if self._is_made_again(instance) else self.needs

    def play(
        self, instance: Instance, rng: Generator, faults: Sequence[Fault] = (), until: float = inf
    ) -> Trace:
        if not self._is_made_again(instance):
            seen = instance
            if instance.congestion is not None and not self.clairvoyant:
                seen = replace(instance, congestion=instance.congestion.known(0.0))
            return run_rule(instance, self._rule(seen, rng), faults, until)
        from optbench.sim.arrivals import TaskArrivals
        from optbench.sim.renumbered_rules import run_as_known

        def make(known: Instance) -> Rule:
            return self._rule(known, deepcopy(rng))

        return run_as_known(TaskArrivals.of(instance), make, faults, until)

    def _is_made_again(self, instance: Instance) -> bool:
        """Whether something arrives later than the first tasks, and may change the numbers."""
        release, stream = instance.tasks.release, instance.stream
        hidden = stream is not None and not stream.outages.announced.all()
        one_call = self.job_by_job or self.clairvoyant
        return not one_call and (hidden or bool((release != release[:1]).any()))

    def _rule(self, instance: Instance, rng: Generator) -> Rule:
        rule = self.rule(instance, rng)
        if not isinstance(rule, Rule):
            raise refuse_result(self, "rule", rule, "end it with return list_rule(instance, ...)")
        return rule
