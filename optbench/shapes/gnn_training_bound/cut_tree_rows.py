"""Rows of trees with prices, as the semidefinite bound adds them; see ``tree_packing``.

A row is divided by its side: Σ_e coefficient_e d_e ≥ 1, with coefficients from 0 to 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.shapes.gnn_training.training_data import Floats, Ints
from optbench.shapes.gnn_training_bound.cut_problem import CutProblem
from optbench.shapes.gnn_training_bound.spreading_lp import (
    PRICE_ONE,
    LengthRound,
    tree_row,
    whole_lengths,
)


@dataclass
class PricedTrees:
    """Rows one after another: those of row t are entries start[t] to start[t + 1].

    ``made`` has the round, the root, the size and the side of each row."""

    rounds: list[Ints]
    made: Ints
    start: Ints
    edge: Ints
    coefficient: Floats
    price: Floats

    @property
    def count(self) -> int:
        return len(self.made)

    @property
    def squares(self) -> Floats:
        """The sum of squares of the coefficients of each row."""
        squares: Floats = np.add.reduceat(self.coefficient**2, self.start[:-1])
        return squares

    def lacks(self, apart: Floats) -> Floats:
        """By how much each row is violated."""
        if not self.count:
            return np.zeros(0)
        out: Floats = 1 - np.add.reduceat(self.coefficient * apart[self.edge], self.start[:-1])
        return out

    def loads(self, price: Floats, num_edges: int) -> Floats:
        """Σ price × coefficient of each edge."""
        each = np.repeat(price, np.diff(self.start)) * self.coefficient
        out: Floats = np.bincount(self.edge, each, minlength=num_edges).astype(np.float64)
        return out

    def taken(self, stays: Ints) -> PricedTrees:
        """Return some of the rows."""
        sizes = np.diff(self.start)
        entries = np.repeat(np.isin(np.arange(self.count), stays), sizes)
        start = np.concatenate([[0], np.cumsum(sizes[stays])]).astype(np.int64)
        return PricedTrees(
            *(self.rounds, self.made[stays], start, self.edge[entries]),
            *(self.coefficient[entries], self.price[stays]),
        )

    def length_rounds(self) -> list[LengthRound]:
        """Return the rows with a price, as a certificate has them, with whole prices."""
        out = {i: LengthRound(lengths) for i, lengths in enumerate(self.rounds)}
        whole = np.rint(self.price / self.made[:, 3] * PRICE_ONE).astype(np.int64)
        for (i, root, size, _), price in zip(self.made.tolist(), whole.tolist()):
            if price > 0:
                out[i].roots.append(root)
                out[i].sizes.append(size)
                out[i].prices.append(price)
        return [each for each in out.values() if each.roots]


def no_trees() -> PricedTrees:
    none = np.zeros(0, np.int64)
    return PricedTrees([], np.zeros((0, 4), np.int64), np.zeros(1, np.int64), none, *_no_floats())


def _no_floats() -> tuple[Floats, Floats]:
    return np.zeros(0), np.zeros(0)


def with_violated_trees(
    trees: PricedTrees, problem: CutProblem, apart: Floats, roots: Ints, least: float
) -> PricedTrees:
    """Return the rows with those of some roots that are violated by at least a share."""
    lengths = whole_lengths(apart)
    rows = (tree_row(problem, lengths, root) for root in roots.tolist())
    new = [
        row
        for row in rows
        if row is not None and row.loads @ apart[row.edges] < row.side * (1 - least)
    ]
    if not new:
        return trees
    made = [[len(trees.rounds), row.root, row.size, row.side] for row in new]
    ends = trees.start[-1] + np.cumsum([len(row.edges) for row in new])
    coefficients = [row.loads / row.side for row in new]
    return PricedTrees(
        [*trees.rounds, lengths],
        np.concatenate([trees.made, np.array(made, dtype=np.int64)]),
        np.concatenate([trees.start, ends]).astype(np.int64),
        np.concatenate([trees.edge, *(row.edges for row in new)]),
        np.concatenate([trees.coefficient, *coefficients]),
        np.concatenate([trees.price, np.zeros(len(new))]),
    )
