"""Networks that choose an option, evaluated in compiled code from float32 weights; layers of ReLU,
y = x W + b.

SHARED, one small network for all options, whatever sites there are; o of an option, s of its site,
g of the whole:

    m = mean over sites of relu(s A + g B + a)        z = relu(o U + s V + g W + m M + b)
    score = relu(z X + c) · y + d

FLAT, the encoder of the CHSAC-AF paper on g and all s, with a head for sites and one for numbers of
devices:

    h = relu(relu(relu(x W1 + b1) W2 + b2) W3 + b3)
    score(pool, n) = log softmax(h D + d)_pool + log softmax(h N + e)_n

INPUTS, no network: score = −cost, the cost that the two above are fed (``site_view``); the best
option is taken.

An option is drawn from the softmax of the scores of the legal ones (or the best one is taken).
``theta`` holds the arrays above one after the other, in the order in which the formulas name them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optbench.compiling.compiled import inner, njit
from optbench.model.instance import Floats, Ints
from optbench.sim.kernel.plant import POOLS, Plant
from optbench.sim.kernel.sites.view import WIDEST, G, O, S, SiteView

SHARED, FLAT, INPUTS = range(3)
# Entries of ``net``.
KIND, HIDDEN, GREEDY = range(3)


@njit(cache=True)
def work_size(pools: int, widest: int, net: Ints) -> int:
    return 4 * net[HIDDEN] + pools + widest


@inner()
def choose_option(
    plant: Plant,
    view: SiteView,
    net: Ints,
    theta: Any,
    row: Any,
    mask: Any,
    work: Any,
    score: Floats,
    draw: float,
) -> int:
    """Return the option that the network takes, given a uniform number."""
    pools, widest = plant.size[POOLS], view.shape[WIDEST]
    if net[KIND] == SHARED:
        score_shared(pools, widest, net[HIDDEN], theta, row, mask, work, score)
    elif net[KIND] == INPUTS:
        for a in range(len(score)):
            score[a] = -view.cost[a]
    else:
        score_flat(pools, widest, net[HIDDEN], theta, row, mask, work, score)
    return pick(score, mask, net[GREEDY], draw)


@inner()
def pick(score: Floats, mask: Any, greedy: int, draw: float) -> int:
    """Return the best legal option, or one drawn from the softmax."""
    top, best = -math.inf, 0
    for a in range(len(mask)):
        if mask[a] and score[a] > top:
            top, best = score[a], a
    if greedy:
        return best
    total = 0.0
    for a in range(len(mask)):
        if mask[a]:
            score[a] = math.exp(score[a] - top)
            total += score[a]
    left = draw * total
    for a in range(len(mask)):
        if mask[a]:
            left -= score[a]
            if left <= 0.0:
                return a
    return best


@inner()
def add_layer(theta: Any, at: int, inputs: Any, outputs: Any) -> int:
    """outputs += inputs W, with W at this place of theta; return where W ends."""
    width = len(outputs)
    for i in range(len(inputs)):
        x = inputs[i]
        if x != 0.0:
            weights = theta[at + i * width : at + (i + 1) * width]
            for j in range(width):
                outputs[j] += x * weights[j]
    return at + len(inputs) * width


@inner()
def set_bias(theta: Any, at: int, outputs: Any) -> int:
    bias = theta[at : at + len(outputs)]
    for j in range(len(outputs)):
        outputs[j] = bias[j]
    return at + len(outputs)


@inner()
def rectify(values: Any) -> None:
    for j in range(len(values)):
        values[j] = max(values[j], np.float32(0.0))


@njit(cache=True)
def score_shared(
    pools: int, widest: int, h: int, theta: Any, row: Any, mask: Any, work: Any, score: Floats
) -> None:
    """Compute the module's first formula. Places in theta: A, B, a, U, V, W, M, b, X, c, y, d."""
    a_at, b_at = 0, S * h
    bias_a = b_at + G * h
    u_at = bias_a + h
    v_at = u_at + O * h
    w_at = v_at + S * h
    m_at = w_at + G * h
    bias_b = m_at + h * h
    x_at = bias_b + h
    bias_c = x_at + h * h
    y_at = bias_c + h
    whole, mean, base = row[:G], work[:h], work[h : 2 * h]
    hidden, out = work[2 * h : 3 * h], work[3 * h : 4 * h]
    mean[:] = 0.0
    set_bias(theta, bias_a, base)
    add_layer(theta, b_at, whole, base)
    for pool in range(pools):
        hidden[:] = base
        add_layer(theta, a_at, row[G + pool * S : G + (pool + 1) * S], hidden)
        for j in range(h):
            mean[j] += max(hidden[j], np.float32(0.0)) / np.float32(pools)
    set_bias(theta, bias_b, base)
    add_layer(theta, w_at, whole, base)
    add_layer(theta, m_at, mean, base)
    of_site, last = mean, theta[y_at : y_at + h]
    for pool in range(pools):
        of_site[:] = base
        add_layer(theta, v_at, row[G + pool * S : G + (pool + 1) * S], of_site)
        for n in range(widest):
            a = pool * widest + n
            if not mask[a]:
                continue
            at = G + pools * S + a * O
            hidden[:] = of_site
            add_layer(theta, u_at, row[at : at + O], hidden)
            rectify(hidden)
            set_bias(theta, bias_c, out)
            add_layer(theta, x_at, hidden, out)
            total = theta[y_at + h]
            for j in range(h):
                total += max(out[j], np.float32(0.0)) * last[j]
            score[a] = total


@njit(cache=True)
def score_flat(
    pools: int, widest: int, h: int, theta: Any, row: Any, mask: Any, work: Any, score: Floats
) -> None:
    """Compute the module's second formula. Places in theta: W1, b1, W2, b2, W3, b3, D, d, N, e."""
    x, one, two = row[: G + pools * S], work[:h], work[h : 2 * h]
    sites, counts = work[4 * h : 4 * h + pools], work[4 * h + pools : 4 * h + pools + widest]
    end_1 = len(x) * h
    set_bias(theta, end_1, one)
    add_layer(theta, 0, x, one)
    rectify(one)
    at = end_1 + h
    set_bias(theta, at + h * h, two)
    add_layer(theta, at, one, two)
    rectify(two)
    at += h * h + h
    set_bias(theta, at + h * h, one)
    add_layer(theta, at, two, one)
    rectify(one)
    at += h * h + h
    set_bias(theta, at + h * pools, sites)
    add_layer(theta, at, one, sites)
    at += h * pools + pools
    set_bias(theta, at + h * widest, counts)
    add_layer(theta, at, one, counts)
    # Masks are applied before the softmax of each head: sites with a legal option, numbers of
    # devices legal somewhere.
    site_sum, count_sum = 0.0, 0.0
    for pool in range(pools):
        for n in range(widest):
            if mask[pool * widest + n]:
                site_sum += math.exp(sites[pool])
                break
    for n in range(widest):
        for pool in range(pools):
            if mask[pool * widest + n]:
                count_sum += math.exp(counts[n])
                break
    for a in range(pools * widest):
        score[a] = (
            sites[a // widest] - math.log(site_sum) + counts[a % widest] - math.log(count_sum)
        )
