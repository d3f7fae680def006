"""Families of random graphs with about a given number of nodes and a mean degree.

    power      each node joins m = degree / 2 earlier ones, which are drawn in proportion to
               their degrees (Barabási and Albert); pairs that are drawn twice count once
    mesh       the Delaunay triangulation of random points in the unit square
    community  a planted partition: blocks of unequal sizes, ``INSIDE`` of the edges within one
    grid       a square lattice; its last row may be incomplete
    molecules  many small graphs: chains and rings of 8 to 40 atoms, never joined to each other
    hubs       stars of unequal sizes, whose centres form a cycle

Nodes are numbered at random, except for grids, so that no solver gains by their order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from optbench.shapes.gnn_training.training_data import DataGraph, Ints

from ._simple_graph import simple_graph

# Of a planted partition: the share of edges within blocks, and nodes per block.
INSIDE, BLOCK_NODES = 0.8, 500
# Atoms of a molecule, the shares of them that lie in rings, and the sizes of rings.
LEAST_ATOMS, MOST_ATOMS = 8, 40
RING_SHARE, RINGS = 0.5, (5, 6)
# The share of atoms that hang beside the chain.
BESIDE = 0.25


@dataclass(frozen=True)
class GraphFamily:
    """How a family is drawn, and its size and mean degree where none is given."""

    draw: Callable[[int, float, np.random.Generator], DataGraph]
    nodes: int
    degree: float | None


def power(nodes: int, degree: float, rng: np.random.Generator) -> DataGraph:
    """Draw all ends of edges at once: entry 2 e + 1 is a copy of a random earlier entry.

    Copies of copies are resolved by doubling, which takes as many rounds as their longest chain
    has binary digits.
    """
    per_node = max(1, round(degree / 2))
    edges = (nodes - 1) * per_node
    newer = 1 + np.arange(edges) // per_node
    source = (rng.random(edges) * (2 * (newer - 1) * per_node + 1)).astype(np.int64)
    ends = _ends_of(source, newer)
    label = rng.permutation(nodes)
    return simple_graph(nodes, label[newer], label[ends])


def _ends_of(source: Ints, newer: Ints) -> Ints:
    """The node at each drawn entry: entry 0 is node 0, entry 2 e + 1 is the newer node of edge e,
    and 2 e + 2 what edge e has drawn.
    """
    at = source
    while True:
        copied = (at > 0) & (at % 2 == 0)
        if not copied.any():
            return np.where(at == 0, 0, newer[at // 2])
        at = np.where(copied, at[np.maximum(at // 2 - 1, 0)], at)


def mesh(nodes: int, degree: float, rng: np.random.Generator) -> DataGraph:
    from scipy.spatial import Delaunay

    corners = Delaunay(rng.random((nodes, 2))).simplices
    return simple_graph(nodes, corners.ravel(), corners[:, [1, 2, 0]].ravel())


def community(nodes: int, degree: float, rng: np.random.Generator) -> DataGraph:
    blocks = max(2, nodes // BLOCK_NODES)
    share = rng.dirichlet(np.full(blocks, 3.0))
    block = np.sort(rng.choice(blocks, nodes, p=share))
    first = np.searchsorted(block, np.arange(blocks + 1))
    inside = round(nodes * degree / 2 * INSIDE)
    one = rng.integers(0, nodes, inside)
    low, high = first[block[one]], first[block[one] + 1]
    other = low + (rng.random(inside) * (high - low)).astype(np.int64)
    ends = rng.integers(0, nodes, (2, round(nodes * degree / 2 * (1 - INSIDE))))
    label = rng.permutation(nodes)
    one, other = np.concatenate([one, ends[0]]), np.concatenate([other, ends[1]])
    return simple_graph(nodes, label[one], label[other])


def grid(nodes: int, degree: float, rng: np.random.Generator) -> DataGraph:
    side = max(1, round(nodes**0.5))
    node = np.arange(nodes)
    right, below = node[(node % side < side - 1) & (node + 1 < nodes)], node[node + side < nodes]
    one, other = np.concatenate([right, below]), np.concatenate([right + 1, below + side])
    return simple_graph(nodes, one, other)


def molecules(nodes: int, degree: float, rng: np.random.Generator) -> DataGraph:
    """Chains of atoms with side atoms, and rings: a bond to the atom some places ahead, left out
    where that belongs to another molecule.
    """
    sizes = rng.integers(LEAST_ATOMS, MOST_ATOMS + 1, 1 + nodes // LEAST_ATOMS)
    molecule = np.repeat(np.arange(len(sizes)), sizes)[:nodes]
    atom = np.arange(1, nodes)
    second = np.maximum(atom - 2, 0)
    beside = (rng.random(nodes - 1) < BESIDE) & (molecule[second] == molecule[atom])
    before = np.where(beside, second, atom - 1)
    bound = molecule[before] == molecule[atom]
    size = rng.choice(RINGS, nodes - 1)
    ahead = np.minimum(atom + size - 1, nodes - 1)
    closed = (rng.random(nodes - 1) < RING_SHARE / size) & (molecule[ahead] == molecule[atom])
    label = rng.permutation(nodes)
    one, other = (
        np.concatenate([atom[bound], atom[closed]]),
        np.concatenate([before[bound], ahead[closed]]),
    )
    return simple_graph(nodes, label[one], label[other])


def hubs(nodes: int, degree: float, rng: np.random.Generator) -> DataGraph:
    centres = max(1, round(nodes**0.5 / 2))
    leaves = np.arange(centres, nodes)
    centre = np.sort(rng.choice(centres, len(leaves), p=rng.dirichlet(np.ones(centres))))
    ring = np.arange(centres)
    one, other = np.concatenate([leaves, ring]), np.concatenate([centre, (ring + 1) % centres])
    label = rng.permutation(nodes)
    return simple_graph(nodes, label[one], label[other])


FAMILIES = {
    "community": GraphFamily(community, 2_000, 10.0),
    "grid": GraphFamily(grid, 1_024, None),
    "hubs": GraphFamily(hubs, 1_000, None),
    "mesh": GraphFamily(mesh, 2_000, None),
    "molecules": GraphFamily(molecules, 2_000, None),
    "power": GraphFamily(power, 2_000, 8.0),
}
