"""Timeouts for devices that sleep: another policy says which task runs where and in which order; a
device that has had no work for so long sleeps, and wakes when a task needs it.

Online, the other policy plays the cluster as if all devices were awake, and this one follows its
decisions (``_delayed_starts``): a start waits for devices to wake, and so does all that comes after
it. Offline, with ``ahead``, the starts stay and devices wake in time for them: of all ways to sleep
beside these starts the one that saves the most energy (``model.sleeping.with_sleep``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

import optbench as ob
from optbench.errors import ParameterError, UnsupportedError
from optbench.model.features import provisioned
from optbench.model.sleeping import with_sleep
from optbench.model.verify import verify
from optbench.plugins.discovery import load_solver
from optbench.plugins.policy import CARRIED_OUT, Policy, settle
from optbench.plugins.protocol import Run, Solver, check_supported
from optbench.sim.kernel.plant import Fault
from optbench.sim.kernel.state import MAKESPAN, NOW
from optbench.sim.rules import Trace

from ._delayed_starts import followed, idle_ticks


@dataclass(frozen=True)
class SleepTimeout(Policy):
    """Devices sleep after ``idle_s`` seconds without work; ``policy`` places the tasks.

    Without ``idle_s`` it is the time after which sleeping would have been cheaper. With ``ahead``
    starts stay as they are and devices wake in time for them, which needs the whole schedule
    beforehand; ``policy`` is then any solver that takes devices which wake (not cpsat and highs),
    and its best schedule counts.
    """

    policy: str = "tuned_rule"
    idle_s: float | None = None
    ahead: bool = False

    # Delays change what runs at one time: caps and cooling would have to be kept once more.
    supports: ClassVar[frozenset[str] | set[str]] = CARRIED_OUT - {
        "power_cap",
        "cooling",
        "open_end",
        "per_unit",
        "checkpoints",
    }

    def __post_init__(self) -> None:
        if self.idle_s is not None and not 0.0 <= self.idle_s < math.inf:
            raise ParameterError(
                f"sleep_timeout: idle_s is {self.idle_s!r}; it must be none, or at least 0 and "
                "finite"
            )

    def placing(self) -> Solver:
        """The solver that places the tasks."""
        solver: Solver = load_solver(self.policy)[1]
        if isinstance(solver, SleepTimeout):
            raise ParameterError(
                f"sleep_timeout: policy is {self.policy!r}; it must be another solver"
            )
        return solver

    def placing_online(self) -> Policy:
        solver = self.placing()
        if not isinstance(solver, Policy) or solver.clairvoyant:
            raise ParameterError(
                f"sleep_timeout: policy is {self.policy!r}, which does not decide online; name a "
                "policy such as tuned_rule, or solve with ahead=yes"
            )
        return solver

    def kernels(self, instance: ob.Instance) -> frozenset[str] | set[str]:
        return self.placing().kernels(instance)

    def refuse(self, instance: ob.Instance) -> str | None:
        solver = self.placing() if self.ahead else self.placing_online()
        check_supported(solver, self.policy, instance)
        return None

    def solve(self, instance: ob.Instance, run: Run) -> ob.Schedule | None:
        if not self.ahead:
            return super().solve(instance, run)
        placed = self.placing().solve(instance, run)
        best = placed if run.best is None else run.best
        if best is not None and verify(instance, best).feasible:
            settle(instance, run, with_sleep(instance, best))
        return best if run.best is None else run.best

    def play(
        self,
        instance: ob.Instance,
        rng: np.random.Generator,
        faults: Sequence[Fault] = (),
        until: float = math.inf,
    ) -> Trace:
        if self.ahead:
            raise UnsupportedError(
                "sleep_timeout: ahead=yes wakes devices for starts that are not yet decided; it "
                "solves (ob.solve) and cannot decide online"
            )
        if not provisioned(instance.pools).any():
            return self.placing_online().play(instance, rng, faults, until)
        if faults or until < math.inf:
            raise UnsupportedError(
                "sleep_timeout follows a whole run without faults; leave out faults and horizon_s"
            )
        trace = self.placing_online().play(instance, rng)
        if trace.schedule is None:
            return trace
        schedule = followed(instance, trace.schedule, idle_ticks(instance, self.idle_s))
        state = trace.state
        state.start[schedule.task], state.end[schedule.task] = schedule.start, schedule.end
        state.total[NOW] = state.total[MAKESPAN] = float(schedule.end.max(initial=0))
        return replace(trace, schedule=schedule)
