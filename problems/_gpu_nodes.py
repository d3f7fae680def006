"""Hardware of gpu_dag: nodes with GPUs of one type and CPU sockets, and the modes on them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from optbench.errors import ParameterError
from optbench.model.builder import Mode, Model, Place, Pool
from optbench.power.profiles import Profile, profile

# Between nodes 10 Gbit/s Ethernet; inside one PCI Express 4.0 x16 (31.5 GB/s), at a tenth of the
# energy (modelled).
BETWEEN_GBIT_S, BETWEEN_MS, BETWEEN_J_PER_GB = 10.0, 0.05, 10.0
INSIDE_GBIT_S, INSIDE_MS, INSIDE_J_PER_GB = 252.0, 0.01, 1.0
# Each choice of devices is a mode. Solvers cannot use a kind of work with more modes than this.
MAX_MODES = 50_000


@dataclass(frozen=True)
class Group:
    """Equal devices of one node, in one pool together or in a pool each."""

    pools: tuple[Pool, ...]
    each: int
    shape: Profile
    is_cpu: bool = False

    @property
    def count(self) -> int:
        return len(self.pools) * self.each

    def choices(self, devices: int) -> Iterator[Mapping[Pool, int]]:
        """All selections of so many devices."""
        if len(self.pools) == 1:
            yield {self.pools[0]: devices}
        else:
            yield from (dict.fromkeys(chosen, 1) for chosen in combinations(self.pools, devices))


@dataclass(frozen=True)
class Cluster:
    """Numbers and types of devices, and the number of nodes."""

    types: tuple[Profile, ...]
    gpus: int
    cpus: int
    nodes: int
    pooled: bool

    def declare(self, m: Model, *, first_only: bool = False) -> list[Group]:
        """Declare the nodes by type, with GPUs and sockets distributed in turn and all nodes
        linked.

        ``first_only`` declares only the first node of each type. It has the most GPUs, and a
        socket if any node of that type has one.
        """
        types = self.types[: self.gpus]
        shares = zip(types, _dealt(self.gpus, len(types)), strict=True)
        counts = [
            (shape, count) for shape, gpus in shares for count in _dealt(gpus, self.nodes) if count
        ]
        sockets = _dealt(self.cpus, len(counts))
        groups: list[Group] = []
        before: list[Pool] = []
        for i, (shape, count) in enumerate(counts):
            name = shape.name.lower()
            twins = [j for j, (other, _) in enumerate(counts) if other is shape]
            if first_only and i > twins[0]:
                continue
            label = name if len(twins) == 1 else f"{name}-{i - twins[0]}"
            node = m.place(f"node-{label}")
            here = [self._group(m, label, count, shape, node)]
            if sockets[i]:
                here.append(
                    self._group(m, f"cpu-{label}", sockets[i], profile("CPU"), node, is_cpu=True)
                )
            mine = [pool for group in here for pool in group.pools]
            if before:
                m.link(
                    before,
                    mine,
                    bandwidth_gbit_s=BETWEEN_GBIT_S,
                    latency_ms=BETWEEN_MS,
                    energy_j_per_gb=BETWEEN_J_PER_GB,
                )
            if len(mine) > 1:
                m.link(
                    mine,
                    mine,
                    bandwidth_gbit_s=INSIDE_GBIT_S,
                    latency_ms=INSIDE_MS,
                    energy_j_per_gb=INSIDE_J_PER_GB,
                )
            groups += here
            before += mine
        return groups

    def _group(
        self, m: Model, label: str, count: int, shape: Profile, node: Place, *, is_cpu: bool = False
    ) -> Group:
        if self.pooled:
            return Group((m.pool(label, count, profile=shape, at=node),), count, shape, is_cpu)
        names = [label] if count == 1 else [f"{label}.{k}" for k in range(count)]
        return Group(
            tuple(m.pool(name, profile=shape, at=node) for name in names), 1, shape, is_cpu
        )


def modes_of(
    m: Model,
    groups: list[Group],
    kind: str,
    gang: int,
    num_clocks: int,
    size_gflop: float | None = None,
) -> list[Mode]:
    """Modes by number of devices and clock: 1, 2, 4, ... GPUs of one node, at most ``gang``.

    Times are rounded to µs, energies to mJ, and powers up to mW."""
    counts = {
        i: [2**k for k in range(min(gang, group.count).bit_length())]
        for i, group in enumerate(groups)
    }
    total = num_clocks * sum(
        math.comb(len(group.pools), n) if group.each == 1 else 1
        for i, group in enumerate(groups)
        for n in counts[i]
    )
    if total > MAX_MODES:
        listed = (
            f"every choice of up to {gang} devices of a node, at {num_clocks} clocks, makes "
            f"{total:,} modes"
        )
        raise ParameterError(
            f"problem 'gpu_dag': {listed}, more than {MAX_MODES:,}; use pooled=yes, gang=1, or "
            "fewer clocks or devices"
        )
    rows = []
    for i, group in enumerate(groups):
        shape = group.shape
        levels = np.unique(
            np.rint(np.linspace(len(shape.clocks) - 1, 0, num_clocks)).astype(int)
        ).tolist()
        for n in counts[i]:
            points = []
            for clock in (shape.clocks[level] for level in levels):
                time_s = round(shape.time_per_unit_s(kind, n, clock, size_gflop), 6)
                energy_j = round(shape.energy_per_unit_j(kind, n, clock, size_gflop), 3)
                power_w = math.ceil(shape.power_w(kind, n, clock, size_gflop) * 1e3) / 1e3
                points.append((time_s, energy_j, power_w, clock))
            for devices in group.choices(n):
                rows += [
                    m.mode(devices, time_s, energy_j, power_w=power_w, clock=clock)
                    for time_s, energy_j, power_w, clock in points
                ]
    return rows


def _dealt(total: int, hands: int) -> list[int]:
    """Distribute a number of items over groups in turn."""
    return [(total - q + hands - 1) // hands for q in range(hands)]
