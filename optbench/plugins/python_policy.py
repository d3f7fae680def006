"""Policies that decide in Python: one call whenever a ready task can start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import ClassVar

from numpy.random import Generator

from optbench.model.instance import Instance
from optbench.plugins.policy import CARRIED_OUT, Policy
from optbench.sim.kernel.plant import Fault
from optbench.sim.moments import Decide, Decision, Moment, TimedTrace, run_decisions


class PythonPolicy(Policy):
    """Subclasses define ``decide``, or ``decider`` if they store something per run."""

    # Without faults every task runs to its end, which is also allowed in a preemptive instance.
    supports: ClassVar[frozenset[str] | set[str]] = CARRIED_OUT | {"preemption"}
    needs: ClassVar[frozenset[str] | set[str]] = frozenset({"decisions"})

    def decide(self, moment: Moment) -> Decision:
        """A pair (task, mode) among the moment's options, or None to wait for the next event."""
        raise NotImplementedError

    def decider(self, instance: Instance, rng: Generator) -> Decide:
        """The function that decides in one run."""
        return self.decide

    def play(
        self, instance: Instance, rng: Generator, faults: Sequence[Fault] = (), until: float = inf
    ) -> TimedTrace:
        return run_decisions(instance, self.decider(instance, rng), faults, until)


@dataclass(frozen=True)
class DecideFunction(PythonPolicy):
    """A plain function as a policy."""

    function: Callable[[Moment], Decision]

    def decide(self, moment: Moment) -> Decision:
        return self.function(moment)
