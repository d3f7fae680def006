"""What first sight gets wrong of known types as simulated strangers, and its low-rank model.

A stranger is simulated in two modes: without relatives (no known job is of its family) and with
them. Cells beside itself, and without relatives those beside relatives, are none of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from optbench.learn.colocation.low_rank import LowRank
from optbench.learn.colocation.matrix_completion import best_fit
from optbench.learn.colocation.row_parts import RowPart, has_relatives
from optbench.shapes.colocation.colocation_data import Bools, Floats, Ints

# Whether relatives are among the neighbours: the two ways in which a stranger is simulated.
MODES = (False, True)
# With fewer rows that have relatives, strangers with relatives are refined like those without.
FEWEST_ROWS = 6
# Ranks of residuals, without and with effects of a row, that are tried.
SHAPES = (
    *((rank, True) for rank in (0, 1, 2, 4, 8)),
    *((rank, False) for rank in (2, 4, 8, 12)),
)


@dataclass(frozen=True)
class Calibration:
    """Per mode (no relatives, relatives): the share of a correction that is applied, the factor of
    the variance, and the mean absolute error of validation cells without and with the networks."""

    share: tuple[float, float]
    factor: tuple[float, float]
    error_before: tuple[float, float]
    error_after: tuple[float, float]

    @classmethod
    def of(cls, found: Sequence[tuple[float, float, float, float]]) -> Calibration:
        """From what ``calibrate`` returns for each mode."""
        (a, b), (c, d), (e, f), (g, h) = zip(*found, strict=True)
        return cls((a, b), (c, d), (e, f), (g, h))


@dataclass(frozen=True)
class Residuals:
    """What first sight gets wrong of the known types, and the low-rank model of it.

    ``held`` (2, N, J) is what first sight says of them; ``shapes`` are per mode the rank, and
    whether a row also has an effect on all of its cells."""

    part: RowPart
    held: Floats
    shapes: tuple[tuple[int, bool], tuple[int, bool]]

    @classmethod
    def of(cls, part: RowPart, held: Floats) -> Residuals:
        """Choose the shapes with the least error on families left out."""
        plain = (part.rank, False)
        if not (part.partner >= 0).any():
            return cls(part, held, (plain, plain))
        family = part.features.family
        partner = np.where(part.partner >= 0, family[np.maximum(part.partner, 0)], -1)
        blank = cls(part, held, (plain, plain))
        fits = [partial(blank.fit, shape=shape) for shape in SHAPES]
        found = []
        for mode in MODES:
            rows = blank.rows(mode)
            some = ~np.isnan(rows).all(axis=1)
            best = best_fit(rows[some], family[part.members[some]], partner, fits)
            found.append(SHAPES[best])
        return cls(part, held, (found[0], found[1]))

    def rows(self, mode: bool) -> Floats:
        """Residuals of the known types (N, J); NaN where a stranger has no cell."""
        part = self.part
        usable = usable_cells(part, part.members, mode)
        if mode:
            usable &= has_relatives(part, part.members)[:, None]
        return np.where(usable, part.table - self.held[int(mode)], np.nan)

    def fit(self, rows: Floats, shape: tuple[int, bool]) -> LowRank:
        """A low-rank model of residual rows."""
        rank, effects = shape
        if effects:
            return LowRank.with_effects(rows, self.part.direction, rank, centre=False)
        return LowRank.of(rows, rank, centre=False)

    def basis(self, mode: bool, inside: Bools) -> LowRank:
        """The low-rank model of the residuals of some known types."""
        rest = self.rows(mode)[inside]
        rest = rest[~np.isnan(rest).all(axis=1)]
        if mode and len(rest) < FEWEST_ROWS:
            return self.basis(False, inside)
        return self.fit(rest, self.shapes[mode])


def usable_cells(part: RowPart, types: Ints, mode: bool) -> Bools:
    """Cells that a stranger could have: none beside itself, nor beside relatives without a known
    relative."""
    partner = part.partner[None, :]
    own = partner == types[:, None]
    kin = part.features.family[types][:, None] == part.features.family[np.maximum(partner, 0)]
    out: Bools = ~own & (mode | ~kin | (partner < 0))
    return out


def calibrate(
    goal: Floats, shift: Floats, variance: Floats, there: Bools
) -> tuple[float, float, float, float]:
    """The least-squares share of a correction within 0 and 1, the factor of its variance, and mean
    absolute errors without and with it."""
    if not there.any():
        return 0.0, 1.0, 0.0, 0.0
    e, d, v = goal[there], shift[there], variance[there]
    share = float(np.clip((d * e).sum() / max((d * d).sum(), 1e-12), 0.0, 1.0))
    rest = e - share * d
    factor = float(np.clip((rest**2 / v).mean(), 0.25, 25.0))
    return share, factor, float(np.abs(e).mean()), float(np.abs(rest).mean())
