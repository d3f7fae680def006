"""Job shops and projects as instances: whole ticks of one second, no power, minimise the makespan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Edges, Floats, Instance, Limits, Links, Modes, Places, Pools, Tasks
from optbench.model.objective import Objective

# (duration, ((pool, devices), ...))
Mode = tuple[int, tuple[tuple[int, int], ...]]


@dataclass(frozen=True)
class Shop:
    """A shop: ``jobs[j][o]`` lists the (machine, duration) alternatives of operation o, machines from 0."""

    num_machines: int
    jobs: list[list[list[tuple[int, int]]]]


@dataclass(frozen=True)
class Project:
    """A resource-constrained project; ``edges`` are (before, after), activities and resources from 0."""

    capacities: list[int]
    durations: list[int]
    requirements: list[list[int]]
    edges: list[tuple[int, int]]


def shop_instance(shop: Shop, name: str, problem: str) -> Instance:
    """One pool of one device per machine, one task per operation, a chain per job."""
    names = [f"j{j}.{o}" for j, job in enumerate(shop.jobs) for o in range(len(job))]
    modes = [[(duration, ((machine, 1),)) for machine, duration in op] for job in shop.jobs for op in job]
    first = np.cumsum([0] + [len(job) for job in shop.jobs]).tolist()
    chains = [(first[j] + o, first[j] + o + 1) for j, job in enumerate(shop.jobs) for o in range(len(job) - 1)]
    machines = [f"m{m}" for m in range(shop.num_machines)]
    return assemble(name, problem, machines, [1] * shop.num_machines, names, modes, chains)


def project_instance(project: Project, name: str) -> Instance:
    """One pool per resource; activity 1 of the file is task ``a1``, dummies included."""
    modes: list[list[Mode]] = [
        [(duration, tuple((r, need) for r, need in enumerate(needs) if need))]
        for duration, needs in zip(project.durations, project.requirements, strict=True)
    ]
    names = [f"a{i + 1}" for i in range(len(modes))]
    resources = [f"r{r + 1}" for r in range(len(project.capacities))]
    return assemble(name, "rcpsp", resources, project.capacities, names, modes, project.edges)


def assemble(
    name: str,
    problem: str,
    pool_names: Sequence[str],
    counts: Sequence[int],
    task_names: Sequence[str],
    modes: Sequence[Sequence[Mode]],
    edges: Sequence[tuple[int, int]],
) -> Instance:
    """The instance; tasks with the same modes share a kind."""
    kinds: dict[tuple[Mode, ...], int] = {}
    kind = [kinds.setdefault(tuple(choices), len(kinds)) for choices in modes]
    num_tasks, num_pools, num_edges = len(kind), len(counts), len(edges)
    pairs = np.asarray(edges, dtype=np.int64).reshape(num_edges, 2)
    tasks = Tasks(
        kind=np.asarray(kind, dtype=np.int64),
        units=np.ones(num_tasks),
        release=np.zeros(num_tasks, dtype=np.int64),
        deadline=np.full(num_tasks, np.inf),
        deadline_hard=np.zeros(num_tasks, dtype=bool),
        weight=np.ones(num_tasks),
        memory_gb=np.zeros(num_tasks),
        names=tuple(task_names),
    )
    return Instance(
        name=name,
        tick_s=1.0,
        horizon=None,
        tasks=tasks,
        edges=Edges(pairs[:, 0].copy(), pairs[:, 1].copy(), np.zeros(num_edges)),
        places=Places(("cluster",), np.asarray([-1], dtype=np.int64)),
        pools=unpowered_pools(pool_names, counts),
        modes=mode_table(list(kinds)),
        links=unlinked(num_pools),
        limits=Limits(np.zeros(0, dtype=np.int64), np.zeros(0)),
        objective=Objective.weighted({"makespan": 1.0}),
        problem=problem,
    )


def unpowered_pools(names: Sequence[str], counts: Sequence[int]) -> Pools:
    """Pools at the cluster that draw no power and have no memory limit."""
    zero = np.zeros(len(counts))
    return Pools(
        names=tuple(names),
        place=np.zeros(len(counts), dtype=np.int64),
        count=np.asarray(counts, dtype=np.int64),
        idle_w=zero,
        sleep_w=zero,
        gated=np.zeros(len(counts), dtype=bool),
        memory_gb=np.full(len(counts), np.inf),
    )


def unlinked(num_pools: int) -> Links:
    """No link between any two pools."""
    latency = np.full((num_pools, num_pools), np.inf)
    np.fill_diagonal(latency, 0.0)
    return Links(latency, np.zeros((num_pools, num_pools)), np.zeros((num_pools, num_pools)))


def mode_table(kinds: Sequence[Sequence[Mode]]) -> Modes:
    """Modes without power; a unit of work lasts as long as the mode says."""
    rows = [mode for choices in kinds for mode in choices]
    flat = [requirement for _, requirements in rows for requirement in requirements]
    zero = np.zeros(len(rows))
    return Modes(
        kind_names=tuple(f"k{q}" for q in range(len(kinds))),
        kind_ptr=np.cumsum([0] + [len(choices) for choices in kinds], dtype=np.int64),
        time_per_unit_s=np.asarray([duration for duration, _ in rows], dtype=float),
        energy_per_unit_j=zero,
        power_w=zero,
        clock=np.full(len(rows), np.nan),
        req_ptr=np.cumsum([0] + [len(requirements) for _, requirements in rows], dtype=np.int64),
        req_pool=np.asarray([pool for pool, _ in flat], dtype=np.int64),
        req_count=np.asarray([count for _, count in flat], dtype=np.int64),
    )


def longest_by_kind(modes: Modes) -> Floats:
    """Seconds per unit in the slowest mode of each kind."""
    out = np.zeros(len(modes.kind_names))
    np.maximum.at(out, modes.kind, modes.time_per_unit_s)
    return out
