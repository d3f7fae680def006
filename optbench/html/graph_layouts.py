"""Places of the nodes of a graph in a picture, the same for the same graph.

``force_layout`` (Fruchterman and Reingold 1991): with n nodes and the natural distance k = 1 / √n,
nodes at distance d repel each other by k² / d, edges pull by d² / k, a weak pull to the centre
holds components together, and the longest move shrinks from round to round.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROUNDS, FIRST_MOVE, CENTRE_PULL = 160, 0.1, 0.6
# The part of a start that moves coinciding nodes apart.
START_SPREAD = 0.05
# The angle between neighbours of a sunflower's seeds.
GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))


def on_circle(count: int) -> Floats:
    """Places on the unit circle, the first on top, clockwise as pixels count downwards."""
    angle = 2 * np.pi * np.arange(count) / max(count, 1) - np.pi / 2
    return np.stack([np.cos(angle), np.sin(angle)], axis=1) if count > 1 else np.zeros((count, 2))


def sunflower(count: int) -> Floats:
    """Places of seeds in a disc of radius 1: all different, and evenly spread."""
    k = np.arange(count)
    radius, angle = np.sqrt((k + 0.5) / max(count, 1)), k * GOLDEN_ANGLE
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def spectral_start(count: int, tail: Ints, head: Ints) -> Floats:
    """Places of few nodes by the second and third eigenvector of the graph's Laplacian, which
    unfold a mesh; moved apart where they coincide, as in other components.
    """
    apart = sunflower(count)
    if count < 3:
        return apart
    laplacian = np.zeros((count, count))
    np.add.at(laplacian, (tail, head), -1.0)
    laplacian += laplacian.T
    laplacian -= np.diag(laplacian.sum(axis=1))
    vectors = np.linalg.eigh(laplacian)[1][:, 1:3]
    largest = vectors[np.argmax(np.abs(vectors), axis=0), [0, 1]]
    vectors = vectors / np.where(largest == 0, 1.0, largest)
    placed: Floats = 0.5 * vectors + START_SPREAD * apart
    return placed


def force_layout(start: Floats, tail: Ints, head: Ints) -> Floats:
    """Places of few nodes, from given ones, drawn together by edges (tail, head)."""
    at = np.array(start, dtype=float)
    n = len(at)
    if n < 2:
        return at
    near = 1.0 / np.sqrt(n)
    for step in range(ROUNDS):
        apart = at[:, None, :] - at[None, :, :]
        squares = np.maximum(np.square(apart).sum(axis=2), 1e-6)
        force = (apart * (near**2 / squares)[:, :, None]).sum(axis=1)
        along = at[tail] - at[head]
        pull = along * (np.sqrt(np.square(along).sum(axis=1)) / near)[:, None]
        np.add.at(force, tail, -pull)
        np.add.at(force, head, pull)
        force -= CENTRE_PULL * near * at
        size = np.maximum(np.sqrt(np.square(force).sum(axis=1)), 1e-12)
        longest = FIRST_MOVE * (1 - step / ROUNDS)
        at += force * (np.minimum(size, longest) / size)[:, None]
    return at


def lying(at: Floats) -> Floats:
    """The places turned so that they reach furthest to the sides."""
    if len(at) < 3:
        return at
    centred = at - at.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    x, y = (float(value) for value in vectors[:, 1])
    if (x, y) < (0.0, 0.0):
        x, y = -x, -y
    turned: Floats = centred @ np.array([[x, -y], [y, x]])
    return turned


def ring_order(weights: Floats) -> list[int]:
    """An order in which neighbours have heavy edges: each time the heaviest to the last one."""
    count = len(weights)
    order, left = [0], set(range(1, count))
    while left:
        last = order[-1]
        best = max(left, key=lambda k: (float(weights[last, k]), -k))
        order.append(best)
        left.remove(best)
    return order


def fitted(at: Floats, left: float, top: float, width: float, height: float) -> Floats:
    """The places scaled alike in both directions into a box, in its middle."""
    low, high = at.min(axis=0), at.max(axis=0)
    span = np.maximum(high - low, 1e-9)
    scale = min(width / span[0], height / span[1])
    middle = np.array([left + width / 2, top + height / 2])
    placed: Floats = (at - (low + high) / 2) * scale + middle
    return placed
