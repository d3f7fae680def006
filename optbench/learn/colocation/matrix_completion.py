"""Matrix completion: rows of new types from those of the known ones, without any feature of a job.

Plain: a row is Gaussian in few dimensions (``LowRank``), fitted to the public rows and updated by
what has been seen. Additive: a new type has one effect as the slowed down job and one as the
slowing one, on all GPU types and beside all partners,

    log r[g, t, s] = mean over q of log r[g, q, s] + v_t        (and + w_t for r[g, s, t])

whose variances are those among the known types. Throughputs alone are Gaussian over the GPU types,
with the covariance of the known types. Before anything has been seen both are the mean of the
known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from optbench.learn.colocation.low_rank import LowRank
from optbench.learn.colocation.partner_mean import ColumnMeans
from optbench.learn.colocation.row_tables import KnownRows, RowGuess, SeenRows, nan_mean
from optbench.shapes.colocation.colocation_data import Floats, Ints

RANKS = (1, 2, 4, 8, 12)
ALONE_VARIANCE = 1e-3
FOLDS = 5
# Measured cells of a row with which a fit is tried where one is chosen.
TRIED = (6, 20)


@dataclass(frozen=True)
class MatrixCompletion:
    """Gaussian rows: ``alone_model`` over GPU types, ``ratio_model`` over the cells of a row."""

    rows: KnownRows
    alone_model: LowRank
    ratio_model: LowRank

    @classmethod
    def plain(cls, rows: KnownRows, rank: int | None = None) -> MatrixCompletion:
        """Fit the model; without a rank that one is taken which does best on held-out families."""
        table = ratio_rows(rows)
        chosen = best_rank(rows, table) if rank is None else rank
        return cls(rows, alone_gaussian(rows), LowRank.of(table, chosen))

    @classmethod
    def additive(cls, rows: KnownRows) -> MatrixCompletion:
        direction = np.indices(rows.ratio.shape[1:])[0].reshape(-1)
        model = LowRank.with_effects(ratio_rows(rows), direction, 0)
        return cls(rows, alone_gaussian(rows), model)

    def alone(self, seen: SeenRows) -> tuple[Floats, Floats]:
        mean, variance, _ = self.alone_model.posterior(seen.alone, seen.alone_sd)
        return mean, np.sqrt(variance)

    def guess(self, seen: SeenRows) -> RowGuess:
        log_alone, log_sd = self.alone(seen)
        n = len(seen.types)
        values, sd = seen.ratio.reshape(n, -1), seen.ratio_sd.reshape(n, -1)
        mean, variance, _ = self.ratio_model.posterior(values, sd)
        return as_guess(log_alone, log_sd, mean, variance, seen.ratio.shape)


def as_guess(
    log_alone: Floats, log_sd: Floats, mean: Floats, variance: Floats, shape: tuple[int, ...]
) -> RowGuess:
    """Turn means and variances of logarithms of ratios into a guess of rows."""
    ratio = np.exp(np.minimum(mean, 0.0)).reshape(shape)
    return RowGuess(log_alone, log_sd, ratio, ratio * np.sqrt(variance).reshape(shape))


def alone_gaussian(rows: KnownRows) -> LowRank:
    """The normal distribution of a row of throughputs alone, with full covariance."""
    table = rows.alone[rows.has_alone]
    g = rows.num_gpu_types
    if len(table) < 2:
        mean = nan_mean(table, 0, 0.0) if len(table) else np.zeros(g)
        return LowRank(mean, np.full((g, 1), 1.5), np.full(g, 0.3))
    empty = np.isnan(table).all(axis=0)
    per_row = nan_mean(table, 1)
    table = np.where(empty, per_row[:, None], table)
    mean = nan_mean(table, 0)
    rest = table - mean
    # A cell that does not run takes what the row has elsewhere.
    rest = np.where(np.isnan(rest), nan_mean(rest, 1)[:, None], rest)
    square, vectors = np.linalg.eigh(rest.T @ rest / max(1, len(table) - 1))
    loadings = vectors * np.sqrt(np.maximum(square, 0.0))
    return LowRank(mean, loadings, np.full(g, ALONE_VARIANCE))


def ratio_rows(rows: KnownRows) -> Floats:
    """Public rows of the known types (K, J); a GPU type without any takes those of the others."""
    table = rows.ratio[rows.known]
    if not len(table):
        return np.zeros((0, int(np.prod(rows.ratio.shape[1:]))))
    empty = np.asarray(np.isnan(table).all(axis=(0, 1, 3)))
    others = nan_mean(table, 2)
    table = np.where(empty[None, None, :, None], others[:, :, None, :], table)
    # A partner that fits beside nobody has the mean of all partners.
    means = ColumnMeans.of(rows).ratio
    hole = np.isnan(table).all(axis=0)
    return np.where(hole, np.log(means), table).reshape(len(table), -1)


def family_folds(family: Ints, num_folds: int = FOLDS) -> Ints:
    """Fold of each entry: families are dealt to the smallest fold, the largest first."""
    names, counts = np.unique(family, return_counts=True)
    order = names[np.argsort(-counts, kind="stable")]
    size = np.zeros(min(num_folds, max(1, len(names))))
    fold_of: dict[int, int] = {}
    for name in order.tolist():
        fold_of[name] = int(size.argmin())
        size[fold_of[name]] += int((family == name).sum())
    return np.array([fold_of[name] for name in family.tolist()], dtype=np.int64)


def best_rank(rows: KnownRows, table: Floats) -> int:
    """The rank of plain completion with the least error of unseen cells of families left out."""
    family = rows.features.family[rows.known]
    shape = rows.ratio.shape[1:]
    partner = np.broadcast_to(np.append(family, -1), shape).reshape(-1)
    fits = [partial(LowRank.of, rank=rank) for rank in RANKS]
    return RANKS[best_fit(table, family, partner, fits)]


def best_fit(
    table: Floats, family: Ints, partner: Ints, fits: Sequence[Callable[[Floats], LowRank]]
) -> int:
    """Place of the fit with the least error of cells that were not seen, over families left out.

    ``family`` is that of each row, ``partner`` that of each column's partner (-1: the mean)."""
    fold = family_folds(family)
    if len(table) < 4 or fold.max(initial=0) == 0:
        return 0
    rng = np.random.default_rng(0)
    error = np.zeros(len(fits))
    for number in range(int(fold.max()) + 1):
        out = fold == number
        columns = ~np.isin(partner, family[out]) & (partner >= 0)
        values = table[out]
        models = [fit(table[~out]) for fit in fits]
        for tried in TRIED:
            seen = rng.random(values.shape) < tried / max(1, columns.sum())
            seen &= columns & ~np.isnan(values)
            sd = np.where(seen, 0.03, np.inf)
            goal = columns & ~seen & ~np.isnan(values)
            for k, model in enumerate(models):
                mean, _, _ = model.posterior(values, sd)
                error[k] += np.abs(mean - values)[goal].sum()
    return int(error.argmin())
