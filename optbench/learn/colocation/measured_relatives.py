"""What measurements of a new job say of other new jobs of its family.

Let d_r be what the measurements of r have changed of its row: the posterior's logarithms less those
at first sight, and i_r = 1 − (variance after) / (variance before) how much was learnt, cell by
cell. Another job type t of the family is given, before its own measurements,

    e_t = Σ_r κ(t, r) i_r d_r / (Σ_r κ(t, r) i_r + λ)

and its first uncertainty shrinks by the share ρ of what relatives tell, times the weights' sum over
itself and λ. The model is given the measurements of t less e_t, and e_t is added to its row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from optbench.learn.colocation.row_tables import KnownRows, RowGuess, RowModel, SeenRows
from optbench.learn.colocation.seen_cells import SeenCells
from optbench.shapes.colocation.colocation_data import Bools, Floats, Ints

# λ: what a type without any measured relative weighs; ρ: variance that a twin would take away.
BLANK_WEIGHT, TWIN_SHARE = 0.3, 0.8
LEAST_RATIO = 0.02
Guesser = Callable[[RowModel, SeenCells, Ints], RowGuess]


@dataclass(frozen=True)
class RelativeShift:
    """Per job type the shift of its row, and the share of its variance that relatives leave."""

    alone: Floats
    alone_left: Floats
    ratio: Floats
    ratio_left: Floats

    @classmethod
    def of(cls, model: RowModel, seen: SeenCells, measured: Ints, guess: Guesser) -> RelativeShift:
        """Compare the rows of measured types after and before their measurements."""
        rows = model.rows
        n, g, k = len(measured), rows.num_gpu_types, rows.num_known + 1
        blank = SeenRows(
            measured,
            np.full((n, g), np.nan),
            np.full((n, g), np.inf),
            np.full((n, 2, g, k), np.nan),
            np.full((n, 2, g, k), np.inf),
        )
        before, after = model.guess(blank), guess(model, seen, measured)
        features = rows.features
        kin = features.same_family() & ~np.eye(len(features.family), dtype=np.bool_)
        weight = np.where(kin, features.similarity(), 0.0)[:, measured]
        alone = _shared(
            weight,
            after.log_alone - before.log_alone,
            1 - (after.log_alone_sd / before.log_alone_sd) ** 2,
        )
        moved = np.log(np.maximum(after.ratio, LEAST_RATIO)) - np.log(
            np.maximum(before.ratio, LEAST_RATIO)
        )
        relative = [each.ratio_sd / np.maximum(each.ratio, LEAST_RATIO) for each in (after, before)]
        ratio = _shared(weight, moved, 1 - (relative[0] / relative[1]) ** 2)
        return cls(*alone, *ratio)


def _shared(weight: Floats, moved: Floats, learnt: Floats) -> tuple[Floats, Floats]:
    """The shift of every type, and the share of its variance that is left."""
    learnt = np.clip(learnt, 0.0, 1.0)
    flat = learnt.reshape(len(learnt), -1)
    total = weight @ flat
    shift = weight @ (flat * moved.reshape(len(moved), -1)) / (total + BLANK_WEIGHT)
    left = 1 - TWIN_SHARE * total / (total + BLANK_WEIGHT)
    shape = (len(weight), *moved.shape[1:])
    return shift.reshape(shape), left.reshape(shape)


@dataclass(frozen=True)
class WithRelatives:
    """A model whose rows begin where relatives have shifted them."""

    model: RowModel
    shift: RelativeShift

    @property
    def rows(self) -> KnownRows:
        return self.model.rows

    def alone(self, seen: SeenRows) -> tuple[Floats, Floats]:
        return self._alone(seen, *self.model.alone(self._without(seen)))

    def guess(self, seen: SeenRows) -> RowGuess:
        found = self.model.guess(self._without(seen))
        log_alone, log_sd = self._alone(seen, found.log_alone, found.log_alone_sd)
        own = _any_seen(seen.ratio_sd)[:, None, None, None]
        shift, left = (each[seen.types] for each in (self.shift.ratio, self.shift.ratio_left))
        ratio = np.minimum(found.ratio * np.exp(shift), 1.0)
        factor = ratio / np.maximum(found.ratio, LEAST_RATIO) * np.where(own, 1.0, np.sqrt(left))
        return RowGuess(log_alone, log_sd, ratio, found.ratio_sd * factor)

    def _alone(self, seen: SeenRows, value: Floats, sd: Floats) -> tuple[Floats, Floats]:
        own = _any_seen(seen.alone_sd)[:, None]
        left = np.where(own, 1.0, np.sqrt(self.shift.alone_left[seen.types]))
        return value + self.shift.alone[seen.types], sd * left

    def _without(self, seen: SeenRows) -> SeenRows:
        alone = seen.alone - self.shift.alone[seen.types]
        ratio = seen.ratio - self.shift.ratio[seen.types]
        return SeenRows(seen.types, alone, seen.alone_sd, ratio, seen.ratio_sd)


def _any_seen(sd: Floats) -> Bools:
    """Whether a row has any cell that was seen."""
    return np.asarray(np.isfinite(sd).reshape(len(sd), -1).any(axis=1), dtype=np.bool_)
