"""Spectral clustering of the coarsest graph: the first partition.

With weighted degrees d and D = diag(d), nodes are embedded by the leading eigenvectors U of
D^-1/2 A D^-1/2, alternately as D^-1/2 U (random walks) and as rows of U scaled to length 1. Nodes
without edges have no place in an embedding: they are left out, and fill the emptiest parts at last.
k-means in the embedding holds each part to its limit: nodes choose their centre in the order of
regret, the difference between their distances to the nearest and to the second nearest centre.
"""

from __future__ import annotations

import numpy as np

from optbench.compiling.compiled import inner, njit
from optbench.shapes.gnn_training.training_data import Floats, Ints

from .level_graph import LevelGraph
from .local_search import INCREMENT, MULTIPLIER

# Above this number of nodes eigenvectors are computed by Lanczos iterations.
MOST_DENSE = 800
ITERATIONS = 8
FAR = 1e300


def embedding(graph: LevelGraph, parts: int) -> tuple[Ints, Floats, Floats]:
    """Return the nodes with edges, their leading eigenvectors, and their degrees^-1/2."""
    degree = np.bincount(
        np.repeat(np.arange(graph.num_nodes), np.diff(graph.ptr)),
        weights=graph.weight,
        minlength=graph.num_nodes,
    )
    nodes: Ints = np.flatnonzero(degree > 0)
    if len(nodes) == 0:
        return nodes, np.zeros((0, 0)), np.zeros(0)
    connected = graph if len(nodes) == graph.num_nodes else graph.induced(nodes)
    root: Floats = 1.0 / np.sqrt(degree[nodes])
    return nodes, _eigenvectors(connected, root, min(len(nodes), parts + 2)), root


def _eigenvectors(graph: LevelGraph, root: Floats, count: int) -> Floats:
    """The leading eigenvectors of the normalised adjacency matrix, the greatest first."""
    row = np.repeat(np.arange(graph.num_nodes), np.diff(graph.ptr))
    value = graph.weight * root[row] * root[graph.adj]
    n = graph.num_nodes
    if n <= max(MOST_DENSE, 2 * count):
        from scipy.linalg import eigh

        dense = np.zeros((n, n))
        dense[row, graph.adj] = value
        found = eigh(dense, subset_by_index=[n - count, n - 1], check_finite=False)[1]
    else:
        from scipy.sparse import csr_matrix
        from scipy.sparse.linalg import eigsh

        sparse = csr_matrix((value, graph.adj, graph.ptr), shape=(n, n))
        found = eigsh(sparse, k=count, which="LA", tol=1e-2, v0=1 / root)[1]
    return np.asarray(found[:, ::-1], dtype=np.float64)


def spectral_partitions(
    graph: LevelGraph, limit: Ints, rng: np.random.Generator, tries: int
) -> list[Ints]:
    """Return partitions of the graph, one for each try."""
    parts = len(limit)
    nodes, vectors, root = embedding(graph, parts)
    out = []
    for number in range(tries):
        part = np.full(graph.num_nodes, -1, dtype=np.int64)
        if len(nodes):
            points = _points(vectors, root, parts, number, rng)
            seed = int(rng.integers(1 << 40))
            part[nodes] = capped_means(points, graph.size[nodes], limit, ITERATIONS, seed)
        fill(part, graph.size, limit)
        out.append(part)
    return out


def _points(
    vectors: Floats, root: Floats, parts: int, number: int, rng: np.random.Generator
) -> Floats:
    """The places of the nodes for one try, all coordinates of deviation 1."""
    if number % 2:
        points = vectors[:, :parts]
        points = points / np.maximum(1e-9, np.linalg.norm(points, axis=1))[:, None]
    else:
        width = int(rng.integers(max(1, parts - 1), parts + 3))
        points = vectors[:, :width] * root[:, None]
    return np.ascontiguousarray(points / np.maximum(1e-12, points.std(axis=0)))


def fill(part: Ints, size: Ints, limit: Ints) -> None:
    """Put nodes without a part (-1), the largest first, where most room is left."""
    placed = part >= 0
    room = limit - np.bincount(part[placed], size[placed], len(limit))
    missing = np.flatnonzero(~placed)
    for v in missing[np.argsort(-size[missing], kind="stable")].tolist():
        part[v] = p = int(room.argmax())
        room[p] -= size[v]


@njit()
def capped_means(points: Floats, size: Ints, limit: Ints, iterations: int, seed: int) -> Ints:
    """k-means with at most ``limit`` in each part; a node that fits nowhere takes most room."""
    nodes, parts = len(points), len(limit)
    centre = first_centres(points, size, parts, seed)
    part = np.zeros(nodes, np.int64)
    distance, regret = np.empty((nodes, parts)), np.empty(nodes)
    for _ in range(iterations):
        for v in range(nodes):
            nearest, second = FAR, FAR
            for p in range(parts):
                distance[v, p] = squared(points, v, centre, p)
                if distance[v, p] < nearest:
                    nearest, second = distance[v, p], nearest
                elif distance[v, p] < second:
                    second = distance[v, p]
            regret[v] = nearest - second
        room = limit.copy()
        for v in np.argsort(regret):
            part[v] = nearest_with_room(distance, v, size[v], room)
            room[part[v]] -= size[v]
        move_centres(points, size, part, centre)
    return part


@inner()
def squared(points: Floats, v: int, centre: Floats, p: int) -> float:
    """The squared distance of a point and a centre."""
    total = 0.0
    for j in range(points.shape[1]):
        total += (points[v, j] - centre[p, j]) ** 2
    return total


@inner()
def nearest_with_room(distance: Floats, v: int, size: int, room: Ints) -> int:
    """The nearest part with room, else the one with most room."""
    chosen, least = -1, FAR
    for p in range(len(room)):
        if room[p] >= size and distance[v, p] < least:
            chosen, least = p, distance[v, p]
    return chosen if chosen >= 0 else int(np.argmax(room))


@inner()
def first_centres(points: Floats, size: Ints, parts: int, seed: int) -> Floats:
    """Draw centres in proportion to size × squared distance to the centres so far."""
    nodes, state = len(points), seed
    centre, near = np.empty((parts, points.shape[1])), np.full(nodes, 1.0)
    for p in range(parts):
        total = 0.0
        for v in range(nodes):
            if p == 1:
                near[v] = squared(points, v, centre, 0)
            elif p > 1:
                near[v] = min(near[v], squared(points, v, centre, p - 1))
            total += near[v] * size[v]
        state = state * MULTIPLIER + INCREMENT
        left = total * ((state >> 33) & ((1 << 30) - 1)) / (1 << 30)
        v = 0
        while v < nodes - 1 and left >= near[v] * size[v]:
            left -= near[v] * size[v]
            v += 1
        centre[p] = points[v]
    return centre


@inner()
def move_centres(points: Floats, size: Ints, part: Ints, centre: Floats) -> None:
    """Move each centre to the mean of its part; that of an empty part stays."""
    total = np.zeros(len(centre))
    for v in range(len(part)):
        total[part[v]] += size[v]
    for p in range(len(centre)):
        if total[p] > 0:
            centre[p] = 0.0
    for v in range(len(part)):
        p = part[v]
        for j in range(points.shape[1]):
            centre[p, j] += points[v, j] * size[v] / total[p]
