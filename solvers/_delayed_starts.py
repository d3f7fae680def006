"""A schedule followed with devices that sleep: what starts when devices have to wake first.

Tasks are taken in the order of their starts t'_i in the given schedule, in its modes. Task i asks
for devices at

    r_i = max(t'_i, its release and latency, the ends of its predecessors + the lags of their data)

where ends are those after all delays. A device of pool p that is free since f sleeps from f +
idle_p on; it is there at r_i, at f if it is busy until then, or at r_i + W_p if it sleeps. The task
takes those that are there first, of them the awake and then the last used ones, and starts when all
are there. All that decides is known at t'_i or at r_i: a policy online can do the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optbench.model.features import provisioned
from optbench.model.instance import Floats, Instance
from optbench.model.schedule import Schedule
from optbench.model.sleeping import sleep_of, wake_energy_j, wake_ticks
from optbench.model.timegrid import grid_up


def idle_ticks(instance: Instance, idle_s: float | None) -> Floats:
    """After how many ticks without work a device of each pool sleeps, inf for never.

    Without a number of seconds: when resting awake has cost as much as a sleep of the same length
    with its wake, wake_j / (idle_w − sleep_w) + wake_s, which costs at most twice what is possible
    (the deterministic rule for renting or buying).
    """
    pools = instance.pools
    if idle_s is not None:
        ticks = np.full(instance.num_pools, float(grid_up(idle_s / instance.tick_s)))
    else:
        saved_w = pools.idle_w - pools.sleep_w
        with np.errstate(divide="ignore", invalid="ignore"):
            even = wake_energy_j(pools) / (saved_w * instance.tick_s)
        ticks = grid_up(np.where(saved_w > 0, even, np.inf)) + wake_ticks(instance)
    return np.asarray(np.where(provisioned(pools), ticks, np.inf), dtype=float)


@dataclass
class _Device:
    """One device: since when it is free."""

    free: int = 0


class WakingFollower:
    """The devices of all pools, and the rows of those that have slept."""

    def __init__(self, instance: Instance, idle: Floats) -> None:
        self.instance, self.idle = instance, idle.tolist()
        self.wake: list[int] = wake_ticks(instance).tolist()
        self.devices = [[_Device() for _ in range(n)] for n in instance.pools.count.tolist()]
        self.rows: Counter[tuple[int, int, int]] = Counter()
        modes = instance.modes
        needs = list(zip(modes.req_pool.tolist(), modes.req_count.tolist(), strict=True))
        ptr = modes.req_ptr.tolist()
        self.needs = [needs[ptr[k] : ptr[k + 1]] for k in range(instance.num_modes)]

    def sleeps(self, pool: int, device: _Device, at: int) -> bool:
        return at - device.free > self.idle[pool]

    def there(self, pool: int, device: _Device, asked: int) -> int:
        """When a device can begin to work for a task that asks for it."""
        if self.sleeps(pool, device, asked):
            return asked + self.wake[pool]
        return max(device.free, asked)

    def start(self, mode: int, asked: int, length: int) -> int:
        """Take the devices of a mode; returns the start of its task."""
        taken: list[tuple[int, _Device]] = []
        start = asked
        for pool, count in self.needs[mode]:

            def order(device: _Device, pool: int = pool) -> tuple[int, bool, int]:
                asleep = self.sleeps(pool, device, asked)
                return self.there(pool, device, asked), asleep, -device.free

            chosen = sorted(self.devices[pool], key=order)[:count]
            taken += [(pool, device) for device in chosen]
            start = max([start, *(self.there(pool, device, asked) for device in chosen)])
        for pool, device in taken if length > 0 else ():
            if self.sleeps(pool, device, asked):
                self.add_row(pool, device, start - self.wake[pool])
            device.free = start + length
        return start

    def add_row(self, pool: int, device: _Device, until: int) -> None:
        self.rows[pool, device.free + int(self.idle[pool]), until] += 1

    def rest(self, end: int) -> None:
        """Let devices sleep that are not used again before the end."""
        for pool, devices in enumerate(self.devices):
            for device in devices if self.idle[pool] < math.inf else ():
                if self.sleeps(pool, device, end):
                    self.add_row(pool, device, end)


def followed(instance: Instance, schedule: Schedule, idle: Floats) -> Schedule:
    """The schedule of one segment per task with delayed starts, and the rows of what sleeps."""
    follower, edges = WakingFollower(instance, idle), _edges_by_target(instance)
    n, primary = instance.num_tasks, instance.modes.primary
    rank = np.empty(n, dtype=np.int64)
    rank[instance.order] = np.arange(n)
    row_of = np.empty(n, dtype=np.int64)
    row_of[schedule.task] = np.arange(n)
    start, end = schedule.start.copy(), schedule.end.copy()
    for row in np.lexsort((rank[schedule.task], schedule.start)).tolist():
        task, mode = int(schedule.task[row]), int(schedule.mode[row])
        asked = int(schedule.start[row])
        for source, data_gb in edges[task]:
            before = int(row_of[source])
            ended = int(end[before])
            sender, receiver = primary[schedule.mode[before]], primary[mode]
            asked = max(asked, ended + int(instance.lag(sender, receiver, data_gb, ended)))
        length = int(schedule.end[row] - schedule.start[row])
        start[row] = follower.start(mode, asked, length)
        end[row] = start[row] + length
    follower.rest(int(end.max(initial=0)) if instance.horizon is None else int(instance.horizon))
    return Schedule(schedule.task, schedule.mode, start, end, sleep=sleep_of(follower.rows))


def _edges_by_target(instance: Instance) -> Sequence[Sequence[tuple[int, float]]]:
    """For each task, its predecessors with the data that they send."""
    out: list[list[tuple[int, float]]] = [[] for _ in range(instance.num_tasks)]
    edges = instance.edges
    columns = (edges.source.tolist(), edges.target.tolist(), edges.data_gb.tolist())
    for source, target, data_gb in zip(*columns, strict=True):
        out[target].append((source, data_gb))
    return out
