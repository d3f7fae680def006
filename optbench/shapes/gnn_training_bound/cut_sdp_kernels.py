"""Compiled code of the semidefinite bound: sweeps over unit vectors, and rows that they violate.

Nothing here proves anything: what these kernels find is proved by ``cut_sdp_proof``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optbench.compiling.compiled import inner, njit
from optbench.shapes.gnn_training_bound.cut_rows import APART, TRIANGLE

Array = NDArray[Any]


@njit(cache=True, fastmath=True)
def inner_products(low: Array, high: Array, vectors: Array, out: Array) -> None:
    """The inner product of each pair."""
    width = vectors.shape[1]
    for p in range(len(low)):
        total = np.float32(0.0)
        i, j = low[p], high[p]
        for c in range(width):
            total += vectors[i, c] * vectors[j, c]
        out[p] = total


@njit(cache=True, fastmath=True)
def row_excess(row: Array, signs: Array, side: Array, products: Array, out: Array) -> None:
    """By how much each row is violated."""
    for t in range(len(side)):
        out[t] = (
            signs[t, 0] * products[row[t, 0]]
            + signs[t, 1] * products[row[t, 1]]
            + signs[t, 2] * products[row[t, 2]]
            - side[t]
        )


@njit(cache=True)
def pair_weights(row: Array, signs: Array, multiplier: Array, edge: Array, out: Array) -> None:
    """Z_ij of each pair: −1 for edges, and what the multipliers of rows add."""
    out[:] = 0.0
    for e in edge:
        out[e] -= 1.0
    for t in range(len(multiplier)):
        value = multiplier[t]
        if value != 0.0:
            for c in range(3):
                out[row[t, c]] += signs[t, c] * value


@njit(cache=True, fastmath=True)
def sweep(
    first: Array,
    other: Array,
    at: Array,
    weight: Array,
    total_price: float,
    node_price: Array,
    vectors: Array,
    out: Array,
) -> None:
    """Set v_i = −g_i / |g_i| with g_i = Σ_j Z_ij v_j, node by node, and out_i = |g_i|."""
    n, width = vectors.shape
    whole, priced = np.zeros(width), np.zeros(width)
    for i in range(n):
        for c in range(width):
            whole[c] += vectors[i, c]
            priced[c] += node_price[i] * vectors[i, c]
    g = np.empty(width, np.float32)
    for i in range(n):
        own = total_price + node_price[i]
        for c in range(width):
            whole[c] -= vectors[i, c]
            priced[c] -= node_price[i] * vectors[i, c]
            g[c] = own * whole[c] + priced[c]
        for a in range(first[i], first[i + 1]):
            w, j = weight[at[a]], other[a]
            for c in range(width):
                g[c] += w * vectors[j, c]
        square = np.float32(0.0)
        for c in range(width):
            square += g[c] * g[c]
        length = np.sqrt(square)
        out[i] = length
        scale = -np.float32(1.0) / length if length > 1e-12 else np.float32(0.0)
        for c in range(width):
            if scale != 0.0:
                vectors[i, c] = g[c] * scale
            whole[c] += vectors[i, c]
            priced[c] += node_price[i] * vectors[i, c]


@inner()
def _worst_form(ij: float, ik: float, jk: float, two_parts: bool) -> tuple[float, int]:
    """The most violated row on three nodes, and which: 0, 1, 2 for the triangle whose middle node
    is j, i or k, and 3 for the odd one.
    """
    most, form = ij + jk - ik, 0
    if ij + ik - jk > most:
        most, form = ij + ik - jk, 1
    if ik + jk - ij > most:
        most, form = ik + jk - ij, 2
    if two_parts and -ij - ik - jk > most:
        most, form = -ij - ik - jk, 3
    return most - 1.0, form


@njit(cache=True)
def violated_triangles(
    low: Array, high: Array, products: Array, two_parts: bool, per_pair: int, least: float
) -> tuple[Array, Array]:
    """For each pair (i, j) the third nodes k of the most violated rows: (i, j, k, form), excess."""
    n, count = len(products), 0
    found = np.empty((len(low) * per_pair, 4), np.int64)
    excess = np.empty(len(low) * per_pair, np.float32)
    for p in range(len(low)):
        i, j, begin = low[p], high[p], count
        for k in range(n):
            if k in (i, j):
                continue
            value, form = _worst_form(products[i, j], products[i, k], products[j, k], two_parts)
            if value <= least:
                continue
            full = count - begin == per_pair
            if full and value <= excess[count - 1]:
                continue
            q = count - 1 if full else count
            while q > begin and excess[q - 1] < value:
                excess[q] = excess[q - 1]
                found[q] = found[q - 1]
                q -= 1
            excess[q] = value
            found[q, 0], found[q, 1], found[q, 2], found[q, 3] = i, j, k, form
            count += 0 if full else 1
    return found[:count], excess[:count]


@njit(cache=True)
def violated_pairs(products: Array, least: float) -> tuple[Array, Array]:
    """Pairs whose inner product is below ``least``, and by how much."""
    n, count = len(products), 0
    for i in range(n):
        for j in range(i + 1, n):
            count += products[i, j] < least
    found, excess = np.empty((count, 2), np.int64), np.empty(count, np.float32)
    count = 0
    for i in range(n):
        for j in range(i + 1, n):
            if products[i, j] < least:
                found[count, 0], found[count, 1] = i, j
                excess[count] = least - products[i, j]
                count += 1
    return found, excess


@njit(cache=True)
def whole_weights(
    num_nodes: int, tail: Array, head: Array, one: int, kind: Array, nodes: Array, price: Array
) -> Array:
    """Z_ij for i < j in whole numbers: −one for edges, and what the prices of rows add."""
    out = np.zeros((num_nodes, num_nodes), np.int64)
    for e in range(len(tail)):
        out[tail[e], head[e]] -= one
    for t in range(len(kind)):
        a, b, c, value = nodes[t, 0], nodes[t, 1], nodes[t, 2], price[t]
        if kind[t] == APART:
            out[min(a, b), max(a, b)] -= value
            continue
        sign = 1 if kind[t] == TRIANGLE else -1
        out[min(a, b), max(a, b)] += sign * value
        out[min(b, c), max(b, c)] += sign * value
        out[min(a, c), max(a, c)] -= value
    return out
