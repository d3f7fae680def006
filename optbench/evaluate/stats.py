"""Statistics of many results, one definition each: intervals over seeds, paired differences,
profiles, ranks.

Bootstrap: instances of one problem are a stratum, and resamples are drawn within strata. Of a
stratum of n values n − 1 are drawn, each weighing n / (n − 1), so that the variance of a resampled
mean is s²/n and not (n − 1)/n of it (Rao and Wu 1988). The percentiles are those at which Student's
t with Σ(n − 1) degrees of freedom has the asked level, instead of the normal distribution's (the
expanded percentile interval, Hesterberg 2015): with ten values or fewer the plain ones are too
narrow. No interval from three values holds its level: it cannot leave their range
(tests/evaluate/test_stats.py measures how often it holds). Strata of one value tell nothing of
their spread: together they are one stratum, as if their problems had been drawn too.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

from optbench.units import EQUAL

Floats = NDArray[np.float64]
# A statistic maps values (resamples × draws) and the weights of the draws to one number per
# resample.
Statistic = Callable[[Floats, Floats], Floats]

LEVEL, RESAMPLES = 0.95, 2000
# Seconds, as reports state it.
GEOMEAN_SHIFT_S = 10.0
# Draws held in memory at a time.
CHUNK = 4_000_000
UNKNOWN = (-np.inf, np.inf)
# With fewer values an interval holds less often than its level: with two in half of the studies,
# with three in three quarters, with four in five sixths.
FEWEST = 5


@dataclass(frozen=True)
class Estimate:
    """A statistic with its interval, infinite with fewer than two values."""

    value: float
    low: float
    high: float
    count: int

    @property
    def known(self) -> bool:
        return bool(np.isfinite(self.low) and np.isfinite(self.high))

    @property
    def apart_from_zero(self) -> bool:
        """Whether the interval excludes zero and has enough values to hold at its level."""
        return self.count >= FEWEST and (self.low > 0 or self.high < 0)


def mean(values: Floats, weights: Floats) -> Floats:
    return np.asarray(values @ (weights / weights.sum()), dtype=float)


def value_of(values: Sequence[float] | Floats, statistic: Statistic = mean) -> float:
    """Return the statistic of one sample."""
    row = np.asarray(values, dtype=float)
    return float(statistic(row[None, :], np.ones(len(row)))[0])


def bootstrap_interval(
    values: Sequence[float] | Floats,
    strata: Sequence[Hashable] | None = None,
    statistic: Statistic = mean,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[float, float]:
    """Return the two-sided interval; (−∞, ∞) with fewer than two values."""
    row = np.asarray(values, dtype=float)
    if len(row) < 2:
        return UNKNOWN
    if not np.isfinite(row).all():
        count = f"{int((~np.isfinite(row)).sum())} of {len(row)} values are not finite"
        raise ValueError(f"{count}; replace them first by the value with which they count")
    if np.ptp(row) == 0:
        return float(row[0]), float(row[0])
    order, sizes = _strata(strata if strata is not None else [0] * len(row))
    draws = np.where(sizes > 1, sizes - 1, 1)
    freedom = int((sizes - 1).sum())
    size = np.repeat(sizes, draws)
    first = np.repeat(np.cumsum(sizes) - sizes, draws)
    weights = np.repeat(sizes / draws, draws)
    sample, rng = row[order], np.random.default_rng(seed)
    step = max(1, CHUNK // len(size))
    parts = [
        statistic(
            sample[
                first + (rng.random((min(step, resamples - k), len(size))) * size).astype(np.int64)
            ],
            weights,
        )
        for k in range(0, resamples, step)
    ]
    at = [float(ndtr(stdtrit(freedom, share))) for share in ((1 - level) / 2, (1 + level) / 2)]
    low, high = np.quantile(np.concatenate(parts), at)
    return float(low), float(high)


def estimate(
    values: Sequence[float] | Floats,
    strata: Sequence[Hashable] | None = None,
    statistic: Statistic = mean,
    **options: Any,
) -> Estimate:
    """Return a statistic with its interval; options as of ``bootstrap_interval``."""
    low, high = bootstrap_interval(values, strata, statistic, **options)
    return Estimate(value_of(values, statistic), low, high, len(values))


def paired_difference(
    ours: Sequence[float] | Floats,
    theirs: Sequence[float] | Floats,
    strata: Sequence[Hashable] | None = None,
    statistic: Statistic = mean,
    **options: Any,
) -> Estimate:
    """Estimate ours − theirs, instance by instance: negative where ours is lower."""
    difference = np.asarray(ours, dtype=float) - np.asarray(theirs, dtype=float)
    return estimate(difference, strata, statistic, **options)


def _strata(names: Sequence[Hashable]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return an order that groups strata, and their sizes; strata of one value are merged."""
    numbers: dict[Hashable, int] = {}
    group = np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)
    sizes = np.bincount(group)
    if (sizes == 1).any():
        group = np.where(sizes[group] == 1, len(sizes), group)
    counts = np.bincount(group)
    return np.argsort(group, kind="stable"), counts[counts > 0]


def best_of(costs: Floats) -> Floats:
    """Return the lowest cost of each instance (column); ∞ where no solver has one."""
    return np.asarray(costs.min(axis=0, initial=np.inf), dtype=float)


def ratios(costs: Floats) -> Floats:
    """Return cost over the lowest of the instance: 1 for 0 over 0, ∞ where there is none."""
    best = best_of(costs)
    level = costs <= best + EQUAL * np.abs(best)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = np.where(level, 1.0, costs / best)
    return np.asarray(np.where(np.isfinite(costs), found, np.inf), dtype=float)


def performance_profile(costs: Floats) -> list[tuple[Floats, Floats]]:
    """Dolan and Moré 2002: per solver, factors τ ≥ 1 and the share of instances within."""
    out = []
    for row in ratios(costs):
        finite = np.sort(row[np.isfinite(row)])
        steps = np.unique(np.concatenate(([1.0], finite)))
        out.append((steps, np.searchsorted(finite, steps, side="right") / max(1, len(row))))
    return out


def average_ranks(costs: Floats) -> Floats:
    """Return the mean rank of each solver, 1 being best; ties share theirs."""
    finite = np.isfinite(costs)
    margin = np.where(finite, EQUAL * np.abs(np.where(finite, costs, 0.0)), 0.0)
    total = np.zeros(costs.shape)
    for other in costs:
        below = other < costs - margin
        with np.errstate(invalid="ignore"):
            same = (np.abs(other - costs) <= margin) | (np.isinf(other) & ~finite)
        total += below + 0.5 * same
    return np.asarray((total + 0.5).mean(axis=1), dtype=float)


def wins(costs: Floats) -> NDArray[np.int64]:
    """Count the instances on which no other solver is better; ties count for each."""
    return np.asarray((ratios(costs) == 1.0).sum(axis=1), dtype=np.int64)
