"""Work of gpu_cluster: jobs of several users as task graphs, and when they arrive.

A job is of one field and has one of three graphs. Deep learning prepares data (analytics), trains
or infers, and reduces; scientific jobs multiply matrices; analytics reads and aggregates. Each user
draws the shares of fields and of graphs of his jobs once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from optbench.model.instance import Floats, Ints

from ._cluster_kinds import DIMENSIONS, ClusterKind

Rng = np.random.Generator
FIELDS = ("learning", "scientific", "analytics")
GRAPHS = ("batch", "pipeline", "data_parallel")
# Seconds of a task on the reference device, log-uniform; preparation and reduction take a share.
SCALES_S = {"seconds": (2.0, 30.0), "minutes": (60.0, 600.0)}
SMALL_SHARE = (0.1, 0.4)
# Preparations and reductions use dimensions of the lower half of the grid.
SMALL_DIMENSIONS = DIMENSIONS[: len(DIMENSIONS) // 2]
# Tasks in the middle of a batch; stages between the first and the last of a pipeline; replicas and
# iterations of data-parallel training (all modelled, both ends included).
FAN, STAGES, REPLICAS, ITERATIONS = (3, 12), (1, 4), (2, 8), (2, 4)
# Volumes in quarters of a GB: data sets and shards 0.25 to 6 GB, as in gpu_dag, results to 1 GB.
DATA_QUARTERS, RESULT_QUARTERS = (1, 24), (1, 4)
QUARTER_GB = 0.25
# GB per task by category (modelled: the smallest fits a C2070).
MEMORY_GB = {
    "training": (4.0, 10.0, 20.0, 40.0),
    "inference": (2.0, 4.0, 10.0, 20.0),
    "matrix": (1.0, 2.0, 4.0, 10.0),
    "analytics": (2.0, 4.0, 10.0, 20.0),
}
MEMORY_SHARES = (0.3, 0.3, 0.25, 0.15)
# Weights of priorities and their shares of jobs (modelled): normal, urgent, critical.
PRIORITIES, PRIORITY_SHARES = (1.0, 2.0, 4.0), (0.6, 0.3, 0.1)
# Units are whole multiples of this, so that products with whole mJ stay short decimals.
UNIT_STEP = 0.25
# A span of arrivals has ten cycles, and a fifth of each is a burst (modelled).
CYCLES, BURST_SHARE = 10, 0.2


@dataclass(frozen=True)
class Workload:
    """Columns of tasks and edges, and of the jobs that they belong to."""

    kind: list[ClusterKind] = field(default_factory=list)
    units: list[float] = field(default_factory=list)
    memory_gb: list[float] = field(default_factory=list)
    job: list[int] = field(default_factory=list)
    label: list[str] = field(default_factory=list)
    source: list[int] = field(default_factory=list)
    target: list[int] = field(default_factory=list)
    data_gb: list[float] = field(default_factory=list)
    job_user: list[int] = field(default_factory=list)
    job_weight: list[float] = field(default_factory=list)
    job_tight: list[bool] = field(default_factory=list)

    @property
    def num_tasks(self) -> int:
        return len(self.units)

    def names(self) -> tuple[str, ...]:
        """User, job and label of each task."""
        return tuple(
            f"u{self.job_user[job]}.j{job}.{label}"
            for job, label in zip(self.job, self.label, strict=True)
        )


@dataclass(frozen=True)
class WorkOptions:
    """The parameters of gpu_cluster that shape its work."""

    tasks: int
    users: int
    graphs: Sequence[str]
    scale: str
    room_gb: float


@dataclass(frozen=True)
class _Row:
    role: str
    after: tuple[int, ...]
    team: int  # tasks of one team have the same work


def draw_workload(rng: Rng, options: WorkOptions) -> Workload:
    """Jobs until there are so many tasks; the last one is cut."""
    out = Workload()
    of_fields = rng.dirichlet(np.ones(len(FIELDS)), size=options.users)
    of_graphs = rng.dirichlet(np.ones(len(options.graphs)), size=options.users)
    while out.num_tasks < options.tasks:
        user = int(rng.integers(options.users))
        topic = FIELDS[int(rng.choice(len(FIELDS), p=of_fields[user]))]
        graph = options.graphs[int(rng.choice(len(options.graphs), p=of_graphs[user]))]
        rows = _graph(rng, graph)[: options.tasks - out.num_tasks]
        _add_job_columns(rng, out, user)
        _add_job(rng, out, rows, topic, graph, options)
    return out


def draw_job(rng: Rng, out: Workload, users: int) -> None:
    """Add a job without tasks: its user, priority and urgency."""
    _add_job_columns(rng, out, int(rng.integers(users)))


def _add_job_columns(rng: Rng, out: Workload, user: int) -> None:
    out.job_user.append(user)
    out.job_weight.append(float(rng.choice(PRIORITIES, p=PRIORITY_SHARES)))
    out.job_tight.append(bool(rng.integers(2)))


def _graph(rng: Rng, graph: str) -> list[_Row]:
    """Roles and predecessors of a job's tasks in topological order."""
    rows = [_Row("prepare", (), 0)]
    if graph == "pipeline":
        for stage in range(1, 1 + _between(rng, STAGES)):
            rows.append(_Row("work", (stage - 1,), stage))
        rows.append(_Row("last", (len(rows) - 1,), len(rows)))
        return rows
    rounds = _between(rng, ITERATIONS) if graph == "data_parallel" else 1
    width = _between(rng, REPLICAS if graph == "data_parallel" else FAN)
    opener = 0
    for _ in range(rounds):
        first = len(rows)
        for k in range(width):
            team = first if graph == "data_parallel" else first + k
            rows.append(_Row("replica" if graph == "data_parallel" else "part", (opener,), team))
        opener = len(rows)
        rows.append(_Row("reduce", tuple(range(first, opener)), opener))
    return rows


