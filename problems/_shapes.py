"""Shapes of random task graphs: edges (before, after) with before < after."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Edges = list[tuple[int, int]]
Rng = np.random.Generator


def layered(rng: Rng, n: int) -> Edges:
    """Layers about as wide as there are many; a task waits for one to three of the layer before."""
    width = max(1, round(n**0.5))
    bounds = [0]
    while bounds[-1] < n:
        bounds.append(min(n, bounds[-1] + int(rng.integers(max(1, width // 2), width + width // 2 + 1))))
    edges: Edges = []
    for q in range(1, len(bounds) - 1):
        above = np.arange(bounds[q - 1], bounds[q])
        for j in range(bounds[q], bounds[q + 1]):
            parents = rng.permutation(above)[: int(rng.integers(1, 4))]
            edges += [(i, j) for i in sorted(parents.tolist())]
    return edges


def fork_join(rng: Rng, n: int) -> Edges:
    """Blocks in a row: one task opens two to five parallel ones, the next block's opener joins them."""
    edges: Edges = []
    opener = 0
    while opener < n - 1:
        branches = list(range(opener + 1, min(n, opener + 1 + int(rng.integers(2, 6)))))
        join = branches[-1] + 1
        edges += [(opener, j) for j in branches]
        if join < n:
            edges += [(i, join) for i in branches]
        opener = join
    return edges


def chains(rng: Rng, n: int) -> Edges:
    """Pipelines of two to five tasks, side by side."""
    edges: Edges = []
    begin = 0
    while begin < n:
        end = min(n, begin + int(rng.integers(2, 6)))
        edges += [(i, i + 1) for i in range(begin, end - 1)]
        begin = end
    return edges


def scattered(rng: Rng, n: int) -> Edges:
    """Every pair is an edge with a probability that gives a task two successors on average."""
    later = rng.random((n, n)) < min(1.0, 4.0 / max(1, n - 1))
    return [(i, j) for i, j in np.argwhere(np.triu(later, 1)).tolist()]


def independent(rng: Rng, n: int) -> Edges:
    """No edges."""
    return []


SHAPES: dict[str, Callable[[Rng, int], Edges]] = {
    "layered": layered,
    "fork_join": fork_join,
    "chains": chains,
    "random": scattered,
    "independent": independent,
}
