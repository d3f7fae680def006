"""What a policy is: it decides while time goes on, and the event kernel carries it out; every policy is also a solver."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from optbench.model.instance import Instance
from optbench.model.schedule import Schedule
from optbench.plugins.protocol import Run, Solver
from optbench.sim.kernel.dispatch import Rule
from optbench.sim.kernel.plant import Fault
from optbench.sim.rules import Trace, run_rule

# What the kernel carries out for any policy. It keeps caps and waits for data; deadlines, limits and the end of a fixed horizon
# are the policy's affair, and a schedule that breaks one is refused by the verifier.
CARRIED_OUT = frozenset({
    "precedence", "transfers", "releases", "deadlines", "modes", "multi_resource", "pooled", "power_cap",
    "limits", "tariffs", "fixed_horizon", "energy", "due_dates", "access", "open_end", "per_unit",
})  # fmt: skip


class Policy(Solver):
    """Online: state → decision. ``play`` runs it in the kernel; what it leaves is verified like any other schedule."""

    supports: ClassVar[frozenset[str] | set[str]] = CARRIED_OUT
    may_break: ClassVar[frozenset[str] | set[str]] = frozenset({"deadline", "horizon", "limit"})
    # True where it looks at jobs before they come, and so is no policy that could be run: a yardstick.
    clairvoyant: ClassVar[bool] = False
    needs: ClassVar[frozenset[str] | set[str]] = frozenset({"rules"})

    def play(self, instance: Instance, rng: np.random.Generator, faults: Sequence[Fault] = (), until: float = math.inf) -> Trace:
        """Run from time 0 until everything has ended, or until the time given."""
        raise NotImplementedError

    def solve(self, instance: Instance, run: Run) -> Schedule | None:
        trace = self.play(instance, run.rng)
        return settle(instance, run, trace.schedule)


def settle(instance: Instance, run: Run, schedule: Schedule | None) -> Schedule | None:
    """Report what a policy made and return it; where it is no feasible schedule, say why and what to do."""
    if schedule is None:
        run.report_message(
            f"{instance.name}: tasks were left over: caps allow no mode of theirs, or their data cannot reach a pool that "
            "they can run on; raise the cap, add the link (m.link), or see with -s cpsat whether there is any schedule"
        )
        return None
    verdict = run.report(schedule)
    if not verdict.feasible:
        run.report_message(
            f"its schedule is not feasible: {verdict.violations[0]}. Rules decide as time goes on and promise neither deadlines "
            "nor limits: -s edf goes by deadlines, -s random_rules tries many rules, -s cpsat and -s highs keep them"
        )
        return None
    return schedule


class RulePolicy(Policy):
    """A policy that is a list rule: numbers for the compiled dispatcher."""

    def rule(self, instance: Instance, rng: np.random.Generator) -> Rule:
        raise NotImplementedError

    def play(self, instance: Instance, rng: np.random.Generator, faults: Sequence[Fault] = (), until: float = math.inf) -> Trace:
        return run_rule(instance, self.rule(instance, rng), faults, until)
