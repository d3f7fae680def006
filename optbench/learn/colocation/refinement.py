"""P2: better estimates of a job's other cells from the set of its measurements so far.

The residuals of first sight (what P1 got wrong) are Gaussian in few dimensions; after some cells
have been measured their posterior is the base. A network reads the measurements as tokens
(residual, its deviation, the words of its column), and corrects the posterior, cell by cell, in
mean and in log variance. Like P1 there is one network per fold of families, and the fold says which
share of the correction is applied and how wide the variance is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from optbench.learn.colocation.code_network import CodeNetwork, likelihood_loss
from optbench.learn.colocation.estimator_settings import EstimatorSettings, Kind, OnStep
from optbench.learn.colocation.first_sight import FirstSight
from optbench.learn.colocation.low_rank import LowRank
from optbench.learn.colocation.matrix_completion import family_folds
from optbench.learn.colocation.measured_draws import RUNS, Draws, draw_runs, draws_posterior
from optbench.learn.colocation.residuals import MODES, Calibration, Residuals, calibrate
from optbench.learn.colocation.row_parts import RowPart, column_words, has_relatives
from optbench.shapes.colocation.colocation_data import Bools, Floats, Ints

TOKEN, NUMBERS, QUERY = 2, 3, 2
VALIDATION_RUNS = (1, 3, 10)
INNER_FOLDS = 4


@dataclass(frozen=True)
class Context:
    """What else is known of each row: residuals of throughputs alone and whether they were seen.

    Of the part of throughputs alone itself both have no columns."""

    residual: Floats
    seen: Bools

    def words(self) -> Floats:
        return np.concatenate([np.where(self.seen, self.residual, 0.0), self.seen], axis=1)


@dataclass(frozen=True)
class Refinement:
    """Trained networks, one per fold, over low-rank residuals of each mode."""

    first: FirstSight
    kind: Kind
    networks: tuple[CodeNetwork, ...]
    residuals: tuple[LowRank, LowRank]
    calibration: Calibration
    most_tokens: int
    # Numbers of throughputs alone that the networks are given.
    context: int

    def refine(
        self, types: Ints, values: Floats, sd: Floats, context: Context
    ) -> tuple[Floats, Floats]:
        """Means and variances (n, J) after values with deviations (infinite: not seen)."""
        mean, variance = (each[types] for each in self.first.every)
        relatives = has_relatives(self.first.part, types)
        touched = (np.isfinite(sd) & ~np.isnan(values)).any(axis=1) | context.seen.any(axis=1)
        for mode in MODES:
            mine = np.flatnonzero((relatives == mode) & touched)
            if len(mine):
                chosen = Context(context.residual[mine], context.seen[mine])
                found = self._refine(mean[mine], values[mine], sd[mine], chosen, mode)
                mean[mine], variance[mine] = found
        return mean, variance

    def _refine(
        self, first: Floats, values: Floats, sd: Floats, context: Context, mode: bool
    ) -> tuple[Floats, Floats]:
        part, basis = self.first.part, self.residuals[mode]
        rest = values - first
        delta, base_variance, _ = basis.posterior(rest, sd)
        draws = _as_draws(part, rest, sd, self.most_tokens)
        shifts, spreads = [], []
        cells = np.arange(part.num_columns)
        for network, own in zip(self.networks, self.first.bases, strict=True):
            inputs = _Inputs(part, own, draws, context, mode)
            shift, log_factor = inputs.run(network, cells, delta, base_variance, first)
            shifts.append(shift.detach().numpy().astype(float) * part.scale)
            spreads.append(np.exp(log_factor.detach().numpy().astype(float)) * base_variance)
        share, factor = self.calibration.share[mode], self.calibration.factor[mode]
        between = np.var(shifts, axis=0)
        mean = first + delta + share * np.mean(shifts, axis=0)
        return mean, factor * (np.mean(spreads, axis=0) + share**2 * between)


class _Inputs:
    """Tensors of one network for some rows."""

    def __init__(
        self, part: RowPart, basis: LowRank, draws: Draws, context: Context, mode: bool
    ) -> None:
        self._part = part
        words = column_words(part, basis)
        self._columns = torch.tensor(words, dtype=torch.float32)
        self._loadings = torch.tensor(basis.loadings / part.scale, dtype=torch.float32)
        own = np.stack([draws.residual, draws.sd], axis=2) / part.scale
        tokens = np.concatenate([own, words[draws.columns]], axis=2)
        self._tokens = torch.tensor(
            np.where(draws.there[..., None], tokens, 0.0), dtype=torch.float32
        )
        self._there = torch.tensor(draws.there)
        count = draws.there.sum(axis=1) / 10
        about = [count, np.full(len(count), float(mode))]
        query = np.concatenate([np.stack(about, axis=1), context.words()], axis=1)
        self._query = torch.tensor(query, dtype=torch.float32)

    def run(
        self, network: CodeNetwork, cells: Ints, delta: Floats, variance: Floats, first: Floats
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Corrections in units of the scale, and logarithms of factors of the variance."""
        scale = self._part.scale
        middle = float(np.nanmean(self._part.table))
        numbers = np.stack(
            [delta / scale, np.log(variance / scale**2) / 4, (first - middle) / scale], axis=2
        )
        out: tuple[torch.Tensor, torch.Tensor] = network(
            self._tokens,
            self._there,
            self._query,
            self._columns[cells],
            self._loadings[cells],
            torch.tensor(numbers, dtype=torch.float32),
        )
        return out


