"""Environments of any sizes in lockstep, without Gymnasium's interface: rows of addresses, one
compiled call per step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optbench.model.instance import Bools, Floats, Instance, Ints
from optbench.model.schedule import Schedule
from optbench.model.verify import Verdict, verify
from optbench.sim.kernel.fleet import (
    COST_STEP,
    DEAD_END,
    FINISHED,
    ILLEGAL,
    REWARD,
    STATUS,
    TIME,
    open_all,
    step_all,
)
from optbench.sim.kernel.moments import DecisionTable, new_decision_table
from optbench.sim.kernel.observe import View
from optbench.sim.kernel.plant import Fault, Plant, plant_of
from optbench.sim.kernel.pointers import addresses
from optbench.sim.kernel.state import State, new_state, schedule_of
from optbench.views.env.layout import EnvError, Layout, Observation, new_view


@dataclass(frozen=True, eq=False)
class Seat:
    """One environment of a batch: the instance and the tables of the kernel."""

    instance: Instance
    faults: tuple[Fault, ...]
    plant: Plant
    state: State
    decisions: DecisionTable
    view: View

    def schedule(self) -> Schedule | None:
        """Return the schedule; None while a task has not ended."""
        return schedule_of(self.instance, self.plant, self.state)

    def verdict(self) -> Verdict | None:
        """Return the verifier's verdict on the schedule."""
        schedule = self.schedule()
        return None if schedule is None else verify(self.instance, schedule)

    def longest(self) -> int:
        """Return a number of steps within which any episode of legal actions ends: each step starts
        a task or advances to an event.
        """
        n, pools = self.instance.num_tasks, self.instance.num_pools
        stopped = int(np.minimum(np.maximum(self.plant.fault_devices, 0), n).sum())
        return (n + stopped) * (3 + pools) + len(self.plant.fault_time) + 1


class Batch:
    """``num`` environments; ``seat`` sets the instance of one, ``open`` starts episodes, ``step``
    takes an action in each.

    ``observations``, ``masks`` and the columns of ``out`` are the kernel's own memory: they change
    with the next call.
    """

    def __init__(self, layout: Layout, num: int, level: int = 0) -> None:
        self.layout, self.level = layout, level
        self.seats: list[Seat | None] = [None] * num
        self._rows: list[NDArray[np.int64]] = [
            np.zeros((num, len(table._fields)), dtype=np.int64)
            for table in (Plant, State, DecisionTable, View)
        ]
        self._numbers = np.zeros((num, layout.width), dtype=np.float32)
        self.masks: Bools = np.zeros((num, layout.actions), dtype=np.bool_)
        self.out: Floats = np.zeros((num, TIME + 1))
        self.observations: Observation = layout.parts(self._numbers)
        self._all = np.arange(num)

    def __setstate__(self, kept: dict[str, Any]) -> None:
        """A copy (``copy.deepcopy``, a pickle) has tables of its own, at other addresses."""
        self.__dict__.update(kept)
        self.observations = self.layout.parts(self._numbers)
        for b, seat in enumerate(self.seats):
            if seat is not None:
                self._address(b, seat)

    def _address(self, b: int, seat: Seat) -> None:
        for rows, table in zip(
            self._rows, (seat.plant, seat.state, seat.decisions, seat.view), strict=True
        ):
            rows[b] = addresses(table)

    def seat(self, b: int, instance: Instance, faults: Sequence[Fault] = ()) -> Seat:
        """Put an instance into an environment; ``open`` starts its episode. The same instance again
        keeps its tables.
        """
        there = self.seats[b]
        if there is not None and there.instance is instance and there.faults == tuple(faults):
            return there
        self.layout.check(instance)
        plant = plant_of(instance, faults)
        view = new_view(instance, plant, self.layout, self.level)
        seat = Seat(
            instance,
            tuple(faults),
            plant,
            new_state(plant),
            new_decision_table(plant, options=False),
            view,
        )
        self._address(b, seat)
        self.seats[b] = seat
        return seat

    def __getitem__(self, b: int) -> Seat:
        seat = self.seats[b]
        if seat is None:
            raise EnvError(
                f"environment {b} has no instance; call seat(), or reset() of an environment, first"
            )
        return seat

    def open(self, chosen: Ints | None = None) -> None:
        """Start an episode in the chosen environments, or in all."""
        open_all(*self._rows, self._seated(chosen), self._numbers, self.masks, self.out)

    def step(self, actions: Any, chosen: Ints | None = None) -> None:
        """Take ``actions[b]`` in every chosen environment b, or in all; those whose episode is over
        are unchanged.
        """
        taken = np.ascontiguousarray(actions, dtype=np.int64)
        if taken.shape != self._all.shape:
            raise EnvError(
                f"actions have shape {taken.shape}; there must be one for each of "
                f"{len(self._all)} environments"
            )
        step_all(*self._rows, self._seated(chosen), taken, self._numbers, self.masks, self.out)

    def _seated(self, chosen: Ints | None) -> Ints:
        """Return the chosen environments, or all; raise where one has no instance or does not
        exist, since the kernel would use its address.
        """
        seats = self._all if chosen is None else np.ascontiguousarray(chosen, dtype=np.int64)
        wrong = seats[(seats < 0) | (seats >= len(self._all))]
        if len(wrong):
            raise EnvError(
                f"there is no environment {wrong[0]}; they are 0 to {len(self._all) - 1}"
            )
        empty = seats[self._rows[0][seats, 0] == 0]
        if len(empty):
            raise EnvError(
                f"environment {empty[0]} has no instance; call seat(), or reset() of an "
                "environment, first"
            )
        return seats

    @property
    def rewards(self) -> Floats:
        return self.out[:, REWARD]

    @property
    def costs(self) -> Floats:
        return self.out[:, COST_STEP]

    @property
    def illegal(self) -> Bools:
        """Whether the last action was not allowed and changed nothing."""
        return np.asarray(self.out[:, ILLEGAL] > 0)

    @property
    def over(self) -> Bools:
        """Whether everything has ended, or no remaining task can ever start."""
        return np.asarray((self.out[:, STATUS] == FINISHED) | (self.out[:, STATUS] == DEAD_END))

    @property
    def times(self) -> Floats:
        """The current time, in each instance's time domain."""
        return self.out[:, TIME]
