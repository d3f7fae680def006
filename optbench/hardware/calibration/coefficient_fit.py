"""Coefficients of the DVFS law from measured powers and times, with intervals.

With the clock f as a fraction of the top clock and n devices, the laws of ``power/dvfs.py`` are
linear in their coefficients:

    P(f)      = α_p f³ + β_p f + γ_p            watts per device
    n T(n, f) = α_t + β_t / f + γ_t n [n > 1]   device seconds per unit of work

An observation is the mean of one run at one point (n, f). Its error is taken as proportional to its
value, so that the fit minimises Σ (y_i / g_i − 1)², where g is the law; the weights 1 / g_i² are
those of the previous iteration. All coefficients are at least 0: of the fits over all subsets of
coefficients, the others held at 0, the best one without a negative coefficient is taken.

Intervals cover 95 %. They are t intervals of the weighted least squares without the constraints,
cut at 0 and, if necessary, extended to the constrained estimate. Their variance is that of all N
residuals, with N − p degrees of freedom for p coefficients. If an F test at 1 % finds that the L
points deviate from the law by more than their repeats from each other, the variance is that of the
points around the law, with L − p degrees of freedom, so that the intervals cover the law's own
error too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optbench.errors import ParameterError

Floats = NDArray[np.float64]
Values = Sequence[float] | NDArray[Any]

COVERAGE = 0.95
# Below this probability of the F test, the points do not lie on the law.
MISFIT_AT = 0.01
REWEIGHTINGS = 4
# Relative scatter of repeats below this is that of printed digits, and tests nothing.
ROUNDING = 1e-5
POWER, TIME = ("alpha_p", "beta_p", "gamma_p"), ("alpha_t", "beta_t", "gamma_t")
# The relative precision of a coefficient is judged against at least this share of the law's value.
LEAST_SHARE = 0.02


@dataclass(frozen=True)
class Coefficient:
    """A coefficient with the ends of its 95 % interval; ``weight`` times it is its part of
    ``whole``, the law's value at the top clock (n T for the time)."""

    name: str
    value: float
    low: float
    high: float
    whole: float
    weight: float = 1.0

    @property
    def share(self) -> float:
        """Its share of the law's value."""
        return self.weight * self.value / self.whole if self.whole > 0 else 0.0

    @property
    def half_width(self) -> float:
        """Half the interval's width relative to the coefficient, or to the least share of the
        value that matters."""
        scale = max(self.value, LEAST_SHARE * self.whole / self.weight)
        half = (self.high - self.low) / 2
        return half / scale if half > 0 else 0.0


@dataclass(frozen=True)
class LawFit:
    """A fitted law: coefficients, and the relative residual y / g − 1 of every observation."""

    coefficients: tuple[Coefficient, ...]
    fitted: tuple[float, ...]
    residuals: tuple[float, ...]
    degrees: int
    scatter: float  # relative standard deviation of repeats around their point's mean
    misfit: float | None  # probability of the F test; None where no point was repeated
    worst: float  # largest relative deviation of a point's mean from the law

    @property
    def values(self) -> dict[str, float]:
        return {each.name: each.value for each in self.coefficients}

    @property
    def half_width(self) -> float:
        """The largest relative half width of an interval."""
        return max(each.half_width for each in self.coefficients)

    @property
    def misfits(self) -> bool:
        """Whether the points deviate from the law by more than their repeats explain."""
        return self.misfit is not None and self.misfit < MISFIT_AT

    def is_settled(self, precision: float) -> bool:
        """Whether more runs are of no use: the intervals are narrow enough, or their width is that
        of the points around the law, which runs do not narrow."""
        return self.half_width <= precision or self.misfits


def fit_power(clocks: Values, watts: Values) -> LawFit:
    """Fit P(f) to powers per device."""
    f = np.asarray(clocks, dtype=float)
    design = np.column_stack([f**3, f, np.ones_like(f)])
    return _fit(POWER, design, np.asarray(watts, dtype=float), f, np.ones(3))


def fit_time(counts: Sequence[int], clocks: Values, seconds: Values) -> LawFit:
    """Fit T(n, f) to seconds per unit; γ_t is 0 where no run has more than one device."""
    n, f = np.asarray(counts, dtype=float), np.asarray(clocks, dtype=float)
    several = n > 1
    design = np.column_stack([np.ones_like(f), 1 / f, n * several])
    top = np.array([1.0, 1.0, float(n.max())])
    names = TIME if several.any() else TIME[:2]
    found = _fit(
        names,
        design[:, : len(names)],
        n * np.asarray(seconds, dtype=float),
        f + n,
        top[: len(names)],
    )
    return found if several.any() else _with_zero(found, "gamma_t")


