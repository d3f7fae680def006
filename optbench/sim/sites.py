"""Running site policies: the Python side of ``kernel.sites``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from optbench.errors import UnsupportedError
from optbench.model.instance import Floats, Instance, Ints
from optbench.sim.kernel.plant import Fault, Plant, plant_of
from optbench.sim.kernel.pointers import addresses
from optbench.sim.kernel.sites import ASKED, GIVEN, TABLE, Steering, run_sites
from optbench.sim.kernel.state import NONE, TROUBLE, State, last_moment, new_state, schedule_of
from optbench.sim.rules import Trace, TroubleError


@dataclass(frozen=True, eq=False)
class Grid:
    """Modes of an instance by (kind, pool, devices, clock): ``mode_at[k, p, n - 1, c]``, NONE where there is none.

    ``clocks[k, p, c]`` is the clock of column c there, NaN beyond the last.
    """

    instance: Instance
    mode_at: Ints
    clocks: Floats

    @property
    def widest(self) -> int:
        return int(self.mode_at.shape[2])

    @cached_property
    def exists(self) -> Any:
        return self.mode_at != NONE

    def of_mode(self, values: Any, empty: float) -> Floats:
        """One value per mode as one value per (kind, pool, devices, clock)."""
        return np.where(self.exists, np.asarray(values, dtype=float)[np.maximum(self.mode_at, 0)], empty)

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
        """``pick[k, p, free]``: the mode of least cost of at most so many devices; ties in order of devices, then of clocks."""
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
        """``best_clock[k, p, n]``: the clock of least energy per unit on n devices (row 0 is empty)."""
        best = self.energy_j.argmin(axis=3)
        return np.concatenate((np.zeros((*best.shape[:2], 1), dtype=np.int64), best), axis=2)


def why_no_grid(instance: Instance) -> str | None:
    """Why site policies cannot run an instance; None where they can."""
    if len(instance.edges.source):
        return "tasks wait for each other; site policies take independent jobs as they arrive"
    if (np.diff(instance.modes.req_ptr) != 1).any():
        return "modes take devices of several pools, or of none; site policies place a job in one pool"
    if len(instance.limits.cap_w):
        return "power caps are not kept by this policy; cap_uniform and cap_greedy keep one"
    return None


def grid_of(instance: Instance) -> Grid:
    """Modes by kind, pool, devices and clock; where two modes share a place, the first counts."""
    reason = why_no_grid(instance)
    if reason is not None:
        raise UnsupportedError(f"{instance.name}: {reason}")
    modes, kinds, pools = instance.modes, len(instance.modes.kind_names), instance.num_pools
    clock = np.where(np.isnan(modes.clock), 1.0, modes.clock)
    levels: dict[tuple[int, int], list[float]] = {}
    for kind, pool, value in zip(modes.kind.tolist(), modes.primary.tolist(), clock.tolist(), strict=True):
        levels.setdefault((kind, pool), []).append(value)
    ordered = {key: sorted(set(values)) for key, values in levels.items()}
    widest, most = int(modes.devices.max(initial=1)), max(len(values) for values in ordered.values())
    clocks = np.full((kinds, pools, most), np.nan)
    for (kind, pool), values in ordered.items():
        clocks[kind, pool, : len(values)] = values
    mode_at = np.full((kinds, pools, widest, most), NONE, dtype=np.int64)
    for mode in range(instance.num_modes - 1, -1, -1):
        kind, pool = int(modes.kind[mode]), int(modes.primary[mode])
        mode_at[kind, pool, int(modes.devices[mode]) - 1, ordered[kind, pool].index(float(clock[mode]))] = mode
    return Grid(instance, mode_at, clocks)


def steering_of(
    grid: Grid,
    *,
    pick_by: int = TABLE,
    pick: Ints | None = None,
    pools: Ints | None = None,
    low_clock: Ints | None = None,
    class_of: Sequence[int] | None = None,
) -> Steering:
    """Numbers for the kernel; with ``pools`` each task goes to its pool, without it somebody is asked."""
    instance = grid.instance
    n, p, kinds = instance.num_tasks, instance.num_pools, len(instance.modes.kind_names)
    classes = np.zeros(kinds, dtype=np.int64) if class_of is None else np.asarray(class_of, dtype=np.int64)
    num_classes = int(classes.max(initial=0)) + 1
    release = np.ascontiguousarray(instance.tasks.release, dtype=np.float64)
    reach = release if pools is None else release + np.asarray(instance.access(np.arange(n), pools), dtype=float)
    # Arrivals stand nearly in order, which a stable sort uses.
    order = np.argsort(reach, kind="stable")
    clocks = grid.mode_at.shape[3]
    shape = np.array([grid.widest, clocks, num_classes, pick_by, ASKED if pools is None else GIVEN, 0], dtype=np.int64)
    top = (~np.isnan(grid.clocks)).sum(axis=2).max(axis=0) - 1

    def flat(values: Any) -> Ints:
        return np.ascontiguousarray(values, dtype=np.int64).ravel()

    return Steering(
        shape=shape, mode_at=flat(grid.mode_at), class_of=classes, order=order.astype(np.int64), reach=reach,
        pool_of=np.full(n, NONE, dtype=np.int64) if pools is None else flat(pools).copy(),
        wish_devices=np.full(n, grid.widest, dtype=np.int64), wish_clock=np.full(n, NONE, dtype=np.int64),
        pick=flat(grid.pick_cheapest(grid.energy_j) if pick is None else pick), best_clock=flat(grid.best_clock),
        clock_of=flat(top), low_clock=flat(np.zeros((kinds, p)) if low_clock is None else low_clock),
        arm_count=np.zeros(kinds * p * clocks), arm_mean=np.zeros(kinds * p * clocks),
        head=np.zeros(p * num_classes, dtype=np.int64), tail=np.zeros(p * num_classes, dtype=np.int64),
        behind=np.zeros(n, dtype=np.int64), waiting=np.zeros(p, dtype=np.int64), waiting_units=np.zeros(p),
    )  # fmt: skip


def play_sites(instance: Instance, steering: Steering, faults: Sequence[Fault] = (), until: float = math.inf) -> Trace:
    """Run a compiled policy from time 0."""
    plant = plant_of(instance, faults)
    state = new_state(plant)
    run_sites(addresses(plant), addresses(state), addresses(steering), last_moment(instance, until))
    return trace_of(instance, plant, state)


def trace_of(instance: Instance, plant: Plant, state: State) -> Trace:
    if state.tally[TROUBLE]:
        raise TroubleError(f"{instance.name}: faults interrupted more work than there was room to record")
    return Trace(plant, state, schedule_of(instance, plant, state))
