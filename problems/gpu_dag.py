"""Task graphs on heterogeneous GPUs, with CPUs beside them.

Each node has GPUs of one type, from the shipped profiles. A task is training or inference work on
a number of GPUs of one node at one clock: mode (pool p, n GPUs, clock f) with T(n, f) and E(n, f)
of the profile. Faster modes need more energy, so that time and energy compete. The objective is

    energy_j + 50 makespan_s + 500 tardiness_s

where series of prices or carbon are given, 10⁷ cost_usd and 10⁴ carbon_g take the place of
energy_j; the term of tardiness is absent where deadlines are hard or missing.

Shapes are random graphs (layered, fork_join, chains, random, independent) and patterns of GPU jobs
(batch: single tasks; pipeline: chains of the same stages; data_parallel: iterations of equal
replicas and a reduction). Where there are CPUs, the first tasks of a job prepare its data, on a
CPU or on either kind of device (``prepare``).

On one A100 at its top clock a training unit takes 0.043 s and an inference unit 0.010 s. A task is
10 to 60 s of such work, a reduction 1 to 5 s, and a preparation 5 to 20 s of one CPU. Problem
sizes other than ``full`` use the profiles' saturation (small, medium and large problems have 0.1,
10 and 1000 GFLOP). Times per unit are rounded to µs, energies per unit to mJ and powers up to mW,
so that integers scale them exactly. Volumes, links and series are modelled: 0.25 to 6 GB per edge,
10 Gbit/s between nodes at 10 J per GB, 252 Gbit/s inside a node at 1 J per GB, prices of 0.12,
0.16 and 0.20 USD and 220, 350 and 500 g of carbon per kWh.

With ``pooled`` the equal GPUs of a node are one pool; without it each GPU is a pool of its own.
Without transfers both have the same optimum: while no more devices are busy than the pool has,
devices can be assigned as tasks start. With transfers the second costs more, because data also
move within a node.

``within`` asks for the least energy in limited time (``_gpu_time``); a study with several values
of it draws a front.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from optbench.arguments import require
from optbench.model.builder import Model
from optbench.model.instance import Instance
from optbench.model.windows import windows
from optbench.plugins.protocol import Problem
from optbench.power.profiles import ALIASES, profile

from ._gpu_caps import with_caps
from ._gpu_nodes import Cluster
from ._gpu_time import within_time
from ._gpu_work import SIZES, Options, declare_work
from ._shapes import SHAPES, Graph, data_parallel, pipeline, plain, with_preparation

TYPES = (
    "A100-PCIe",
    "L4",
    "T4",
    "V100-PCIe",
    "A10",
    "H100-SXM",
    "A30",
    "L40S",
    "H200",
    "P100",
    "K40c",
    "C2070",
)
# Deadline of a task without successors, as a multiple of its earliest end. At a clock of 0.3 a task
# takes up to 3.3 times as long as at the top clock.
SLACK = {"flexible": 6.0, "loose": 3.0, "tight": 1.5}
# Series change every two minutes, so that a graph of minutes meets several values.
PRICES, CARBON, PERIOD_S = (0.12, 0.20, 0.16), (350.0, 500.0, 220.0), 120.0
MAKESPAN_WEIGHT, TARDINESS_WEIGHT, COST_WEIGHT, CARBON_WEIGHT = 50.0, 500.0, 1e7, 1e4
PATTERNS = ("batch", "pipeline", "data_parallel")

Shape = Literal[
    "layered", "fork_join", "chains", "random", "independent", "batch", "pipeline", "data_parallel"
]


@dataclass(frozen=True)
class GpuDag(Problem):
    """Task graph on heterogeneous GPUs with clocks: minimise energy, makespan and tardiness.

    ``types`` is the number of GPU types (at most the number of GPUs); ``profiles`` names them
    instead. ``gang`` is the largest number of GPUs that a task may use. ``power_cap``
    (``node_cap``) is a share of the cluster's (each node's) power while every device works.
    ``nodes`` is the number of nodes per type, ``stages`` that of the stages of a pipeline;
    ``replicas`` and ``iterations`` are those of a data-parallel job. ``prepare`` says where data
    are prepared when there are ``cpus``. ``within`` limits the makespan to this multiple of a fast
    rule's makespan and removes its price.
    """

    tasks: int = 20
    gpus: int = 6
    types: int = 3
    clocks: int = 5
    gang: int = 2
    shape: Shape = "layered"
    transfers: bool = True
    deadlines: Literal["none", "flexible", "loose", "tight"] = "loose"
    hard: bool = False
    power_cap: float | None = None
    price: bool = False
    tick_s: float = 1.0
    node_cap: float | None = None
    carbon: bool = False
    cpus: int = 0
    prepare: Literal["cpu", "either"] = "cpu"
    nodes: int = 1
    pooled: bool = True
    sizes: Literal["full", "small", "medium", "large", "mixed"] = "full"
    stages: int = 4
    replicas: int = 4
    iterations: int = 3
    profiles: tuple[str, ...] = ()
    within: float | None = None

    def __post_init__(self) -> None:
        for field in ("tasks", "gpus", "gang", "nodes", "replicas", "iterations"):
            self._require(getattr(self, field) >= 1, field, "at least 1")
        self._require(self.cpus >= 0, "cpus", "at least 0")
        self._require(self.stages >= 2, "stages", "at least 2")
        known = 1 <= self.types <= len(TYPES)
        self._require(known, "types", f"from 1 to {len(TYPES)} ({', '.join(TYPES)})")
        different = len({ALIASES.get(each, each) for each in self.profiles}) == len(self.profiles)
        require(different, "gpu_dag", "profiles", list(self.profiles), "different profiles")
        self._require(1 <= self.clocks <= 8, "clocks", "from 1 to 8, the levels of the profiles")
        shapes = (*SHAPES, *PATTERNS)
        self._require(self.shape in shapes, "shape", f"one of {', '.join(shapes)}")
        deadlines = ("none", *SLACK)
        self._require(self.deadlines in deadlines, "deadlines", f"one of {', '.join(deadlines)}")
        self._require(self.prepare in ("cpu", "either"), "prepare", "cpu or either")
        sizes = ("full", "mixed", *SIZES)
        self._require(self.sizes in sizes, "sizes", f"one of {', '.join(sizes)}")
        for field in ("power_cap", "node_cap"):
            share = getattr(self, field)
            holds = share is None or 0 < share <= 1
            self._require(holds, field, "none, or above 0 and at most 1")
        positive = self.within is None or 0 < self.within < math.inf
        multiple = "none, or a positive multiple of the time that a fast rule takes"
        self._require(positive, "within", multiple)
        energy = self.within is None or not (self.price or self.carbon)
        allowed = "none where prices or carbon change, because it minimises energy"
        self._require(energy, "within", allowed)
        finite = math.isfinite(self.tick_s) and self.tick_s > 0
        self._require(finite, "tick_s", "a positive number of seconds")
        divides = not (self.price or self.carbon) or (PERIOD_S / self.tick_s).is_integer()
        allowed = f"a divisor of {PERIOD_S:g} s, when prices or carbon change"
        self._require(divides, "tick_s", allowed)

    def _require(self, holds: bool, field: str, allowed: str) -> None:
        require(holds, "gpu_dag", field, getattr(self, field), allowed)

    def instance(self, seed: int = 0) -> Instance:
        shapes = tuple(profile(name) for name in self.profiles or TYPES[: self.types])
        cluster = Cluster(shapes, self.gpus, self.cpus, self.nodes, self.pooled)
        instance, graph = self._without_deadlines(seed, cluster)
        if self.deadlines != "none":
            # A pool per type gives the same earliest times as all nodes and devices, with far fewer
            # modes.
            few = self.pooled and self.nodes == 1
            small = (
                instance
                if few
                else self._without_deadlines(seed, replace(cluster, pooled=True), first_only=True)[
                    0
                ]
            )
            instance = self._with_deadlines(instance, graph, small)
        if self.power_cap is not None or self.node_cap is not None:
            instance = with_caps(instance, self.power_cap, self.node_cap)
        return instance if self.within is None else within_time(instance, self.within)

    def _without_deadlines(
        self, seed: int, cluster: Cluster, *, first_only: bool = False
    ) -> tuple[Instance, Graph]:
        """The instance before deadlines and caps are added."""
        rng = np.random.default_rng(seed)
        m = Model(f"gpu_dag-{self.tasks}x{self.gpus}-{seed}", tick_s=self.tick_s)
        groups = cluster.declare(m, first_only=first_only)
        graph = self._graph(rng)
        declare_work(
            m,
            rng,
            groups,
            graph,
            Options(self.gang, self.clocks, self.sizes, self.prepare, self.transfers),
        )
        if self.price or self.carbon:
            n = 3 + self.tasks // 4
            prices = np.resize(PRICES, n).tolist() if self.price else 0.0
            carbon = np.resize(CARBON, n).tolist() if self.carbon else 0.0
            m.tariff(price_usd_per_kwh=prices, carbon_g_per_kwh=carbon, every_s=PERIOD_S)
        weights = {"cost_usd": COST_WEIGHT} if self.price else {}
        weights |= {"carbon_g": CARBON_WEIGHT} if self.carbon else {}
        weights = (weights or {"energy_j": 1.0}) | {"makespan_s": MAKESPAN_WEIGHT}
        if self.deadlines != "none" and not self.hard:
            weights["tardiness_s"] = TARDINESS_WEIGHT
        m.minimize(**weights)
        return replace(m.build(), problem="gpu_dag"), graph

    def _graph(self, rng: np.random.Generator) -> Graph:
        if self.shape == "pipeline":
            return pipeline(self.tasks, self.stages)
        if self.shape == "data_parallel":
            return data_parallel(self.tasks, self.replicas, self.iterations)
        shape = "independent" if self.shape == "batch" else self.shape
        graph = plain(SHAPES[shape](rng, self.tasks), self.tasks)
        return with_preparation(graph, rng) if self.cpus else graph

    def _with_deadlines(self, instance: Instance, graph: Graph, small: Instance) -> Instance:
        """Add deadlines of the tasks without successors: multiples of their earliest ends."""
        last = np.ones(self.tasks, dtype=bool)
        last[[i for i, _ in graph.edges]] = False
        bounds = windows(small)
        deadline = np.where(
            last, np.ceil(SLACK[self.deadlines] * (bounds.head + bounds.shortest)), np.inf
        )
        return replace(
            instance,
            tasks=replace(instance.tasks, deadline=deadline, deadline_hard=last & self.hard),
        )
