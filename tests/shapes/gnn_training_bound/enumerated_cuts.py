"""Random small graphs and their least cuts by enumeration of all partitions."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from optbench.shapes.gnn_training.gnn_training_shape import GnnTrainingShape
from optbench.shapes.gnn_training.training_data import DataGraph, DeviceLinks, GnnTraining, Ints
from optbench.shapes.protocol.shaped_instance import ShapedInstance
from tests.shapes.gnn_training.small_training import FAST

FREE = DeviceLinks(np.ones((1, 1)), np.zeros((1, 1)))


def partitions(num_nodes: int, num_parts: int) -> Ints:
    """Every partition once: the part of a node is at most one more than those before it."""
    found = np.zeros((1, 1), dtype=np.int64)
    for _ in range(num_nodes - 1):
        most = found.max(axis=1)
        found = np.concatenate(
            [
                np.column_stack([found[most + 1 >= p], np.full((most + 1 >= p).sum(), p)])
                for p in range(num_parts)
            ]
        )
    return found


def least_cut(data: GnnTraining) -> int:
    """The least number of cut edges under max_part."""
    n, k = data.graph.num_nodes, data.num_parts
    all_parts = partitions(n, k)
    sizes = np.stack([(all_parts == p).sum(axis=1) for p in range(k)])
    fit = all_parts[sizes.max(axis=0) <= data.max_part]
    cut = np.zeros(len(fit), dtype=np.int64)
    for u, v in zip(data.graph.tail.tolist(), data.graph.head.tolist()):
        cut += fit[:, u] != fit[:, v]
    return int(cut.min())


def random_cut(seed: int, most_nodes: int = 8) -> GnnTraining:
    """A random graph of few nodes: dense or sparse, with components or isolated nodes."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(2, most_nodes + 1)), int(rng.integers(2, 5))
    k = min(k, n)
    pairs = np.array(list(combinations(range(n), 2)), dtype=np.int64)
    edges = pairs[rng.random(len(pairs)) < rng.uniform(0.1, 0.9)]
    if rng.random() < 0.3:  # two components at least
        half = n // 2
        edges = edges[(edges[:, 0] < half) == (edges[:, 1] < half)]
    fewest = -(-n // k)
    most = int(rng.integers(fewest, min(n, fewest + 2) + 1))
    return cut_data(n, edges, k, most)


def shaped_cut(seed: int) -> GnnTraining:
    """Stars, complete graphs, circles, paths and isolated nodes, one or several of them: one to
    five parts, rooms from none to spare to that of the whole graph, nodes with sizes.
    """
    rng = np.random.default_rng(seed)
    edges, n = list[tuple[int, int]](), 0
    for _ in range(int(rng.integers(1, 4))):
        size, form = int(rng.integers(1, 8 if n == 0 else 4)), int(rng.integers(5))
        size = min(size, 8 - n)
        forms: tuple[list[tuple[int, int]], ...] = (
            [(0, i) for i in range(1, size)],
            list(combinations(range(size), 2)),
            [(i, i + 1) for i in range(size - 1)] + [(0, size - 1)] * (size > 2),
            [(i, i + 1) for i in range(size - 1)],
            [],
        )
        edges += [(n + u, n + v) for u, v in forms[form]]
        n += size
    k = min(n, int(rng.integers(1, 6)))
    fewest = -(-n // k)
    most = int(rng.choice([fewest, min(n, fewest + 1), int(rng.integers(fewest, n + 1)), n]))
    return cut_data(n, np.array(sorted(edges)), k, most, rng.integers(1, 9, n))


def cut_data(
    num_nodes: int, edges: Ints, num_parts: int, max_part: int, sizes: Ints | None = None
) -> GnnTraining:
    """An instance that minimises the cut, on one device; edges ascend."""
    edges = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    ends = edges[:, 0].copy(), edges[:, 1].copy()
    graph = DataGraph(num_nodes, *ends, *(() if sizes is None else (sizes,)))
    roomy = type(FAST)("roomy", 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
    return GnnTraining(graph, (), (), 0.0, (roomy,), FREE, num_parts, max_part)


def cut_instance(data: GnnTraining) -> ShapedInstance:
    return GnnTrainingShape().instance("cut", data)
