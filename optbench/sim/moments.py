"""A run with decisions in Python: the compiled kernel advances from moment to moment and lists the
options.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from optbench.errors import OptbenchError
from optbench.model.instance import Floats, Instance, Ints
from optbench.sim.kernel.moments import (
    LISTED,
    OPTIONS,
    REFUSED,
    DecisionTable,
    end_run,
    first_moment,
    new_decision_table,
    start_option,
    wait,
    will_happen,
)
from optbench.sim.kernel.plant import Fault, Plant, plant_of
from optbench.sim.kernel.pointers import addresses
from optbench.sim.kernel.state import NOW, RUNNING, State, last_moment, new_state, schedule_of
from optbench.sim.rules import Trace

# (task, mode), or None to wait for the next event.
Decision = tuple[int, int] | None
Decide = Callable[["Moment"], Decision]


# Runs that begin in this context are appended, for a caller that may have to stop one.
runs_with_decisions: ContextVar[list[tuple[Plant, State, list[float]]] | None] = ContextVar(
    "runs_with_decisions", default=None
)


class DecisionError(OptbenchError):
    """A policy's decision is impossible."""


@dataclass(frozen=True, eq=False)
class TimedTrace(Trace):
    """A run with decisions in Python, and the time that each decision took."""

    decision_s: Floats


class Moment:
    """The state that a policy sees: read-only arrays of the kernel, valid until the decision.

    Option k starts ``task[k]`` in ``mode[k]``; options are sorted by task in the order of
    ``ready``, then by mode.
    """

    def __init__(
        self, instance: Instance, plant: Plant, state: State, decisions: DecisionTable
    ) -> None:
        self.instance, self.plant, self.state = instance, plant, state
        self._decisions = decisions

    @property
    def now(self) -> float:
        """Time, in the instance's time domain."""
        return float(self.state.total[NOW])

    @property
    def num_options(self) -> int:
        return int(self._decisions.held[OPTIONS])

    @property
    def task(self) -> Ints:
        """Task of each option."""
        return self._decisions.option_task[: self.num_options]

    @property
    def mode(self) -> Ints:
        """Mode of each option."""
        return self._decisions.option_mode[: self.num_options]

    @property
    def ready(self) -> Ints:
        """Every task that is released and whose predecessors have ended, in the order in which they
        became ready.
        """
        return self._decisions.ready[: self._decisions.held[LISTED]]

    @property
    def free(self) -> Ints:
        """Free devices of each pool."""
        return self.state.free

    @property
    def running(self) -> Ints:
        """Tasks that run now; ``end`` says until when."""
        return np.flatnonzero(self.state.status == RUNNING)

    @property
    def status(self) -> Ints:
        """WAITING, READY, RUNNING or DONE (``optbench.sim.kernel.state``) of each task."""
        return self.state.status

    @property
    def start(self) -> Floats:
        """Begin of each task that runs or has ended."""
        return self.state.start

    @property
    def end(self) -> Floats:
        """End of each task that runs or has ended."""
        return self.state.end

    @property
    def remaining(self) -> Floats:
        """Remaining units of each task; all of them while it runs, in the mode of
        ``running_mode``.
        """
        return self.state.remaining

    @property
    def running_mode(self) -> Ints:
        """Mode of each task that runs or has ended, -1 for the others."""
        return self.state.mode

    @property
    def duration(self) -> Floats:
        """Length of each option, in the instance's time domain."""
        return np.asarray(self.instance.duration(self.mode, self.remaining[self.task]), dtype=float)

    @property
    def energy_j(self) -> Floats:
        """Energy of each option."""
        return np.asarray(self.instance.energy_j(self.mode, self.remaining[self.task]), dtype=float)

    @cached_property
    def _rows(self) -> tuple[Ints, Ints]:
        return addresses(self.plant), addresses(self.state)

    @property
    def can_wait(self) -> bool:
        """Whether an event remains if nothing is started; otherwise one of the options must be
        taken.
        """
        return bool(will_happen(*self._rows))


def run_decisions(
    instance: Instance, decide: Decide, faults: Sequence[Fault] = (), until: float = math.inf
) -> TimedTrace:
    """Run from time 0 until everything has ended, no decision is possible, or no event remains up
    to ``until``.
    """
    plant = plant_of(instance, faults)
    state, decisions = new_state(plant), new_decision_table(plant)
    spent: list[float] = []
    runs = runs_with_decisions.get()
    if runs is not None:
        runs.append((plant, state, spent))
    moment, until = Moment(instance, plant, state, decisions), last_moment(instance, until)
    rows = addresses(plant), addresses(state), addresses(decisions)
    options = first_moment(*rows, until)
    while options:
        began = time.perf_counter()
        decision = decide(moment)
        spent.append(time.perf_counter() - began)
        if decision is not None:
            pair = _pair(decision)
            options = start_option(*rows, *pair, until)
            if options == REFUSED:
                raise DecisionError(
                    f"{instance.name} at {moment.now:g}: {_why_impossible(moment, *pair)}"
                )
        elif not moment.can_wait:
            raise DecisionError(
                f"{instance.name} at {moment.now:g}: the policy waits, but no event follows "
                "until it starts one of "
                f"{moment.num_options} options; check moment.can_wait"
            )
        else:
            options = wait(*rows, until)
    end_run(*rows[:2], until)
    return TimedTrace(plant, state, schedule_of(instance, plant, state), np.asarray(spent))


def _pair(decision: Any) -> tuple[int, int]:
    try:
        task, mode = decision
        return int(task), int(mode)
    except (TypeError, ValueError):
        raise DecisionError(
            f"a policy decided {decision!r}; a decision is a pair (task, mode), or None to wait"
        ) from None


def _why_impossible(moment: Moment, task: int, mode: int) -> str:
    """Explain why a pair cannot start."""
    instance = moment.instance
    if not 0 <= task < instance.num_tasks:
        return f"there is no task {task}; tasks are 0 to {instance.num_tasks - 1}"
    name = instance.tasks.name(task)
    if task not in moment.ready:
        return f"task {name} is not ready; {len(moment.ready)} tasks are, see moment.ready"
    if not (
        0 <= mode < instance.num_modes and instance.modes.kind[mode] == instance.tasks.kind[task]
    ):
        first = instance.modes.kind_ptr[instance.tasks.kind[task]]
        last = instance.modes.kind_ptr[instance.tasks.kind[task] + 1] - 1
        return f"mode {mode} is not of the kind of task {name}, whose modes are {first} to {last}"
    return (
        f"task {name} cannot start in mode {mode} now; {moment.num_options} options can, see "
        "moment.task and moment.mode"
    )
