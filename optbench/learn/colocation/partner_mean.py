"""The partner mean: how a partner treats the known jobs on average is how it treats a new one.

With the known types q, public ratios r and the mean m[g] over all of them,

    r[g, t, s] = mean over q of r[g, q, s]      of a new t beside a known s
    r[g, s, t] = mean over q of r[g, s, q]      of a known s beside a new t

the additive model on ratios without an effect of what is new. A throughput alone is that of the
mean known job on the GPU type; once t was measured on other GPU types, their mean difference to it
is the same for t as for the known types. Measured ratios change no other estimate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.learn.colocation.look_up import overall_mean
from optbench.learn.colocation.row_tables import KnownRows, RowGuess, SeenRows, nan_mean
from optbench.shapes.colocation.colocation_data import Floats

# Standard deviations where too few public cells exist to compute one.
ALONE_SD, RATIO_SD = 1.5, 0.25
FEWEST = 3


@dataclass(frozen=True)
class ColumnMeans:
    """Means and standard deviations over the known types of every cell of a row.

    ``alone`` is (G,), ``ratio`` (2, G, K + 1) as such, not as a logarithm."""

    alone: Floats
    alone_sd: Floats
    ratio: Floats
    ratio_sd: Floats

    @classmethod
    def of(cls, rows: KnownRows) -> ColumnMeans:
        alone = rows.alone[rows.has_alone]
        mean = nan_mean(alone, 0)
        all_mean = float(nan_mean(mean, 0, 0.0))
        mean = np.where(np.isnan(mean), all_mean, mean)
        ratio = np.exp(rows.ratio[rows.known])
        columns = nan_mean(ratio, 0)
        # A GPU type without public pairs takes the mean of the others for the same partner.
        columns = np.where(np.isnan(columns), nan_mean(columns, 1)[:, None, :], columns)
        columns = np.where(np.isnan(columns), overall_mean(rows)[None, :, None], columns)
        return cls(
            mean, _deviation(alone, mean, ALONE_SD), columns, _deviation(ratio, columns, RATIO_SD)
        )


def _deviation(values: Floats, mean: Floats, otherwise: float) -> Floats:
    """Standard deviation of a new value around the mean of the known ones."""
    there = ~np.isnan(values)
    count = there.sum(axis=0)
    total = np.where(there, (values - mean) ** 2, 0.0).sum(axis=0)
    enough = count >= FEWEST
    out = np.sqrt(total / np.maximum(count - 1, 1) * (1 + 1 / np.maximum(count, 1)))
    return np.where(enough, np.maximum(out, 0.01), otherwise)


@dataclass(frozen=True)
class PartnerMean:
    """Estimates by means over the known types."""

    rows: KnownRows
    columns: ColumnMeans

    @classmethod
    def of(cls, rows: KnownRows) -> PartnerMean:
        return cls(rows, ColumnMeans.of(rows))

    def alone(self, seen: SeenRows) -> tuple[Floats, Floats]:
        means = self.columns
        there = np.isfinite(seen.alone_sd)
        shift = nan_mean(np.where(there, seen.alone - means.alone, np.nan), 1)
        any_seen = ~np.isnan(shift)
        mean = means.alone + np.where(any_seen, shift, 0.0)[:, None]
        between = self._between_sd()
        sd = np.where(any_seen[:, None], between, means.alone_sd)
        return mean, sd

    def guess(self, seen: SeenRows) -> RowGuess:
        log_alone, log_sd = self.alone(seen)
        shape = (len(seen.types), *self.columns.ratio.shape)
        return RowGuess(
            log_alone,
            log_sd,
            np.broadcast_to(self.columns.ratio, shape).copy(),
            np.broadcast_to(self.columns.ratio_sd, shape).copy(),
        )

    def _between_sd(self) -> Floats:
        """Standard deviation of the throughput on a GPU type around that on the others."""
        inner = self.rows.alone[self.rows.has_alone] - self.columns.alone
        rest = inner - nan_mean(inner, 1)[:, None]
        return _deviation(rest, np.zeros(rest.shape[1]), ALONE_SD / 2)
