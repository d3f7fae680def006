"""Normalisation of features: rows to sum 1, columns to mean 0 and deviation 1, or none."""

from __future__ import annotations

from typing import Literal

import numpy as np

from optbench.shapes.gnn_training.training_data import Floats

Scaling = Literal["none", "row", "standard"]


def scaled(features: Floats, scaling: Scaling) -> Floats:
    """Return scaled features: ``row`` divides each row by its sum of absolute values,
    ``standard`` is (x - mean) / deviation for each column; a row of zeros, and a constant column,
    become zeros.
    """
    if scaling == "none" or not features.size:
        return features
    if scaling == "row":
        total = np.abs(features).sum(axis=1, keepdims=True)
        out: Floats = np.divide(features, total, out=np.zeros_like(features), where=total > 0)
        return out
    apart = features - features.mean(axis=0)
    deviation = features.std(axis=0)
    # A constant column's deviation may be a rounding error of its values.
    varies = deviation > np.abs(features).max(axis=0) * 1e-12
    made: Floats = np.divide(apart, deviation, out=np.zeros_like(features), where=varies)
    return made
