"""Sites as a Markov chain: Poisson arrivals, exponential sizes, one kind of work, ways that take no
time.

State of a pool: how many jobs run in each of its modes (a *configuration*), and how many wait (at
most ``room``); of the plant: one such state per pool, written as one number. A state is *stable*
where no pool has both a free device and a waiting job.

    in a stable state   a job arrives (rate Λ) and asks: start in a mode that fits a pool, or join
                        the queue of a pool without a free device; where every queue is full it is
                        lost
                        a job in mode m ends (rate 1 / (E[units] T_m) each); where jobs wait there,
                        a free device asks
    a device asks       in which mode that fits the next job starts; it asks again while one is
                        free and jobs wait

These are the rules of ``kernel.sites``, but for the lost jobs; what decides sees counts, never
sizes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optbench.errors import ParameterError, UnsupportedError
from optbench.model.instance import Floats, Instance, Ints
from optbench.sim.kernel.state import NONE
from optbench.sim.sites.sites import grid_of

# States of all pools together; a table of values and a programme of several times as many columns
# have to fit.
MOST_STATES = 2_000_000


@dataclass(frozen=True, eq=False)
class Chain:
    """``counts[p][c, m]`` jobs run in mode m in configuration c of pool p; ``speed`` is what a mode
    ends per second.

    ``net_w`` is power above the rest of the same devices, ``rest_w`` that of all devices at rest.
    """

    name: str
    rate: float
    mean_units: float
    room: int
    pool_of: Ints
    devices: Ints
    clock: Ints
    speed: Floats
    net_w: Floats
    rest_w: float
    size: Ints
    counts: tuple[Ints, ...]

    @property
    def num_modes(self) -> int:
        return len(self.speed)

    @property
    def num_pools(self) -> int:
        return len(self.size)

    @cached_property
    def first(self) -> Ints:
        """Row of each pool's first configuration in tables over all of them."""
        return np.concatenate(([0], np.cumsum([len(each) for each in self.counts])))

    @cached_property
    def per_pool(self) -> Ints:
        """States of each pool: configuration · (room + 1) + queue."""
        return np.array([len(each) * (self.room + 1) for each in self.counts], dtype=np.int64)

    @cached_property
    def radix(self) -> Ints:
        """A state is Σ radix_p · (state of pool p)."""
        return np.concatenate((np.cumprod(self.per_pool[::-1])[::-1][1:], [1])).astype(np.int64)

    @property
    def num_states(self) -> int:
        return int(self.per_pool.prod())

    @cached_property
    def free(self) -> Ints:
        """Devices free, by row of configuration."""
        return np.concatenate(
            [n - each @ self.devices for n, each in zip(self.size, self.counts, strict=True)]
        )

    @cached_property
    def after_start(self) -> Ints:
        """``after_start[row, m]``: configuration after a start in mode m, NONE where it does not
        fit.
        """
        return self._after(1)

    @cached_property
    def after_end(self) -> Ints:
        return self._after(-1)

    def _after(self, change: int) -> Ints:
        out = np.full((int(self.first[-1]), self.num_modes), NONE, dtype=np.int64)
        for p, counts in enumerate(self.counts):
            index = {tuple(row): c for c, row in enumerate(counts.tolist())}
            for c, row in enumerate(counts.tolist()):
                for m in np.flatnonzero(self.pool_of == p).tolist():
                    row[m] += change
                    out[self.first[p] + c, m] = index.get(tuple(row), NONE)
                    row[m] -= change
        return out

    @cached_property
    def states(self) -> tuple[Ints, Ints]:
        """``config[p, s]`` and ``queue[p, s]`` of every state s."""
        number = np.arange(self.num_states)
        own = number[None, :] // self.radix[:, None] % self.per_pool[:, None]
        return own // (self.room + 1), own % (self.room + 1)

    @cached_property
    def asks(self) -> Ints:
        """Per state the pool where a free device asks; NONE in stable states, -2 where several
        would (it does not occur).
        """
        config, queue = self.states
        open_at = (self.free[config + self.first[:-1, None]] > 0) & (queue > 0)
        number = open_at.sum(axis=0)
        return np.where(number == 0, NONE, np.where(number == 1, open_at.argmax(axis=0), -2))

    @cached_property
    def in_system(self) -> Floats:
        """Jobs that run or wait, per state."""
        config, queue = self.states
        running = np.concatenate([each.sum(axis=1) for each in self.counts])
        return np.asarray(
            running[config + self.first[:-1, None]].sum(axis=0) + queue.sum(axis=0), dtype=float
        )

    @cached_property
    def config_w(self) -> Floats:
        """Power above rest, by row of configuration."""
        return np.concatenate([each @ self.net_w for each in self.counts])

    @cached_property
    def power_w(self) -> Floats:
        """Power of all devices, per state."""
        config, _ = self.states
        return np.asarray(
            self.rest_w + self.config_w[config + self.first[:-1, None]].sum(axis=0), dtype=float
        )


