"""Certified bounds on the cut against the best cut that METIS finds, and graphs that are closed.

    python -m benchmarks.cut_bounds --seconds 60 --parts 2 5 8 --graphs cora citeseer
    python -m benchmarks.cut_bounds --exact 60 --sizes 60 100 150

The first command prints, for each graph and number of parts, the bound of each method, the seconds
of its search and of its proof, and the gap to the least cut of many runs of METIS at ``max_part``,
the largest part of METIS's default. The second one counts graphs whose least cut CP-SAT or HiGHS
proves within the time. Rows are appended to ``--out`` as JSON lines.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from optbench import api
from optbench.shapes.gnn_training.gnn_training_shape import GnnTrainingShape
from optbench.shapes.gnn_training.training_data import (
    DataGraph,
    DeviceLinks,
    GnnTraining,
    Ints,
    TrainingDevice,
)
from optbench.shapes.gnn_training_bound.cut_bound import cut_bounds, prove_cut

FAMILIES = ("mesh", "power", "community")
PLANETOID = ("cora", "citeseer")
DEVICE = TrainingDevice("device", 1.0, 1.0, 0.0, 0.0, 0.0, 1.0)
FREE = DeviceLinks(np.ones((1, 1)), np.zeros((1, 1)))


def graph_of(name: str, seed: int = 0) -> DataGraph:
    """Return a graph by name, such as cora or mesh:400."""
    family, _, size = name.partition(":")
    if family in PLANETOID:
        return _planetoid(family)
    n, rng = int(size or 2000), np.random.default_rng(seed)
    made = {"mesh": _mesh, "power": _power_law, "community": _communities}[family]
    return _graph(n, made(n, rng))


def _graph(num_nodes: int, edges: Ints) -> DataGraph:
    edges = np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1)
    edges = np.unique(edges, axis=0).astype(np.int64)
    return DataGraph(num_nodes, edges[:, 0].copy(), edges[:, 1].copy())


def _planetoid(name: str) -> DataGraph:
    folder = Path(os.environ["OPTBENCH_DATA"]) / "planetoid"
    near = pickle.loads((folder / f"ind.{name}.graph").read_bytes(), encoding="latin1")
    edges = np.array([(u, v) for u, others in near.items() for v in others])
    return _graph(max(near) + 1, edges)


def _mesh(n: int, rng: np.random.Generator) -> Ints:
    """Random points of a square, triangulated."""
    from scipy.spatial import Delaunay

    corners = Delaunay(rng.random((n, 2))).simplices
    return np.vstack([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]])


def _power_law(n: int, rng: np.random.Generator, links: int = 2) -> Ints:
    """Nodes arrive one by one and link to others in proportion to their degree."""
    ends, edges = list(range(links)), []
    for v in range(links, n):
        for u in {ends[i] for i in rng.integers(0, len(ends), links).tolist()}:
            edges.append((u, v))
            ends += [u, v]
    return np.array(edges)


def _communities(n: int, rng: np.random.Generator) -> Ints:
    """Groups of some ten nodes with four links inside and one outside per node."""
    group = np.sort(rng.integers(0, max(2, n // 10), n))
    first, size = np.searchsorted(group, group), np.bincount(group)[group]
    one = rng.integers(0, n, 2 * n)
    inside = np.column_stack([one, first[one] + (rng.random(2 * n) * size[one]).astype(int)])
    return np.vstack([inside, rng.integers(0, n, (n // 2, 2))])


def metis_cuts(graph: DataGraph, parts: int, seconds: float) -> tuple[int, int]:
    """Return the largest part of METIS's default, and the least cut of many runs below it."""
    import pymetis

    warnings.simplefilter("ignore", DeprecationWarning)
    order = np.argsort(np.concatenate([graph.tail, graph.head]), kind="stable")
    near = np.concatenate([graph.head, graph.tail])[order]
    counts = np.bincount(np.concatenate([graph.tail, graph.head]), minlength=graph.num_nodes)
    first = np.concatenate([[0], np.cumsum(counts)])

    def run(**options: Any) -> tuple[int, int]:
        recursive = options.pop("recursive", None)
        made = pymetis.Options(**options)
        cut, part = pymetis.part_graph(
            parts, xadj=first, adjncy=near, recursive=recursive, options=made
        )[:2]
        return cut, int(np.bincount(part, minlength=parts).max())

    least, most = run()
    began, seed = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        seed += 1
        cut, largest = run(seed=seed, recursive=seed % 2 == 0, ufactor=1 if seed % 4 < 2 else 5)
        if largest <= most:
            least = min(least, cut)
    return most, least


