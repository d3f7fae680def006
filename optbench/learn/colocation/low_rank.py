"""A Gaussian model of rows in few dimensions, and its posterior after some cells have been seen.

    y = μ + W z + ε        z ~ N(0, I_k)        ε_j ~ N(0, ψ_j)

(probabilistic principal components, Tipping and Bishop 1999, with one ψ per column). After cells j
with values y_j and standard deviations σ_j of their measurements,

    S = (I + Σ_j W_j W_jᵀ / (ψ_j + σ_j²))⁻¹        z = S Σ_j W_j (y_j − μ_j) / (ψ_j + σ_j²)

and a cell has the mean μ + W z and the variance ψ + W S Wᵀ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.learn.colocation.row_tables import nan_mean
from optbench.shapes.colocation.colocation_data import Bools, Floats, Ints

LEAST_VARIANCE = 1e-4
IMPUTATIONS = 6


@dataclass(frozen=True)
class LowRank:
    """μ (J,), W (J, k) and ψ (J,)."""

    mean: Floats
    loadings: Floats
    variance: Floats

    @property
    def rank(self) -> int:
        return int(self.loadings.shape[1])

    @classmethod
    def of(cls, rows: Floats, rank: int, centre: bool = True) -> LowRank:
        """Fit rows (N, J) with NaN where nothing is known, by repeated imputation."""
        num_rows, num_columns = rows.shape
        there = ~np.isnan(rows)
        mean = nan_mean(rows, 0, 0.0) if centre else np.zeros(num_columns)
        rank = max(0, min(rank, num_rows - 1, num_columns))
        if rank == 0 or num_rows < 2:
            spread = nan_mean((rows - mean) ** 2, 0, 0.1)
            return cls(mean, np.zeros((num_columns, 0)), np.maximum(spread, LEAST_VARIANCE))
        rest = np.where(there, rows - mean, 0.0)
        left, size, right = _svd(rest, rank)
        for _ in range(0 if there.all() else IMPUTATIONS):
            rest = np.where(there, rest, (left * size) @ right)
            left, size, right = _svd(rest, rank)
        lost = np.where(there, (rest - (left * size) @ right) ** 2, np.nan)
        noise = nan_mean(lost, 0, 0.1) * num_rows / max(1, num_rows - rank)
        overall = float(noise.mean())
        # Of the squares of a direction that part is noise that a random direction would have.
        kept = np.maximum(size**2 / num_rows - overall, 0.0)
        variance = np.maximum((noise + overall) / 2, LEAST_VARIANCE)
        # One memory layout, whether fitted or read from a file: sums then have one order.
        return cls(mean, np.ascontiguousarray(right.T * np.sqrt(kept)), variance)

    @classmethod
    def with_effects(cls, rows: Floats, direction: Ints, rank: int, centre: bool = True) -> LowRank:
        """Fit one effect of a row on all cells of a direction, and low rank to what remains."""
        mean = nan_mean(rows, 0, 0.0) if centre else np.zeros(rows.shape[1])
        rest = rows - mean
        directions = np.unique(direction) if len(rows) else direction[:0]
        effects = np.zeros((rows.shape[1], len(directions)))
        for k, d in enumerate(directions.tolist()):
            mine = direction == d
            effect = nan_mean(rest[:, mine], 1, 0.0)
            effects[mine, k] = np.sqrt((effect**2).mean())
            rest[:, mine] -= effect[:, None]
        inner = cls.of(rest, rank, centre=False)
        return cls(mean, np.concatenate([effects, inner.loadings], axis=1), inner.variance)

    def posterior(self, values: Floats, sd: Floats) -> tuple[Floats, Floats, Floats]:
        """Means and variances of whole rows (n, J), and z (n, k); what has not been seen has an
        infinite standard deviation."""
        n = len(values)
        seen = np.isfinite(sd) & ~np.isnan(values)
        mean = np.broadcast_to(self.mean, values.shape).copy()
        prior = self.variance + (self.loadings**2).sum(axis=1)
        variance = np.broadcast_to(prior, values.shape).copy()
        latent = np.zeros((n, self.rank))
        for i in np.flatnonzero(seen.any(axis=1)).tolist() if self.rank else ():
            latent[i], cov = self._latent(seen[i], values[i], sd[i])
            mean[i] += self.loadings @ latent[i]
            variance[i] = self.variance + ((self.loadings @ cov) * self.loadings).sum(axis=1)
        return mean, variance, latent

    def _latent(self, seen: Bools, values: Floats, sd: Floats) -> tuple[Floats, Floats]:
        part = self.loadings[seen]
        precision = 1.0 / (self.variance[seen] + sd[seen] ** 2)
        inner = np.eye(self.rank) + (part.T * precision) @ part
        cov = np.asarray(np.linalg.inv(inner), dtype=float)
        latent: Floats = cov @ (part.T @ (precision * (values - self.mean)[seen]))
        return latent, cov


def _svd(rows: Floats, rank: int) -> tuple[Floats, Floats, Floats]:
    """The leading singular vectors, by the smaller of the two products."""
    if rows.shape[0] > rows.shape[1]:
        left, size, right = np.linalg.svd(rows, full_matrices=False)
        return left[:, :rank], size[:rank], right[:rank]
    square, vectors = np.linalg.eigh(rows @ rows.T)
    left = vectors[:, ::-1][:, :rank]
    # The sign of a vector is arbitrary: the largest entry is above 0.
    largest = left[np.abs(left).argmax(axis=0), np.arange(left.shape[1])]
    left = left * np.where(largest < 0, -1.0, 1.0)
    size = np.sqrt(np.maximum(square[::-1][:rank], 1e-18))
    return left, size, (left / size).T @ rows
