"""P1: a new job's cells from its most similar known jobs, before any measurement of it.

One network per fold of families is trained on the types outside the fold, each as a simulated
stranger: it never is its own neighbour, and in half of the draws no relative is, as for a job of a
new family. Cells beside itself, and then beside relatives, are left out. What the networks say of
the types of their own fold (unseen as targets) is the validation error, the share of the correction
that is applied, and the residual rows on which refinement is built. A stranger is given the mean of
all networks; his cells have their mean variance and the variance between them, times a factor that
is right for the validation cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from optbench.learn.colocation.code_network import CodeNetwork, likelihood_loss
from optbench.learn.colocation.estimator_settings import EstimatorSettings, Kind, OnStep
from optbench.learn.colocation.low_rank import LowRank
from optbench.learn.colocation.residuals import MODES, Calibration, calibrate, usable_cells
from optbench.learn.colocation.row_parts import (
    LIKENESS,
    QUERY,
    RowPart,
    allowed_neighbours,
    column_words,
    has_relatives,
    neighbour_means,
    neighbour_tokens,
    queries,
)
from optbench.shapes.colocation.colocation_data import Bools, Floats, Ints


@dataclass(frozen=True)
class FirstView:
    """The inputs of one network for some job types in one mode."""

    tokens: torch.Tensor
    there: torch.Tensor
    query: torch.Tensor
    base: Floats


@dataclass(frozen=True)
class FirstSight:
    """Trained networks, one per fold, with the basis of each."""

    part: RowPart
    kind: Kind
    networks: tuple[CodeNetwork, ...]
    bases: tuple[LowRank, ...]
    calibration: Calibration

    @cached_property
    def every(self) -> tuple[Floats, Floats]:
        """Means and variances (T, J) of all job types as if each were new."""
        return self.predict(np.arange(len(self.part.features.family)))

    def predict(self, types: Ints) -> tuple[Floats, Floats]:
        """Means and variances (n, J) of the cells of new job types."""
        mean, variance = np.zeros((2, len(types), self.part.num_columns))
        relatives = has_relatives(self.part, types)
        for mode in MODES:
            mine = np.flatnonzero(relatives == mode)
            if len(mine):
                mean[mine], variance[mine] = self._predict(types[mine], mode)
        return mean, variance

    def _predict(self, types: Ints, mode: bool) -> tuple[Floats, Floats]:
        found = [
            correction(self.part, network, basis, types, mode)
            for network, basis in zip(self.networks, self.bases, strict=True)
        ]
        allowed = allowed_neighbours(self.part, types, mode)
        base = neighbour_means(self.part, types, allowed)
        shifts = np.stack([shift for shift, _ in found])
        inner = np.mean([variance for _, variance in found], axis=0)
        share, factor = self.calibration.share[mode], self.calibration.factor[mode]
        return base + share * shifts.mean(axis=0), factor * (inner + shifts.var(axis=0))


def first_view(part: RowPart, basis: LowRank, types: Ints, mode: bool, rows: Bools) -> FirstView:
    """Inputs of types in a mode, with neighbours among some of the rows."""
    allowed = allowed_neighbours(part, types, mode) & rows[None, :]
    tokens = neighbour_tokens(part, basis, types, allowed)
    return FirstView(
        torch.tensor(tokens, dtype=torch.float32),
        torch.tensor(np.abs(tokens).sum(axis=2) > 0),
        torch.tensor(queries(part, types, mode), dtype=torch.float32),
        neighbour_means(part, types, allowed),
    )


def correction(
    part: RowPart, network: CodeNetwork, basis: LowRank, types: Ints, mode: bool
) -> tuple[Floats, Floats]:
    """What one network adds to the neighbours' means, and its variances (n, J)."""
    view = first_view(part, basis, types, mode, np.ones(part.num_rows, dtype=np.bool_))
    columns = torch.tensor(column_words(part, basis), dtype=torch.float32)
    loadings = torch.tensor(basis.loadings / part.scale, dtype=torch.float32)
    with torch.no_grad():
        shift, log_variance = network(
            view.tokens, view.there, view.query, columns, loadings, _numbers(view.base, part)
        )
    scale = part.scale
    return (
        shift.numpy().astype(float) * scale,
        np.exp(log_variance.numpy().astype(float)) * scale**2,
    )


