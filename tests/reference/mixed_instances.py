"""Random instances of every family and form, and the same instance with its tasks in
another order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from optbench.model.instance import Instance, Ints
from optbench.plugins.discovery import load_problem
from tests.reference.random_instances import in_fine_ticks, tiny_instance

Rng = np.random.Generator
SHAPES = (
    "layered",
    "fork_join",
    "chains",
    "random",
    "independent",
    "batch",
    "pipeline",
    "data_parallel",
)
KINDS = 8


def mixed_instance(seed: int) -> Instance:
    """The instance of this seed: tiny ones (of coarse and of fine ticks), shops, projects, and task
    graphs of every shape.
    """
    rng = np.random.default_rng([seed, 3])
    kind = seed % KINDS
    if kind < 2:
        return _tiny(seed, fine=kind == 1)
    if kind == 2:
        made: Instance = load_problem(
            f"jobshop:jobs={rng.integers(2, 7)},machines={rng.integers(2, 6)}"
        ).instance(seed)
        return made
    if kind == 3:
        spec = (
            f"flexible_jobshop:jobs={rng.integers(2, 6)},machines={rng.integers(2, 5)},"
            f"operations={rng.integers(2, 5)}"
        )
        made = load_problem(spec).instance(seed)
        return made
    if kind == 4:
        made = load_problem(
            f"rcpsp:activities={rng.integers(10, 24)},resources={rng.integers(1, 5)},complexity=1.2"
        ).instance(seed)
        return made
    return _task_graph(rng, seed, kind)


def _tiny(seed: int, fine: bool) -> Instance:
    instance = tiny_instance(seed)
    both = in_fine_ticks(instance)
    return both[1] if fine and both is not None else instance


def _task_graph(rng: Rng, seed: int, kind: int) -> Instance:
    """A GPU task graph with everything that can be switched on; kinds 6 and 7 in nanoseconds, kind
    7 of individual devices.
    """
    params: dict[str, Any] = {
        "tasks": int(rng.integers(4, 16)),
        "gpus": int(rng.integers(3, 7)),
        "types": int(rng.integers(1, 4)),
        "shape": str(rng.choice(SHAPES)),
        "price": bool(rng.random() < 0.5),
        "carbon": bool(rng.random() < 0.5),
        "deadlines": str(rng.choice(["none", "flexible", "tight"])),
        "hard": bool(rng.random() < 0.3),
        "cpus": int(rng.integers(0, 3)),
        "power_cap": float(rng.uniform(0.6, 1.0)) if rng.random() < 0.5 else None,
        "pooled": kind != 7,
    }
    instance = load_problem("gpu_dag", params).instance(seed)
    n, tasks = instance.num_tasks, instance.tasks
    release: Any = rng.integers(0, 60, n) * (rng.random(n) < 0.3)
    instance = replace(
        instance, tasks=replace(tasks, release=release.astype(np.asarray(tasks.release).dtype))
    )
    if kind != 5:
        instance = in_nanoseconds(instance, rng)
    made: Instance = instance
    return made


def in_nanoseconds(instance: Instance, rng: Rng) -> Instance:
    """The same work in ticks of 1 ns, with odd times, a fixed horizon far out, and preemption
    allowed.
    """
    finer, n = round(instance.tick_s * 1e9), instance.num_tasks
    tasks, tariffs = instance.tasks, instance.tariffs
    release = tasks.release * finer + rng.integers(0, 10**9, n) * (tasks.release > 0)
    return replace(
        instance,
        tick_s=1e-9,
        horizon=10**14,
        preemptive=True,
        tasks=replace(tasks, release=release, deadline=tasks.deadline * finer),
        tariffs=None if tariffs is None else replace(tariffs, times=tariffs.times * finer),
    )


def permuted(instance: Instance, order: Ints) -> Instance:
    """Task i of the result is task ``order[i]``; edges are listed in another order too."""
    tasks, edges = instance.tasks, instance.edges
    names = None if tasks.names is None else tuple(tasks.names[i] for i in order.tolist())
    columns = ("kind", "units", "release", "deadline", "deadline_hard", "weight", "memory_gb")
    place = np.argsort(order)
    flip = slice(None, None, -1)
    return replace(
        instance,
        tasks=replace(
            tasks, names=names, **{name: getattr(tasks, name)[order] for name in columns}
        ),
        edges=replace(
            edges,
            source=place[edges.source][flip],
            target=place[edges.target][flip],
            data_gb=edges.data_gb[flip],
        ),
    )
