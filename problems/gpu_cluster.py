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
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from optbench.arguments import require
from optbench.model.instance import Edges, Floats, Instance, Limits, Pools, Tasks
from optbench.model.objective import Objective
from optbench.model.timegrid import grid_down, grid_up
from optbench.model.validate import validate
from optbench.plugins.protocol import Problem
from optbench.power.profiles import ALIASES, profile

from ._cluster_congestion import with_congestion
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
from ._cluster_kinds import CATEGORIES, mode_table_of
from ._cluster_limits import with_cooling, with_power_caps
from ._cluster_load import TaskColumns, seconds_of_work, shortest_times_s

if TYPE_CHECKING:
    from optbench.formats.imported import Import

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
    devices that are not busy sleep; with ``wake_s`` they take so long to wake, and sleep only where
    a schedule says so. ``power_cap`` (``node_cap``) is a share of the cluster's (each
    node's) power while every device works; ``cooling`` is the share of it that keeps a node at its
    highest temperature. With ``failures`` devices have rates of failing. With ``checkpoint_s``
    tasks that a failure stops start again, and training goes on from what it saves after every so
    many seconds. With ``congestion`` links of racks are busy at times. ``jobs`` is a file of
    recorded work instead: a WfFormat workflow, a Gavel trace or a list of Alibaba's pods, at most
    ``tasks`` of it. Its run times are taken to be those of ``work`` (a category) on one
    ``reference`` device; ``load`` then scales its arrivals in time.
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
    wake_s: float | None = None
    power_cap: float | None = None
    node_cap: float | None = None
    cooling: float | None = None
    failures: bool = False
    congestion: bool = False
    checkpoint_s: float | None = None
    load: float | None = None
    load_of: Literal["least", "capacity"] = "least"
    burst: float = 1.0
    tick_s: float = 0.01
    jobs: str | None = None
    reference: str | None = None
    work: Literal["training", "inference", "matrix", "analytics"] | None = None

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
        for name in ("power_cap", "node_cap", "cooling"):
            share = getattr(self, name)
            within = share is None or 0 < share <= 1
            self._require(within, name, "none, or above 0 and at most 1")
        positive = self.load is None or 0 < self.load < math.inf
        self._require(positive, "load", "none, or positive")
        known = self.load_of in ("least", "capacity")
        self._require(known, "load_of", "least or capacity")
        self._require(1 <= self.burst < math.inf, "burst", "at least 1")
        wakes = self.wake_s is None or (0 < self.wake_s < math.inf and self.sleeps)
        self._require(wakes, "wake_s", "none, or positive with sleeps=yes")
        saves = self.checkpoint_s is None or 0 < self.checkpoint_s < math.inf
        self._require(saves, "checkpoint_s", "none, or a positive number of seconds")
        bursts = self.burst == 1 or self.load is not None
        self._require(bursts, "burst", "1 without load, because all jobs are there at time 0")
        category = self.work is None or self.work in CATEGORIES
        self._require(category, "work", f"none, or one of {', '.join(CATEGORIES)}")
        self._require_free_of_records()
        finite = math.isfinite(self.tick_s) and self.tick_s > 0
        self._require(finite, "tick_s", "a positive number of seconds")

    def _require(self, holds: bool, field: str, allowed: str) -> None:
        require(holds, NAME, field, getattr(self, field), allowed)

    def _require_free_of_records(self) -> None:
        """What shapes made work has its default with a record, and the other way round."""
        if self.jobs is None:
            self._require(self.reference is None, "reference", "none without jobs")
            self._require(self.work is None, "work", "none without jobs")
            return
        for name, default in (("shape", "mixed"), ("scale", "seconds"), ("burst", 1.0)):
            allowed = f"{default} with jobs, which are as they are"
            self._require(getattr(self, name) == default, name, allowed)

    def instance(self, seed: int = 0) -> Instance:
        if self.jobs is not None:
            return self.imported(seed).instance  # type: ignore[union-attr]  # there is a record
        cluster, (work_rng, arrival_rng, _) = self._cluster(), _generators(seed)
        graphs = GRAPHS if self.shape == "mixed" else (self.shape,)
        options = WorkOptions(self.tasks, self.users, graphs, self.scale, cluster.room_gb)
        work = draw_workload(work_rng, options)

        def arrivals(span_s: float | None) -> Floats:
            jobs = len(work.job_user)
            return (
                np.zeros(jobs)
                if span_s is None
                else draw_arrivals(arrival_rng, jobs, span_s, self.burst)
            )

        return self._made(cluster, work, arrivals, seed)

    def imported(self, seed: int = 0) -> Import | None:
        if self.jobs is None:
            return None
        from optbench.formats.imported import Import, ImportFindings

        from ._cluster_records import RecordOptions, read_jobs, record_figures
        from ._geo_traces import local_file

        cluster, findings = self._cluster(), ImportFindings()
        options = RecordOptions(self.tasks, self.users, self.reference, self.work, cluster.room_gb)
        found = read_jobs(local_file(self.jobs), options, _generators(seed)[0], findings)
        last_s = float(found.arrival_s[-1])
        several = self.load is None or last_s > 0
        self._require(several, "load", "none with a record whose jobs arrive at the same time")
        if self.load is not None:
            findings.add("assumed", f"arrivals are scaled in time to a load of {self.load:g}")

        def arrivals(span_s: float | None) -> Floats:
            return found.arrival_s if span_s is None else found.arrival_s * (span_s / last_s)

        instance = self._made(cluster, found.work, arrivals, seed)
        return Import(instance, None, findings.report(found.format, record_figures(found)))

    def _cluster(self) -> Hardware:
        shapes = tuple(profile(name) for name in self.profiles or TYPES[: self.types])
        return hardware(
            shapes,
            self.nodes,
            self.gpus,
            self.nodes_per_rack,
            cpus=self.cpus,
            sleeps=self.sleeps,
            fails=self.failures,
            wake_s=self.wake_s,
        )

    def _made(
        self,
        cluster: Hardware,
        work: Workload,
        arrivals: Callable[[float | None], Floats],
        seed: int,
    ) -> Instance:
        """The instance; ``arrivals`` gives the arrival of each job over a span, or without load."""
        kinds = sorted(set(work.kind))
        modes = mode_table_of(cluster, kinds, self.clocks, self.gang)
        kind = np.array([kinds.index(each) for each in work.kind], dtype=np.int64)
        pools = cluster.pools()
        columns = TaskColumns(kind, np.array(work.units), np.array(work.memory_gb))
        shortest_s = shortest_times_s(modes, pools, columns)
        span_s = None
        if self.load is not None:
            work_s = seconds_of_work(self.load_of, modes, pools, cluster.shape_idx, columns)
            span_s = work_s / self.load
        release_s = arrivals(span_s)[work.job]
        deadline_s = self._deadlines(work, shortest_s, release_s)
        instance = Instance(
            name=f"{NAME}-{self.nodes}x{work.num_tasks}-{seed}",
            tick_s=self.tick_s,
            horizon=None,
            tasks=Tasks(
                kind,
                columns.units,
                np.asarray(grid_up(release_s / self.tick_s), dtype=np.int64),
                np.asarray(grid_down(deadline_s / self.tick_s), dtype=float),
                np.zeros(work.num_tasks, dtype=bool),
                np.array(work.job_weight)[work.job],
                columns.memory_gb,
                work.names(),
                np.array(work.job_user, dtype=np.int64)[work.job],
                tuple(f"u{user}" for user in range(self.users)),
                self._checkpoints(work),
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
            objective=self._objective(pools),
            preemptive=self.checkpoint_s is not None,
            problem=NAME,
        )
        if self.power_cap is not None or self.node_cap is not None:
            instance = with_power_caps(instance, self.power_cap, self.node_cap, self.nodes)
        if self.cooling is not None:
            instance = with_cooling(instance, self.cooling, self.nodes)
        if self.congestion:
            rack = cluster.pool_node // self.nodes_per_rack
            instance = with_congestion(instance, _generators(seed)[2], rack, self.scale)
        return validate(instance)

    def _checkpoints(self, work: Workload) -> Floats | None:
        """Ticks between the checkpoints of tasks of training; other tasks have none."""
        if self.checkpoint_s is None:
            return None
        training = np.array([kind.category == "training" for kind in work.kind])
        every = max(1.0, float(grid_up(self.checkpoint_s / self.tick_s)))
        return np.where(training, every, np.inf)

    def _objective(self, pools: Pools) -> Objective:
        weights = {"energy_j": 1.0}
        if self.makespan_share > 0:
            idle_w = float((pools.idle_w * pools.count).sum())
            weights["makespan_s"] = self.makespan_share * idle_w
        if self.deadlines != "none":
            weights["tardiness_s"] = TARDINESS_WEIGHT
        return Objective.weighted(weights)

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


def _generators(seed: int) -> tuple[np.random.Generator, np.random.Generator, np.random.Generator]:
    """Generators of the work, of its arrivals and of busy links: none changes another's draws."""
    work, arrivals, links = (np.random.default_rng((seed, stream)) for stream in (0, 1, 2))
    return work, arrivals, links
