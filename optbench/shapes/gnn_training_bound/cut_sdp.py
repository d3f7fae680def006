"""The semidefinite bound: unit vectors by sweeps, rows by cutting planes, multipliers by steps.

A partition into k parts is n unit vectors in a simplex, d_ij = (1 − 1/k)(1 − v_i·v_j). Relaxed to
any unit vectors, with the rows of ``cut_rows`` that are violated most, the method alternates a
sweep that sets each vector to its best place for the present prices (the mixing method) and a step
of the prices towards the rows that are violated, looking one step ahead. The prices are then
frozen, the sweeps go on until they settle, and the lengths of the gradients are the diagonal y of
``cut_sdp_proof``; the smallest shift that makes Z positive semidefinite is found by trial.
"""

from __future__ import annotations

import time
from copy import copy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from optbench.shapes.gnn_training.training_data import Floats
from optbench.shapes.gnn_training_bound.cut_problem import CutProblem
from optbench.shapes.gnn_training_bound.cut_rows import (
    APART,
    ODD,
    TRIANGLE,
    CutRows,
    RowPairs,
    no_rows,
    ordered_rows,
    row_pairs,
)
from optbench.shapes.gnn_training_bound.cut_sdp_kernels import (
    inner_products,
    pair_weights,
    row_excess,
    sweep,
    violated_pairs,
    violated_triangles,
)
from optbench.shapes.gnn_training_bound.cut_sdp_proof import (
    ONE,
    CutMultipliers,
    factorises,
    semidefinite_margin,
    value_of,
    whole_matrix,
)
from optbench.shapes.gnn_training_bound.cut_tree_rows import no_trees, with_violated_trees
from optbench.shapes.gnn_training_bound.rising_bound import RisingBound
from optbench.shapes.gnn_training_bound.spreading_lp import priced_loads

MOST_WIDTH = 32
# Sweeps without rows, after each new set of rows, and with frozen prices before a proof.
FIRST_SWEEPS, ROUND_SWEEPS, LAST_SWEEPS = 600, 100, 400
# Rows are added if violated by this much, so many per edge and in all.
LEAST_EXCESS, PER_PAIR, MOST_NEW = 0.01, 2, 30_000
# Triangles without an edge are looked for where fewer new rows than this share were found.
WIDE_BELOW = 0.02
# Prices below this are dropped before a proof, and rows whose price stays 0 for so many rounds.
LEAST_PRICE, IDLE_ROUNDS = 2.0**-14, 3
MOST_ROUNDS = 400
# Roots of new trees, and by which share of their side their rows must be violated.
NEW_TREES, LEAST_LACK = 40, 0.02
# Prices of rows are multiples of this, so that certificates are short.
COARSE = 1 << 12
# A proof takes as long as so many rounds.
PROOF_ROUNDS = 10
# On small graphs it is tried after these rounds, which grow in proportion to the work.
OFTEN_PROVED_NODES = 300
PROVED_ROUNDS = frozenset({3, 6, 12, 24, 48, 96, 192, 384})
# Before a proof the prices come to rest, in steps of these shares of the first ones.
SETTLING_SHARES, SETTLING_SWEEPS = (0.1, 0.03), 300


@dataclass
class SdpSteps:
    """Lengths of steps of the prices of rows, of trees, of the total and of nodes.

    Those of rows and trees shrink from round to round, down to a share."""

    row: float = 5e-3
    tree: float = 2e-2
    total: float = 6.0
    node: float = 1e-5
    shrinking: float = 0.94
    least_share: float = 0.2

    def share(self, num_rounds: int) -> float:
        return max(self.shrinking**num_rounds, self.least_share)


def steps_for(num_nodes: int) -> SdpSteps:
    """Return the steps for a graph; prices of nodes and of the total are about 1 / n."""
    if num_nodes > OFTEN_PROVED_NODES:
        return SdpSteps()
    return SdpSteps(row=1e-2, node=0.4 / num_nodes)