def _as_draws(part: RowPart, rest: Floats, sd: Floats, most: int) -> Draws:
    """The seen cells of each row as tokens: at most some, spread evenly over what was seen."""
    able = np.isfinite(sd) & ~np.isnan(rest)
    if (part.partner >= 0).any():
        able &= part.partner >= 0
    width = min(most, max(1, int(able.sum(axis=1).max(initial=0))))
    columns = np.zeros((len(rest), width), dtype=np.int64)
    there = np.zeros(columns.shape, dtype=np.bool_)
    for i in range(len(rest)):
        found = np.flatnonzero(able[i])
        if len(found) > width:
            found = found[np.linspace(0, len(found) - 1, width).astype(np.int64)]
        columns[i, : len(found)], there[i, : len(found)] = found, True
    value = np.where(there, np.take_along_axis(rest, columns, axis=1), 0.0)
    spread = np.where(there, np.take_along_axis(sd, columns, axis=1), 0.0)
    return Draws(columns, value, spread, there)


def train_refinement(
    first: FirstSight,
    residuals: Residuals,
    fold: Ints,
    kind: Kind,
    settings: EstimatorSettings,
    seed: int,
    alone: Floats | None = None,
    on_step: OnStep | None = None,
) -> Refinement:
    """Train one network per fold upon what first sight gets wrong.

    ``alone`` (2, N, G) are residuals of throughputs alone, by mode."""
    part = first.part
    networks = []
    collected: list[list[tuple[Floats, Floats, Floats]]] = [[], []]
    about = np.zeros((2, part.num_rows, 0)) if alone is None else np.nan_to_num(alone)
    for number in range(len(first.networks)):
        inside, own = fold != number, first.bases[number]
        torch.manual_seed(seed * 1000 + 500 + number)
        network = new_refinement_network(part, own, kind, about.shape[2])
        inner = family_folds(part.features.family[part.members], INNER_FOLDS)
        parts = [inside & (inner == k) for k in range(INNER_FOLDS)]
        task = _Task(residuals, own, about, settings, on_step)
        rng = np.random.default_rng([seed, 500 + number])
        task.train(network, [(each, inside & ~each) for each in parts if each.any()], rng)
        networks.append(network)
        for mode in MODES:
            collected[mode] += task.validate(network, ~inside, inside, mode, rng)
    found = [_calibrate(parts) for parts in collected]
    calibration = Calibration.of(found)
    every = np.ones(part.num_rows, dtype=np.bool_)
    both = (residuals.basis(False, every), residuals.basis(True, every))
    most = settings.most_tokens
    return Refinement(first, kind, tuple(networks), both, calibration, most, about.shape[2])


def new_refinement_network(part: RowPart, basis: LowRank, kind: Kind, context: int) -> CodeNetwork:
    """An untrained network for this part; torch's generator must have been seeded."""
    width = column_words(part, basis).shape[1]
    return CodeNetwork(kind, TOKEN + width, QUERY + 2 * context, width, basis.rank, NUMBERS)


def _calibrate(parts: list[tuple[Floats, Floats, Floats]]) -> tuple[float, float, float, float]:
    if not parts:
        return 0.0, 1.0, 0.0, 0.0
    goal, shift, variance = (np.concatenate(each) for each in zip(*parts, strict=True))
    return calibrate(goal, shift, variance, np.ones(len(goal), dtype=np.bool_))


