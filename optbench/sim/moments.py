"""A run with decisions in Python: the compiled kernel advances from moment to moment and lists the
options.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from optbench.errors import OptbenchError
from optbench.model.instance import Floats, Instance, Ints
from optbench.sim.arrivals import TaskArrivals
from optbench.sim.kernel.heat import temperatures_c
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

# Addresses of the plant and of the state.
Rows = tuple[Ints, Ints]
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
    """What a policy sees: tasks that have arrived, and the plant as it is. Valid until it decides.

    Tasks are numbered in the order in which they arrive, equal ones in the order of the instance;
    arrays have one entry for each that has arrived. Option k starts ``task[k]`` in ``mode[k]``;
    options are sorted by task in the order of ``ready``, then by mode.
    """

    def __init__(
        self, arrivals: TaskArrivals, rows: Rows, plant: Plant, state: State, table: DecisionTable
    ) -> None:
        self._arrivals, self._rows, self._plant = arrivals, rows, plant
        self._state, self._table = state, table
        self._counted_at, self._num_known, self._periods = -math.inf, 0, 0
        self._known: Instance | None = None

    @property
    def now(self) -> float:
        """Time, in the instance's time domain."""
        return float(self._state.total[NOW])

    @property
    def num_tasks(self) -> int:
        """The number of tasks that have arrived."""
        now = self.now
        if now != self._counted_at:
            self._counted_at, self._num_known = now, self._arrivals.count(now)
        return self._num_known

    @property
    def instance(self) -> Instance:
        """The instance with the tasks that have arrived and no others."""
        seen = self.num_tasks, self._arrivals.periods(self.now)
        if self._known is None or (self._known.num_tasks, self._periods) != seen:
            self._known, self._periods = self._arrivals.known(self.now), seen[1]
        return self._known

    @property
    def num_options(self) -> int:
        return int(self._table.held[OPTIONS])

    @property
    def task(self) -> Ints:
        """Task of each option."""
        return self._numbered(self._table.option_task[: self.num_options])

    @property
    def mode(self) -> Ints:
        """Mode of each option."""
        return self._table.option_mode[: self.num_options]

    @property
    def ready(self) -> Ints:
        """Every task that is released and whose predecessors have ended, in the order in which they
        became ready.
        """
        return self._numbered(self._table.ready[: self._table.held[LISTED]])

    @property
    def free(self) -> Ints:
        """Free devices of each pool."""
        return self._state.free

    @property
    def temperature_c(self) -> Floats:
        """Temperature of each cooled place, at most: in the order of ``instance.cooling``."""
        return temperatures_c(self._plant, self._state)

    @property
    def running(self) -> Ints:
        """Tasks that run now; ``end`` says until when."""
        return np.flatnonzero(self.status == RUNNING)

    @property
    def status(self) -> Ints:
        """WAITING, READY, RUNNING or DONE (``optbench.sim.kernel.state``) of each task."""
        return self._arrived(self._state.status)

    @property
    def start(self) -> Floats:
        """Begin of each task that runs or has ended."""
        return self._arrived(self._state.start)

    @property
    def end(self) -> Floats:
        """End of each task that runs or has ended."""
        return self._arrived(self._state.end)

    @property
    def remaining(self) -> Floats:
        """Remaining units of each task; all of them while it runs, in the mode of
        ``running_mode``.
        """
        return self._arrived(self._state.remaining)

    @property
    def running_mode(self) -> Ints:
        """Mode of each task that runs or has ended, -1 for the others."""
        return self._arrived(self._state.mode)

    @property
    def duration(self) -> Floats:
        """Length of each option, in the instance's time domain."""
        made = self._arrivals.instance.duration(self.mode, self._units_of_options())
        return np.asarray(made, dtype=float)

    @property
    def energy_j(self) -> Floats:
        """Energy of each option."""
        made = self._arrivals.instance.energy_j(self.mode, self._units_of_options())
        return np.asarray(made, dtype=float)

    @property
    def can_wait(self) -> bool:
        """Whether an event remains if nothing is started; otherwise one of the options must be
        taken.
        """
        return bool(will_happen(*self._rows))

    def _units_of_options(self) -> Floats:
        return self._state.remaining[self._table.option_task[: self.num_options]]

    def _arrived(self, column: Any) -> Any:
        """The entries of tasks that have arrived, in the order of arrival."""
        order = self._arrivals.order
        return column[: self.num_tasks] if order is None else column[order[: self.num_tasks]]

    def _numbered(self, tasks: Ints) -> Ints:
        """The numbers by which a policy knows these tasks."""
        return tasks if self._arrivals.order is None else self._arrivals.place[tasks]


def run_decisions(
    instance: Instance,
    decide: Decide,
    faults: Sequence[Fault] = (),
    until: float = math.inf,
    arrivals: TaskArrivals | None = None,
) -> TimedTrace:
    """Run from time 0 until everything has ended, no decision is possible, or no event remains up
    to ``until``.
    """
    arrivals = TaskArrivals.of(instance) if arrivals is None else arrivals
    plant = plant_of(instance, faults)
    state, decisions = new_state(plant), new_decision_table(plant)
    spent: list[float] = []
    runs = runs_with_decisions.get()
    if runs is not None:
        runs.append((plant, state, spent))
    seen, until = (addresses(plant), addresses(state)), last_moment(instance, until)
    moment, rows = Moment(arrivals, seen, plant, state, decisions), (*seen, addresses(decisions))
    options = first_moment(*rows, until)
    while options:
        began = time.perf_counter()
        decision = decide(moment)
        spent.append(time.perf_counter() - began)
        if decision is not None:
            task, mode = _pair(decision)
            options = start_option(*rows, arrivals.row(task), mode, until)
            if options == REFUSED:
                raise DecisionError(_refused(arrivals, moment, task, mode))
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


def _refused(arrivals: TaskArrivals, moment: Moment, task: int, mode: int) -> str:
    return f"{arrivals.instance.name} at {moment.now:g}: {_why_impossible(moment, task, mode)}"


def _why_impossible(moment: Moment, task: int, mode: int) -> str:
    """Explain why a pair cannot start."""
    instance = moment.instance
    if not 0 <= task < moment.num_tasks:
        return f"there is no task {task}; those that have arrived are 0 to {moment.num_tasks - 1}"
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
