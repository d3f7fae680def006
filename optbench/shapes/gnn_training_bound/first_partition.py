"""A good partition of a small graph, from which exact solvers start: tabu search.

A step moves a node to another part with room, or exchanges two nodes of different parts, whichever
adds the fewest cut edges; a node that has moved stays for a few steps unless the cut is a new best.
A step looks at all pairs of nodes, so that searches are fewer on larger graphs, and beyond
``MOST_NODES`` there is none: the start is then runs of nodes in their order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optbench.compiling.compiled import inner, njit
from optbench.shapes.gnn_training.training_data import Ints
from optbench.shapes.gnn_training_bound.cut_problem import CutProblem

Array = NDArray[Any]
STARTS, STEPS_PER_NODE, TENURE = 30, 10, 7
# Pairs of nodes that all steps look at (some two seconds), and nodes beyond which none are made.
MOST_PAIRS, MOST_NODES = 2_400_000_000, 400


def searches_of(num_nodes: int) -> int:
    """The number of searches for which there is work."""
    if num_nodes > MOST_NODES:
        return 0
    return min(STARTS, MOST_PAIRS // (STEPS_PER_NODE * num_nodes**3))


def first_partition(problem: CutProblem, seed: int = 0) -> Ints:
    """Return the best partition of a few searches from random ones; of a large graph, runs."""
    rng = np.random.default_rng(seed)
    n, k = problem.num_nodes, problem.num_parts
    searches = searches_of(n)
    if searches == 0:
        return np.arange(n, dtype=np.int64) * k // n
    joined = np.zeros((n, n), dtype=np.int64)
    joined[problem.tail, problem.head] = joined[problem.head, problem.tail] = 1
    best, least = np.arange(n, dtype=np.int64) % k, problem.num_edges + 1
    for _ in range(searches):
        part = (rng.permutation(n) % k).astype(np.int64)
        steps = STEPS_PER_NODE * n
        tenure = rng.integers(1, TENURE + 1, steps)
        cut = int(tabu_search(joined, part, k, problem.max_part, tenure))
        if cut < least:
            best, least = part, cut
    return best


@njit(cache=True)
def tabu_search(joined: Array, part: Array, k: int, max_part: int, tenure: Array) -> int:
    """Improve a partition in place; return its cut."""
    n = len(part)
    links, sizes = np.zeros((n, k), np.int64), np.zeros(k, np.int64)
    for v in range(n):
        sizes[part[v]] += 1
        for u in range(n):
            links[v, part[u]] += joined[v, u]
    cut = 0
    for v in range(n):
        for p in range(k):
            cut += 0 if p == part[v] else links[v, p]
    cut //= 2
    best, kept = cut, part.copy()
    until = np.zeros(n, np.int64)
    for step in range(len(tenure)):
        added, v, u, p = _best_step(joined, part, links, sizes, max_part, until, step, best - cut)
        if v < 0:
            continue
        for w, goal in ((v, p), (u, part[v])):
            if w >= 0:
                _move(joined, part, links, sizes, w, goal)
                until[w] = step + tenure[step]
        cut += added
        if cut < best:
            best, kept = cut, part.copy()
    part[:] = kept
    return best


@inner()
def _move(joined: Array, part: Array, links: Array, sizes: Array, v: int, goal: int) -> None:
    sizes[part[v]] -= 1
    sizes[goal] += 1
    for u in range(len(part)):
        if joined[v, u]:
            links[u, part[v]] -= 1
            links[u, goal] += 1
    part[v] = goal


@inner()
def _best_step(
    joined: Array,
    part: Array,
    links: Array,
    sizes: Array,
    max_part: int,
    until: Array,
    step: int,
    wanted: int,
) -> tuple[int, int, int, int]:
    """Return the cut edges that the best step adds, the node, the one exchanged or −1, the part."""
    n, k = len(part), len(sizes)
    least, best_v, best_u, best_p = 1 << 40, -1, -1, -1
    for v in range(n):
        for p in range(k):
            if p == part[v] or sizes[p] >= max_part:
                continue
            added = links[v, part[v]] - links[v, p]
            if added < least and (until[v] <= step or added < wanted):
                least, best_v, best_u, best_p = added, v, -1, p
        for u in range(v + 1, n):
            a, b = part[v], part[u]
            if a == b:
                continue
            added = links[v, a] - links[v, b] + links[u, b] - links[u, a] + 2 * joined[v, u]
            free = until[v] <= step and until[u] <= step
            if added < least and (free or added < wanted):
                least, best_v, best_u, best_p = added, v, u, b
    return least, best_v, best_u, best_p
