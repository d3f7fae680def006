"""Policies that decide in Python: one call per decision, whenever at least one ready task can start."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from optbench.model.instance import Instance
from optbench.plugins.policy import CARRIED_OUT, Policy
from optbench.sim.kernel.plant import Fault
from optbench.sim.moments import Decide, Decision, Moment, TimedTrace, run_decisions


class PythonPolicy(Policy):
    """Write ``decide``; or ``decider``, where something is to be computed, or remembered, once per run."""

    # A task that no fault stops runs to its end: such a schedule is one of a preemptive instance too.
    supports: ClassVar[frozenset[str] | set[str]] = CARRIED_OUT | {"preemption"}
    needs: ClassVar[frozenset[str] | set[str]] = frozenset({"decisions"})

    def decide(self, moment: Moment) -> Decision:
        """A pair (task, mode) among the moment's options, or None to wait for the next event."""
        raise NotImplementedError

    def decider(self, instance: Instance, rng: np.random.Generator) -> Decide:
        """What decides in one run."""
        return self.decide

    def play(
        self, instance: Instance, rng: np.random.Generator, faults: Sequence[Fault] = (), until: float = math.inf
    ) -> TimedTrace:
        return run_decisions(instance, self.decider(instance, rng), faults, until)


@dataclass(frozen=True)
class DecideFunction(PythonPolicy):
    """A plain function as a policy."""

    function: Callable[[Moment], Decision]

    def decide(self, moment: Moment) -> Decision:
        return self.function(moment)
