"""Valid rows on pairs of nodes, for the semidefinite bound, and the pairs that they touch.

With d_ij = 1 where i and j are in different parts, else 0, a row is one of

    TRIANGLE   d_ab + d_bc − d_ac ≥ 0
    ODD        d_ab + d_bc + d_ac ≤ 2      two parts only
    APART      d_ab ≤ 1                    (c is −1)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optbench.shapes.gnn_training.training_data import Floats, Ints

TRIANGLE, ODD, APART = 0, 1, 2
# Signs of (ab, bc, ac) in the row written as: Σ sign × inner product ≤ a constant.
SIGNS = np.array([[1.0, 1.0, -1.0], [-1.0, -1.0, -1.0], [-1.0, 0.0, 0.0]])


@dataclass
class CutRows:
    """Rows with their multipliers; nodes a < c of a triangle, a < b of a pair."""

    kind: Ints
    nodes: Ints
    multiplier: Floats

    @property
    def count(self) -> int:
        return len(self.kind)

    def keys(self, num_nodes: int) -> Ints:
        """A number of each row that no other row has."""
        a, b, c = self.nodes.T
        keys: Ints = ((a * num_nodes + b) * (num_nodes + 1) + c + 1) * 3 + self.kind
        return keys

    def taken(self, which: Any) -> CutRows:
        return CutRows(self.kind[which], self.nodes[which], self.multiplier[which])

    def with_rows(self, more: CutRows, num_nodes: int) -> CutRows:
        """Return these rows and those of ``more`` that are new."""
        keys = more.keys(num_nodes)
        _, firsts = np.unique(keys, return_index=True)
        fresh = np.sort(firsts[~np.isin(keys[firsts], self.keys(num_nodes))])
        more = more.taken(fresh)
        return CutRows(
            np.concatenate([self.kind, more.kind]),
            np.concatenate([self.nodes, more.nodes]),
            np.concatenate([self.multiplier, more.multiplier]),
        )


def ordered_rows(kind: Any, a: Any, b: Any, c: Any) -> CutRows:
    """Return rows of multiplier 0, their nodes in the order that makes equal rows equal."""
    kind, nodes = np.asarray(kind, np.int64), np.stack([a, b, c], axis=1).astype(np.int64)
    triangle = (kind == TRIANGLE) & (nodes[:, 0] > nodes[:, 2])
    nodes[triangle] = nodes[triangle][:, ::-1]
    nodes[kind == ODD] = np.sort(nodes[kind == ODD], axis=1)
    pair = kind == APART
    nodes[pair, :2] = np.sort(nodes[pair, :2], axis=1)
    return CutRows(kind, nodes, np.zeros(len(kind)))


def rows_of_keys(keys: Ints, num_nodes: int) -> CutRows:
    """Return the rows of these keys, with multiplier 0."""
    rest, kind = np.divmod(keys, 3)
    rest, c = np.divmod(rest, num_nodes + 1)
    a, b = np.divmod(rest, num_nodes)
    return CutRows(kind, np.stack([a, b, c - 1], axis=1), np.zeros(len(keys)))


def no_rows() -> CutRows:
    return CutRows(np.zeros(0, np.int64), np.zeros((0, 3), np.int64), np.zeros(0))


@dataclass(frozen=True)
class RowPairs:
    """All pairs of nodes of edges and rows: ``edge`` and ``row`` give their positions.

    ``first``, ``other`` and ``at`` list the pairs of each node."""

    low: Ints
    high: Ints
    edge: Ints
    row: Ints
    first: Ints
    other: Ints
    at: Ints
    signs: NDArray[Any] = field(repr=False)


def row_pairs(num_nodes: int, tail: Ints, head: Ints, rows: CutRows) -> RowPairs:
    """Return the pairs of edges (tail < head) and rows."""
    n = num_nodes
    a, b, c = rows.nodes.T
    lone = rows.kind == APART
    third = np.where(lone, b, c)

    def keyed(i: Any, j: Any) -> Any:
        return np.minimum(i, j) * n + np.maximum(i, j)

    ab = keyed(a, b)
    bc, ac = np.where(lone, ab, keyed(b, third)), np.where(lone, ab, keyed(a, third))
    edges = tail * n + head
    keys = np.unique(np.concatenate([edges, ab, bc, ac]))
    row = np.stack([np.searchsorted(keys, each) for each in (ab, bc, ac)], axis=1)
    low, high = keys // n, keys % n
    source = np.concatenate([low, high])
    order = np.argsort(source, kind="stable")
    at = np.tile(np.arange(len(keys)), 2)[order]
    first = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=n))]).astype(np.int64)
    other = np.concatenate([high, low])[order]
    return RowPairs(
        low, high, np.searchsorted(keys, edges), row, first, other, at, SIGNS[rows.kind]
    )
