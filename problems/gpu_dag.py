"""Task graphs on heterogeneous GPUs.

Nodes of one GPU type each, from the shipped profiles; a task is training or inference work on a number of GPUs of one node at one
clock: mode (pool p, n GPUs, clock f) with T(n, f) and E(n, f) of the profile. Faster is dearer, so that time and energy compete.
Minimised is

    energy_j + 50 makespan_s + 500 tardiness_s

with 10⁷ cost_usd in place of energy_j where there are prices, and no tardiness where deadlines are hard or absent.

A training unit takes 0.043 s, an inference unit 0.010 s on one A100 at its top clock; tasks are 10 to 60 s of such work. Times
per unit are rounded to µs, energies per unit to mJ and powers up to mW, so that integers scale them exactly. Volumes, links and
prices are modelled: 0.25 to 6 GB per edge, 10 Gbit/s between nodes at 10 J per GB, prices of 0.12, 0.16 and 0.20 USD per kWh.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from optbench.errors import ParameterError
from optbench.model.builder import Mode, Model, Pool, Task
from optbench.model.instance import Instance, Limits
from optbench.model.windows import windows
from optbench.plugins.protocol import Problem
from optbench.power.profiles import Profile, profile

from ._files import require
from ._shapes import SHAPES, Edges

TYPES = ("A100-PCIe", "L4", "T4", "V100-PCIe", "A10", "H100-SXM")
# Share of tasks by kind, seconds per unit on one A100 at the top clock (for sizes only).
KINDS = {"training": (0.7, 0.043), "inference": (0.3, 0.010)}
MEMORY_GB = (4.0, 10.0, 20.0, 40.0)
# Deadline of a task without successors, over the earliest it can end.
SLACK = {"loose": 3.0, "tight": 1.5}
BANDWIDTH_GBIT_S, LATENCY_MS, TRANSFER_J_PER_GB = 10.0, 0.05, 10.0
# Prices change every two minutes, so that a graph of minutes meets several of them.
PRICES, PRICE_PERIOD_S = (0.12, 0.20, 0.16), 120.0
MAKESPAN_WEIGHT, TARDINESS_WEIGHT, COST_WEIGHT = 50.0, 500.0, 1e7

Shape = Literal["layered", "fork_join", "chains", "random", "independent"]


@dataclass(frozen=True)
class _Node:
    """GPUs of one type at one place."""

    pool: Pool
    shape: Profile
    count: int


@dataclass(frozen=True)
class GpuDag(Problem):
    """Task graph on heterogeneous GPUs with clocks: minimise energy, makespan and tardiness.

    ``types`` is the number of GPU types (never more than GPUs), ``gang`` the most GPUs a task may use at once, ``power_cap`` a
    share of the power with every GPU at work.
    """

    tasks: int = 20
    gpus: int = 6
    types: int = 3
    clocks: int = 5
    gang: int = 2
    shape: Shape = "layered"
    transfers: bool = True
    deadlines: Literal["none", "loose", "tight"] = "loose"
    hard: bool = False
    power_cap: float | None = None
    price: bool = False
    tick_s: float = 1.0

    def __post_init__(self) -> None:
        name = "gpu_dag"
        for field in ("tasks", "gpus", "gang"):
            require(getattr(self, field) >= 1, name, field, getattr(self, field), "at least 1")
        require(1 <= self.types <= len(TYPES), name, "types", self.types, f"from 1 to {len(TYPES)} ({', '.join(TYPES)})")
        require(1 <= self.clocks <= 8, name, "clocks", self.clocks, "from 1 to 8, the levels of the profiles")
        require(self.shape in SHAPES, name, "shape", self.shape, f"one of {', '.join(SHAPES)}")
        require(self.deadlines in ("none", *SLACK), name, "deadlines", self.deadlines, f"one of none, {', '.join(SLACK)}")
        share = self.power_cap is None or 0 < self.power_cap <= 1
        require(share, name, "power_cap", self.power_cap, "none, or above 0 and at most 1")
        require(math.isfinite(self.tick_s) and self.tick_s > 0, name, "tick_s", self.tick_s, "a positive number of seconds")
        divides = not self.price or (PRICE_PERIOD_S / self.tick_s).is_integer()
        require(divides, name, "tick_s", self.tick_s, f"a divisor of {PRICE_PERIOD_S:g} s, when prices change")

    def instance(self, seed: int = 0) -> Instance:
        rng = np.random.default_rng(seed)
        m = Model(f"gpu_dag-{self.tasks}x{self.gpus}-{seed}", tick_s=self.tick_s)
        nodes = self._nodes(m)
        edges = SHAPES[self.shape](rng, self.tasks)
        self._tasks(m, rng, nodes, edges)
        if self.price:
            m.tariff(price_usd_per_kwh=np.resize(PRICES, 3 + self.tasks // 4).tolist(), every_s=PRICE_PERIOD_S)
        weights = {"cost_usd": COST_WEIGHT} if self.price else {"energy_j": 1.0}
        weights["makespan_s"] = MAKESPAN_WEIGHT
        if self.deadlines != "none" and not self.hard:
            weights["tardiness_s"] = TARDINESS_WEIGHT
        m.minimize(**weights)
        return self._capped(self._due(replace(m.build(), problem="gpu_dag"), edges))

    def _nodes(self, m: Model) -> list[_Node]:
        """One node per type, the GPUs dealt out in turn; nodes are joined pairwise."""
        types = min(self.types, self.gpus)
        nodes: list[_Node] = []
        for q, name in enumerate(TYPES[:types]):
            count, shape = (self.gpus - q + types - 1) // types, profile(name)
            pool = m.pool(name.lower(), count, profile=shape, at=m.place(f"node-{name.lower()}"))
            for other in nodes:
                m.link(
                    other.pool, pool, bandwidth_gbit_s=BANDWIDTH_GBIT_S, latency_ms=LATENCY_MS, energy_j_per_gb=TRANSFER_J_PER_GB
                )
            nodes.append(_Node(pool, shape, count))
        return nodes

    def _tasks(self, m: Model, rng: np.random.Generator, nodes: list[_Node], edges: Edges) -> None:
        modes = {kind: self._modes(m, kind, nodes) for kind in KINDS}
        room = max(node.shape.memory_gb for node in nodes)
        tasks: list[Task] = []
        for _ in range(self.tasks):
            kind = str(rng.choice(list(KINDS), p=[share for share, _ in KINDS.values()]))
            units = round(float(rng.uniform(10.0, 60.0)) / KINDS[kind][1])
            memory = min(room, float(rng.choice(MEMORY_GB, p=[0.3, 0.3, 0.25, 0.15])))
            tasks.append(m.task(f"{kind[:5]}{len(tasks)}", units=units, modes=modes[kind], memory_gb=memory))
        for i, j in edges:
            data = float(rng.integers(1, 25)) / 4 if self.transfers else 0.0
            m.precede(tasks[i], tasks[j], data)

    def _modes(self, m: Model, kind: str, nodes: list[_Node]) -> list[Mode]:
        """Pool x GPU count (powers of two up to the gang) x clock."""
        rows = []
        for node in nodes:
            shape = node.shape
            levels = np.unique(np.rint(np.linspace(len(shape.clocks) - 1, 0, self.clocks)).astype(int)).tolist()
            for n in (2**k for k in range(min(self.gang, node.count).bit_length())):
                for clock in (shape.clocks[level] for level in levels):
                    time_s = round(shape.time_per_unit_s(kind, n, clock), 6)
                    energy_j = round(shape.energy_per_unit_j(kind, n, clock), 3)
                    power_w = math.ceil(shape.power_w(kind, n, clock) * 1e3) / 1e3
                    rows.append(m.mode({node.pool: n}, time_s, energy_j, power_w=power_w, clock=clock))
        return rows

    def _due(self, instance: Instance, edges: Edges) -> Instance:
        """Deadlines of the tasks without successors: a multiple of the earliest they can end."""
        if self.deadlines == "none":
            return instance
        bounds = windows(instance)
        last = np.ones(self.tasks, dtype=bool)
        last[[i for i, _ in edges]] = False
        earliest = bounds.head + bounds.shortest
        deadline = np.where(last, np.ceil(SLACK[self.deadlines] * earliest), np.inf)
        return replace(instance, tasks=replace(instance.tasks, deadline=deadline, deadline_hard=last & self.hard))

    def _capped(self, instance: Instance) -> Instance:
        """The power cap, refused where some task could never run under it."""
        if self.power_cap is None:
            return instance
        pools, modes, pairs = instance.pools, instance.modes, instance.pairs
        rest_w = float((pools.rest_w * pools.count).sum())
        highest = np.zeros(len(pools.names))
        np.maximum.at(highest, modes.primary, modes.power_w / modes.devices)
        full_w = float((highest * pools.count).sum())
        more_w = modes.power_w - instance.mode_rest_w
        least_w = rest_w + max(float(more_w[pairs.mode[pairs.ptr[i] : pairs.ptr[i + 1]]].min()) for i in range(self.tasks))
        cap_w = float(math.floor(self.power_cap * full_w))
        if cap_w < least_w:
            share = math.ceil(1e3 * (least_w + 1) / full_w) / 1e3
            need = f"some task needs at least {share:g} of {full_w:.0f} W"
            raise ParameterError(f"problem 'gpu_dag': power_cap is {self.power_cap!r}, but {need}")
        return replace(instance, limits=Limits(np.zeros(1, dtype=np.int64), np.array([cap_w])))