@dataclass
class CutSdp:
    """The state of the method on one problem."""

    problem: CutProblem
    seed: int = 0
    steps: SdpSteps = field(default_factory=SdpSteps)

    def __post_init__(self) -> None:
        n, k = self.problem.num_nodes, self.problem.num_parts
        width = min(MOST_WIDTH, n)
        drawn = np.random.default_rng(self.seed).standard_normal((n, width))
        drawn /= np.linalg.norm(drawn, axis=1)[:, None]
        self.vectors = drawn.astype(np.float32)
        self.scale = 1 - 1 / k
        self.square_sum = n * n - 2 * self.problem.pairs_apart / self.scale
        self.node_side = n - (n - self.problem.max_part) / self.scale
        self.total_price = 1.0 / n
        self.node_price = np.zeros(n)
        self.rows, self.trees = no_rows(), no_trees()
        self.idle, self.idle_tree = np.zeros((2, 0), dtype=np.int64)
        self.num_rounds = 0
        self.wide, self.settling = False, 0.0
        self.random = np.random.default_rng(self.seed)
        self._take_rows(self.rows)

    def _take_rows(self, rows: CutRows) -> None:
        self.rows = rows
        self.pairs: RowPairs = row_pairs(
            self.problem.num_nodes, self.problem.tail, self.problem.head, rows
        )
        self.lengths = np.zeros(self.problem.num_nodes)
        self.weight = np.zeros(len(self.pairs.low), dtype=np.float32)
        self.products = np.zeros(len(self.pairs.low), dtype=np.float32)
        k = self.problem.num_parts
        self.side = np.where(rows.kind == APART, 1 / (k - 1), 1.0)
        self.excess = np.zeros(rows.count)

    @property
    def value(self) -> float:
        """The cut of the vectors, which need not satisfy the rows."""
        edges = self.pairs.edge
        inner_products(self.pairs.low, self.pairs.high, self.vectors, self.products)
        return float(self.scale * (len(edges) - self.products[edges].sum(dtype=np.float64)))

    def step(self, frozen: bool = False) -> None:
        """Move the prices unless they are frozen, then every vector."""
        ahead, ahead_tree = self.rows.multiplier, self.trees.price
        if not frozen:
            ahead, ahead_tree = self._move_prices()
        pairs = self.pairs
        pair_weights(pairs.row, pairs.signs, ahead, pairs.edge, self.weight)
        if self.trees.count:
            self.weight[pairs.edge] += self.trees.loads(ahead_tree, len(pairs.edge))
        sweep(
            *(pairs.first, pairs.other, pairs.at, self.weight),
            *(self.total_price, self.node_price, self.vectors, self.lengths),
        )

    def _move_prices(self) -> tuple[Floats, Floats]:
        """Move the prices; return those of rows and of trees one step ahead."""
        n, pairs = self.problem.num_nodes, self.pairs
        whole = self.vectors.sum(axis=0, dtype=np.float64)
        over = (whole @ whole - self.square_sum) / n**2
        calm = self.settling or 1.0
        self.total_price = max(0.0, self.total_price + calm * self.steps.total / n * over)
        if self.problem.num_parts > 2:
            beyond = (self.vectors @ whole - self.node_side) / n
            self.node_price = np.maximum(0.0, self.node_price + calm * self.steps.node * beyond)
        inner_products(pairs.low, pairs.high, self.vectors, self.products)
        row_excess(pairs.row, pairs.signs, self.side, self.products, self.excess)
        share = self.settling or self.steps.share(self.num_rounds)
        step = self.steps.row * share * self.excess
        self.rows.multiplier = np.maximum(0.0, self.rows.multiplier + step)
        trees = self.trees
        tree_step = np.zeros(0)
        if trees.count:
            lacks = trees.lacks(self.scale * (1 - self.products[pairs.edge].astype(np.float64)))
            tree_step = self.steps.tree * share / trees.squares * lacks
            trees.price = np.maximum(0.0, trees.price + tree_step)
        ahead_tree = np.maximum(0.0, trees.price + 2 * tree_step)
        return np.maximum(0.0, self.rows.multiplier + 2 * step), ahead_tree

    def separate(self) -> int:
        """Add violated rows and drop idle ones; return how many were added."""
        self._drop_idle()
        self.num_rounds += 1
        products: Any = self.vectors @ self.vectors.T
        before = self.rows.count
        rows = self.rows
        for found in (self._triangles(products), self._pairs(products)):
            rows = rows.with_rows(found, self.problem.num_nodes)
        self.idle = np.concatenate([self.idle, np.zeros(rows.count - before, dtype=np.int64)])
        added = rows.count - before
        self.wide = added < WIDE_BELOW * rows.count
        self._take_rows(rows)
        return added + self._add_trees()

    def _add_trees(self) -> int:
        """Add violated rows of trees; return how many."""
        _ = self.value
        apart = np.clip(self.scale * (1 - self.products[self.pairs.edge].astype(float)), 0, 1)
        roots = self.random.permutation(self.problem.num_nodes)[:NEW_TREES]
        before = self.trees.count
        self.trees = with_violated_trees(self.trees, self.problem, apart, roots, LEAST_LACK)
        added = self.trees.count - before
        self.idle_tree = np.concatenate([self.idle_tree, np.zeros(added, dtype=np.int64)])
        return added

    def _drop_idle(self) -> None:
        self.idle = np.where(self.rows.multiplier > 0, 0, self.idle + 1)
        stays = self.idle < IDLE_ROUNDS
        self.rows, self.idle = self.rows.taken(stays), self.idle[stays]
        self.idle_tree = np.where(self.trees.price > 0, 0, self.idle_tree + 1)
        left = np.flatnonzero(self.idle_tree < IDLE_ROUNDS)
        self.trees, self.idle_tree = self.trees.taken(left), self.idle_tree[left]

    def _triangles(self, products: Floats) -> CutRows:
        problem = self.problem
        two = problem.num_parts == 2
        # Triangles with an edge come first; once few are left, those with any pair of a row.
        ends = problem.tail, problem.head
        if self.wide:
            ends = self.pairs.low, self.pairs.high
        found, excess = violated_triangles(*ends, products, two, PER_PAIR, LEAST_EXCESS)
        found = found[np.argsort(-excess, kind="stable")[:MOST_NEW]]
        i, j, k, form = found.T
        kind = np.where(form == 3, ODD, TRIANGLE)
        middle = np.choose(np.minimum(form, 2), [j, i, k])
        a = np.where(form == 1, j, i)
        c = np.where(form == 2, j, k)
        odd = form == 3
        return ordered_rows(
            kind, np.where(odd, i, a), np.where(odd, j, middle), np.where(odd, k, c)
        )

    def _pairs(self, products: Floats) -> CutRows:
        k = self.problem.num_parts
        if k == 2:
            return no_rows()
        found, excess = violated_pairs(products, -1 / (k - 1) - LEAST_EXCESS)
        found = found[np.argsort(-excess, kind="stable")[:MOST_NEW]]
        a, b = found.T
        return ordered_rows(np.full(len(a), APART), a, b, np.full(len(a), -1))

    def settled(self) -> CutMultipliers:
        """Let the prices come to rest in shorter and shorter steps, without new rows; return
        multipliers.
        """
        for self.settling in SETTLING_SHARES:
            for _ in range(SETTLING_SWEEPS):
                self.step()
        self.settling = 0.0
        return self.multipliers()

    def multipliers(self, sweeps: int = LAST_SWEEPS) -> CutMultipliers:
        """Return whole multipliers for the present prices whose Z is positive semidefinite."""
        given = self._rounded()
        frozen = copy(self)
        frozen.vectors = self.vectors.copy()
        frozen._take_rows(CutRows(given.kind, given.nodes, given.price / ONE))
        frozen.trees = replace(self.trees)
        frozen.total_price, frozen.node_price = given.total / ONE, given.node / ONE
        for _ in range(sweeps):
            frozen.step(frozen=True)
        return with_diagonal(self.problem, given, frozen.lengths)

    def _rounded(self) -> CutMultipliers:
        """The prices in whole numbers, without a diagonal."""
        rows = self.rows.taken(self.rows.multiplier >= LEAST_PRICE)
        return CutMultipliers(
            rows.kind,
            rows.nodes,
            np.rint(rows.multiplier * (ONE / COARSE)).astype(np.int64) * COARSE,
            round(self.total_price * ONE),
            np.rint(self.node_price * ONE).astype(np.int64),
            self.trees.length_rounds(),
            np.zeros(self.problem.num_nodes, dtype=np.int64),
        )


