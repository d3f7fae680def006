"""Run site policies: the Python side of ``kernel.sites``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from optbench.errors import ParameterError, UnsupportedError
from optbench.model.instance import Floats, Instance, Ints
from optbench.sim.kernel.plant import Fault, Plant, plant_of
from optbench.sim.kernel.pointers import addresses
from optbench.sim.kernel.sites.sites import hold_until, next_choice, run_sites, send_to
from optbench.sim.kernel.sites.steering import ASKED, CLOCKS, GIVEN, TABLE, WIDEST, Steering
from optbench.sim.kernel.state import NONE, NOW, TROUBLE, State, last_moment, new_state, schedule_of
from optbench.sim.rules import NoRoomError, Trace


@dataclass(frozen=True, eq=False)
class ModeGrid:
    """Modes of an instance by (kind, pool, devices, clock): ``mode_at[k, p, n - 1, c]``, NONE where
    there is none.

    ``clocks[k, p, c]`` is the clock of column c there, NaN beyond the last; ``column`` is the
    column of each mode.
    """

    instance: Instance
    mode_at: Ints
    clocks: Floats
    column: Ints

    @property
    def widest(self) -> int:
        return int(self.mode_at.shape[2])

    @cached_property
    def exists(self) -> Any:
        return self.mode_at != NONE

    def of_mode(self, values: Any, empty: float) -> Floats:
        """Convert one value per mode to one value per (kind, pool, devices, clock)."""
        return np.where(
            self.exists, np.asarray(values, dtype=float)[np.maximum(self.mode_at, 0)], empty
        )

    @cached_property
    def time_s(self) -> Floats:
        """Seconds per unit, inf where there is no mode."""
        return self.of_mode(self.instance.modes.time_per_unit_s, np.inf)

    @cached_property
    def energy_j(self) -> Floats:
        """Joules per unit."""
        return self.of_mode(self.instance.modes.energy_per_unit_j, np.inf)

    @cached_property
    def net_j(self) -> Floats:
        """Joules per unit above the rest of the same devices."""
        modes, rest = self.instance.modes, self.instance.mode_rest_w
        return self.of_mode(modes.energy_per_unit_j - rest * modes.time_per_unit_s, np.inf)

    def pick_cheapest(self, cost: Floats) -> Ints:
        """``pick[k, p, free]``: the mode of least cost of at most so many devices; ties in order of
        devices, then of clocks.
        """
        kinds, pools, widest, _ = self.mode_at.shape
        out = np.full((kinds, pools, widest + 1), NONE, dtype=np.int64)
        for free in range(1, widest + 1):
            flat = np.where(self.exists, cost, np.inf)[:, :, :free].reshape(kinds, pools, -1)
            best = flat.argmin(axis=2)
            modes = self.mode_at[:, :, :free].reshape(kinds, pools, -1)
            out[:, :, free] = np.take_along_axis(modes, best[:, :, None], axis=2)[:, :, 0]
        return out

    @cached_property
    def best_clock(self) -> Ints:
        """``best_clock[k, p, n]``: the clock of least energy per unit on n devices (row 0 is
        empty).
        """
        best = self.energy_j.argmin(axis=3)
        return np.concatenate((np.zeros((*best.shape[:2], 1), dtype=np.int64), best), axis=2)

    @cached_property
    def fit(self) -> Ints:
        """``fit[k, p, free]``: the most devices, at most so many, with a mode; 0 where there is
        none.
        """
        devices = np.arange(1, self.widest + 1)
        most = np.maximum.accumulate(np.where(self.exists.any(axis=3), devices, 0), axis=2)
        return np.concatenate((np.zeros((*most.shape[:2], 1), dtype=np.int64), most), axis=2)

    @cached_property
    def filled(self) -> Ints:
        """``mode_at`` where a clock that has no mode stands for the next lower one, else the next
        higher one, that has.
        """
        clocks = np.arange(self.mode_at.shape[3])
        lower = np.maximum.accumulate(np.where(self.exists, clocks, -1), axis=3)
        first = np.where(self.exists.any(axis=3), self.exists.argmax(axis=3), 0)[..., None]
        return np.take_along_axis(self.mode_at, np.where(lower < 0, first, lower), axis=3)


def why_unsupported(instance: Instance, capped: bool = False) -> str | None:
    """Return why site policies cannot run an instance; None where they can. ``capped`` policies
    keep power caps.
    """
    if len(instance.edges.source):
        return "tasks wait for each other; site policies take independent jobs as they arrive"
    if (np.diff(instance.modes.req_ptr) != 1).any():
        return (
            "modes take devices of several pools, or of none; site policies place a job in one pool"
        )
    if _fit_varies_within_kind(instance):
        return (
            "tasks of one kind fit the memory of different pools; site policies look modes up "
            "by kind"
        )
    if len(instance.limits.cap_w) and not capped:
        return "this policy does not keep power caps; cap_by_site and cap_by_job do"
    return None


def _fit_varies_within_kind(instance: Instance) -> bool:
    """Whether some task of a kind does not fit in some mode of its kind."""
    most = np.zeros(len(instance.modes.kind_names))
    np.maximum.at(most, instance.tasks.kind, instance.tasks.memory_gb)
    return bool((most[instance.modes.kind] > instance.mode_memory_gb).any())


def grid_of(instance: Instance, capped: bool = False) -> ModeGrid:
    """Return the modes by kind, pool, devices and clock; of two modes in one place, the first
    counts.
    """
    reason = why_unsupported(instance, capped)
    if reason is not None:
        raise UnsupportedError(f"{instance.name}: {reason}")
    modes, kinds, pools = instance.modes, len(instance.modes.kind_names), instance.num_pools
    clock = np.where(np.isnan(modes.clock), 1.0, modes.clock)
    at = modes.kind * pools + modes.primary
    # Every clock of a kind at a pool, in order; its column is its position there.
    levels, level_of = np.unique(np.column_stack((at, clock)), axis=0, return_inverse=True)
    place = levels[:, 0].astype(np.int64)
    column = np.arange(len(place)) - np.searchsorted(place, place)
    widest, most = int(modes.devices.max(initial=1)), int(column.max(initial=0)) + 1
    clocks = np.full((kinds * pools, most), np.nan)
    clocks[place, column] = levels[:, 1]
    mode_at = np.full((kinds * pools, widest, most), NONE, dtype=np.int64)
    backwards = np.arange(instance.num_modes)[::-1]
    mode_column = column[level_of.ravel()]
    mode_at[at[backwards], modes.devices[backwards] - 1, mode_column[backwards]] = backwards
    return ModeGrid(
        instance,
        mode_at.reshape(kinds, pools, widest, most),
        clocks.reshape(kinds, pools, most),
        mode_column,
    )


def _classes(kinds: int, class_of: Sequence[int] | None, short_first: bool) -> Ints:
    """Return the class of each kind: one for all where none is given."""
    if short_first:
        return np.arange(kinds, dtype=np.int64)
    return np.asarray(np.zeros(kinds) if class_of is None else class_of).astype(np.int64)


def _times_there(instance: Instance, pools: Ints | None) -> Floats:
    """Return when each task reaches its pool, or is released where no pools are given."""
    release = np.ascontiguousarray(instance.tasks.release, dtype=np.float64)
    if pools is None:
        return release
    reached = instance.access(np.arange(instance.num_tasks), pools)
    return release + np.asarray(reached, dtype=float)


def steering_of(
    grid: ModeGrid,
    *,
    pick_by: int = TABLE,
    pick: Ints | None = None,
    pools: Ints | None = None,
    low_clock: Ints | None = None,
    class_of: Sequence[int] | None = None,
    short_first: bool = False,
    how: int = 0,
    moves: int = 0,
) -> Steering:
    """Return parameters for the kernel; with ``pools`` each task goes to its pool, without it the
    caller decides.

    ``class_of`` gives kinds a class each; the first class is served first. With ``short_first``
    each kind is a class, and that whose jobs have been shortest so far, in their fastest modes, is
    served first.

    ``how`` are bits of ``kernel.sites.moves``, ``moves`` the number of changes for which a state
    must have room.
    """
    instance = grid.instance
    n, p, kinds = instance.num_tasks, instance.num_pools, len(instance.modes.kind_names)
    classes = _classes(kinds, class_of, short_first)
    num_classes = int(classes.max(initial=0)) + 1
    order_of_classes = np.arange(num_classes)
    reach = _times_there(instance, pools)
    # Arrivals are nearly in order, which a stable sort uses.
    order = np.argsort(reach, kind="stable")
    clocks = grid.mode_at.shape[3]
    route = ASKED if pools is None else GIVEN
    shape = np.array(
        [grid.widest, clocks, num_classes, pick_by, route, 0, kinds, short_first and kinds > 1],
        dtype=np.int64,
    )

    def flat(values: Any) -> Ints:
        return np.ascontiguousarray(values, dtype=np.int64).ravel()

    return Steering(
        shape=shape,
        mode_at=flat(grid.filled),
        class_of=classes,
        order=order.astype(np.int64),
        reach=reach,
        pool_of=np.full(n, NONE, dtype=np.int64) if pools is None else flat(pools).copy(),
        pick=flat(grid.pick_cheapest(grid.energy_j) if pick is None else pick),
        best_clock=flat(grid.best_clock),
        low_clock=flat(np.zeros((kinds, p)) if low_clock is None else low_clock),
        fit=flat(grid.fit),
        levels=flat((~np.isnan(grid.clocks)).sum(axis=2)),
        column=flat(grid.column),
        moves=np.array([how, moves], dtype=np.int64),
        serving=np.concatenate((order_of_classes, order_of_classes)),
        seen=np.concatenate((np.zeros(2 * num_classes), fastest_of(instance))),
        **_memory(grid, num_classes),
    )


def _memory(grid: ModeGrid, num_classes: int) -> dict[str, Any]:
    """Return the columns of a run's memory, which the kernel fills."""
    n, p = grid.instance.num_tasks, grid.instance.num_pools
    arms = math.prod(grid.mode_at.shape[k] for k in (0, 1, 3))
    return {
        "wish_devices": np.full(n, grid.widest, dtype=np.int64),
        "wish_clock": np.full(n, NONE, dtype=np.int64),
        "clock_of": np.zeros(p, dtype=np.int64),
        "arm_count": np.zeros(arms),
        "arm_mean": np.zeros(arms),
        "head": np.zeros(p * num_classes, dtype=np.int64),
        "tail": np.zeros(p * num_classes, dtype=np.int64),
        "behind": np.zeros(n, dtype=np.int64),
        "waiting": np.zeros(p, dtype=np.int64),
        "waiting_units": np.zeros(p),
        "coming": np.zeros(p, dtype=np.int64),
        "scratch": np.zeros(n, dtype=np.int64),
    }


