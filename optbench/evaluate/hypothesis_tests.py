"""Hypothesis tests: paired t-tests, equivalence, Holm's correction, ANOVA, linear regression.

With differences dᵢ = aᵢ − bᵢ of n pairs, mean d̄ and standard deviation s:

    paired t-test      t = d̄ / (s / √n),  p = 2 P(T > |t|),  T of Student with n − 1 degrees
    equivalence        p = max( P(T > (d̄ + m) / (s / √n)), P(T < (d̄ − m) / (s / √n)) )
    Holm               adjusted p₍ᵢ₎ = max over j ≤ i of min(1, (k − j + 1) p₍ⱼ₎), ascending p
    one-way ANOVA      F = (SSB / (k − 1)) / (SSW / (n − k)),  k groups, n values in all
    blocked ANOVA      the same with the mean of each block (row) removed: (k − 1)(n − 1) degrees
    linear regression  y = β₀ + Σ βⱼ xⱼ + ε by least squares,  t = βⱼ / se(βⱼ)

The equivalence test is two one-sided paired t-tests (Schuirmann 1987): p below 0.05 says that the
mean difference lies within ±m.

Differences that are all the same have no spread, from which a t-test could judge. Where all are 0
the two samples are the same one: the t-test returns t = 0 and p = 1, and the samples are
``identical``, which is no result of a test (p = 0 by definition). Any other constant difference is
refused, because nothing in the data is random. Values count as the same where they differ by
rounding alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from optbench.errors import OptbenchError

Floats: TypeAlias = NDArray[np.float64]
Values: TypeAlias = Sequence[float] | Floats

LEVEL = 0.95
# Differences of two sums of a few terms: rounding errors of so many units in the last place.
ROUNDING = 16 * float(np.finfo(float).eps)


class UntestableError(OptbenchError):
    """Values from which a test can conclude nothing: too few, not finite, or without spread."""


@dataclass(frozen=True)
class PairedTest:
    """A paired t-test: the mean difference a − b with its 95 % interval, t and two-sided p."""

    count: int
    difference: float
    standard_error: float
    low: float
    high: float
    statistic: float
    p_value: float


@dataclass(frozen=True)
class EquivalenceTest:
    """Two one-sided paired t-tests; ``p_value`` is the larger of the two: that of "the mean
    difference is not within the margin".
    """

    count: int
    difference: float
    standard_error: float
    margin: float
    p_above: float
    p_below: float
    p_value: float

    @property
    def identical(self) -> bool:
        """Whether all pairs are the same, so that nothing was tested."""
        return self.standard_error == 0.0


@dataclass(frozen=True)
class VarianceTest:
    """An analysis of variance; ``explained`` is the share of the variance between the groups."""

    groups: int
    count: int
    between_freedom: int
    within_freedom: int
    statistic: float
    p_value: float
    explained: float


@dataclass(frozen=True)
class RegressionCoefficient:
    """A coefficient of a regression; ``standardised`` is per standard deviation of x and of y.

    ``inflation`` is 1 / (1 − R²) of the column regressed on the others: the factor by which they
    widen its variance. Far above 1 they carry the same information, and single coefficients little.
    """

    name: str
    value: float
    standard_error: float
    statistic: float
    p_value: float
    standardised: float
    inflation: float


@dataclass(frozen=True)
class LinearRegression:
    """Least squares with a constant, which is the first coefficient."""

    count: int
    coefficients: tuple[RegressionCoefficient, ...]
    r_squared: float
    adjusted_r_squared: float
    statistic: float
    p_value: float


def paired_t_test(a: Values, b: Values) -> PairedTest:
    """Test whether the mean of a − b is 0, by Student's t; needs two pairs."""
    from scipy.stats import ttest_rel

    first, second, difference = _paired(a, b)
    count, mean = len(difference), float(difference.mean())
    if _all_zero(difference, first, second):
        return PairedTest(count, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    error = _standard_error(difference, first, second)
    found = ttest_rel(first, second)
    ends = found.confidence_interval(LEVEL)
    statistic, p_value = float(found.statistic), float(found.pvalue)
    return PairedTest(count, mean, error, float(ends.low), float(ends.high), statistic, p_value)


def equivalence_test(a: Values, b: Values, margin: float) -> EquivalenceTest:
    """Test whether the mean of a − b lies within ±margin, by two one-sided paired t-tests."""
    from scipy.stats import t

    if not 0 < margin < np.inf:
        raise UntestableError(f"margin is {margin}; it must be a positive number")
    first, second, difference = _paired(a, b)
    count, mean = len(difference), float(difference.mean())
    if _all_zero(difference, first, second):
        return EquivalenceTest(count, 0.0, 0.0, margin, 0.0, 0.0, 0.0)
    error = _standard_error(difference, first, second)
    above = float(t.sf((mean + margin) / error, count - 1))
    below = float(t.cdf((mean - margin) / error, count - 1))
    return EquivalenceTest(count, mean, error, margin, above, below, max(above, below))


def holm(p_values: Values) -> tuple[float, ...]:
    """Adjust p-values of several tests (Holm 1979), in the order in which they are given."""
    p = np.asarray(p_values, dtype=float)
    wrong = ~((p >= 0) & (p <= 1))
    for i in np.flatnonzero(wrong)[:1].tolist():
        raise UntestableError(f"p_values[{i}] is {p[i]}; p-values are from 0 to 1")
    order = np.argsort(p, kind="stable")
    raised = np.minimum(1.0, p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.maximum.accumulate(raised)
    return tuple(adjusted.tolist())


def one_way_anova(groups: Sequence[Values]) -> VarianceTest:
    """Test whether all groups have the same mean; values within a group are repeats."""
    from scipy.stats import f_oneway

    values = [_finite(each, f"group {k}") for k, each in enumerate(groups)]
    k, count = len(values), sum(map(len, values))
    empty = [i for i, each in enumerate(values) if not len(each)]
    if k < 2 or empty:
        words = f"group {empty[0]} of {k} has none" if empty else f"there are {k}"
        raise UntestableError(f"an ANOVA needs two groups with values; {words}")
    if count <= k:
        raise UntestableError(f"{count} values in {k} groups; some group needs two or more")
    every = np.concatenate(values)
    total = float(np.square(every - every.mean()).sum())
    within = sum(float(np.square(each - each.mean()).sum()) for each in values)
    _check_spread(within, every)
    found = f_oneway(*values)
    explained = 1.0 - within / total
    return VarianceTest(
        k, count, k - 1, count - k, float(found.statistic), float(found.pvalue), explained
    )


def blocked_anova(table: Sequence[Values]) -> VarianceTest:
    """Test whether columns have the same mean where each row is a block, such as an instance.

    ``explained`` is the share of the columns in what the rows leave unexplained.
    """
    from scipy.stats import f

    rows = [_finite(each, f"row {k}") for k, each in enumerate(table)]
    widths = {len(each) for each in rows}
    if len(rows) < 2 or len(widths) != 1 or min(widths) < 2:
        raise UntestableError(
            f"{len(rows)} rows of {sorted(widths)} values; a blocked ANOVA needs two rows or more "
            "of the same two values or more"
        )
    values = np.stack(rows)
    n, k = values.shape
    rest = values - values.mean(axis=1, keepdims=True)
    means = rest.mean(axis=0)
    between = n * float(np.square(means).sum())
    within = float(np.square(rest - means).sum())
    _check_spread(within, values)
    freedom = (k - 1, (k - 1) * (n - 1))
    statistic = (between / freedom[0]) / (within / freedom[1])
    p_value = float(f.sf(statistic, *freedom))
    return VarianceTest(k, n * k, *freedom, statistic, p_value, between / (between + within))


def linear_regression(columns: Mapping[str, Values], y: Values) -> LinearRegression:
    """Regress y on the columns and a constant by ordinary least squares."""
    from scipy.linalg import qr, solve_triangular
    from scipy.stats import f

    target = _finite(y, "y")
    names = list(columns)
    x = _design(columns, target)
    n, k = x.shape
    # Centred and scaled, so that numbers of edges and of devices stand beside each other.
    centre, scale = x.mean(axis=0), x.std(axis=0)
    q, r, order = qr((x - centre) / scale, mode="economic", pivoting=True)
    _check_rank(np.abs(np.diag(r)), [names[j] for j in order], n)
    shifted = target - target.mean()
    slopes, inverse = np.empty(k), np.empty((k, k))
    slopes[order] = solve_triangular(r, q.T @ shifted)
    inverse[order] = solve_triangular(r, np.eye(k))
    total = float(shifted @ shifted)
    _check_spread(total, target, "y has the same value everywhere; nothing is to be explained")
    left = shifted - (x - centre) / scale @ slopes
    rest, freedom = float(left @ left), n - k - 1
    _check_spread(rest, target, "the columns explain y exactly; a test has no residuals to use")
    variance = rest / freedom
    # (XᵀX)⁻¹ = R⁻¹ R⁻ᵀ: its diagonal are the squared rows of R⁻¹.
    spreads = np.square(inverse).sum(axis=1)
    value, error = slopes / scale, np.sqrt(variance * spreads) / scale
    # β₀ = ȳ − Σ βⱼ x̄ⱼ; the mean of y is independent of the slopes.
    slope_part = (centre / scale) @ inverse
    first = float(target.mean() - value @ centre)
    first_error = float(np.sqrt(variance * (1 / n + slope_part @ slope_part)))
    found = [_coefficient("constant", first, first_error, freedom, 0.0, 1.0)]
    for j, name in enumerate(names):
        beta, inflation = float(slopes[j] / np.sqrt(total / n)), float(n * spreads[j])
        each = float(value[j]), float(error[j])
        found.append(_coefficient(name, *each, freedom, beta, inflation))
    r_squared = 1.0 - rest / total
    statistic = (r_squared / k) / ((1 - r_squared) / freedom)
    adjusted = 1.0 - (1.0 - r_squared) * (n - 1) / freedom
    p_value = float(f.sf(statistic, k, freedom))
    return LinearRegression(n, tuple(found), r_squared, adjusted, statistic, p_value)


def _coefficient(
    name: str, value: float, error: float, freedom: int, standardised: float, inflation: float
) -> RegressionCoefficient:
    from scipy.stats import t

    statistic = value / error
    p_value = float(2 * t.sf(abs(statistic), freedom))
    return RegressionCoefficient(name, value, error, statistic, p_value, standardised, inflation)


def _check_rank(diagonal: Floats, names: Sequence[str], count: int) -> None:
    """Refuse columns of which one follows from the others; ``diagonal`` of R, with pivoting."""
    weak = np.flatnonzero(diagonal <= 1e3 * count * ROUNDING * diagonal[0])
    if len(weak):
        raise UntestableError(
            f"column {names[weak[0]]!r} is a linear combination of the others: "
            f"{', '.join(map(repr, sorted(names)))}; leave one of them out"
        )


def _design(columns: Mapping[str, Values], y: Floats) -> Floats:
    """The columns as a matrix: of one length, each with some spread, fewer than the values."""
    if not columns:
        raise UntestableError("a regression needs at least one column")
    kept = []
    for name, given in columns.items():
        column = _finite(given, f"column {name!r}")
        if len(column) != len(y):
            raise UntestableError(f"column {name!r} has {len(column)} values, y has {len(y)}")
        kept.append(column)
    if len(y) < len(kept) + 2:
        raise UntestableError(
            f"{len(y)} values for {len(kept)} columns; a regression needs at least "
            f"{len(kept) + 2}: two more than columns"
        )
    for name, column in zip(columns, kept, strict=True):
        if np.ptp(column) <= ROUNDING * np.abs(column).max():
            raise UntestableError(
                f"column {name!r} is {column[0]:g} everywhere; leave it out or vary it"
            )
    return np.stack(kept, axis=1)


def _paired(a: Values, b: Values) -> tuple[Floats, Floats, Floats]:
    first, second = _finite(a, "a"), _finite(b, "b")
    if len(first) != len(second):
        raise UntestableError(f"a has {len(first)} values, b has {len(second)}; pairs are needed")
    if len(first) < 2:
        raise UntestableError(f"{len(first)} pairs; a paired test needs two or more")
    return first, second, np.asarray(first - second, dtype=float)


def _finite(values: Values, name: str) -> Floats:
    found = np.asarray(values, dtype=float)
    if found.ndim != 1:
        raise UntestableError(f"{name} has shape {found.shape}; it must be a list of numbers")
    for i in np.flatnonzero(~np.isfinite(found))[:1].tolist():
        raise UntestableError(f"{name}[{i}] is {found[i]}; values must be finite")
    return found


def _all_zero(difference: Floats, a: Floats, b: Floats) -> bool:
    """Whether each difference is 0 up to rounding."""
    return bool((np.abs(difference) <= ROUNDING * np.maximum(np.abs(a), np.abs(b))).all())


def _standard_error(difference: Floats, a: Floats, b: Floats) -> float:
    """The standard error of the mean difference; refuses differences without spread."""
    size = float(max(np.abs(a).max(), np.abs(b).max()))
    if np.ptp(difference) <= ROUNDING * size:
        raise UntestableError(
            f"all {len(difference)} differences are {difference[0]:g}: they have no spread, from "
            "which a t-test could judge; vary what is random, such as the seed"
        )
    return float(difference.std(ddof=1) / np.sqrt(len(difference)))


def _check_spread(squares: float, values: Floats, words: str | None = None) -> None:
    """Refuse a sum of squares that is 0 up to rounding."""
    if squares <= values.size * (ROUNDING * float(np.abs(values).max())) ** 2:
        raise UntestableError(
            words
            or "values within the groups are all the same: they have no spread, from which "
            "an ANOVA could judge; vary what is random, such as the seed"
        )
