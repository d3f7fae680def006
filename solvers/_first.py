"""A first schedule by serial generation: tasks by remaining critical path, each as early as it fits (ticks only)."""

from __future__ import annotations

import math
import time

import numpy as np

from optbench.model.caps import net_power_w, resting_power_w
from optbench.model.instance import Floats, Instance
from optbench.model.metrics import slack
from optbench.model.schedule import Schedule
from optbench.model.verify import verify
from optbench.model.windows import time_horizon, windows

# A profile has one number per tick and pool: none is made past this many ticks, nor past this many pairs of task and mode.
MAX_TICKS = 200_000
MAX_PAIRS = 20_000
# Starts looked at first when a task is placed.
FIRST_STARTS = 64


def first_schedules(instance: Instance, seconds: float = math.inf) -> list[Schedule]:
    """Up to two: every task in the mode that ends first, and in the mode of least energy; what is not ready in time is left.

    Limits on metrics are not looked at while they are made; one that breaks any is not returned.
    """
    until = time.perf_counter() + seconds
    end = time_horizon(instance)
    if instance.domain != "ticks" or end > MAX_TICKS or len(instance.pairs.task) > MAX_PAIRS:
        return []
    found = [_serial(instance, int(end), thrifty, until) for thrifty in (False, True)]
    return [schedule for schedule in found if schedule is not None and verify(instance, schedule).feasible]


class _Room:
    """What is free at each tick: devices of each pool, then watts below each cap."""

    def __init__(self, instance: Instance, end: int) -> None:
        modes, pools, limits = instance.modes, instance.pools, instance.limits
        places = limits.cap_place.tolist()
        rest_w = [resting_power_w(instance, place) for place in places]
        caps = [cap + slack(cap) - rest for cap, rest in zip(limits.cap_w.tolist(), rest_w, strict=True)]
        self.free = np.repeat(np.concatenate((pools.count.astype(float), caps))[:, None], end, axis=1)
        self.use = np.zeros((instance.num_modes, len(self.free)))
        mode = np.repeat(np.arange(instance.num_modes), np.diff(modes.req_ptr))
        self.use[mode, modes.req_pool] = modes.req_count
        for row, place in enumerate(places, instance.num_pools):
            self.use[:, row] = net_power_w(instance, place)

    def earliest(self, mode: int, length: int, begin: int) -> int | None:
        """First start from ``begin`` on at which the mode fits for its whole length."""
        rows = np.flatnonzero(self.use[mode] > 0)
        last = self.free.shape[1] - length
        if length == 0 or len(rows) == 0:
            return begin if begin <= last else None
        starts = FIRST_STARTS
        while begin <= last:  # most fit soon: a few starts are tried, then ever more
            starts = min(2 * starts, last - begin + 1)
            blocked = (self.free[rows, begin : begin + starts + length - 1] < self.use[mode, rows, None]).any(axis=0)
            busy = np.concatenate(([0], np.cumsum(blocked)))
            fits = np.flatnonzero(busy[length:] == busy[:-length])
            if len(fits):
                return begin + int(fits[0])
            begin += starts
        return None

    def take(self, mode: int, start: int, length: int) -> None:
        self.free[:, start : start + length] -= self.use[mode][:, None]


def _serial(instance: Instance, end: int, thrifty: bool, until: float) -> Schedule | None:
    pairs, modes, edges = instance.pairs, instance.modes, instance.edges
    room, tail, n = _Room(instance, end), _priority(instance), instance.num_tasks
    mode, start, finish = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64), np.zeros(n)
    before: list[list[int]] = [[] for _ in range(n)]
    after: list[list[int]] = [[] for _ in range(n)]
    for e, (i, j) in enumerate(zip(edges.source.tolist(), edges.target.tolist(), strict=True)):
        before[j].append(e)
        after[i].append(j)
    waiting = [len(edges_in) for edges_in in before]
    ready = {i for i in range(n) if not waiting[i]}
    while ready:
        if time.perf_counter() > until:
            return None
        i = max(ready, key=lambda task: (tail[task], -task))
        ready.remove(i)
        options = []
        for q in range(int(pairs.ptr[i]), int(pairs.ptr[i + 1])):
            k, length = int(pairs.mode[q]), int(pairs.duration[q])
            arrival = max([float(instance.tasks.release[i])] + [
                finish[a] + float(instance.lag(modes.primary[mode[a]], modes.primary[k], edges.data_gb[e]))
                for e in before[i] for a in (int(edges.source[e]),)])
            s = room.earliest(k, length, int(arrival)) if np.isfinite(arrival) else None
            if s is not None:
                cost = (float(pairs.energy_j[q]), s + length) if thrifty else (s + length, float(pairs.energy_j[q]))
                options.append((cost, k, s, length))
        if not options:
            return None
        _, mode[i], start[i], length = min(options)
        finish[i] = start[i] + length
        room.take(int(mode[i]), int(start[i]), length)
        for j in after[i]:
            waiting[j] -= 1
            if not waiting[j]:
                ready.add(j)
    return Schedule.of(instance, mode, start)


def _priority(instance: Instance) -> Floats:
    known = windows(instance)
    return known.shortest + known.tail