def chain_of(instance: Instance, rate: float, mean_units: float, room: int) -> Chain:
    """The chain of an instance's pools and modes under Poisson arrivals (``rate`` per second over
    all ingresses).

    The instance's own tasks play no part, but for having one kind.
    """
    for what, value in (("rate", rate), ("mean_units", mean_units)):
        if not 0 < value < math.inf:
            raise ParameterError(f"{what} is {value!r}; it must be positive and finite")
    if room < 0:
        raise ParameterError(f"room is {room}; at least 0 jobs can wait at a pool")
    modes, pools = instance.modes, instance.pools
    grid = grid_of(instance)
    if len(modes.kind_names) != 1:
        raise UnsupportedError(
            f"{instance.name}: {len(modes.kind_names)} kinds of work; a chain of sites has one "
            "(inference=0)"
        )
    if instance.stream is not None and (instance.stream.latency_s != 0).any():
        slow = float(instance.stream.latency_s.max())
        raise UnsupportedError(
            f"{instance.name}: a way takes {slow:g} s; in a chain of sites ways take no time "
            "(wan_latency_ms: 0 in sites=FILE)"
        )
    if instance.stream is not None and len(instance.stream.outages.time):
        raise UnsupportedError(
            f"{instance.name}: it has outages; a chain of sites does not change over time"
        )
    alone = grid.exists[0, :, 0].any(axis=1)
    if not alone.all():
        lacking = pools.names[int(np.argmin(alone))]
        raise UnsupportedError(
            f"{instance.name}: pool {lacking!r} has no mode of one device; in a chain of sites a "
            "free device can always be used"
        )
    place = np.argwhere(grid.mode_at[0] != NONE)
    at = grid.mode_at[0][tuple(place.T)]
    net = (modes.energy_per_unit_j / modes.time_per_unit_s - instance.mode_rest_w)[at]
    taken = [np.where(place[:, 0] == p, place[:, 1] + 1, 0) for p in range(instance.num_pools)]
    counts = tuple(
        _configurations(instance.name, int(n), each)
        for n, each in zip(pools.count, taken, strict=True)
    )
    return Chain(
        instance.name,
        float(rate),
        float(mean_units),
        room,
        place[:, 0],
        place[:, 1] + 1,
        place[:, 2],
        1.0 / (mean_units * modes.time_per_unit_s[at]),
        net,
        float((pools.rest_w * pools.count).sum()),
        np.asarray(pools.count, dtype=np.int64),
        _within(instance.name, counts, room),
    )


def _within(name: str, counts: tuple[Ints, ...], room: int) -> tuple[Ints, ...]:
    states = math.prod(len(each) * (room + 1) for each in counts)
    if states > MOST_STATES:
        raise UnsupportedError(
            f"{name}: {states:,} states; at most {MOST_STATES:,} fit. Fewer GPUs, clocks, sites "
            "or a smaller room make it tiny"
        )
    return counts


def _configurations(name: str, devices: int, taken: Ints) -> Ints:
    """Every way to have jobs run on so many devices; the first is the empty one."""
    usable = [int(m) for m in np.flatnonzero(taken)]

    def fill(left: int, modes: list[int]) -> Iterator[list[int]]:
        if not modes:
            yield []
            return
        for number in range(left // int(taken[modes[0]]) + 1):
            for rest in fill(left - number * int(taken[modes[0]]), modes[1:]):
                yield [number, *rest]

    # Before they are listed: for n GPUs and c clocks their number grows like that of coloured
    # partitions.
    ways = np.zeros(devices + 1)
    ways[0] = 1.0
    for m in usable:
        for n in range(int(taken[m]), devices + 1):
            ways[n] += ways[n - int(taken[m])]
    if ways.sum() > MOST_STATES:
        raise UnsupportedError(
            f"{name}: {ways.sum():.3g} ways to use {devices} GPUs; a chain has at most "
            f"{MOST_STATES:,} states"
        )
    rows = np.array(list(fill(devices, usable)), dtype=np.int64)
    out = np.zeros((len(rows), len(taken)), dtype=np.int64)
    out[:, usable] = rows
    return out
