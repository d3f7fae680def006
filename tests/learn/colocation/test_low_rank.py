"""The low-rank posterior, by hand and against a Gaussian with full covariance."""

from __future__ import annotations

import numpy as np
import pytest

from optbench.learn.colocation.low_rank import LowRank


def test_the_posterior_by_hand() -> None:
    """μ = 0, W = (1, 2)ᵀ, ψ = 1: after y_0 = 3 without noise S = 1 / (1 + 1/1) = 1/2 and
    z = S · 3 / 1 = 3/2, so the cells are 3/2 and 3, with variances 1 + 1/2 and 1 + 4/2."""
    model = LowRank(np.zeros(2), np.array([[1.0], [2.0]]), np.ones(2))
    mean, variance, latent = model.posterior(np.array([[3.0, np.nan]]), np.array([[0.0, np.inf]]))
    assert latent[0] == pytest.approx([1.5])
    assert mean[0] == pytest.approx([1.5, 3.0])
    assert variance[0] == pytest.approx([1.5, 3.0])


def test_it_is_the_conditional_normal_distribution() -> None:
    rng = np.random.default_rng(2)
    loadings, psi = rng.standard_normal((5, 2)), rng.uniform(0.1, 0.5, 5)
    model = LowRank(rng.standard_normal(5), loadings, psi)
    values, sd = rng.standard_normal((1, 5)), np.array([[0.1, 0.2, np.inf, np.inf, np.inf]])
    mean, variance, _ = model.posterior(values, sd)
    full = loadings @ loadings.T
    seen = full[:2, :2] + np.diag(psi[:2] + np.array([0.01, 0.04]))
    gain = full[2:, :2] @ np.linalg.inv(seen)
    wanted = model.mean[2:] + gain @ (values[0, :2] - model.mean[:2])
    left = full[2:, 2:] + np.diag(psi[2:]) - gain @ full[:2, 2:]
    assert mean[0, 2:] == pytest.approx(wanted)
    assert variance[0, 2:] == pytest.approx(np.diag(left))


def test_rows_of_rank_one_are_completed() -> None:
    rng = np.random.default_rng(0)
    direction = rng.standard_normal(12)
    rows = np.outer(rng.standard_normal(30), direction) + 0.01
    holes = np.where(rng.random(rows.shape) < 0.1, np.nan, rows)
    model = LowRank.of(holes, 1)
    new = 2.0 * direction + 0.01
    sd = np.full((1, 12), np.inf)
    sd[0, :2] = 1e-3
    mean, _, _ = model.posterior(new[None], sd)
    assert np.abs(mean[0] - new).mean() < 0.15 * np.abs(new).mean()


def test_without_rows_or_rank_a_row_is_the_mean() -> None:
    rows = np.array([[1.0, 2.0], [3.0, np.nan]])
    mean, _, latent = LowRank.of(rows, 0).posterior(np.zeros((1, 2)), np.zeros((1, 2)))
    assert mean[0] == pytest.approx([2.0, 2.0])
    assert latent.shape == (1, 0)