@dataclass(frozen=True)
class _Task:
    """The training and validation of one network of refinement.

    The posterior that a row is given is that of residuals of other families only, as it will be for
    a stranger: with its own among them it would be too good, and the network would trust it."""

    residuals: Residuals
    basis: LowRank
    alone: Floats
    settings: EstimatorSettings
    on_step: OnStep | None = None

    def train(
        self,
        network: CodeNetwork,
        splits: list[tuple[Bools, Bools]],
        rng: np.random.Generator,
    ) -> None:
        """Train on splits of the rows: those of a batch, and those that its posterior is of."""
        part, settings = self.residuals.part, self.settings
        kin = has_relatives(part, part.members)
        rest = [self.residuals.rows(mode) for mode in MODES]
        bases = [[self.residuals.basis(mode, of) for mode in MODES] for _, of in splits]
        optimiser = torch.optim.AdamW(
            network.parameters(), settings.learning_rate, weight_decay=settings.weight_decay
        )
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(1, settings.steps))
        weight = np.array([rows.sum() for rows, _ in splits], dtype=float)
        for _ in range(settings.steps):
            mode = bool(rng.random() < 0.5)
            k = int(rng.choice(len(splits), p=weight / weight.sum()))
            able = np.flatnonzero(splits[k][0] & (kin if mode else True))
            if not len(able):
                continue
            pick = rng.choice(able, min(settings.rows, len(able)), replace=False)
            count = min(settings.cells, part.num_columns)
            cells = rng.choice(part.num_columns, count, replace=False)
            goal = rest[mode][pick]
            runs = rng.choice(RUNS, len(pick))
            delta, shift, log_variance, there = self._forward(
                network, bases[k][mode], pick, goal, runs, cells, mode, rng
            )
            scaled = torch.tensor(np.nan_to_num(goal[:, cells] - delta) / part.scale)
            loss = likelihood_loss(shift, log_variance, scaled.float(), torch.tensor(there))
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            if self.on_step is not None:
                self.on_step(float(loss.detach()))

    def validate(
        self, network: CodeNetwork, rows: Bools, of: Bools, mode: bool, rng: np.random.Generator
    ) -> list[tuple[Floats, Floats, Floats]]:
        """Goals, corrections and variances of cells that were not measured."""
        part = self.residuals.part
        kin = has_relatives(part, part.members)
        able = np.flatnonzero(rows & (kin if mode else True))
        cells = np.arange(part.num_columns)
        goal = self.residuals.rows(mode)[able]
        basis = self.residuals.basis(mode, of)
        found = []
        for runs in VALIDATION_RUNS if len(able) else ():
            count = np.full(len(able), runs)
            with torch.no_grad():
                delta, shift, log_variance, there = self._forward(
                    network, basis, able, goal, count, cells, mode, rng
                )
            variance = np.exp(log_variance.numpy().astype(float)) * part.scale**2
            correction = shift.numpy().astype(float) * part.scale
            found.append(((goal - delta)[there], correction[there], variance[there]))
        return found

    def _forward(
        self,
        network: CodeNetwork,
        low_rank: LowRank,
        pick: Ints,
        goal: Floats,
        runs: Ints,
        cells: Ints,
        mode: bool,
        rng: np.random.Generator,
    ) -> tuple[Floats, torch.Tensor, torch.Tensor, Bools]:
        """Draw measurements; return the posterior's means, corrections, log variances and the
        cells that exist and were not measured."""
        part = self.residuals.part
        draws = draw_runs(part, goal, runs, self.settings.noise, rng)
        delta, variance = draws_posterior(low_rank, draws, cells)
        first = self.residuals.held[int(mode)][pick]
        seen = rng.random((len(pick), self.alone.shape[2])) < rng.random((len(pick), 1))
        context = Context(self.alone[int(mode), pick], seen)
        inputs = _Inputs(part, self.basis, draws, context, mode)
        shift, log_factor = inputs.run(network, cells, delta, variance, first[:, cells])
        log_variance = log_factor + torch.tensor(np.log(variance / part.scale**2)).float()
        measured = np.zeros(goal.shape, dtype=np.bool_)
        at = np.broadcast_to(np.arange(len(pick))[:, None], draws.columns.shape)
        measured[at[draws.there], draws.columns[draws.there]] = True
        there = ~np.isnan(goal[:, cells]) & ~measured[:, cells]
        return delta, shift, log_variance, there
