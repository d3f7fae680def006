"""Instances for the tests of the graph view, and the same instance with its tasks permuted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np

from optbench.formats.classical import Project, project_instance
from optbench.formats.format_registry import parse
from optbench.model.builder import Model
from optbench.model.instance import Instance, Ints
from optbench.plugins.discovery import load_problem
from optbench.views.graph.feature_columns import RUNS_ON
from tests.sample_files.inputs import cluster, project, shop
from tests.sample_files.sample_records import sacct_text, workflow_text


def nested() -> Instance:
    """A rack in a site in the cluster, a pool at each of them, a cap and a mode on two pools at
    once.
    """
    m = Model("nested", time="seconds", horizon_s=500.0)
    site = m.place("site")
    rack = m.place("rack", site)
    top = m.pool("top", 2, idle_w=5.0)
    mid = m.pool("mid", 3, at=site, idle_w=7.0, memory_gb=16.0)
    low = m.pool("low", 4, at=rack, idle_w=11.0, memory_gb=32.0)
    m.link(mid, low, bandwidth_gbit_s=8, latency_ms=500, energy_j_per_gb=3, both=False)
    free = m.task("free", modes=[m.mode(None, 2.5)])
    both = [m.mode({mid: 2, low: 1}, 10, 400, power_w=90), m.mode(top, 40, 300, clock=0.5)]
    gang = m.task("gang", modes=both, after=free)
    m.task(
        "last",
        units=3,
        modes=[m.mode(low, 4, 30, clock=1.0)],
        data_gb={gang: 2.0},
        deadline_s=90,
        weight=2,
    )
    m.limit(power_w=100, at=site)
    m.minimize(energy_j=1, makespan_s=2)
    return m.build()


def same(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def permuted(instance: Instance, order: Ints) -> Instance:
    """The instance with task ``order[i]`` as task i."""
    tasks, place = instance.tasks, np.argsort(order)
    columns = {field.name: getattr(tasks, field.name) for field in fields(tasks)}
    rows: dict[str, Any] = {
        name: each[order] for name, each in columns.items() if isinstance(each, np.ndarray)
    }
    edges = replace(
        instance.edges, source=place[instance.edges.source], target=place[instance.edges.target]
    )
    return replace(instance, tasks=replace(tasks, **rows, names=None), edges=edges)


def rows_of(graph: Any, name: Ints) -> list[tuple[float, ...]]:
    """The edges (task, runs_on, device) with tasks by name and features, sorted."""
    edge = graph[RUNS_ON]
    task, device = edge.edge_index.numpy()
    rows = np.column_stack((name[task], device, np.round(edge.edge_attr.numpy(), 9)))
    return sorted(map(tuple, rows.tolist()))


CASES: dict[str, Callable[[], Instance]] = {
    "dag": lambda: load_problem("gpu_dag:tasks=12,gpus=5,price=true").instance(3),
    "cluster": cluster,
    "nested": nested,
    "shop": lambda: shop(True),
    "project": project,
    "log": lambda: parse(sacct_text(), "log"),
    "workflow": lambda: parse(workflow_text(), "workflow"),
    "one task": lambda: project_instance(Project([1], [0], [[0]], []), "one"),
}
