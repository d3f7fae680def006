"""Random small instances with sites, the ways of choosing modes restated in plain Python, and the
comparison of a trace with the plain simulation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import optbench as ob
from optbench.model.instance import Instance, Ints
from optbench.model.streams import Outages, with_stream
from optbench.model.verify import verify
from optbench.sim.kernel.plant import Fault
from optbench.sim.kernel.state import BUSY_J, NONE, partial_schedule
from optbench.sim.kernel.tie_ranks import tie_ranks
from optbench.sim.rules import Trace
from tests.reference.site_simulation import Segment, Sites

HORIZON = 12.0
seeds = st.integers(0, 1_000_000)
# Modes take one to four ticks a unit, everything else happens at even ones: times coincide.
TICK_S, STEP = 0.25, 2


def small_instance(seed: int, *, drained: bool | None = None, clean: bool = False) -> Instance:
    """Up to 20 jobs of up to two kinds on up to four pools; modes leave gaps in the grid, but for
    one of one device.
    """
    rng = np.random.default_rng([seed, 5])
    drained = bool(rng.random() < 0.3) if drained is None else drained
    fails = not clean and rng.random() < 0.5
    m = ob.Model(
        f"sites-{seed}",
        tick_s=TICK_S,
        preemptive=bool(fails),
        horizon_s=None if drained else HORIZON,
    )
    counts = rng.integers(1, 6, rng.integers(1, 5)).tolist()
    pools = [
        m.pool(f"p{k}", count=count, idle_w=float(rng.integers(0, 3)))
        for k, count in enumerate(counts)
    ]
    n = int(rng.integers(1, 21))
    of_kind = rng.integers(0, rng.integers(1, 3), n)
    time = np.sort(rng.integers(0, 16, n) * STEP) * TICK_S
    rows = []
    for k in range(int(of_kind.max()) + 1):
        modes = [
            mode
            for pool, count in zip(pools, counts, strict=True)
            for mode in random_modes(m, pool, count, rng, clean)
        ]
        rows.append(np.flatnonzero(of_kind == k))
        kind = m.kind(modes=modes)
        if len(rows[-1]):
            m.tasks(rng.integers(1, 9, len(rows[-1])) * 1.0, kind=kind, release_s=time[rows[-1]])
    m.minimize(energy_j=1.0)
    built, ways = m.build(), int(rng.integers(1, 4))
    latency = rng.integers(0, 4, (ways, len(pools))) * STEP * TICK_S
    return with_stream(
        built,
        ingress=rng.integers(0, ways, n),
        latency_s=latency,
        opens=None if drained else 0,
        outages=random_outages(built, rng) if fails else None,
        ingress_names=tuple(f"g{k}" for k in range(ways)),
    )


def random_modes(
    m: ob.Model, pool: Any, count: int, rng: np.random.Generator, clean: bool
) -> list[Any]:
    """On one to three devices at up to three clocks, some of them missing; the number of clocks
    differs from pool to pool.
    """
    clocks = np.sort(
        rng.choice([0.25, 0.5, 0.75, 1.0], int(rng.integers(1, 4)), replace=False)
    ).tolist()
    least = 1 if clean or rng.random() < 0.7 else 2
    found = []
    for devices in range(1, min(3, count) + 1):
        for clock in clocks:
            if devices == least or clean or (devices > least and rng.random() < 0.6):
                time_s = float(rng.choice([0.25, 0.5, 1.0]))
                found.append(
                    m.mode({pool: devices}, time_s, energy_j=float(rng.integers(1, 9)), clock=clock)
                )
    return found or [m.mode(pool, 0.5, energy_j=1.0, clock=clocks[0])]


def random_outages(instance: Instance, rng: np.random.Generator) -> Outages:
    rows: list[tuple[int, int, int]] = []
    for pool in range(instance.num_pools):
        if rng.random() < 0.6:
            devices, begin = (
                int(rng.integers(1, instance.pools.count[pool] + 1)),
                int(rng.integers(0, 12)) * STEP,
            )
            rows += [
                (begin, pool, devices),
                (begin + int(rng.integers(1, 8)) * STEP, pool, -devices),
            ]
    rows.sort(key=lambda row: row[0])
    time, pool_of, gone = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return Outages(time, pool_of, gone, np.zeros(len(rows), dtype=bool))


class Modes:
    """What there is, looked up one by one: the clocks of (kind, pool), the mode on so many devices
    at a clock.
    """

    def __init__(self, instance: Instance) -> None:
        modes = instance.modes
        self.at: dict[tuple[int, int, int, float], int] = {}
        for k in range(instance.num_modes):
            clock = 1.0 if math.isnan(modes.clock[k]) else float(modes.clock[k])
            self.at.setdefault(
                (int(modes.kind[k]), int(modes.primary[k]), int(modes.devices[k]), clock), k
            )

    def clocks(self, kind: int, pool: int) -> list[float]:
        return sorted({clock for q, p, _, clock in self.at if (q, p) == (kind, pool)})

    def most(self, kind: int, pool: int, free: int) -> int:
        """The most devices with a mode, at most so many; 0 where there is none."""
        return max((n for q, p, n, _ in self.at if (q, p) == (kind, pool) and n <= free), default=0)

    def mode(self, kind: int, pool: int, devices: int, clock: float) -> int:
        """At this clock, else the next lower one, else the next higher one that there is on so many
        devices.
        """
        there = sorted(c for q, p, n, c in self.at if (q, p, n) == (kind, pool, devices))
        lower = [c for c in there if c <= clock]
        return self.at[kind, pool, devices, lower[-1] if lower else there[0]]


def table_policy(
    instance: Instance, rng: np.random.Generator
) -> tuple[Ints, Callable[[Sites, int, int, int], int | None]]:
    """Any mode that fits the free devices, or none; on all of a pool there is always one."""
    kinds, modes = len(instance.modes.kind_names), instance.modes
    widest = int(modes.devices.max())
    pick = np.full((kinds, instance.num_pools, widest + 1), NONE, dtype=np.int64)
    for kind in range(kinds):
        for pool in range(instance.num_pools):
            for free in range(1, widest + 1):
                here = np.flatnonzero(
                    (modes.kind == kind) & (modes.primary == pool) & (modes.devices <= free)
                )
                if len(here) and (free == widest or rng.random() < 0.8):
                    pick[kind, pool, free] = rng.choice(here)

    def reference(sites: Sites, task: int, pool: int, free: int) -> int | None:
        mode = int(pick[instance.tasks.kind[task], pool, min(free, widest)])
        return None if mode == NONE else mode

    return pick, reference


def sticky(instance: Instance, low: Ints) -> Callable[[Sites, int, int, int], int | None]:
    modes, widest = Modes(instance), int(instance.modes.devices.max())
    kinds = range(len(instance.modes.kind_names))
    top = [
        max(len(modes.clocks(kind, pool)) for kind in kinds) - 1
        for pool in range(instance.num_pools)
    ]
    column = dict(enumerate(top))

    def pick(sites: Sites, task: int, pool: int, free: int) -> int | None:
        kind = int(instance.tasks.kind[task])
        devices = modes.most(kind, pool, min(free, widest))
        if devices == 0:
            return None
        column[pool] = (
            int(low[kind, pool]) if free >= 2 else max(column[pool], int(low[kind, pool]))
        )
        clocks = modes.clocks(kind, pool)
        return modes.mode(kind, pool, devices, clocks[min(column[pool], len(clocks) - 1)])

    return pick


class Bandit:
    """UCB1 per kind and pool, with one count of selections."""

    def __init__(self, instance: Instance) -> None:
        self.instance, self.modes = instance, Modes(instance)
        self.widest, self.selections = int(instance.modes.devices.max()), 0
        self.paid: dict[tuple[int, int, float], list[float]] = {}

    def pick(self, sites: Sites, task: int, pool: int, free: int) -> int | None:
        kind = int(self.instance.tasks.kind[task])
        devices = self.modes.most(kind, pool, min(free, self.widest))
        if devices == 0:
            return None
        self.selections += 1
        clocks = self.modes.clocks(kind, pool)
        known = [self.paid.get((kind, pool, clock), []) for clock in clocks]
        if [] in known:
            return self.modes.mode(kind, pool, devices, clocks[known.index([])])
        value = [
            sum(paid) / len(paid) + math.sqrt(2 * math.log(self.selections) / len(paid))
            for paid in known
        ]
        best = next(k for k, each in enumerate(value) if each >= max(value) - 1e-9)
        return self.modes.mode(kind, pool, devices, clocks[best])

    def learn(self, mode: int) -> None:
        modes = self.instance.modes
        arm = int(modes.kind[mode]), int(modes.primary[mode]), float(modes.clock[mode])
        self.paid.setdefault(arm, []).append(-float(modes.energy_per_unit_j[mode]))


def reference_of(
    instance: Instance,
    pick: Callable[[Sites, int, int, int], int | None],
    learn: Callable[[int], None] | None = None,
    faults: list[Fault] | None = None,
    classes: list[int] | None = None,
) -> Sites:
    outages = instance.stream.outages if instance.stream is not None else Outages()
    broken = list(
        zip(outages.time.tolist(), outages.pool.tolist(), outages.devices.tolist(), strict=True)
    )
    broken += [(int(fault.time), fault.pool, fault.devices) for fault in faults or []]
    until = (
        float(instance.horizon) if instance.is_open and instance.horizon is not None else math.inf
    )
    kinds = classes or [0] * len(instance.modes.kind_names)
    return Sites(
        instance,
        pick,
        learn or (lambda mode: None),
        tie_ranks(instance).tolist(),
        kinds,
        sorted(broken),
        until,
    )


def same(instance: Instance, trace: Trace, sites: Sites) -> None:
    """The same segments to the last bit, feasible where the verifier may ask; energy drawn as the
    verifier counts it.
    """
    made: list[Segment] = sites.cut() if instance.is_open else sites.segments
    schedule = (
        trace.schedule if instance.is_open else partial_schedule(instance, trace.plant, trace.state)
    )
    assert schedule is not None
    assert sorted(
        map(
            tuple, np.array([schedule.task, schedule.mode, schedule.start, schedule.end]).T.tolist()
        )
    ) == sorted(made)
    if trace.schedule is not None:
        verdict = verify(instance, schedule)
        assert verdict.feasible or not made, verdict.violations
        if not instance.is_open:
            assert trace.state.total[BUSY_J] == pytest.approx(
                verdict.metrics["busy_energy_j"], rel=1e-12
            )


def random_pools(instance: Instance, rng: np.random.Generator) -> Ints:
    """A pool of each job that it can run on."""
    serves = np.zeros((len(instance.modes.kind_names), instance.num_pools), dtype=bool)
    serves[instance.modes.kind, instance.modes.primary] = True
    return np.array(
        [rng.choice(np.flatnonzero(row)) for row in serves[instance.tasks.kind]], dtype=np.int64
    )