def with_diagonal(problem: CutProblem, given: CutMultipliers, diagonal: Floats) -> CutMultipliers:
    """Return multipliers with the least shift of this diagonal, to a tenth, that is proved."""
    _, load = priced_loads(problem, given.trees)
    matrix = whole_matrix(problem, given, load)
    own = np.rint(diagonal * ONE)
    margin = 1.01 * semidefinite_margin(problem.num_nodes, 2 * float(own.sum())) + 2.0
    fails, shift = 0.0, max(1e-6 * float(own.mean()), 4.0)
    while not factorises(matrix, own + (shift - margin)):
        fails, shift = shift, shift * 4
    while shift > 1.1 * fails + 4 * margin:
        middle = (fails + shift) / 2
        if factorises(matrix, own + (middle - margin)):
            shift = middle
        else:
            fails = middle
    return replace(given, diagonal=(own + np.ceil(shift)).astype(np.int64))


def _value(problem: CutProblem, given: CutMultipliers) -> Fraction:
    return value_of(problem, given, *priced_loads(problem, given.trees))


def sdp_multipliers(
    problem: CutProblem,
    time_limit_s: float,
    known: int | None = None,
    most_rounds: int = MOST_ROUNDS,
) -> CutMultipliers:
    """Return multipliers found in the time; the search ends where they prove ``known``.

    A proof takes many sweeps: enough time is left for the last one."""
    began = time.perf_counter()
    sdp = CutSdp(problem, steps=steps_for(problem.num_nodes))
    for _ in range(FIRST_SWEEPS):
        sdp.step()
    best, proof_s = sdp.multipliers(), 0.0
    rising = RisingBound()
    for i in range(1, most_rounds + 1):
        round_began = time.perf_counter()
        if round_began - began + proof_s > time_limit_s or not sdp.separate():
            break
        for _ in range(ROUND_SWEEPS):
            sdp.step()
        round_s = time.perf_counter() - round_began
        proof_s = round_s * (1 + PROOF_ROUNDS)
        if i in PROVED_ROUNDS and problem.num_nodes <= OFTEN_PROVED_NODES:
            best = _better(problem, best, sdp.settled())
            value = _value(problem, best)
            if rising.stands_still(i, float(value)) or (known is not None and value > known - 1):
                return best
    return _better(problem, best, sdp.settled())


def _better(problem: CutProblem, one: CutMultipliers, other: CutMultipliers) -> CutMultipliers:
    return max(one, other, key=lambda each: _value(problem, each))
