"""The probability that two jobs fit in the memory of a GPU, from pairs that are known.

With F[g, q, r] = 1 for pairs that are known to fit and 0 for those known not to, the estimate is a
mean over known pairs, weighed by how similar both jobs are to theirs,

    p[g, t, s] = (Σ κ(t, q) κ(s, r) F[g, q, r] + c p0[g, t, s]) / (Σ κ(t, q) κ(s, r) + c)

where p0 is the share of known pairs of s that fit on g (and of t), and κ between two types that are
both known counts them as alike where they fit beside the same others.
"""

from __future__ import annotations

import numpy as np

from optbench.learn.colocation.job_features import JobFeatures
from optbench.shapes.colocation.colocation_data import Floats

PRIOR_WEIGHT = 0.5
# Of a share of few pairs: one pair that fits and half a pair that does not are added.
ADDED_FITS, ADDED_MISFITS = 1.0, 0.5


def pair_fit_probability(features: JobFeatures, known: Floats) -> Floats:
    """Return p[g, t, s]; ``known`` is 1, 0, or NaN where nothing is known."""
    single = features.log_gpus == 0
    pairs = single[:, None] & single[None, :]
    # Jobs of several GPUs run alone, and say nothing of the others.
    there = ~np.isnan(known) & pairs
    fits = np.where(there, known, 0.0)
    weight = there.astype(float)
    kernel = np.maximum(features.similarity(), _alike_partners(fits, weight))
    prior = _shares(fits, weight)
    total = kernel @ fits @ kernel.T + PRIOR_WEIGHT * prior
    out = total / (kernel @ weight @ kernel.T + PRIOR_WEIGHT)
    out = (out + np.swapaxes(out, 1, 2)) / 2
    found: Floats = np.where(there, known, np.where(pairs, np.clip(out, 0.0, 1.0), 0.0))
    return found


def _shares(fits: Floats, weight: Floats) -> Floats:
    """Per pair the share of known pairs that fit, of t and of s, relative to that of the GPU."""
    added = ADDED_FITS + ADDED_MISFITS
    overall = (fits.sum(axis=(1, 2)) + ADDED_FITS) / (weight.sum(axis=(1, 2)) + added)
    of_job = (fits.sum(axis=2) + added * overall[:, None]) / (weight.sum(axis=2) + added)
    relative = of_job / overall[:, None]
    return np.clip(overall[:, None, None] * relative[:, :, None] * relative[:, None, :], 0.0, 1.0)


def _alike_partners(fits: Floats, weight: Floats) -> Floats:
    """1 where two job types fit beside the same others, falling quickly with each difference."""
    num_types = fits.shape[1]
    flat, there = (np.swapaxes(each, 0, 1).reshape(num_types, -1) for each in (fits, weight))
    common = there @ there.T
    misses = there - flat
    differ = flat @ misses.T + misses @ flat.T
    # Types without a misfit tell nothing of their size.
    tells = misses.sum(axis=1) > 0
    alike = np.exp(-4.0 * differ / np.maximum(common, 1.0) * 10.0) * common / (common + 20.0)
    out: Floats = np.where(tells[:, None] & tells[None, :], alike, 0.0)
    return out
