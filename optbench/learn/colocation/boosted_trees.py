"""Gradient-boosted trees: the networks' inputs, and trees in the place of both networks.

The neighbours' mean stands for first sight, and the low-rank posterior of what it gets wrong is the
base, as for the networks. Trees correct it cell by cell. Their features are the words of the
column, the features of the job, how alike each neighbour is, the neighbours' mean place in few
dimensions, the base, the residual of each throughput alone, and of the measurements the mean
residual and the count for each GPU type and direction. There is one regressor per fold of families,
as there is one network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from optbench.errors import UnsupportedError
from optbench.learn.colocation.low_rank import LowRank
from optbench.learn.colocation.matrix_completion import as_guess, family_folds
from optbench.learn.colocation.measured_draws import Draws, draw_runs, draws_posterior
from optbench.learn.colocation.residuals import MODES, Calibration, Residuals, calibrate
from optbench.learn.colocation.row_parts import (
    LIKENESS,
    NEIGHBOURS,
    RowPart,
    allowed_neighbours,
    alone_part,
    column_words,
    has_relatives,
    neighbour_means,
    neighbour_tokens,
    queries,
    ratio_part,
)
from optbench.learn.colocation.row_tables import KnownRows, RowGuess, SeenRows
from optbench.shapes.colocation.colocation_data import Bools, Floats, Ints

# Runs per simulated stranger in the training set, and cells of each.
TRAINED_RUNS = (0, 1, 3, 10)
CELLS, REPEATS, FOLDS, INNER_FOLDS = 60, 2, 3, 4
ITERATIONS, LEAVES, LEAST_IN_LEAF, RATE = 80, 15, 20, 0.08
NOISE = 0.03


@dataclass(frozen=True)
class TreePart:
    """Regressors of one part, one per fold, with the bases that describe their columns."""

    residuals: Residuals
    regressors: tuple[Any, ...]
    bases: tuple[LowRank, ...]
    calibration: Calibration

    @property
    def part(self) -> RowPart:
        return self.residuals.part

    def first(self, types: Ints) -> Floats:
        """The neighbours' means (n, J)."""
        relatives = has_relatives(self.part, types)
        out = np.zeros((len(types), self.part.num_columns))
        for mode in MODES:
            mine = relatives == mode
            allowed = allowed_neighbours(self.part, types[mine], mode)
            out[mine] = neighbour_means(self.part, types[mine], allowed)
        return out

    def predict(
        self, types: Ints, values: Floats, sd: Floats, context: Floats
    ) -> tuple[Floats, Floats]:
        """Means and variances (n, J) after values with deviations (infinite: not seen)."""
        part, first = self.part, self.first(types)
        mean, variance = np.zeros((2, *first.shape))
        relatives = has_relatives(part, types)
        cells = np.arange(part.num_columns)
        every = np.ones(part.num_rows, dtype=np.bool_)
        for mode in MODES:
            mine = np.flatnonzero(relatives == mode)
            if not len(mine):
                continue
            rest = values[mine] - first[mine]
            basis = self.residuals.basis(mode, every)
            delta, spread, _ = basis.posterior(rest, sd[mine])
            measured = _summary(part, rest, np.isfinite(sd[mine]) & ~np.isnan(rest))
            job = np.concatenate([measured, context[mine]], axis=1)
            shifts = []
            for regressor, own in zip(self.regressors, self.bases, strict=True):
                about = np.concatenate([_job_words(part, own, types[mine], mode), job], axis=1)
                x = _features(part, own, about, first[mine], delta, spread, cells)
                shifts.append(_predicted(regressor, x).reshape(len(mine), -1))
            share, factor = self.calibration.share[mode], self.calibration.factor[mode]
            mean[mine] = first[mine] + delta + share * np.mean(shifts, axis=0)
            variance[mine] = factor * spread
        return mean, variance


