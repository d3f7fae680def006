"""GPU types of which nothing is public: what the first measurements there say of all job types.

Models fill the columns of such a GPU type with the means of the same cells on the other ones. The
difference d of measured cells to these means is shared by all jobs: with n measured cells

    e = (Σ d) / (n + σ²/τ²)        variance of a cell around e: σ² + τ² / (1 + n τ²/σ²)

where τ is the standard deviation of the shared difference and σ that of a job's own. A model is
given measurements less e, and e is added to what it returns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.learn.colocation.row_tables import KnownRows, RowGuess, SeenRows, nan_mean
from optbench.learn.colocation.seen_cells import SeenCells, logarithm
from optbench.shapes.colocation.colocation_data import Bools, Floats

# Standard deviations of logarithms: shared and own, of throughputs alone and of ratios.
SHARED_ALONE, OWN_ALONE = 1.0, 0.4
SHARED_RATIO, OWN_RATIO = 0.15, 0.2


@dataclass(frozen=True)
class GenerationShift:
    """Shared differences per GPU type (G,) and the variances that they leave: 0 where a GPU type
    has public throughputs."""

    alone: Floats
    alone_variance: Floats
    ratio: Floats
    ratio_variance: Floats

    @property
    def none(self) -> bool:
        """Whether all GPU types have public throughputs."""
        return not self.alone_variance.any()

    @classmethod
    def of(cls, rows: KnownRows, seen: SeenCells) -> GenerationShift:
        """Measure the shared differences from everything that has been seen."""
        new = np.asarray(np.isnan(rows.alone).all(axis=0), dtype=np.bool_)
        zero = np.zeros(len(new))
        if not new.any() or new.all():
            return cls(zero, zero, zero, zero)
        log_alone = logarithm(seen.alone())
        log_ratio = logarithm(seen.beside()) - log_alone[:, :, None]
        found = []
        for table, shared, own in (
            (log_alone, SHARED_ALONE, OWN_ALONE),
            (log_ratio, SHARED_RATIO, OWN_RATIO),
        ):
            expected = nan_mean(np.where(_along(new, table), np.nan, table), 0)
            rest = np.where(_along(new, table), table - expected, np.nan).reshape(len(new), -1)
            count = (~np.isnan(rest)).sum(axis=1)
            total = np.where(np.isnan(rest), 0.0, rest).sum(axis=1)
            shift = np.where(new, total / (count + own**2 / shared**2), 0.0)
            left = own**2 + shared**2 / (1 + count * shared**2 / own**2)
            found += [shift, np.where(new, left, 0.0)]
        return cls(*found)

    def without(self, seen: SeenRows) -> SeenRows:
        """Measurements less the shared differences."""
        shift = self.ratio[None, None, :, None]
        return SeenRows(
            seen.types, seen.alone - self.alone, seen.alone_sd, seen.ratio - shift, seen.ratio_sd
        )

    def alone_with(self, log_alone: Floats, log_sd: Floats) -> tuple[Floats, Floats]:
        """Throughputs alone with the shared differences."""
        return log_alone + self.alone, np.sqrt(log_sd**2 + self.alone_variance)

    def guess_with(self, guess: RowGuess) -> RowGuess:
        """Rows with the shared differences."""
        log_alone, log_sd = self.alone_with(guess.log_alone, guess.log_alone_sd)
        factor = np.exp(self.ratio)[None, None, :, None]
        spread = guess.ratio**2 * self.ratio_variance[None, None, :, None]
        ratio = np.minimum(guess.ratio * factor, 1.0)
        return RowGuess(log_alone, log_sd, ratio, np.sqrt(guess.ratio_sd**2 + spread))


def _along(new: Bools, table: Floats) -> Bools:
    """The marks of GPU types, to the dimensions of a table."""
    out: Bools = np.broadcast_to(new.reshape(-1, *[1] * (table.ndim - 1)), table.shape)
    return out
