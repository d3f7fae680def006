"""What stands in the place of trained weights, to see whether the decision is the network's."""

from __future__ import annotations

import numpy as np

from .network_design import Weights

SEED = 1


def random_weights(weights: Weights, seed: int = SEED) -> Weights:
    """Return Gaussian weights, each layer with the mean and deviation of the trained one."""
    rng = np.random.default_rng(seed)
    return {
        name: (each.mean() + each.std() * rng.normal(size=each.shape)).astype(np.float32)
        for name, each in weights.items()
    }


def permuted_weights(weights: Weights) -> Weights:
    """Return the trained weights in random order within each layer."""
    rng = np.random.default_rng(SEED)
    return {
        name: rng.permutation(each.ravel()).reshape(each.shape) for name, each in weights.items()
    }
