"""The LP of tree rows by cutting planes, and its proof in whole numbers; see ``tree_packing``.

    min Σ x_e    subject to the rows of all trees, 0 ≤ x_e ≤ 1

In each round the trees of many roots are made for the lengths of the solution, and rows that it
violates are added. HiGHS proposes multipliers; what they prove is computed in whole numbers.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optbench.errors import OptbenchError
from optbench.shapes.gnn_training.training_data import Floats, Ints
from optbench.shapes.gnn_training_bound.cut_problem import CutProblem
from optbench.shapes.gnn_training_bound.tree_kernels import (
    FAR,
    best_size,
    shortest_paths,
    tree_loads,
)

# A length of 1 in whole numbers, and a multiplier of 1.
LENGTH_ONE, PRICE_ONE = 1 << 16, 1 << 32
LARGEST_PRICE, LARGEST_LOAD = 1 << 40, 1 << 60
# Violated rows of a round, and the roots that are tried for them.
ROUND_ROWS, ROUND_ROOTS = 40, 120
# Rows are added if violated by this share of their side.
LEAST_LACK = 1e-3
# Rows that were not tight in this many solutions are dropped from the LP.
IDLE_SOLUTIONS = 5
MOST_ROUNDS = 400


@dataclass(frozen=True)
class TreeRow:
    """Σ loads x_edges ≥ side, of the tree of the ``size`` nearest nodes of a root."""

    root: int
    size: int
    side: int
    edges: Ints
    loads: Ints


@dataclass
class LengthRound:
    """The trees of one set of lengths: roots, sizes and whole multipliers."""

    lengths: Ints
    roots: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    prices: list[int] = field(default_factory=list)


def whole_lengths(values: Floats) -> Ints:
    """Return lengths in whole numbers; the least one is 1, so that trees have few edges."""
    return 1 + np.rint(np.clip(values, 0, 1) * LENGTH_ONE).astype(np.int64)


def tree_row(
    problem: CutProblem, lengths: Ints, root: int, size: int | None = None
) -> TreeRow | None:
    """Return the row of a root, of the best size where none is given; None where it has none."""
    arcs = problem.arcs
    given = arcs.first, arcs.other, arcs.edge, lengths
    order, parent, to_parent, distance = shortest_paths(*given, root, FAR)
    if size is None:
        size = int(best_size(order, distance, problem.max_part))
    if not problem.max_part < size <= len(order):
        return None
    side = size - problem.max_part
    return TreeRow(root, size, side, *tree_loads(order, parent, to_parent, size, side))


def priced_loads(problem: CutProblem, rounds: list[LengthRound]) -> tuple[int, Ints]:
    """Return Σ y_t b_t and the load of each edge, in whole numbers; the trees are made again."""
    total, load = 0, np.zeros(problem.num_edges, dtype=np.int64)
    for each in rounds:
        for root, size, price in zip(each.roots, each.sizes, each.prices, strict=True):
            if not 0 <= root < problem.num_nodes or not 0 <= price <= LARGEST_PRICE:
                raise OptbenchError(f"the certificate has a tree at node {root}, price {price}")
            row = tree_row(problem, each.lengths, root, size)
            if row is None:
                raise OptbenchError(f"the certificate has a tree of {size} nodes at node {root}")
            total += price * row.side
            if price * row.side > LARGEST_LOAD:
                raise OptbenchError("the multipliers of the certificate are too large")
            load[row.edges] += price * row.loads
            if load.max(initial=0) > LARGEST_LOAD:
                raise OptbenchError("the multipliers of the certificate are too large")
    return total, load


def proven_rounds(problem: CutProblem, rounds: list[LengthRound]) -> Fraction:
    """Return the value that multipliers prove."""
    total, load = priced_loads(problem, rounds)
    beyond = np.maximum(load - PRICE_ONE, 0)
    return Fraction(total - sum(beyond.tolist()), PRICE_ONE)


class SpreadingLp:
    """Rows, rounds and the LP in HiGHS."""

    def __init__(self, problem: CutProblem, seed: int = 0) -> None:
        import highspy

        self.problem, self.random = problem, np.random.default_rng(seed)
        self.highs = highspy.Highs()
        self.highs.setOptionValue("output_flag", False)
        self.highs.setOptionValue("threads", 1)
        m = problem.num_edges
        self.highs.addVars(m, np.zeros(m), np.ones(m))
        self.highs.changeColsCost(m, np.arange(m, dtype=np.int32), np.ones(m))
        self.rounds: list[LengthRound] = []
        self.rows: list[tuple[int, TreeRow]] = []
        self.idle: NDArray[Any] = np.zeros(0, dtype=np.int64)
        self.values = np.zeros(m)

    def add_rows(self, lengths_of: Floats) -> int:
        """Add rows for these lengths that the solution violates; return how many."""
        lengths, n = whole_lengths(lengths_of), self.problem.num_nodes
        self.rounds.append(LengthRound(lengths))
        added = 0
        for root in self.random.permutation(n)[:ROUND_ROOTS].tolist():
            row = tree_row(self.problem, lengths, root)
            if row is None:
                continue
            if row.loads @ self.values[row.edges] >= row.side * (1 - LEAST_LACK):
                continue
            entries = row.edges.astype(np.int32), row.loads.astype(float)
            self.highs.addRow(float(row.side), np.inf, len(row.edges), *entries)
            self.rows.append((len(self.rounds) - 1, row))
            self.idle = np.append(self.idle, 0)
            added += 1
            if added == ROUND_ROWS:
                break
        return added

    def solve(self, seconds: float) -> Floats | None:
        """Solve the LP; return the multipliers of its rows, or None where time was too short."""
        import highspy

        limit = self.highs.getRunTime() + max(seconds, 0.1)
        self.highs.setOptionValue("time_limit", min(limit, highspy.kHighsInf))
        self.highs.run()
        if self.highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        solution = self.highs.getSolution()
        self.values = np.clip(np.array(solution.col_value), 0, 1)
        prices: Floats = np.maximum(np.array(solution.row_dual), 0)
        return prices

    def drop_idle(self, prices: Floats) -> None:
        """Delete rows that have not mattered for a while."""
        self.idle = np.where(prices > 0, 0, self.idle + 1)
        gone = np.flatnonzero(self.idle >= IDLE_SOLUTIONS)
        if len(gone):
            self.highs.deleteRows(len(gone), gone.astype(np.int32))
            stays = np.flatnonzero(self.idle < IDLE_SOLUTIONS)
            self.rows = [self.rows[i] for i in stays.tolist()]
            self.idle = self.idle[stays]

    def priced(self, prices: Floats) -> list[LengthRound]:
        """Return the rounds with the rows that have a multiplier."""
        out = {i: LengthRound(each.lengths) for i, each in enumerate(self.rounds)}
        for (i, row), price in zip(self.rows, np.floor(prices * PRICE_ONE).tolist()):
            if price > 0:
                out[i].roots.append(row.root)
                out[i].sizes.append(row.size)
                out[i].prices.append(int(price))
        return [each for each in out.values() if each.roots]


def spreading_rounds(
    problem: CutProblem, time_limit_s: float, seed: int = 0, most_rounds: int = MOST_ROUNDS
) -> list[LengthRound]:
    """Return the rounds of the best LP solved in the time."""
    deadline = time.perf_counter() + time_limit_s
    lp = SpreadingLp(problem, seed)
    best: list[LengthRound] = []
    mean = lp.values
    for _ in range(most_rounds):
        added = lp.add_rows(mean)
        if not added:
            if np.array_equal(mean, lp.values):
                break
            mean = lp.values
            continue
        prices = lp.solve(deadline - time.perf_counter())
        if prices is None:
            break
        best = lp.priced(prices)
        mean = (mean + lp.values) / 2
        lp.drop_idle(prices)
        if time.perf_counter() > deadline:
            break
    return best


def spreading_rows(problem: CutProblem, most_rounds: int) -> list[TreeRow]:
    """Return the rows that matter after so many rounds, the same in every run."""
    rounds = spreading_rounds(problem, float("inf"), most_rounds=most_rounds)
    made = [
        tree_row(problem, each.lengths, root, size)
        for each in rounds
        for root, size in zip(each.roots, each.sizes)
    ]
    return [row for row in made if row is not None]
