"""The proof of the semidefinite bound, from whole multipliers and one factorisation.

With d_ij = 1 where i and j are in different parts, for each partition into at most k parts of at
most M nodes the rows of ``cut_rows`` hold, and

    NODE   Σ_j d_ij ≥ n − M              TOTAL   Σ_{i<j} d_ij ≥ P
    TREE   Σ_e min(l_te, b_t) d_e ≥ b_t  (``tree_packing``)

with P the fewest pairs apart. Multipliers λ (rows), μ (nodes), α (total) and π (trees), none below
0, give

    cut ≥ α P + Σ μ_i (n − M) + Σ π_t b_t − 2 Σ λ_odd − Σ λ_apart + Σ_{i<j} c_ij d_ij

    c_ij = [ij is an edge] − α − μ_i − μ_j − Σ_t π_t min(l_tij, b_t) − Σ_r λ_r (r's entry at ij)

Let Z have −c_ij beside its diagonal and y_i on it. If Z is positive semidefinite then, with the
indicators 1_p of the parts, by convexity

    Σ_ij Z_ij (1 − d_ij) = Σ_p 1_p·Z 1_p ≥ e·Z e / k,   hence  Σ_ij Z_ij d_ij ≤ (1 − 1/k) e·Z e

and Σ_{i<j} c_ij d_ij ≥ −(1 − 1/k) (Σ y − 2 Σ_{i<j} c_ij) / 2. All of this is computed in whole
numbers. That Z is positive semidefinite is proved in floats: its entries are floats exactly, and
where Cholesky's method ends without a negative square for Z − δ I, the product of the factors
differs from it by a matrix of norm at most γ / (1 − γ) tr(Z), γ = (n + 1) u / (1 − (n + 1) u)
(Demmel; Rump, *Verification of positive definiteness*, 2006). δ is at least ``MARGIN`` times that,
so that other orders of summation and reciprocals of pivots are covered as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optbench.errors import OptbenchError
from optbench.shapes.gnn_training.training_data import Floats, Ints
from optbench.shapes.gnn_training_bound.cut_problem import CutProblem
from optbench.shapes.gnn_training_bound.cut_rows import APART, ODD, TRIANGLE
from optbench.shapes.gnn_training_bound.cut_sdp_kernels import whole_weights
from optbench.shapes.gnn_training_bound.spreading_lp import (
    PRICE_ONE,
    LengthRound,
    priced_loads,
)

# A multiplier of 1.
ONE = PRICE_ONE
# Entries of Z must be floats exactly.
LARGEST_ENTRY, LARGEST_PRICE, MOST_ROWS = 1 << 52, 1 << 48, 1 << 22
MARGIN = 16
# The matrix is dense: more nodes would not fit into memory.
MOST_SDP_NODES = 4000
UNIT_ROUNDING = 2.0**-53


@dataclass(frozen=True)
class CutMultipliers:
    """Whole multipliers: of rows, of the total, of nodes, of trees; and the diagonal of Z."""

    kind: Ints
    nodes: Ints
    price: Ints
    total: int
    node: Ints
    trees: list[LengthRound]
    diagonal: Ints


def check_multipliers(problem: CutProblem, given: CutMultipliers) -> None:
    """Refuse what is no row of the problem, or is below 0."""
    n = problem.num_nodes
    a, b, c = given.nodes.T
    lone = given.kind == APART
    if len(given.kind) > MOST_ROWS:
        raise OptbenchError(f"the certificate has {len(given.kind)} rows; at most {MOST_ROWS}")
    kinds = (TRIANGLE, ODD, APART) if problem.num_parts == 2 else (TRIANGLE, APART)
    if not np.isin(given.kind, kinds).all():
        raise OptbenchError("the certificate has rows that do not hold for this number of parts")
    nodes = [a, b, np.where(lone, 0, c)]
    if any(((each < 0) | (each >= n)).any() for each in nodes):
        raise OptbenchError("the certificate has a row on a node that is not there")
    if ((a == b) | (~lone & ((b == c) | (a == c)))).any():
        raise OptbenchError("the certificate has a row that names a node twice")
    for prices in (given.price, given.node, np.array([given.total]), given.diagonal):
        if len(prices) and not 0 <= int(prices.min()) <= int(prices.max()) <= LARGEST_PRICE:
            raise OptbenchError(f"the certificate has a multiplier outside 0 to {LARGEST_PRICE}")
    if int(given.price.max(initial=0)) * max(len(given.price), 1) > 1 << 61:
        raise OptbenchError("the multipliers of the certificate are too large")
    if len(given.node) != n or len(given.diagonal) != n:
        raise OptbenchError(f"the certificate does not have a multiplier for each of {n} nodes")


def proven_cut(problem: CutProblem, given: CutMultipliers) -> Fraction:
    """Return the value that multipliers prove."""
    if problem.num_nodes > MOST_SDP_NODES:
        raise OptbenchError(
            f"the certificate has a matrix of {problem.num_nodes:,} nodes; there may be "
            f"{MOST_SDP_NODES:,}: use the bounds of trees"
        )
    check_multipliers(problem, given)
    total, load = priced_loads(problem, given.trees)
    matrix = whole_matrix(problem, given, load)
    if not is_surely_semidefinite(matrix):
        raise OptbenchError("the matrix of the certificate is not proved positive semidefinite")
    return value_of(problem, given, total, load)


def whole_matrix(problem: CutProblem, given: CutMultipliers, load: Ints) -> Floats:
    """Return Z as floats that are exact; only its lower half and its diagonal are filled."""
    ends = problem.tail, problem.head
    above = whole_weights(problem.num_nodes, *ends, ONE, given.kind, given.nodes, given.price)
    above[ends] += load
    above += given.total + given.node[:, None] + given.node[None, :]
    if max(int(above.max()), -int(above.min())) > LARGEST_ENTRY:
        raise OptbenchError("the matrix of the certificate has entries that are no exact floats")
    out: Floats = np.tril(above.T.astype(np.float64), -1)
    np.fill_diagonal(out, given.diagonal.astype(np.float64))
    return out


def is_surely_semidefinite(lower: Floats) -> bool:
    """Whether a symmetric matrix, given by its lower half, is proved positive semidefinite."""
    n = len(lower)
    diagonal = np.diag(lower).copy()
    if (diagonal < 0).any():
        return False
    shift = semidefinite_margin(n, float(diagonal.sum()))
    shifted = np.nextafter(diagonal - shift, -np.inf)
    if (shifted <= 0).any():
        return False
    return factorises(lower, shifted)


def factorises(lower: Floats, diagonal: Floats) -> bool:
    """Whether Cholesky's method ends for a matrix with this diagonal."""
    matrix: NDArray[Any] = lower.copy()
    np.fill_diagonal(matrix, diagonal)
    try:
        factor = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return bool(np.isfinite(factor).all())


