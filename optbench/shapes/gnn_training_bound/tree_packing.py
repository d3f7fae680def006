"""Lower bounds on the cut from trees: multiplicative weights at every size, an LP where it fits.

In a feasible partition the part of a node v has at most M nodes. So of a set S with v, at least
|S| − M nodes are in other parts, and the path from v to each of them, in any tree, has a cut edge.
With l_e the number of nodes of S beyond edge e of the tree, and x_e = 1 for cut edges

    Σ_e min(l_e, |S| − M) x_e ≥ |S| − M          (one edge with l_e ≥ |S| − M is enough)

Multipliers y_t of such rows t give, with b_t = |S_t| − M and the load L_e = Σ_t y_t min(l_te, b_t),

    cut ≥ Σ_t y_t b_t − Σ_e max(0, L_e − 1)      because x_e ≤ 1.

A packing is trees in whole numbers without a scale: for each L > 0, y_t / L are multipliers too,
and the best L is the load of some edge.

``packed_trees`` lets the length of an edge grow with its load, tree after tree, in whole numbers:
roots and sizes are all that a certificate has to say, and the number of the first tree that
counts: those before it, made while lengths said little, have the multiplier 0. ``spreading_lp``
finds rows by the solution of an LP; its certificate has the lengths for which each tree was made.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from optbench.errors import OptbenchError
from optbench.shapes.gnn_training.training_data import Ints
from optbench.shapes.gnn_training_bound.cut_problem import CutProblem
from optbench.shapes.gnn_training_bound.rising_bound import RisingBound
from optbench.shapes.gnn_training_bound.tree_kernels import (
    FAR,
    LENGTH_BITS,
    add_tree,
    best_size,
    grown_lengths,
    shortest_paths,
    tree_loads,
)

# More trees than this could exceed 64 bits.
MOST_TREES = 1 << 16
# Lengths are computed anew after every one of so many trees, and then after each few of them.
FRESH_TREES, REFRESH = 512, 4
# Arcs that are looked at whatever the time, so that a busy machine gives a bound, too.
LEAST_ARCS = 5_000_000
# Arcs that are looked at in a second, roughly: whether there is time for a tree of every node.
ARCS_PER_S = 2e7
# Numbers of first trees that are tried: none is left out, or the trees before a power of two.
LEAST_FIRST, TRIED_FIRSTS = 16, 3
# From so many trees on, each doubling of their number has to promise a higher bound.
LEAST_PROMISING = 512


@dataclass
class TreePacking:
    """Trees by root and number of nodes, in the order in which they were packed; those before
    number ``first`` do not count.
    """

    roots: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    first: int = 0


@dataclass
class CountedTrees:
    """What the trees from number ``first`` on add up to: the sides Σ b_t and the load of edges."""

    first: int
    load: Ints
    total: int = 0

    def add(self, side: int, edges: Ints, loads: Ints) -> None:
        self.total += int(add_tree(self.load, edges, loads)) * side

    @property
    def value(self) -> Fraction:
        """The bound at the best scale."""
        return best_scaled(self.total, self.load)


@dataclass
class PackedLoads:
    """The trees so far: the load that gives edges their lengths, and what the trees count for.

    With ``tries_firsts`` all numbers of first trees are counted that may turn out best."""

    problem: CutProblem
    first: int = 0
    tries_firsts: bool = False
    count: int = 0

    def __post_init__(self) -> None:
        self.lengths = np.full(self.problem.num_edges, 256, dtype=np.int64)
        self.all = self._counted_from(0)
        self.counted = [self._counted_from(self.first)] if self.first else [self.all]

    def _counted_from(self, first: int) -> CountedTrees:
        return CountedTrees(first, np.zeros(self.problem.num_edges, dtype=np.int64))

    def add(self, root: int, size: int | None) -> int:
        """Pack a tree; return its number of nodes, the best one where none is given, or 0."""
        problem, arcs = self.problem, self.problem.arcs
        number = self.count
        if number < FRESH_TREES or number % REFRESH == 0:
            grown_lengths(self.all.load, LENGTH_BITS, self.lengths)
        if self.tries_firsts and number >= LEAST_FIRST and number & (number - 1) == 0:
            self.counted = [self.all, *self.counted[1:], self._counted_from(number)]
            del self.counted[1:-TRIED_FIRSTS]
        self.count += 1
        given = arcs.first, arcs.other, arcs.edge, self.lengths
        order, parent, to_parent, distance = shortest_paths(*given, root, FAR)
        if size is None:
            size = int(best_size(order, distance, problem.max_part))
        if not problem.max_part < size <= len(order):
            return 0
        side = size - problem.max_part
        edges, loads = tree_loads(order, parent, to_parent, size, side)
        for each in (self.all, *(one for one in self.counted if one is not self.all)):
            if number >= each.first:
                each.add(side, edges, loads)
        return size

    @property
    def best(self) -> CountedTrees:
        return max(self.counted, key=lambda each: each.value)


def best_scaled(total: int, load: Ints) -> Fraction:
    """Return max over L of (total − Σ_e max(0, load_e − L)) / L; floats only choose L."""
    falling = np.sort(load[load > 0])[::-1]
    if not len(falling):
        return Fraction(0)
    sizes = falling.astype(np.float64)
    beyond = np.cumsum(sizes) - sizes * np.arange(1, len(falling) + 1)
    best = int(np.argmax((total - beyond) / sizes))
    scale = int(falling[best])
    return Fraction(total - exact_sum(falling[: best + 1] - scale), scale)


def exact_sum(values: Ints) -> int:
    """Return the sum of numbers from 0, which may exceed 64 bits."""
    half = 31
    high, low = int((values >> half).sum()), int((values & ((1 << half) - 1)).sum())
    return (high << half) + low


def packed_trees(
    problem: CutProblem, time_limit_s: float, seed: int = 0, most: int = MOST_TREES
) -> TreePacking:
    """Pack trees of random roots for a time, or until the bound stands still."""
    deadline = time.perf_counter() + time_limit_s
    packing, loads = TreePacking(), PackedLoads(problem, tries_firsts=True)
    rising = RisingBound()
    least = LEAST_ARCS // (problem.num_nodes + 2 * problem.num_edges)
    for root in _far_roots(problem, seed, most, time_limit_s):
        size = loads.add(root, None)
        packing.roots.append(root)
        packing.sizes.append(size)
        if loads.count >= least and time.perf_counter() > deadline:
            break
        doubled = loads.count >= LEAST_PROMISING and loads.count & (loads.count - 1) == 0
        if doubled and rising.stands_still(loads.count, float(loads.best.value)):
            break
    packing.first = loads.best.first
    return packing


def _far_roots(problem: CutProblem, seed: int, most: int, time_limit_s: float) -> list[int]:
    """Nodes of components with more than M nodes, in random order again and again; where the time
    is too short for a tree of each, nodes of many edges come first.

    A tree loads the edges at its root most, so that it counts the more, the more there are."""
    sizes = np.bincount(problem.components)
    able = np.flatnonzero(sizes[problem.components] > problem.max_part)
    drawn = np.random.default_rng(seed)
    out: list[int] = []
    while len(able) and len(out) < most:
        roots = drawn.permutation(able)
        if len(able) * (problem.num_nodes + 2 * problem.num_edges) > ARCS_PER_S * time_limit_s:
            roots = roots[np.argsort(-problem.degrees[roots], kind="stable")]
        out += roots[: most - len(out)].tolist()
    return out


def proven_packing(problem: CutProblem, packing: TreePacking) -> Fraction:
    """Return the value of a packing, whose trees are made again."""
    if len(packing.roots) != len(packing.sizes) or len(packing.roots) > MOST_TREES:
        raise OptbenchError(f"the certificate has {len(packing.roots)} roots; at most {MOST_TREES}")
    loads = PackedLoads(problem, packing.first)
    for root, size in zip(packing.roots, packing.sizes):
        if not 0 <= root < problem.num_nodes:
            raise OptbenchError(f"the certificate has a tree at node {root}, which is not there")
        loads.add(root, size)
    return loads.best.value
