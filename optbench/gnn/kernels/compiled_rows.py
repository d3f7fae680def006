"""Compiled loops over the rows of a sparse matrix: products with an epilogue, and attention.

The epilogue of a value z is y = kept × s × f(z + bias) with f the identity, ReLU or ELU, and s the
scale of dropout; its derivative is computed from y.

Attention of head k of arc (i ← j), with u_jk and v_ik the halves of its score:

    e = LeakyReLU(u_jk + v_ik),   α = exp(e − max_row e) / Σ_row exp(e − max_row e),   y_i = Σ α h_j

    ∂α = <g_i, h_j>,   ∂e = α (∂α − <g_i, y_i>),   ∂u_j, ∂v_i += ∂e LeakyReLU'(u + v)

and with dropout of attention m α for α in y, m <g_i, h_j> for ∂α, where m is 0 or the scale: so
that an arc holds a number per head, and never a row of features. Reductions may be reordered;
values that are no numbers stay so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optbench.compiling.compiled import njit

FAST = {"reassoc", "contract", "nsz", "arcp"}
IDENTITY, RELU, ELU = 0, 1, 2
# Slope of scores below 0, and what keeps the sum of a row positive, as PyTorch Geometric has them.
SLOPE, LEAST_SUM = 0.2, 1e-16
# Rows whose sum is added at once to that of all rows: with one running sum in float32, its error
# of rounding would grow with the number of rows.
SUMMED_ROWS = 1024


@njit(fastmath=FAST)
def finish_row(row: Any, bias: Any, activation: int, kept: Any, scale: Any) -> None:
    """Apply the epilogue to a row in place; an empty ``kept`` drops nothing."""
    zero = row.dtype.type(0)
    for j in range(row.shape[0]):
        row[j] += bias[j]
    if activation == RELU:
        for j in range(row.shape[0]):
            row[j] = zero if row[j] < zero else row[j]
    elif activation == ELU:
        for j in range(row.shape[0]):
            if row[j] < zero:
                row[j] = np.expm1(row[j])
    for j in range(kept.shape[0]):
        row[j] = row[j] * scale if kept[j] else zero


@njit(fastmath=FAST)
def finish(values: Any, bias: Any, activation: int, kept: Any, scale: Any) -> None:
    """Apply the epilogue to all rows in place."""
    drops = kept.shape[0] > 0
    none = np.empty(0, np.uint8)
    for i in range(values.shape[0]):
        finish_row(values[i], bias, activation, kept[i] if drops else none, scale)


@njit(fastmath=FAST)
def sum_and_finish(
    ptr: Any,
    source: Any,
    weight: Any,
    values: Any,
    start: Any,
    bias: Any,
    activation: int,
    kept: Any,
    scale: Any,
    out: Any,
) -> None:
    """Weighted sums of rows, plus those of ``start`` if any, finished while in the cache."""
    drops, zero = kept.shape[0] > 0, out.dtype.type(0)
    none = np.empty(0, np.uint8)
    for i in range(out.shape[0]):
        row = out[i]
        row[:] = zero
        if start.shape[0] > 0:
            row[:] = start[i]
        for e in range(ptr[i], ptr[i + 1]):
            w, other = weight[e], values[source[e]]
            for j in range(row.shape[0]):
                row[j] += w * other[j]
        finish_row(row, bias, activation, kept[i] if drops else none, scale)


@njit(fastmath=FAST)
def unfinish(
    gradient: Any, result: Any, activation: int, kept: Any, scale: Any, out: Any, bias: Any
) -> None:
    """Write the gradient before the epilogue to ``out``, and add its column sums to ``bias``."""
    zero = out.dtype.type(0)
    part = np.zeros_like(bias)
    for i in range(out.shape[0]):
        row, g, y = out[i], gradient[i], result[i]
        if activation == RELU:
            for j in range(row.shape[0]):
                row[j] = zero if y[j] <= zero else g[j] * scale
        elif activation == ELU:
            for j in range(row.shape[0]):
                slope = scale if y[j] > zero else y[j] + scale
                row[j] = g[j] * slope
        else:
            for j in range(row.shape[0]):
                row[j] = g[j] * scale
        # A dropped value of ReLU is 0, as one that was below 0.
        if kept.shape[0] > 0 and activation != RELU:
            for j in range(row.shape[0]):
                row[j] = row[j] if kept[i, j] else zero
        for j in range(row.shape[0]):
            part[j] += row[j]
        if (i + 1) % SUMMED_ROWS == 0 or i + 1 == out.shape[0]:
            bias += part
            part[:] = zero


@njit(fastmath=FAST)
def shifted_scores(ptr: Any, source: Any, halves: Any, heads: int, out: Any) -> None:
    """Write LeakyReLU(u_j + v_i) − its maximum in the row; ``halves`` has rows (u, v)."""
    slope = out.dtype.type(SLOPE)
    most = np.empty(heads, out.dtype)
    for i in range(ptr.shape[0] - 1):
        first, last = ptr[i], ptr[i + 1]
        for e in range(first, last):
            c = source[e]
            for k in range(heads):
                z = halves[c, k] + halves[i, heads + k]
                out[e, k] = max(z, z * slope)
        if last == first:
            continue
        most[:] = out[first]
        for e in range(first + 1, last):
            for k in range(heads):
                most[k] = max(most[k], out[e, k])
        for e in range(first, last):
            for k in range(heads):
                out[e, k] -= most[k]


@njit(fastmath=FAST)
def attend(ptr: Any, source: Any, values: Any, share: Any, kept: Any, scale: Any, out: Any) -> None:
    """Divide exponentials by their sums in place, and sum the rows of values by these shares,
    of which ``kept`` leaves some; an empty one drops nothing.
    """
    heads, drops = share.shape[1], kept.shape[0] > 0
    width, zero = values.shape[1] // heads, out.dtype.type(0)
    least, one = out.dtype.type(LEAST_SUM), out.dtype.type(1)
    total = np.empty(heads, out.dtype)
    for i in range(out.shape[0]):
        row = out[i]
        row[:] = zero
        total[:] = least
        for e in range(ptr[i], ptr[i + 1]):
            for k in range(heads):
                total[k] += share[e, k]
        for k in range(heads):
            total[k] = one / total[k]
        for e in range(ptr[i], ptr[i + 1]):
            other = values[source[e]]
            for k in range(heads):
                share[e, k] *= total[k]
                a, at = share[e, k], k * width
                if drops:
                    a = a * scale if kept[e, k] else zero
                for j in range(at, at + width):
                    row[j] += a * other[j]


@njit(fastmath=FAST)
def attend_back(
    ptr: Any,
    source: Any,
    values: Any,
    halves: Any,
    share: Any,
    kept: Any,
    scale: Any,
    gradient: Any,
    result: Any,
    to_values: Any,
    to_halves: Any,
) -> None:
    """Add the gradients of values and of halves of scores; both outputs start at 0."""
    heads, drops = share.shape[1], kept.shape[0] > 0
    width, zero = values.shape[1] // heads, share.dtype.type(0)
    slope, one = share.dtype.type(SLOPE), share.dtype.type(1)
    mean = np.empty(heads, share.dtype)
    for i in range(ptr.shape[0] - 1):
        g, y = gradient[i], result[i]
        for k in range(heads):
            dot = zero
            for j in range(k * width, (k + 1) * width):
                dot += g[j] * y[j]
            mean[k] = dot
        for e in range(ptr[i], ptr[i + 1]):
            c = source[e]
            other, into = values[c], to_values[c]
            for k in range(heads):
                a, dot = share[e, k], zero
                stays = one
                if drops:
                    stays = scale if kept[e, k] else zero
                passed = a * stays
                for j in range(k * width, (k + 1) * width):
                    dot += g[j] * other[j]
                    into[j] += passed * g[j]
                rising = halves[c, k] + halves[i, heads + k] > zero
                d = a * (stays * dot - mean[k]) * (one if rising else slope)
                to_halves[c, k] += d
                to_halves[i, heads + k] += d