@dataclass(frozen=True)
class BoostedTrees:
    """A model of rows (``RowModel``) of boosted trees."""

    rows: KnownRows
    alone_part: TreePart
    ratio_part: TreePart

    @classmethod
    def of(cls, rows: KnownRows, seed: int = 0) -> BoostedTrees:
        """Train on public rows."""
        alone = _trained(alone_part(rows), None, seed)
        place = {int(t): k for k, t in enumerate(alone.part.members)}
        chosen = [place[int(t)] for t in rows.known]
        of_alone = (alone.part.table - alone.residuals.held)[:, chosen]
        return cls(rows, alone, _trained(ratio_part(rows), np.nan_to_num(of_alone), seed))

    def alone(self, seen: SeenRows) -> tuple[Floats, Floats]:
        nothing = np.zeros((len(seen.types), 0))
        mean, variance = self.alone_part.predict(seen.types, seen.alone, seen.alone_sd, nothing)
        return mean, np.sqrt(variance)

    def guess(self, seen: SeenRows) -> RowGuess:
        log_alone, log_sd = self.alone(seen)
        n = len(seen.types)
        rest = seen.alone - self.alone_part.first(seen.types)
        context = np.where(np.isfinite(seen.alone_sd) & ~np.isnan(rest), rest, np.nan)
        values, sd = seen.ratio.reshape(n, -1), seen.ratio_sd.reshape(n, -1)
        mean, variance = self.ratio_part.predict(seen.types, values, sd, context)
        return as_guess(log_alone, log_sd, mean, variance, seen.ratio.shape)


def _trained(part: RowPart, alone: Floats | None, seed: int) -> TreePart:
    """Train one regressor per fold; ``alone`` (2, N, G) are residuals of throughputs alone."""
    held = np.stack(
        [
            neighbour_means(part, part.members, allowed_neighbours(part, part.members, mode))
            for mode in MODES
        ]
    )
    residuals = Residuals.of(part, held)
    about = np.zeros((2, part.num_rows, 0)) if alone is None else alone
    family = part.features.family[part.members]
    fold, inner = family_folds(family, FOLDS), family_folds(family, INNER_FOLDS)
    regressors, bases = [], []
    collected: list[list[tuple[Floats, Floats, Floats]]] = [[], []]
    for number in range(int(fold.max()) + 1):
        rng = np.random.default_rng([seed, number])
        inside = fold != number
        basis = LowRank.of(part.table[inside], part.rank)
        task = _TreeTask(residuals, basis, about)
        parts = [inside & (inner == k) for k in range(INNER_FOLDS)]
        splits = [(each, inside & ~each) for each in parts if each.any()]
        samples = [
            task.sample(rows, of, mode, rng)
            for rows, of in splits
            for mode in MODES
            for _ in range(REPEATS)
        ]
        x, y = (np.concatenate([each[k] for each in samples]) for k in (0, 1))
        regressors.append(_fitted(x, y, seed * 1000 + number))
        bases.append(basis)
        for mode in MODES:
            x, y, variance = task.sample(~inside, inside, mode, rng)
            shift = _predicted(regressors[-1], x) if len(x) else y
            collected[mode].append((y, shift, variance))
    found = []
    for each in collected:
        goal, shift, variance = (np.concatenate(k) for k in zip(*each, strict=True))
        found.append(calibrate(goal, shift, variance, np.ones(len(goal), dtype=np.bool_)))
    return TreePart(residuals, tuple(regressors), tuple(bases), Calibration.of(found))