def semidefinite_margin(num_nodes: int, trace: float) -> float:
    """Return δ, with its own rounding covered by the margin."""
    gamma = (num_nodes + 1) * UNIT_ROUNDING
    return MARGIN * gamma / (1 - 2 * gamma) * trace + 1e-300


def value_of(problem: CutProblem, given: CutMultipliers, sides: int, load: Ints) -> Fraction:
    """Return the value of multipliers whose Z is positive semidefinite; ``sides`` and ``load`` are
    those of the trees.
    """
    n, k = problem.num_nodes, problem.num_parts
    nodes = sum(given.node.tolist())
    by_kind = {kind: sum(given.price[given.kind == kind].tolist()) for kind in range(3)}
    constant = given.total * problem.pairs_apart + nodes * (n - problem.max_part)
    constant += sides
    constant -= 2 * by_kind[ODD] + by_kind[APART]
    costs = problem.num_edges * ONE - given.total * (n * (n - 1) // 2) - nodes * (n - 1)
    costs += 3 * by_kind[ODD] + by_kind[APART] - by_kind[TRIANGLE]
    costs -= sum(load.tolist())
    diagonal = sum(given.diagonal.tolist())
    twice_k = 2 * k * constant - (k - 1) * (diagonal - 2 * costs)
    return Fraction(twice_k, 2 * k * ONE)