def constant_power(watts: Sequence[float]) -> LawFit:
    """P = γ_p, for the one clock that there is."""
    y = np.asarray(watts, dtype=float)
    found = _fit(("gamma_p",), np.ones((len(y), 1)), y, np.ones_like(y), np.ones(1))
    return _with_zero(_with_zero(found, "beta_p", 0), "alpha_p", 0)


def constant_time(seconds: Sequence[float]) -> LawFit:
    """T = α_t, for the one clock that there is, on one device."""
    y = np.asarray(seconds, dtype=float)
    found = _fit(("alpha_t",), np.ones((len(y), 1)), y, np.ones_like(y), np.ones(1))
    return _with_zero(_with_zero(found, "beta_t"), "gamma_t")


def _with_zero(fit: LawFit, name: str, at: int | None = None) -> LawFit:
    rows = list(fit.coefficients)
    rows.insert(len(rows) if at is None else at, Coefficient(name, 0.0, 0.0, 0.0, 0.0))
    return LawFit(
        tuple(rows), fit.fitted, fit.residuals, fit.degrees, fit.scatter, fit.misfit, fit.worst
    )


def _fit(names: Sequence[str], design: Floats, y: Floats, points: Floats, top: Floats) -> LawFit:
    """Fit y = design · c; ``points`` tells observations of one point from those of others, and
    ``top`` is the design at the top clock."""
    size = len(names)
    if len(y) <= size or len(np.unique(points)) < size:
        raise ParameterError(
            f"{len(y)} observations of {len(np.unique(points))} points cannot determine "
            f"{', '.join(names)}; measure at least {size} points and {size + 1} runs"
        )
    if not (np.isfinite(y).all() and (y > 0).all()):
        raise ParameterError(f"observations are {y.tolist()}; they must be positive numbers")
    g = y
    for _ in range(REWEIGHTINGS):
        scaled = design / g[:, None]
        values = _not_negative(scaled, y / g)
        g = np.maximum(design @ values, 1e-12 * y)
    scaled, target = design / g[:, None], y / g
    free = np.linalg.lstsq(scaled, target, rcond=None)[0]
    rest = target - scaled @ free
    variance, degrees, scatter, misfit = _variance(rest, points, size)
    spread = np.sqrt(variance * np.diag(np.linalg.inv(scaled.T @ scaled)))
    reach = _t_quantile(degrees) * spread
    low, high = np.maximum(free - reach, 0.0), np.maximum(free + reach, 0.0)
    whole = float(values @ top)
    residuals = y / g - 1
    return LawFit(
        tuple(
            Coefficient(name, float(c), float(min(lo, c)), float(max(hi, c)), whole, float(weight))
            for name, c, lo, hi, weight in zip(names, values, low, high, top, strict=True)
        ),
        tuple(g.tolist()),
        tuple(residuals.tolist()),
        degrees,
        scatter,
        misfit,
        max(abs(float(residuals[points == p].mean())) for p in np.unique(points)),
    )


def _not_negative(design: Floats, y: Floats) -> Floats:
    """The least squares without negative coefficients, by enumeration of those above 0."""
    size = design.shape[1]
    best, least = np.zeros(size), float(y @ y)
    for count in range(size, 0, -1):
        for kept in combinations(range(size), count):
            part = np.linalg.lstsq(design[:, kept], y, rcond=None)[0]
            if (part < 0).any():
                continue
            rest = y - design[:, kept] @ part
            if float(rest @ rest) < least:
                least, best = float(rest @ rest), np.zeros(size)
                best[list(kept)] = part
        if best.any() and count == size:
            break  # the fit without the constraints is the best of all
    return best


def _variance(rest: Floats, points: Floats, size: int) -> tuple[float, int, float, float | None]:
    """Variance of an observation with its degrees of freedom, the scatter of repeats, and the
    probability of the F test."""
    places, group = np.unique(points, return_inverse=True)
    sums = np.bincount(group, weights=rest)
    means = sums / np.bincount(group)
    within = float(((rest - means[group]) ** 2).sum())
    total = float(rest @ rest)
    repeats, beyond = len(rest) - len(places), len(places) - size
    scatter = (within / repeats) ** 0.5 if repeats else 0.0
    if not repeats or not beyond:
        return total / (len(rest) - size), len(rest) - size, scatter, None
    around = max(total - within, 0.0) / beyond
    pure = max(within / repeats, ROUNDING**2)
    misfit = _f_tail(around / pure, beyond, repeats)
    if misfit < MISFIT_AT:
        return around, beyond, scatter, misfit
    return total / (len(rest) - size), len(rest) - size, scatter, misfit


def _t_quantile(degrees: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.5 + COVERAGE / 2))


def _f_tail(ratio: float, over: int, under: int) -> float:
    from scipy.special import fdtrc

    return float(fdtrc(over, under, ratio))
