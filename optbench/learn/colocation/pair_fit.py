"""The probability that two jobs fit in the memory of a GPU, from pairs that are known.

Jobs have sizes θ that add up, on a GPU type with room β:

    P(t and s fit on g) = 1 / (1 + exp(θ_t + θ_s − β_g))

Sizes have a normal prior in which jobs of one family are alike, with the similarity κ of their
features, Cov(θ_t, θ_s) = v κ'(t, s), where κ' is that of relatives and 0 for others; rooms have a
wide one. The mode is found by Newton's method, and the logit's variance there (Laplace) makes the
probability less certain: with the logit's mean m and variance v it is that of m / √(1 + π v / 8)
(MacKay 1992).
"""

from __future__ import annotations

import numpy as np

from optbench.learn.colocation.job_features import JobFeatures
from optbench.shapes.colocation.colocation_data import Floats, Ints

# Variances of sizes and of rooms, and the part of a size that relatives do not share.
SIZE_VARIANCE, ROOM_VARIANCE, OWN_SHARE = 2.0, 25.0, 0.1
STEPS, SMALLEST_STEP, LONGEST_STEP = 20, 1e-3, 3.0
LARGEST_LOGIT = 20.0


def pair_fit_probability(features: JobFeatures, known: Floats) -> Floats:
    """Return p[g, t, s]; ``known`` is 1, 0, or NaN where nothing is known.

    Jobs of several GPUs run alone: they fit beside nobody, and say nothing of the others."""
    single = features.log_gpus == 0
    pairs = single[:, None] & single[None, :]
    mine = np.flatnonzero(single)
    out = np.zeros(known.shape)
    if len(mine):
        inner = np.ix_(np.arange(len(known)), mine, mine)
        out[inner] = _probability(_prior(features, mine), known[inner])
    return np.where(np.isnan(known) | ~pairs, out, known)


def _prior(features: JobFeatures, types: Ints) -> Floats:
    """Covariance of the sizes: a product of exponentials of distances, so it is positive."""
    batch = features.log_batch[types]
    distance = np.abs(batch[:, None] - batch[None, :])
    alike = np.where(features.same_name[np.ix_(types, types)], 1.0, 0.75)
    alike = np.where(features.same_family()[np.ix_(types, types)], alike, 0.0)
    kernel = (1 - OWN_SHARE) * np.exp(-distance / 4) * alike
    return SIZE_VARIANCE * (kernel + OWN_SHARE * np.eye(len(types)))


def _probability(prior: Floats, known: Floats) -> Floats:
    """Mode and Laplace variance of all logits [g, t, s], as probabilities."""
    num_gpus, num_types = known.shape[:2]
    # A pair counts once: [g, t, s] and [g, s, t] are the same.
    upper = np.triu(np.ones((num_types, num_types)))
    there = np.where(np.isnan(known), 0.0, upper)
    fits = np.nan_to_num(known)
    full = np.zeros((num_types + num_gpus,) * 2)
    full[:num_types, :num_types] = prior
    full[num_types:, num_types:] = ROOM_VARIANCE * np.eye(num_gpus)
    precision = np.linalg.inv(full)
    x = np.zeros(len(full))
    inverse = full
    for _ in range(STEPS):
        p = _sigmoid(_logits(x, num_types))
        slope, curve = there * (fits - p), there * p * (1 - p)
        inverse = np.linalg.inv(precision + _quadratic(curve))
        step = inverse @ (_gradient(slope) - precision @ x)
        longest = float(np.abs(step).max())
        # Long Newton steps of a logistic model overshoot.
        x = x + step * min(1.0, LONGEST_STEP / max(longest, SMALLEST_STEP))
        if longest < SMALLEST_STEP:
            break
    logits = _logits(x, num_types)
    own = np.diag(inverse)
    size, room = own[:num_types], own[num_types:]
    across = inverse[:num_types, :num_types]
    with_room = inverse[num_types:, :num_types]
    variance = (size[:, None] + size[None, :] + 2 * across)[None] + room[:, None, None]
    variance = variance - 2 * (with_room[:, :, None] + with_room[:, None, :])
    return _sigmoid(logits / np.sqrt(1 + np.pi * np.maximum(variance, 0.0) / 8))


def _logits(x: Floats, num_types: int) -> Floats:
    size, room = x[:num_types], x[num_types:]
    return room[:, None, None] - size[None, :, None] - size[None, None, :]


def _sigmoid(logits: Floats) -> Floats:
    out: Floats = 1 / (1 + np.exp(-np.clip(logits, -LARGEST_LOGIT, LARGEST_LOGIT)))
    return out


def _gradient(slope: Floats) -> Floats:
    """Derivatives by sizes and rooms of a sum over pairs, of the derivative by the logit."""
    by_size = -(slope.sum(axis=(0, 2)) + slope.sum(axis=(0, 1)))
    return np.concatenate([by_size, slope.sum(axis=(1, 2))])


def _quadratic(curve: Floats) -> Floats:
    """The matrix of second derivatives, less the sign."""
    both = curve.sum(axis=0)
    sizes = both + both.T + np.diag(both.sum(axis=0) + both.sum(axis=1))
    by_room = -(curve.sum(axis=2) + curve.sum(axis=1))
    rooms = np.diag(curve.sum(axis=(1, 2)))
    return np.block([[sizes, by_room.T], [by_room, rooms]])
