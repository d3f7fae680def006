"""Work of gpu_dag: the kind, units and memory of each task, and the data volumes of the edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from optbench.model.builder import Kind, Model, Task
from optbench.power.profiles import Profile, profile

from ._gpu_nodes import Group, modes_of
from ._shapes import Graph, Role

# Devices that work is measured on, whatever the cluster has.
ANCHORS = ("A100", "CPU")
# Share of tasks by kind, seconds per unit on one A100 at the top clock (for sizes only).
KINDS = {"training": (0.7, 0.043), "inference": (0.3, 0.010)}
MEMORY_GB = (4.0, 10.0, 20.0, 40.0)
# Problems that run at once, GFLOP: an A100 is 1 %, 52 % and 99 % full of them.
SIZES = {"small": 0.1, "medium": 10.0, "large": 1000.0}
# Seconds of work: of a task on one A100, of a reduction on one A100, of a preparation on one CPU.
TASK_S, REDUCTION_S, PREPARATION_S = (10.0, 60.0), (1.0, 5.0), (5.0, 20.0)

Where = Literal["gpu", "cpu", "either"]


@dataclass(frozen=True)
class WorkSort:
    """Tasks of one kind: their law, the size of their problems, and the devices they may use.

    A size of None stands for problems that fill a GPU."""

    kind: str
    size_gflop: float | None
    gang: int
    where: Where


@dataclass(frozen=True)
class Options:
    """The parameters of gpu_dag that shape its work."""

    gang: int
    clocks: int
    sizes: str
    prepare: Where
    transfers: bool


def declare_work(
    m: Model, rng: np.random.Generator, groups: list[Group], graph: Graph, options: Options
) -> None:
    """Declare tasks and edges.

    All tasks of a team get the same work, and all edges of a bundle the same volume."""
    kinds: dict[WorkSort, Kind] = {}
    drawn: dict[int, tuple[WorkSort, int, float]] = {}
    tasks: list[Task] = []
    anchors = {name: profile(name) for name in ANCHORS}
    for role, team in zip(graph.roles, graph.teams, strict=True):
        if team not in drawn:
            drawn[team] = _draw(rng, groups, role, options, anchors)
        sort, units, memory_gb = drawn[team]
        if sort not in kinds:
            kinds[sort] = _kind(m, groups, sort, options.clocks)
        name = f"{(sort.kind if role == 'any' else role)[:5]}{len(tasks)}"
        tasks.append(m.task(name, units=units, kind=kinds[sort], memory_gb=memory_gb))
    volumes: dict[int, float] = {}
    for (i, j), bundle in zip(graph.edges, graph.bundles, strict=True):
        if options.transfers and bundle not in volumes:
            volumes[bundle] = float(rng.integers(1, 25)) / 4
        m.precede(tasks[i], tasks[j], volumes.get(bundle, 0.0))


def _draw(
    rng: np.random.Generator,
    groups: list[Group],
    role: Role,
    options: Options,
    anchors: Mapping[str, Profile],
) -> tuple[WorkSort, int, float]:
    """The kind of work, units and memory of one task."""
    room = max(group.shape.memory_gb for group in groups if not group.is_cpu)
    if role == "reduce":
        units = round(float(rng.uniform(*REDUCTION_S)) / KINDS["inference"][1])
        return WorkSort("inference", None, 1, "gpu"), units, min(room, MEMORY_GB[0])
    if role == "prepare":
        size = SIZES["small"]
        cpu_s = anchors["CPU"].time_per_unit_s("inference", 1, 1.0, size)
        where = options.prepare if any(group.is_cpu for group in groups) else "gpu"
        return (
            WorkSort("inference", size, 1, where),
            round(float(rng.uniform(*PREPARATION_S)) / cpu_s),
            min(room, MEMORY_GB[0]),
        )
    if role == "any":
        kind = str(rng.choice(list(KINDS), p=[share for share, _ in KINDS.values()]))
    else:
        kind = {"train": "training", "infer": "inference"}[role]
    work_s = float(rng.uniform(*TASK_S))
    memory = min(room, float(rng.choice(MEMORY_GB, p=[0.3, 0.3, 0.25, 0.15])))
    named = str(rng.choice(list(SIZES))) if options.sizes == "mixed" else options.sizes
    size_gflop = SIZES.get(named)
    per_unit_s = KINDS[kind][1] / anchors["A100"].law(kind).filled(1, size_gflop)
    return (
        WorkSort(kind, size_gflop, options.gang, "gpu"),
        max(1, round(work_s / per_unit_s)),
        memory,
    )


def _kind(m: Model, groups: list[Group], sort: WorkSort, clocks: int) -> Kind:
    allowed = [
        group for group in groups if sort.where == "either" or group.is_cpu == (sort.where == "cpu")
    ]
    return m.kind(modes=modes_of(m, allowed, sort.kind, sort.gang, clocks, sort.size_gflop))