@dataclass(frozen=True)
class _TreeTask:
    """Samples of cells of simulated strangers."""

    residuals: Residuals
    basis: LowRank
    alone: Floats

    def sample(
        self, rows: Bools, of: Bools, mode: bool, rng: np.random.Generator
    ) -> tuple[Floats, Floats, Floats]:
        """Features, residuals that remain, and variances of the base, of unmeasured cells."""
        part = self.residuals.part
        kin = has_relatives(part, part.members)
        able = np.flatnonzero(rows & (kin if mode else True))
        basis = self.residuals.basis(mode, of)
        goal = self.residuals.rows(mode)[able]
        first = self.residuals.held[int(mode), able]
        words = _job_words(part, self.basis, part.members[able], mode)
        cells = rng.choice(part.num_columns, min(CELLS, part.num_columns), replace=False)
        found = []
        for runs in TRAINED_RUNS:
            draws = draw_runs(part, goal, np.full(len(able), runs), NOISE, rng)
            delta, variance = draws_posterior(basis, draws, cells)
            rest, measured = _spread_out(part, draws)
            shown = rng.random((len(able), self.alone.shape[2])) < rng.random((len(able), 1))
            context = np.where(shown, self.alone[int(mode), able], np.nan)
            job = np.concatenate([words, _summary(part, rest, measured), context], axis=1)
            x = _features(part, self.basis, job, first[:, cells], delta, variance, cells)
            left = goal[:, cells] - delta
            there = (~np.isnan(left) & ~measured[:, cells]).reshape(-1)
            found.append((x[there], left.reshape(-1)[there], variance.reshape(-1)[there]))
        x, y, v = (np.concatenate(each) for each in zip(*found, strict=True))
        return x, y, v


def _spread_out(part: RowPart, draws: Draws) -> tuple[Floats, Bools]:
    """Residuals (n, J) of draws, NaN where not measured, and the mask."""
    n = len(draws.columns)
    rest = np.full((n, part.num_columns), np.nan)
    at = np.broadcast_to(np.arange(n)[:, None], draws.columns.shape)
    rest[at[draws.there], draws.columns[draws.there]] = draws.residual[draws.there]
    return rest, ~np.isnan(rest)


def _summary(part: RowPart, rest: Floats, measured: Bools) -> Floats:
    """Mean residual and count of measured cells, for each GPU type and direction."""
    group = part.group * 2 + part.direction
    which = np.eye(int(group.max()) + 1)[group]
    count = measured @ which
    total = np.where(measured, rest, 0.0) @ which
    return np.concatenate([total / (count + 0.5), count], axis=1)


def _job_words(part: RowPart, basis: LowRank, types: Ints, mode: bool) -> Floats:
    allowed = allowed_neighbours(part, types, mode)
    tokens = neighbour_tokens(part, basis, types, allowed)
    likeness = tokens[:, :, :LIKENESS].reshape(len(types), NEIGHBOURS * LIKENESS)
    weight = tokens[:, :, LIKENESS - 1]
    total = np.maximum(weight.sum(axis=1, keepdims=True), 1e-12)
    place = (tokens[:, :, LIKENESS:] * (weight / total)[:, :, None]).sum(axis=1)
    return np.concatenate([queries(part, types, mode), likeness, place], axis=1)


def _features(
    part: RowPart,
    basis: LowRank,
    job: Floats,
    first: Floats,
    delta: Floats,
    variance: Floats,
    cells: Ints,
) -> Floats:
    """One row of features per job and cell."""
    n, c = delta.shape
    words = column_words(part, basis)[cells]
    own = np.stack([first, delta, np.log(variance)], axis=2)
    parts = [
        np.broadcast_to(job[:, None], (n, c, job.shape[1])),
        np.broadcast_to(words[None], (n, c, words.shape[1])),
        own,
    ]
    x: Floats = np.concatenate(parts, axis=2)
    return x.reshape(n * c, x.shape[2])


def _fitted(x: Floats, y: Floats, seed: int) -> Any:
    try:
        from sklearn.ensemble import HistGradientBoostingRegressor
        from threadpoolctl import threadpool_limits
    except ImportError:
        raise UnsupportedError(
            "the estimator 'trees' needs scikit-learn; install it with "
            "`pip install -c constraints.txt scikit-learn`, or choose another estimator"
        ) from None
    regressor = HistGradientBoostingRegressor(
        max_iter=ITERATIONS,
        max_leaf_nodes=LEAVES,
        min_samples_leaf=LEAST_IN_LEAF,
        learning_rate=RATE,
        early_stopping=False,
        random_state=seed,
    )
    with threadpool_limits(1):
        return regressor.fit(x, y)


def _predicted(regressor: Any, x: Floats) -> Floats:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return np.asarray(regressor.predict(x), dtype=float)