def _add_job(
    rng: Rng, out: Workload, rows: list[_Row], topic: str, graph: str, options: WorkOptions
) -> None:
    begin, job = out.num_tasks, len(out.job_user) - 1
    teams: dict[int, tuple[ClusterKind, float, float]] = {}
    dimension = int(rng.choice(DIMENSIONS))
    for k, row in enumerate(rows):
        small = row.role in ("prepare", "reduce")
        if row.team not in teams:
            size = int(rng.choice(SMALL_DIMENSIONS)) if small else dimension
            kind = ClusterKind(_category(topic, graph, row.role), size)
            teams[row.team] = (
                kind,
                _units(rng, options.scale, small),
                draw_memory_gb(rng, kind, options.room_gb),
            )
        kind, units, memory_gb = teams[row.team]
        out.kind.append(kind)
        out.units.append(units)
        out.memory_gb.append(memory_gb)
        out.job.append(job)
        out.label.append(f"{row.role}{begin + k}")
        quarters = _between(rng, RESULT_QUARTERS if row.role == "reduce" else DATA_QUARTERS)
        for before in row.after:
            out.source.append(begin + before)
            out.target.append(begin + k)
            out.data_gb.append(quarters * QUARTER_GB)


def _category(topic: str, graph: str, role: str) -> str:
    if topic == "analytics" or role == "prepare":
        return "analytics"
    if topic == "scientific":
        return "matrix"
    if role == "reduce":
        return "analytics"
    return "inference" if role == "last" or graph == "batch" else "training"


def _units(rng: Rng, scale: str, small: bool) -> float:
    low, high = SCALES_S[scale]
    seconds = float(np.exp(rng.uniform(np.log(low), np.log(high))))
    if small:
        seconds *= float(rng.uniform(*SMALL_SHARE))
    return max(1, round(seconds / UNIT_STEP)) * UNIT_STEP


def draw_memory_gb(rng: Rng, kind: ClusterKind, room_gb: float) -> float:
    """Memory of a task of this kind, at most that of the largest device."""
    return min(room_gb, float(rng.choice(MEMORY_GB[kind.category], p=MEMORY_SHARES)))


def _between(rng: Rng, ends: tuple[int, int]) -> int:
    return int(rng.integers(ends[0], ends[1] + 1))


def draw_arrivals(rng: Rng, jobs: int, span_s: float, burst: float) -> Floats:
    """Arrival times of a Poisson process on [0, span), given the number of its jobs.

    The span has CYCLES cycles. In the first part of each, BURST_SHARE long, the rate is ``burst``
    times that of the rest; the mean rate does not depend on ``burst``.
    """
    drawn = np.sort(rng.random(jobs)) * CYCLES
    cycle, within = np.floor(drawn), drawn % 1.0
    in_burst = BURST_SHARE * burst / (BURST_SHARE * burst + 1 - BURST_SHARE)  # share of the jobs
    at = np.where(
        within < in_burst,
        within / in_burst * BURST_SHARE,
        BURST_SHARE + (within - in_burst) / (1 - in_burst) * (1 - BURST_SHARE),
    )
    return (cycle + at) / CYCLES * span_s


def job_heads(work: Workload, shortest_s: Floats, release_s: Floats) -> Floats:
    """Earliest end of each task, transfers aside."""
    ends = (release_s + shortest_s).tolist()
    shortest = shortest_s.tolist()
    # Tasks are in topological order, and edges in the order of their targets.
    for i, j in zip(work.source, work.target, strict=True):
        ends[j] = max(ends[j], ends[i] + shortest[j])
    return np.asarray(ends)


def last_tasks(work: Workload) -> Ints:
    """Tasks without successors."""
    last = np.ones(work.num_tasks, dtype=bool)
    last[work.source] = False
    return np.flatnonzero(last)