def cut_data(graph: DataGraph, parts: int, most: int) -> GnnTraining:
    return GnnTraining(graph, (), (), 0.0, (DEVICE,), FREE, parts, most)


def gaps(names: list[str], parts: list[int], seconds: float) -> Iterator[dict[str, Any]]:
    """Yield the bounds of each method for each graph and number of parts."""
    for name in names:
        graph = graph_of(name)
        for k in parts:
            most, cut = metis_cuts(graph, k, seconds / 6)
            data = cut_data(graph, k, most)
            row: dict[str, Any] = {
                "graph": name,
                "nodes": graph.num_nodes,
                "edges": graph.num_edges,
                "parts": k,
                "max_part": most,
                "cut": cut,
            }
            for method in ("trees", "sdp"):
                began = time.process_time()
                best = cut_bounds(data, seconds, method)[0]
                row[f"{method}_s"] = round(time.process_time() - began, 1)
                began = time.process_time()
                assert prove_cut(data, best.certificate or "").value == best.value <= cut
                row |= {method: best.value, f"{method}_proof_s": time.process_time() - began}
                row[f"{method}_kb"] = len(best.certificate or "") // 1000
            row["gap"] = 1 - max(row["trees"], row["sdp"]) / cut
            yield row


def closed(sizes: list[int], parts: list[int], seconds: float) -> Iterator[dict[str, Any]]:
    """Yield what exact solvers prove of small graphs of three families, five of each size."""
    for family in FAMILIES:
        for size in sizes:
            for k in parts:
                for seed in range(5):
                    yield _closed_one(family, size, k, seed, seconds)


def _closed_one(family: str, size: int, k: int, seed: int, seconds: float) -> dict[str, Any]:
    graph = graph_of(f"{family}:{size}", seed)
    data = cut_data(graph, k, -(-size // k) + 1)
    row: dict[str, Any] = {"graph": family, "nodes": size, "edges": graph.num_edges, "parts": k}
    row["seed"] = seed
    for solver in ("highs", "cpsat"):
        instance = GnnTrainingShape().instance(f"{family}_{size}_{k}_{seed}", data)
        began = time.perf_counter()
        _ = instance.formulation
        left = seconds - (time.perf_counter() - began)
        result = api.solve(instance, solver, time_limit_s=max(left, 1.0))
        row[solver] = [result.objective, result.status, round(time.perf_counter() - began, 1)]
    return row


def main() -> None:
    read = argparse.ArgumentParser(description=__doc__)
    read.add_argument("--graphs", nargs="+", default=[*PLANETOID, *FAMILIES])
    read.add_argument("--parts", nargs="+", type=int, default=[2, 5, 8])
    read.add_argument("--seconds", type=float, default=60.0)
    read.add_argument("--exact", type=float, default=0.0, help="seconds for each exact solver")
    read.add_argument("--sizes", nargs="+", type=int, default=[60, 100, 150])
    read.add_argument("--out", type=Path)
    given = read.parse_args()
    if given.exact:
        rows = closed(given.sizes, given.parts, given.exact)
    else:
        rows = gaps(given.graphs, given.parts, given.seconds)
    for row in rows:
        print(json.dumps(row), flush=True)
        if given.out:
            with given.out.open("a") as out:
                out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
