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

# What the kernel carries out for any policy. It keeps caps and waits for data; deadlines and limits are the policy's affair,
# and a schedule that breaks one is refused by the verifier.
CARRIED_OUT = frozenset({
    "ticks", "seconds", "precedence", "transfers", "releases", "deadlines", "modes", "multi_resource", "pooled", "power_cap",
    "limits", "tariffs", "fixed_horizon", "energy", "due_dates",
})  # fmt: skip


class Policy(Solver):
    """Online: state → decision. ``play`` runs it in the kernel; what it leaves is verified like any other schedule."""

    supports: ClassVar[frozenset[str] | set[str]] = CARRIED_OUT

    def play(self, instance: Instance, rng: np.random.Generator, faults: Sequence[Fault] = (), until: float = math.inf) -> Trace:
        """Run from time 0 until everything has ended, or until the time given."""
        raise NotImplementedError

    def solve(self, instance: Instance, run: Run) -> Schedule | None:
        return self.play(instance, run.rng).schedule


class RulePolicy(Policy):
    """A policy that is a list rule: numbers for the compiled dispatcher."""

    def rule(self, instance: Instance, rng: np.random.Generator) -> Rule:
        raise NotImplementedError

    def play(self, instance: Instance, rng: np.random.Generator, faults: Sequence[Fault] = (), until: float = math.inf) -> Trace:
        return run_rule(instance, self.rule(instance, rng), faults, until)
