"""An upper confidence limit of the mean of few, skewed values, such as gaps.

Gaps are never negative and sometimes large. The percentile bootstrap of five gaps is then too low
twice as often as its nominal level, and Student's t three times as often. The limit is therefore
Student's, increased by Johnson's (1978) correction where the third moment is positive: with q the
t quantile of n − 1 degrees, s² the variance and m3 the unbiased third moment,

    mean + q s/√n + max(0, m3) / (s² n) · (1/6 + q²/3)

The limit of equal values is their mean, since they show no spread.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def upper_mean(values: Sequence[float], confidence: float, most: float = math.inf) -> float:
    """The one-sided upper confidence limit, at most ``most``; ``most`` for fewer than two
    values.
    """
    from scipy.special import stdtrit

    n = len(values)
    if n < 2:
        return most
    row = np.asarray(values, dtype=float)
    mean, deviation = float(row.mean()), row - row.mean()
    variance = float(deviation @ deviation) / (n - 1)
    if variance <= (1e-12 * abs(mean)) ** 2:
        return min(mean, most)
    third = float((deviation**3).sum()) * n / ((n - 1) * (n - 2)) if n > 2 else 0.0
    q = float(stdtrit(n - 1, confidence))
    return min(
        most,
        mean + q * math.sqrt(variance / n) + max(0.0, third) / (variance * n) * (1 / 6 + q * q / 3),
    )
