"""Simulated measurements of simulated strangers: what refinement is trained on.

A run reveals a cell and its twin (both jobs of a pair are measured). In some draws the throughput
alone is not known on the GPU type of the run, only estimated: then all own ratios there share an
error, of which the standard deviation is stated with the measurement.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.learn.colocation.low_rank import LowRank
from optbench.learn.colocation.row_parts import RowPart
from optbench.shapes.colocation.colocation_data import Bools, Floats, Ints

RUNS = (1, 2, 3, 5, 8, 12)
# Share of draws in which throughputs alone are estimated, and the deviation of their error.
ESTIMATED_ALONE, ALONE_ERROR_SD = 0.3, 0.25


@dataclass(frozen=True)
class Draws:
    """Measured cells of some rows, padded: columns (n, m), residuals, deviations, and a mask."""

    columns: Ints
    residual: Floats
    sd: Floats
    there: Bools


def draw_runs(
    part: RowPart, residual: Floats, runs: Ints, noise: float, rng: np.random.Generator
) -> Draws:
    """Draw that many runs of each row from its residuals (n, J), NaN where a cell cannot be run."""
    own = part.direction == 0
    able = ~np.isnan(residual) & own & (part.partner >= 0 if (part.partner >= 0).any() else True)
    able &= ~np.isnan(residual[:, part.twin])
    order = np.argsort(np.where(able, rng.random(residual.shape), 2.0), axis=1)
    # One run fewer than there are cells, so that one is left to estimate.
    runs = np.minimum(runs, max(1, int(own.sum()) - 1))
    most = int(runs.max(initial=1))
    first = order[:, :most]
    there = (np.arange(most)[None, :] < runs[:, None]) & np.take_along_axis(able, first, axis=1)
    single = bool((part.twin == np.arange(part.num_columns)).all())
    columns = first if single else np.concatenate([first, part.twin[first]], axis=1)
    there = there if single else np.concatenate([there, there], axis=1)
    value = np.nan_to_num(np.take_along_axis(residual, columns, axis=1))
    value = value + noise * rng.standard_normal(value.shape)
    sd = np.full(value.shape, noise)
    if not single:
        value, sd = _with_alone_errors(part, columns, value, sd, rng)
    return Draws(columns, np.where(there, value, 0.0), sd, there)


def _with_alone_errors(
    part: RowPart, columns: Ints, value: Floats, sd: Floats, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    n, g = len(columns), int(part.group.max()) + 1
    estimated = rng.random((n, g)) < ESTIMATED_ALONE
    error = np.where(estimated, ALONE_ERROR_SD * rng.standard_normal((n, g)), 0.0)
    group = part.group[columns]
    own = part.direction[columns] == 0
    shift = np.where(own, np.take_along_axis(error, group, axis=1), 0.0)
    extra = np.where(own & np.take_along_axis(estimated, group, axis=1), ALONE_ERROR_SD, 0.0)
    return value + shift, np.hypot(sd, extra)


def draws_posterior(basis: LowRank, draws: Draws, cells: Ints) -> tuple[Floats, Floats]:
    """The low-rank mean and variance of residuals of some cells (n, c), after the draws."""
    part = basis.loadings[draws.columns]
    precision = draws.there / (basis.variance[draws.columns] + draws.sd**2)
    weighted = part * precision[..., None]
    inner = np.swapaxes(weighted, 1, 2) @ part + np.eye(basis.rank)
    cov = np.linalg.inv(inner)
    right = (weighted * draws.residual[..., None]).sum(axis=1)
    latent = (cov @ right[..., None])[..., 0]
    wanted = basis.loadings[cells]
    spread = ((wanted[None] @ cov) * wanted[None]).sum(axis=2)
    return latent @ wanted.T, basis.variance[cells] + spread
