"""Estimators: a model of rows, with measured cells replaced by their means.

``LookUp`` learns: the model is given everything that has been seen, and a cell that has been seen
is its mean. ``Frozen`` asks the model once, with nothing but the public facts, and does nothing
with measured cells; of both, misfits that have happened are known from then on, as the rules of the
process demand. The ratio of two types of which neither is a known one is

    r[g, t, s] = v[g, t] + w[g, s] − m[g]

with their means as the slowed down and as the slowing job, v and w, and the mean m over known
pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.learn.colocation.measured_relatives import RelativeShift, WithRelatives
from optbench.learn.colocation.new_generation import GenerationShift
from optbench.learn.colocation.pair_fit import pair_fit_probability
from optbench.learn.colocation.row_tables import (
    KnownRows,
    RowGuess,
    RowModel,
    SeenRows,
    nan_mean,
    seen_alone,
    seen_ratios,
)
from optbench.learn.colocation.seen_cells import SeenCells
from optbench.shapes.colocation.colocation_data import Bools, Floats, Ints
from optbench.shapes.colocation.colocation_process import Observation, PublicFacts
from optbench.shapes.colocation.estimates import Estimates

LEAST_RATIO = 0.02
MOST_INDIRECT = 4.0


class LookUp:
    """An estimator that learns: the model's estimates, and the means of what has been measured.

    With ``relatives`` measurements of a new type say something of new types of its family too."""

    def __init__(self, facts: PublicFacts, model: RowModel, relatives: bool = False) -> None:
        self._facts, self._model, self._relatives = facts, model, relatives
        self._seen = SeenCells(facts)
        self._fit_at, self._fits = -1, np.zeros(0)
        unknown = ~facts.known.all(axis=0)
        # Types with a cell that is not public: only of those rows are estimated.
        self._types: Ints = np.flatnonzero(unknown)
        self._guessed_at: Ints = np.full(len(self._types), -1, dtype=np.int64)
        g, k = model.rows.num_gpu_types, model.rows.num_known
        n = len(self._types)
        self._guess = RowGuess(
            np.zeros((n, g)), np.zeros((n, g)), np.ones((n, 2, g, k + 1)), np.ones((n, 2, g, k + 1))
        )

    def learn(self, observation: Observation) -> None:
        self._seen.learn(observation.measurements, observation.misfits)

    def estimates(self) -> Estimates:
        self._refresh()
        seen, guess = self._seen, self._guess
        log_alone, log_sd = alone_table(seen, self._types, guess)
        ratio, ratio_sd = ratio_table(self._model.rows, self._types, guess)
        own = seen.alone()
        alone = np.where(own > 0, own, np.exp(log_alone))
        value, sd = seen.beside(), seen.beside_log_sd()
        measured = ~np.isnan(value)
        beside = np.where(measured, value, alone[:, :, None] * ratio)
        share = np.clip(np.divide(beside, alone[:, :, None]), 0.0, 1.0)
        # A pair that is known not to fit has no deviation.
        own_sd = share * np.where(np.isfinite(sd), sd, 0.0)
        ratio_sd = np.where(measured, own_sd, ratio_sd)
        return self._with_misfits(alone, beside, log_sd, ratio_sd)

    def _with_misfits(
        self, alone: Floats, beside: Floats, log_sd: Floats, ratio_sd: Floats
    ) -> Estimates:
        fits = self._fit_probability()
        never = fits == 0
        lone = self._seen.alone_misfit
        return Estimates(
            np.where(lone, 0.0, alone),
            np.where(never, 0.0, beside),
            np.where(lone, 0.0, log_sd),
            np.where(never, 0.0, ratio_sd),
            fits,
        )

    def _fit_probability(self) -> Floats:
        at = int(self._seen.version.sum())
        if at != self._fit_at:
            self._fits = pair_fit_probability(self._model.rows.features, self._seen.fits())
            self._fit_at = at
        return self._fits

    def _refresh(self) -> None:
        """Estimate the rows anew of which something was learnt since the last time."""
        version, rows = self._seen.version, self._model.rows
        now = version[self._types]
        if np.isnan(rows.alone).all(axis=0).any():
            # What is measured on a new GPU type concerns every job type.
            now = np.full(len(now), version.sum())
        elif self._relatives:
            family = rows.features.family
            now = np.bincount(family, version)[family[self._types]].astype(np.int64)
        stale = np.flatnonzero(now != self._guessed_at)
        if len(stale):
            found = guess_rows(self._with_relatives(), self._seen, self._types[stale])
            for name in ("log_alone", "log_alone_sd", "ratio", "ratio_sd"):
                getattr(self._guess, name)[stale] = getattr(found, name)
            self._guessed_at[stale] = now[stale]

    def _with_relatives(self) -> RowModel:
        """The model, corrected by measurements of other types of the same families."""
        known = np.zeros(len(self._seen.version), dtype=np.bool_)
        known[self._model.rows.known] = True
        measured = np.flatnonzero((self._seen.version > 0) & ~known)
        if not self._relatives or not len(measured):
            return self._model
        shift = RelativeShift.of(self._model, self._seen, measured, guess_rows)
        return WithRelatives(self._model, shift)


class Frozen:
    """An estimator that does not learn: the first estimates of its model, for ever.

    A measured cell keeps its first estimate; a misfit that has happened is known."""

    def __init__(self, facts: PublicFacts, model: RowModel) -> None:
        self._first = LookUp(facts, model).estimates()
        self._misfits = SeenCells(facts)

    def learn(self, observation: Observation) -> None:
        self._misfits.learn((), observation.misfits)

    def estimates(self) -> Estimates:
        first, lone = self._first, self._misfits.alone_misfit
        never = self._misfits.pair_misfit | lone[:, :, None] | lone[:, None, :]
        return Estimates(
            np.where(lone, 0.0, first.alone_per_s),
            np.where(never, 0.0, first.beside_per_s),
            np.where(lone, 0.0, first.alone_log_sd),
            np.where(never, 0.0, first.ratio_sd),
            np.where(never, 0.0, first.fits),
        )


def guess_rows(model: RowModel, seen: SeenCells, types: Ints) -> RowGuess:
    """Estimate rows: first alone, then everything, with runs beside partners.

    A run beside a partner on a GPU type on which the job has not run alone says what it would do
    there alone, as far as the ratio is known before."""
    known, every = model.rows.known, np.arange(len(seen.version))
    shift = GenerationShift.of(model.rows, seen)
    model = model if shift.none else _Shifted(model, shift)
    table, table_sd = seen_alone(seen, every)
    lacking = np.flatnonzero(np.isnan(table).any(axis=1))
    lacking = np.union1d(lacking, types)
    alone, alone_sd = table[lacking].copy(), table_sd[lacking].copy()
    zero = np.zeros((model.rows.num_gpu_types, len(every)))
    rate, rate_sd = seen_ratios(seen, known, lacking, zero, zero)
    indirect = np.isnan(alone) & np.isfinite(rate_sd[:, 0, :, :-1]).any(axis=2)
    asked = np.flatnonzero(indirect.any(axis=1))
    if len(asked):
        _from_pairs(model, lacking, asked, indirect, (alone, alone_sd), (rate, rate_sd))
    blank = np.full(rate.shape, np.nan)
    first = SeenRows(lacking, alone, alone_sd, blank, np.full(rate.shape, np.inf))
    log_alone, log_sd = model.alone(first)
    unseen = np.isnan(table[lacking])
    table[lacking] = np.where(unseen, log_alone, table[lacking])
    table_sd[lacking] = np.where(unseen, log_sd, table_sd[lacking])
    ratio, ratio_sd = seen_ratios(seen, known, types, table.T, table_sd.T)
    at = np.searchsorted(lacking, types)
    return model.guess(SeenRows(types, alone[at], alone_sd[at], ratio, ratio_sd))


@dataclass(frozen=True)
class _Shifted:
    """A model whose estimates on GPU types without public throughputs are shifted."""

    model: RowModel
    shift: GenerationShift

    @property
    def rows(self) -> KnownRows:
        return self.model.rows

    def alone(self, seen: SeenRows) -> tuple[Floats, Floats]:
        return self.shift.alone_with(*self.model.alone(self.shift.without(seen)))

    def guess(self, seen: SeenRows) -> RowGuess:
        return self.shift.guess_with(self.model.guess(self.shift.without(seen)))


def _from_pairs(
    model: RowModel,
    types: Ints,
    asked: Ints,
    indirect: Bools,
    alone: tuple[Floats, Floats],
    rate: tuple[Floats, Floats],
) -> None:
    """Fill in throughputs alone from rates beside known partners, over the ratios expected."""
    value, sd = (each[asked] for each in alone)
    nothing = np.full(rate[0][asked].shape, np.nan)
    expected = model.guess(
        SeenRows(types[asked], value, sd, nothing, np.full(nothing.shape, np.inf))
    )
    ratio = np.maximum(expected.ratio[:, 0, :, :-1], LEAST_RATIO)
    spread = np.hypot(rate[1][asked, 0, :, :-1], expected.ratio_sd[:, 0, :, :-1] / ratio)
    there = np.isfinite(spread) & ~np.isnan(rate[0][asked, 0, :, :-1])
    weight = np.where(there, 1.0 / spread**2, 0.0)
    total = weight.sum(axis=2)
    implied = np.where(there, rate[0][asked, 0, :, :-1] - np.log(ratio), 0.0)
    mean = (weight * implied).sum(axis=2) / np.maximum(total, 1e-12)
    # Errors of ratios of one job are alike: more than so many runs count as this many.
    best = weight.max(axis=2)
    total = np.minimum(total, MOST_INDIRECT * best)
    fill = indirect[asked]
    alone[0][asked] = np.where(fill, mean, value)
    alone[1][asked] = np.where(fill, 1.0 / np.sqrt(np.maximum(total, 1e-12)), sd)


def alone_table(seen: SeenCells, types: Ints, guess: RowGuess) -> tuple[Floats, Floats]:
    """Logarithms of throughputs alone (G, T): seen ones, and estimates elsewhere."""
    value, sd = seen_alone(seen, np.arange(len(seen.version)))
    value[types] = np.where(np.isnan(value[types]), guess.log_alone, value[types])
    sd[types] = np.where(np.isinf(sd[types]), guess.log_alone_sd, sd[types])
    # What is left are cells that do not fit.
    return np.nan_to_num(value.T), np.where(np.isinf(sd.T), 0.0, sd.T)


def ratio_table(rows: KnownRows, types: Ints, guess: RowGuess) -> tuple[Floats, Floats]:
    """Ratios [g, t, s] and their standard deviations: public ones, and those of the rows.

    Where both types have estimated rows, their estimates are weighed by precision."""
    g, num_types = rows.num_gpu_types, len(rows.features.family)
    total, weight = np.zeros((2, g, num_types, num_types))
    ratio = np.clip(guess.ratio, LEAST_RATIO, 1.0)
    precision = 1.0 / np.maximum(guess.ratio_sd, 1e-3) ** 2
    own, other = (np.moveaxis(ratio[:, d, :, :-1], 0, 1) for d in (0, 1))
    own_p, other_p = (np.moveaxis(precision[:, d, :, :-1], 0, 1) for d in (0, 1))
    at = np.ix_(np.arange(g), types, rows.known)
    total[at] += own * own_p
    weight[at] += own_p
    at = np.ix_(np.arange(g), rows.known, types)
    total[at] += np.swapaxes(other * other_p, 1, 2)
    weight[at] += np.swapaxes(other_p, 1, 2)
    stranger = ~np.isin(types, rows.known)
    v, w = (ratio[stranger, d, :, -1].T for d in (0, 1))
    v_sd, w_sd = (guess.ratio_sd[stranger, d, :, -1].T for d in (0, 1))
    both = np.clip(v[:, :, None] + w[:, None, :] - overall_mean(rows)[:, None, None], 0.02, 1.0)
    spread = np.hypot(v_sd[:, :, None], w_sd[:, None, :])
    at = np.ix_(np.arange(g), types[stranger], types[stranger])
    total[at], weight[at] = both / spread**2, 1.0 / spread**2
    public = _public_ratios(rows)
    there = ~np.isnan(public)
    mean = np.divide(total, weight, out=np.ones(total.shape), where=weight > 0)
    sd = np.divide(1.0, np.sqrt(weight), out=np.zeros(total.shape), where=weight > 0)
    return np.where(there, public, mean), np.where(there, 0.0, sd)


def _public_ratios(rows: KnownRows) -> Floats:
    num_types = len(rows.features.family)
    out = np.full((rows.num_gpu_types, num_types, num_types), np.nan)
    out[:, :, rows.known] = np.exp(np.moveaxis(rows.ratio[:, 0, :, :-1], 0, 1))
    return out


def overall_mean(rows: KnownRows, otherwise: float = 0.6) -> Floats:
    """The mean ratio over public pairs of each GPU type; of all, where a type has none."""
    ratio = np.exp(rows.ratio[rows.known][:, 0, :, :-1])
    each = nan_mean(np.moveaxis(ratio, 1, 0).reshape(rows.num_gpu_types, -1), 1)
    mean = float(nan_mean(each, 0, otherwise))
    return np.where(np.isnan(each), mean, each)
