"""Job shops and projects as instances: ticks of a second, no power, minimise the makespan."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Instance
from optbench.model.plain_instance import mode_table, plain_instance, plain_pools, plain_tasks

# (duration, ((pool, devices), ...))
Mode = tuple[int, tuple[tuple[int, int], ...]]


@dataclass(frozen=True)
class Shop:
    """``jobs[j][o]`` lists the (machine, duration) alternatives of operation o, from machine 0."""

    num_machines: int
    jobs: list[list[list[tuple[int, int]]]]


@dataclass(frozen=True)
class Project:
    """A project; ``edges`` are (before, after), activities and resources from 0."""

    capacities: list[int]
    durations: list[int]
    requirements: list[list[int]]
    edges: list[tuple[int, int]]


def shop_instance(shop: Shop, name: str, problem: str) -> Instance:
    """One pool of one device per machine, one task per operation, a chain per job."""
    names = [f"j{j}.{o}" for j, job in enumerate(shop.jobs) for o in range(len(job))]
    modes = [
        [(duration, ((machine, 1),)) for machine, duration in op] for job in shop.jobs for op in job
    ]
    first = np.cumsum([0] + [len(job) for job in shop.jobs]).tolist()
    chains = [
        (first[j] + o, first[j] + o + 1)
        for j, job in enumerate(shop.jobs)
        for o in range(len(job) - 1)
    ]
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
    names = [f"k{q}" for q in range(len(kinds))]
    ptr = np.cumsum([0] + [len(choices) for choices in kinds])
    rows = [(float(time), 0.0, 0.0, math.nan) for choices in kinds for time, _ in choices]
    pairs = np.asarray(edges, dtype=np.int64).reshape(len(edges), 2)
    return plain_instance(
        name,
        problem,
        plain_tasks(kind, task_names),
        plain_pools(pool_names, counts),
        mode_table(names, ptr, rows, [needs for choices in kinds for _, needs in choices]),
        {"makespan": 1.0},
        edges=(pairs[:, 0], pairs[:, 1], np.zeros(len(edges))),
    )
