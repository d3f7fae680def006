"""Task graphs of several users on a cluster of GPU nodes: racks, nodes, GPUs and CPU sockets.

Each node has GPUs of one type from the shipped profiles, 8 or 4 of them, and two CPU sockets; types
are dealt over the nodes in turn. There is one pool per node and type, so that 256 nodes have 512
pools and 1,536 GPUs. A task is training, inference, a matrix kernel or analytics, with problems of
a matrix dimension from 200 to 1,800; it runs in a mode (pool, GPUs, clock). Small problems leave a
fast GPU mostly empty, and analytics is bound by memory, so that it gains little from the clock.
A unit of work is what one A100 does in a second at its top clock. The objective is

    energy_j + price · makespan_s + 500 tardiness_s

where the price of a second is ``makespan_share`` of the power that the whole cluster draws when no
device is busy and none sleeps. Resting devices cost this power within energy_j too. Both grow with
the cluster as the energy of its work per second does, so that none of the three terms vanishes at
any size. Deadlines are due dates of the last tasks of a job, multiples of the time that the job
takes on an empty cluster of the fastest devices, transfers aside; tardiness is weighted with the
job's priority, and its factor does not depend on the cluster, because it is paid per late task.

Without ``load`` all jobs are there at time 0. With it they arrive as a Poisson process. By default
the least device-seconds of all work, over all devices, are this share of the span of the arrivals;
as no type of device is the best for all work, a mixed cluster falls behind long before 1. With
``load_of=capacity`` the load is the share of the work that the cluster can do at most
(``_cluster_load``), which no policy sustains from 1 on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from optbench.arguments import require
from optbench.model.instance import Edges, Floats, Instance, Limits, Tasks
from optbench.model.objective import Objective
from optbench.model.timegrid import grid_down, grid_up
from optbench.model.validate import validate
from optbench.plugins.protocol import Problem
from optbench.power.profiles import ALIASES, profile

from ._cluster_hardware import Hardware, hardware
from ._cluster_jobs import (
    GRAPHS,
    SCALES_S,
    Workload,
    WorkOptions,
    draw_arrivals,
    draw_workload,
    job_heads,
    last_tasks,
)
from ._cluster_kinds import mode_table_of
from ._cluster_load import LoadOf, TaskColumns, seconds_of_work, shortest_times_s

NAME = "gpu_cluster"
TYPES = ("H100-SXM", "A100-PCIe", "L4", "V100-PCIe", "K40c", "C2070", "H200", "L40S", "A30", "T4")
DEFAULT_TYPES = 6
# Deadlines as multiples of the job's earliest end (those of gpu_dag).
SLACK = {"flexible": 6.0, "tight": 1.5}
TARDINESS_WEIGHT = 500.0


@dataclass(frozen=True)
class GpuCluster(Problem):
    """Cluster of GPU nodes in racks with CPUs: task graphs of several users, clocks, least energy,
    makespan and tardiness.

    ``types`` is the number of GPU types; ``profiles`` names them instead. Nodes have ``gpus`` GPUs
    and half as many in turn, and two CPU sockets with ``cpus``. GPUs have ``clocks`` levels, CPUs
    at most two. ``gang`` is the largest number of GPUs that a task of training or matrix kernels
    may use. ``load`` makes jobs arrive over time, measured as ``load_of`` says, and ``burst`` is
    the rate in bursts over that between them. ``scale`` says how long tasks take. With ``sleeps``
    devices that are not busy sleep.
    """

    nodes: int = 16
    tasks: int = 200
    types: int = DEFAULT_TYPES
    profiles: tuple[str, ...] = ()
    gpus: int = 8
    cpus: bool = True
    nodes_per_rack: int = 8
    clocks: int = 5
    gang: int = 1
    users: int = 4
    shape: Literal["mixed", "batch", "pipeline", "data_parallel"] = "mixed"
    scale: Literal["seconds", "minutes"] = "seconds"
    deadlines: Literal["mixed", "flexible", "tight", "none"] = "mixed"
    makespan_share: float = 0.5
    sleeps: bool = False
    load: float | None = None
    load_of: LoadOf = "least"
    burst: float = 1.0
    tick_s: float = 0.01

    def __post_init__(self) -> None:
        for name in ("nodes", "tasks", "gpus", "nodes_per_rack", "gang", "users"):
            self._require(getattr(self, name) >= 1, name, "at least 1")
        known = 1 <= self.types <= len(TYPES)
        self._require(known, "types", f"from 1 to {len(TYPES)} ({', '.join(TYPES)})")
        different = len({ALIASES.get(each, each) for each in self.profiles}) == len(self.profiles)
        require(different, NAME, "profiles", list(self.profiles), "different profiles")
        self._require(1 <= self.clocks <= 8, "clocks", "from 1 to 8, the levels of the profiles")
        self._require(self.gang <= self.gpus, "gang", f"at most gpus, {self.gpus}")
        shapes = ("mixed", *GRAPHS)
        self._require(self.shape in shapes, "shape", f"one of {', '.join(shapes)}")
        self._require(self.scale in SCALES_S, "scale", f"one of {', '.join(SCALES_S)}")
        deadlines = ("mixed", *SLACK, "none")
        self._require(self.deadlines in deadlines, "deadlines", f"one of {', '.join(deadlines)}")
        holds = 0 <= self.makespan_share < math.inf
        self._require(holds, "makespan_share", "at least 0")
        positive = self.load is None or 0 < self.load < math.inf
        self._require(positive, "load", "none, or positive")
        known = self.load_of in ("least", "capacity")
        self._require(known, "load_of", "least or capacity")
        self._require(1 <= self.burst < math.inf, "burst", "at least 1")
        bursts = self.burst == 1 or self.load is not None
        self._require(bursts, "burst", "1 without load, because all jobs are there at time 0")
        finite = math.isfinite(self.tick_s) and self.tick_s > 0
        self._require(finite, "tick_s", "a positive number of seconds")

    def _require(self, holds: bool, field: str, allowed: str) -> None:
        require(holds, NAME, field, getattr(self, field), allowed)

    def instance(self, seed: int = 0) -> Instance:
        shapes = tuple(profile(name) for name in self.profiles or TYPES[: self.types])
        cluster = hardware(
            shapes, self.nodes, self.gpus, self.nodes_per_rack, cpus=self.cpus, sleeps=self.sleeps
        )
        # Arrivals have a generator of their own, so that load and burst do not change the work.
        work_rng, arrival_rng = (np.random.default_rng((seed, stream)) for stream in (0, 1))
        room_gb = max(shape.memory_gb for shape in shapes[: self.nodes])
        graphs = GRAPHS if self.shape == "mixed" else (self.shape,)
        work = draw_workload(
            work_rng, WorkOptions(self.tasks, self.users, graphs, self.scale, room_gb)
        )
        return self._made(cluster, work, arrival_rng, seed)

    def _made(
        self, cluster: Hardware, work: Workload, rng: np.random.Generator, seed: int
    ) -> Instance:
        kinds = sorted(set(work.kind))
        modes = mode_table_of(cluster, kinds, self.clocks, self.gang)
        kind = np.array([kinds.index(each) for each in work.kind], dtype=np.int64)
        pools = cluster.pools()
        columns = TaskColumns(kind, np.array(work.units), np.array(work.memory_gb))
        shortest_s = shortest_times_s(modes, pools, columns)
        release_s = np.zeros(work.num_tasks)
        if self.load is not None:
            work_s = seconds_of_work(self.load_of, modes, pools, cluster.shape_idx, columns)
            arrival_s = draw_arrivals(rng, len(work.job_user), work_s / self.load, self.burst)
            release_s = arrival_s[work.job]
        weights = {"energy_j": 1.0}
        if self.makespan_share > 0:
            idle_w = float((pools.idle_w * pools.count).sum())
            weights["makespan_s"] = self.makespan_share * idle_w
        if self.deadlines != "none":
            weights["tardiness_s"] = TARDINESS_WEIGHT
        deadline = self._deadlines(work, shortest_s, release_s)
        return validate(
            Instance(
                name=f"{NAME}-{self.nodes}x{work.num_tasks}-{seed}",
                tick_s=self.tick_s,
                horizon=None,
                tasks=Tasks(
                    kind,
                    columns.units,
                    np.asarray(grid_up(release_s / self.tick_s), dtype=np.int64),
                    np.asarray(grid_down(deadline / self.tick_s), dtype=float),
                    np.zeros(work.num_tasks, dtype=bool),
                    np.array(work.job_weight)[work.job],
                    columns.memory_gb,
                    work.names(),
                ),
                edges=Edges(
                    np.array(work.source, dtype=np.int64),
                    np.array(work.target, dtype=np.int64),
                    np.array(work.data_gb, dtype=float),
                ),
                places=cluster.places(),
                pools=pools,
                modes=modes,
                links=cluster.links(),
                limits=Limits(np.zeros(0, dtype=np.int64), np.zeros(0)),
                objective=Objective.weighted(weights),
                problem=NAME,
            )
        )

    def _deadlines(self, work: Workload, shortest_s: Floats, release_s: Floats) -> Floats:
        """Due dates of the tasks without successors; inf for the others."""
        out = np.full(work.num_tasks, np.inf)
        if self.deadlines == "none":
            return out
        last, job = last_tasks(work), np.array(work.job)
        earliest_s = job_heads(work, shortest_s, release_s)
        end_s = np.zeros(len(work.job_user))
        np.maximum.at(end_s, job, earliest_s - release_s)
        tight = (
            np.array(work.job_tight)
            if self.deadlines == "mixed"
            else np.full(len(end_s), self.deadlines == "tight")
        )
        slack = np.where(tight, SLACK["tight"], SLACK["flexible"])
        out[last] = release_s[last] + (slack * end_s)[job[last]]
        return out
