"""Policies that decide in Python: one call whenever a ready task can start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

from numpy.random import Generator

from optbench.model.instance import Instance
from optbench.plugins.author_errors import defined_at, refuse_result
from optbench.plugins.policy import CARRIED_OUT, Policy
from optbench.sim.arrivals import TaskArrivals
from optbench.sim.kernel.plant import Fault
from optbench.sim.moments import Decide, Decision, DecisionError, Moment, TimedTrace, run_decisions


class PythonPolicy(Policy):
    """Subclasses define ``decide``, or ``decider`` if they store something per run."""

    to_define: ClassVar[tuple[str, ...]] = ("decide", "decider", "play", "solve")
    deciding: ClassVar[str] = "decide"
    # The function of a user whose policy this is, where he gave no class.
    author: ClassVar[Callable[..., Any] | None] = None
    # Without faults every task runs to its end, which is also allowed in a preemptive instance.
    supports: ClassVar[frozenset[str] | set[str]] = CARRIED_OUT | {"preemption"}
    needs: ClassVar[frozenset[str] | set[str]] = frozenset({"decisions"})

    def decide(self, moment: Moment) -> Decision:
        """A pair (task, mode) among the moment's options, or None to wait for the next event."""
        raise NotImplementedError

    def decider(self, instance: Instance, rng: Generator) -> Decide:
        """The function that decides in one run; the instance is that of time 0, without what
        arrives later.
        """
        return self.decide

    def play(
        self, instance: Instance, rng: Generator, faults: Sequence[Fault] = (), until: float = inf
    ) -> TimedTrace:
        arrivals = (TaskArrivals.foreseen if self.clairvoyant else TaskArrivals.of)(instance)
        decide = self.decider(arrivals.known(0.0), rng)
        if not callable(decide):
            raise refuse_result(self, "decider", decide, "return a function of a moment")
        try:
            return run_decisions(instance, decide, faults, until, arrivals)
        except DecisionError as error:
            error.args = (f"{defined_at(self.author or decide)}: {error}",)
            raise
        except IndexError as error:
            error.args = (f"{error}; arrays end with the tasks that have arrived",)
            raise


@dataclass(frozen=True)
class DecideFunction(PythonPolicy):
    """A plain function as a policy."""

    function: Callable[[Moment], Decision]

    @property
    def author(self) -> Callable[[Moment], Decision]:  # type: ignore[override]
        return self.function

    def decide(self, moment: Moment) -> Decision:
        return self.function(moment)
