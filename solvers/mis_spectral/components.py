"""Small components of a graph: taken out before the search, packed into what room is left after it.

Parts have no lower bound, so that the search on the rest may leave its parts unequal where that
cuts fewer edges; components that fit beside them cut none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.compiling.compiled import njit
from optbench.shapes.gnn_training.training_data import Ints

from .level_graph import LevelGraph

# Components of at most this share of the fair part are taken out.
SMALL = 0.05
# Random orders in which packing is tried after the descending one, and exchanges that follow each
# where a limit is exceeded.
ORDERS, MOST_EXCHANGES = 20, 100


@dataclass(frozen=True)
class Components:
    """The component of each node, the sizes of components, and the nodes of those not small.

    ``main`` is in breadth-first order: neighbours get numbers near to each other, as random access
    to memory takes most of the time on large graphs.
    """

    of_node: Ints
    size: Ints
    main: Ints

    @property
    def small(self) -> Ints:
        """The small components, the largest first."""
        kept = np.zeros(len(self.size), dtype=bool)
        kept[self.of_node[self.main]] = True
        found = np.flatnonzero(~kept)
        return found[np.argsort(-self.size[found], kind="stable")]


def components_of(graph: LevelGraph, fair: float) -> Components:
    """Find the components, and which of them are small beside the fair size of a part."""
    of_node, count, order = component_numbers(graph.ptr, graph.adj)
    size = np.bincount(of_node, graph.size, count).astype(np.int64)
    nodes = np.bincount(of_node, minlength=count)
    small = (size <= SMALL * fair) | (nodes == 1)
    return Components(of_node, size, order[~small[of_node[order]]])


@njit()
def component_numbers(ptr: Ints, adj: Ints) -> tuple[Ints, int, Ints]:
    """Return the component of each node, how many there are, and the nodes, breadth first."""
    nodes, count = len(ptr) - 1, 0
    found, order = np.full(nodes, -1, np.int64), np.empty(nodes, np.int64)
    begin, end = 0, 0
    for first in range(nodes):
        if found[first] >= 0:
            continue
        found[first], order[end] = count, first
        end += 1
        while begin < end:
            v = order[begin]
            begin += 1
            for e in range(ptr[v], ptr[v + 1]):
                u = adj[e]
                if found[u] < 0:
                    found[u], order[end] = count, u
                    end += 1
        count += 1
    return found, count, order


def packed(
    found: Components, part: Ints, load: Ints, limit: Ints, rng: np.random.Generator
) -> Ints:
    """Return ``part`` with all small components placed; one that fits nowhere exceeds a limit."""
    small = found.small
    best, least = small, None
    for order in range(ORDERS + 1):
        chosen = small if order == 0 else small[np.argsort(_noisy(found.size[small], rng))]
        where, over = _first_fit(found.size[chosen], limit - load)
        if over:
            where, over = _exchanged(found.size[chosen], where, limit - load)
        if least is None or over < least:
            best, least = _placed(len(found.size), chosen, where), over
        if over == 0:
            break
    out = part.copy()
    outside = part < 0
    out[outside] = best[found.of_node[outside]]
    return out


def _noisy(size: Ints, rng: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Keys for nearly descending orders."""
    return -size * rng.uniform(0.5, 1.5, len(size))


def _first_fit(size: Ints, room: Ints) -> tuple[list[int], int]:
    """Place each component where most room is left, the last ones where it fits best.

    Returns the part of each component, and by how much limits are exceeded."""
    left, where = room.tolist(), []
    parts = range(len(left))
    for each in size.tolist():
        fitting = [p for p in parts if left[p] == each]
        p = fitting[0] if fitting else max(parts, key=left.__getitem__)
        where.append(p)
        left[p] -= each
    return where, sum(-each for each in left if each < 0)


def _exchanged(size: Ints, where: list[int], room: Ints) -> tuple[list[int], int]:
    """Move components out of the fullest part, alone or for a smaller one of another part, while
    that lowers what exceeds the limits; components of one size are alike.
    """
    part = np.array(where)
    left = room - np.bincount(part, size, len(room)).astype(np.int64)
    for _ in range(MOST_EXCHANGES):
        p = int(left.argmin())
        if left[p] >= 0:
            break
        given, first = np.unique(np.where(part == p, size, 0), return_index=True)
        best, change = -int(left[p]), None
        for q in np.flatnonzero(left > 0).tolist():
            taken, other = np.unique(np.where(part == q, size, 0), return_index=True)
            gap = given[:, None] - taken[None, :]
            over = np.maximum(-left[p] - gap, 0) + np.maximum(gap - left[q], 0)
            i, j = np.unravel_index(over.argmin(), over.shape)
            if over[i, j] < best:
                best, change = int(over[i, j]), (q, gap[i, j], first[i], other[j], taken[j])
        if change is None:
            break
        q, moved, one, back, returned = change
        part[one] = q
        if returned:
            part[back] = p
        left[p] += moved
        left[q] -= moved
    return part.tolist(), int(np.maximum(-left, 0).sum())


def _placed(count: int, chosen: Ints, where: list[int]) -> Ints:
    out = np.full(count, -1, dtype=np.int64)
    out[chosen] = where
    return out