def fastest_of(instance: Instance) -> Floats:
    """Seconds per unit of the fastest mode of each kind."""
    fastest = np.full(len(instance.modes.kind_names), np.inf)
    np.minimum.at(fastest, instance.modes.kind, instance.modes.time_per_unit_s)
    return fastest


def inference_first(instance: Instance) -> Ints:
    """Return classes by kind: kinds with "inference" in their name before all others; one class
    where there are none.
    """
    other = [not name.startswith("inference") for name in instance.modes.kind_names]
    return np.asarray(other if not all(other) else np.zeros(len(other)), dtype=np.int64)


class SiteRun:
    """A run in which the caller routes each job: ``asked`` until it is None, ``send`` or ``hold``
    each, then ``trace``.
    """

    def __init__(
        self,
        instance: Instance,
        steering: Steering,
        faults: Sequence[Fault] = (),
        until: float = math.inf,
    ) -> None:
        self.instance, self.steering, self.until = instance, steering, last_moment(instance, until)
        self.plant = plant_of(instance, faults)
        self.state = new_state(self.plant)
        self._rows = tuple(addresses(table) for table in (self.plant, self.state, steering))
        self._first = True

    @property
    def now(self) -> float:
        return float(self.state.total[NOW])

    def asked(self) -> int | None:
        """Return the next job that must be sent to a pool, None at the end."""
        task = next_choice(*self._rows, self.until, self._first)
        self._first = False
        return None if task == NONE else int(task)

    def send(
        self, task: int, pool: int, devices: int | None = None, clock: int | None = None
    ) -> None:
        """Send a job to a pool. Where the mode is WISHED: on at most ``devices`` devices, at that
        column of clocks (None: the cheapest).
        """
        widest, clocks = int(self.steering.shape[WIDEST]), int(self.steering.shape[CLOCKS])
        if not self._can_go(task, pool, widest):
            raise ParameterError(
                f"{self._named(task)} is sent to pool {pool!r}; it must be one that it reaches "
                "and that runs it"
            )
        if clock is not None and not 0 <= clock < clocks:
            raise ParameterError(
                f"{self._named(task)} is sent with clock {clock!r}; it must be None, or 0 to "
                f"{clocks - 1}"
            )
        send_to(
            *self._rows,
            task,
            pool,
            widest if devices is None else devices,
            NONE if clock is None else clock,
        )

    def hold(self, task: int, until: float) -> None:
        """Decide about the job again at a later time."""
        if not self.now < until < math.inf or until != int(until):
            allowed = f"a whole number of ticks after {self.now:g}"
            raise ParameterError(
                f"{self._named(task)} is held until {until!r}; it must be {allowed}"
            )
        hold_until(self._rows[0], self._rows[1], task, until)

    def _can_go(self, task: int, pool: int, widest: int) -> bool:
        instance, stream = self.instance, self.instance.stream
        if not 0 <= pool < instance.num_pools:
            return False
        runs = (
            self.steering.fit[
                (instance.tasks.kind[task] * instance.num_pools + pool) * (widest + 1) + widest
            ]
            > 0
        )
        return bool(
            runs and (stream is None or math.isfinite(stream.latency_s[stream.ingress[task], pool]))
        )

    def _named(self, task: int) -> str:
        return f"{self.instance.name}: task {self.instance.tasks.name(task)!r}"

    def trace(self) -> Trace:
        return trace_of(self.instance, self.plant, self.state)


def play_sites(
    instance: Instance, steering: Steering, faults: Sequence[Fault] = (), until: float = math.inf
) -> Trace:
    """Run a compiled policy from time 0."""
    plant = plant_of(instance, faults)
    state = new_state(plant)
    run_sites(addresses(plant), addresses(state), addresses(steering), last_moment(instance, until))
    return trace_of(instance, plant, state)


def trace_of(instance: Instance, plant: Plant, state: State) -> Trace:
    if state.tally[TROUBLE]:
        raise NoRoomError(
            f"{instance.name}: faults interrupted more work than there was room to record"
        )
    return Trace(plant, state, schedule_of(instance, plant, state))
