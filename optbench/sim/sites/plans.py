"""Run planned starts: the Python side of ``kernel.sites.plans``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Floats, Instance, Ints
from optbench.sim.kernel.plant import Fault, plant_of
from optbench.sim.kernel.pointers import addresses
from optbench.sim.kernel.sites.plans import Plans, run_plans
from optbench.sim.kernel.sites.steering import WISHED
from optbench.sim.kernel.state import NONE, last_moment, new_state
from optbench.sim.rules import Trace
from optbench.sim.sites.sites import ModeGrid, grid_of, steering_of, trace_of
from optbench.units import DAY_S, HOUR_S, J_PER_KWH

SLOT_S = 900.0


@dataclass(frozen=True, eq=False)
class BookingTable:
    """What can be booked: slots, tariffs per joule in each (``rate[pool, slot]``), and the cheapest
    modes.
    """

    grid: ModeGrid
    end_s: float
    rate: Floats
    first: Ints
    modes: Ints

    @property
    def instance(self) -> Instance:
        return self.grid.instance

    @property
    def slots(self) -> int:
        return int(self.rate.shape[1])


def expected_end_s(instance: Instance) -> float:
    """Return when the last job is expected, from what is known in advance: 25 hours before the end
    of the tariffs (geo_dc has that many more), else a day after the opening. Its actual time
    would be future information.
    """
    if instance.tariffs is None:
        return DAY_S
    return max(float(instance.tariffs.times[-1]) * instance.tick_s - DAY_S, 0.0)


def board_of(instance: Instance) -> BookingTable:
    """Return slots until a day after the last job is expected."""
    grid, end_s = grid_of(instance), expected_end_s(instance)
    slots = int((end_s + DAY_S) / SLOT_S)
    return BookingTable(grid, end_s, rate_of(instance, slots), *cheapest_modes(grid))


def rate_of(instance: Instance, slots: int) -> Floats:
    """Return the objective's cost of a joule, by pool and slot."""
    level, tariffs = dict(instance.objective.levels[0]), instance.tariffs
    base = np.full(
        (instance.num_pools, slots), level.get("energy_j", 0.0) + level.get("j_per_unit", 0.0)
    )
    if tariffs is None:
        return base
    period = (
        np.searchsorted(
            np.asarray(tariffs.times) * instance.tick_s, np.arange(slots) * SLOT_S, side="right"
        )
        - 1
    )
    per_kwh = (
        level.get("cost_usd", 0.0) * tariffs.price_usd_per_kwh
        + level.get("carbon_g", 0.0) * tariffs.carbon_g_per_kwh
    )
    return np.asarray(base + per_kwh[:, period] / J_PER_KWH, dtype=float)


def cheapest_modes(grid: ModeGrid) -> tuple[Ints, Ints]:
    """Return, by kind and pool, at most three modes of least energy above rest on one device, and
    where each group begins.
    """
    modes, instance = grid.instance.modes, grid.instance
    net = modes.energy_per_unit_j - instance.mode_rest_w * modes.time_per_unit_s
    need = modes.devices * modes.time_per_unit_s
    first: list[int] = []
    kept: list[int] = []
    for kind in range(len(modes.kind_names)):
        for pool in range(instance.num_pools):
            first.append(len(kept))
            rows = np.flatnonzero((modes.kind == kind) & (modes.primary == pool))
            rows = rows[modes.devices[rows] == modes.devices[rows].min(initial=1)]
            rows = rows[
                (rows == rows[np.argmin(net[rows])])
                | (need[rows] < need[rows[np.argmin(net[rows])]])
            ]
            kept += rows[np.argsort(net[rows])][:3].tolist()
        first.append(len(kept))
    return np.array(first, dtype=np.int64), np.array(kept, dtype=np.int64)


def plans_of(
    board: BookingTable, fee: Floats, *, mu: float, kappa: float, patience_h: float, room: float
) -> Plans:
    """``fee[pool, slot]`` is what a device costs per second, ``mu`` a second of a job, ``kappa``
    one after the last arrival.
    """
    instance, modes = board.instance, board.instance.modes
    net_w = modes.energy_per_unit_j / modes.time_per_unit_s - instance.mode_rest_w

    def summed(values: Floats) -> Floats:
        return np.concatenate(
            (np.zeros((len(values), 1)), np.cumsum(values * SLOT_S, axis=1)), axis=1
        ).ravel()

    m = board.modes
    return Plans(
        shape=np.array([board.slots, len(m), round(patience_h * HOUR_S / SLOT_S)], dtype=np.int64),
        weight=np.array([SLOT_S, mu, kappa, board.end_s, room]),
        first=board.first,
        watts=net_w[m],
        devices=modes.devices[m].astype(np.int64),
        unit_s=modes.time_per_unit_s[m].astype(float),
        clock=board.grid.column[m].astype(np.int64),
        tariff=summed(board.rate),
        fee=summed(fee),
        booked=np.zeros(instance.num_pools * board.slots),
        to_pool=np.full(instance.num_tasks, NONE, dtype=np.int64),
        to_option=np.zeros(instance.num_tasks, dtype=np.int64),
    )


def play_plans(
    board: BookingTable, plans: Plans, faults: Sequence[Fault] = (), until: float = math.inf
) -> Trace:
    """Run planned starts from time 0."""
    instance = board.instance
    plant = plant_of(instance, faults)
    state, steering = new_state(plant), steering_of(board.grid, pick_by=WISHED, short_first=True)
    run_plans(
        addresses(plant),
        addresses(state),
        addresses(steering),
        addresses(plans),
        last_moment(instance, until),
    )
    return trace_of(instance, plant, state)