def _numbers(base: Floats, part: RowPart) -> torch.Tensor:
    middle = np.nanmean(part.table)
    return torch.tensor((base - middle) / part.scale, dtype=torch.float32)[..., None]


def new_network(part: RowPart, basis: LowRank, kind: Kind) -> CodeNetwork:
    """An untrained network for this part; torch's generator must have been seeded."""
    width = column_words(part, basis).shape[1]
    return CodeNetwork(kind, LIKENESS + basis.rank, QUERY, width, basis.rank, 1)


def train_first_sight(
    part: RowPart,
    fold: Ints,
    kind: Kind,
    settings: EstimatorSettings,
    seed: int,
    on_step: OnStep | None = None,
) -> tuple[FirstSight, Floats]:
    """Train one network per fold and calibrate them on the types of their folds.

    Beside them stand the means (2, N, J) of the known types in each mode, each by the network that
    did not train on it."""
    networks, bases = [], []
    shift, variance = np.zeros((2, 2, part.num_rows, part.num_columns))
    for number in range(int(fold.max()) + 1):
        inside = fold != number
        basis = LowRank.of(part.table[inside], part.rank)
        torch.manual_seed(seed * 1000 + number)
        network = new_network(part, basis, kind)
        rng = np.random.default_rng([seed, number])
        _train(part, basis, network, inside, settings, rng, on_step)
        networks.append(network)
        bases.append(basis)
        out = np.flatnonzero(~inside)
        for mode in MODES:
            found = correction(part, network, basis, part.members[out], mode)
            shift[int(mode), out], variance[int(mode), out] = found
    calibration, held = _calibrated(part, shift, variance)
    return FirstSight(part, kind, tuple(networks), tuple(bases), calibration), held


def _train(
    part: RowPart,
    basis: LowRank,
    network: CodeNetwork,
    inside: Bools,
    settings: EstimatorSettings,
    rng: np.random.Generator,
    on_step: OnStep | None,
) -> None:
    rows = np.flatnonzero(inside)
    types = part.members[rows]
    views = [first_view(part, basis, types, mode, inside) for mode in MODES]
    goals = [(part.table[rows] - view.base) / part.scale for view in views]
    masks = [
        ~np.isnan(goal) & usable_cells(part, types, mode)
        for goal, mode in zip(goals, MODES, strict=True)
    ]
    kin = has_relatives(part, types)
    columns = torch.tensor(column_words(part, basis), dtype=torch.float32)
    loadings = torch.tensor(basis.loadings / part.scale, dtype=torch.float32)
    optimiser = torch.optim.AdamW(
        network.parameters(), settings.learning_rate, weight_decay=settings.weight_decay
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(1, settings.steps))
    for _ in range(settings.steps):
        mode = int(rng.random() < 0.5)
        able = np.flatnonzero(kin) if mode else np.arange(len(rows))
        if not len(able):
            continue
        pick = rng.choice(able, min(settings.rows, len(able)), replace=False)
        cells = rng.choice(part.num_columns, min(settings.cells, part.num_columns), replace=False)
        at = np.ix_(pick, cells)
        view, goal, there = views[mode], goals[mode][at], masks[mode][at]
        mean, log_variance = network(
            view.tokens[pick],
            view.there[pick],
            view.query[pick],
            columns[cells],
            loadings[cells],
            _numbers(view.base[at], part),
        )
        loss = likelihood_loss(
            mean,
            log_variance,
            torch.tensor(np.nan_to_num(goal), dtype=torch.float32),
            torch.tensor(there),
        )
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if on_step is not None:
            on_step(float(loss.detach()))


def _calibrated(part: RowPart, shift: Floats, variance: Floats) -> tuple[Calibration, Floats]:
    """Measure shares, factors and errors on the cells that each network did not train on; return
    the calibrated means too."""
    held = np.zeros(shift.shape)
    found = []
    types = part.members
    for mode in MODES:
        base = neighbour_means(part, types, allowed_neighbours(part, types, mode))
        goal = part.table - base
        there = ~np.isnan(goal) & usable_cells(part, types, mode)
        there &= has_relatives(part, types)[:, None] | (not mode)
        result = calibrate(goal, shift[int(mode)], variance[int(mode)], there)
        held[int(mode)] = base + result[0] * shift[int(mode)]
        found.append(result)
    return Calibration.of(found), held
