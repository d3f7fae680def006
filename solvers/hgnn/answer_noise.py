"""Noise on answers: for sampling several schedules, and for the gradient of training.

Each answer for the whole, each class and each factor of a set has a Gaussian number of its own;
tasks have F E / √f with Gaussian E and F their f features (and a constant), each column divided by
its root mean square, so that tasks that look alike move alike. The factors of tasks have no noise:
those of sets have, and costs are their products.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from .answers import Answers
from .seen_arrays import SeenArrays

# Standard deviations.
SPREADS = {"whole": 0.3, "device": 0.3, "task": 0.5, "set_factor": 0.1}


def draw_noise(
    seen: SeenArrays,
    mean: Answers,
    rng: np.random.Generator,
    scale: float = 1.0,
    answered: Collection[str] = tuple(SPREADS),
) -> Answers:
    """Return noise of ``scale`` times SPREADS for the answers named, 0 for others."""
    noise = {name: np.zeros_like(value) for name, value in vars(mean).items()}
    if "task" in answered:
        rows = np.column_stack((seen.task, np.ones(len(mean.task))))
        rows = rows / np.maximum(1e-6, np.sqrt((rows**2).mean(axis=0)))
        along = rows @ rng.normal(size=(rows.shape[1], mean.task.shape[1])) / np.sqrt(rows.shape[1])
        noise["task"] = scale * SPREADS["task"] * along
    for name in ("whole", "device", "set_factor"):
        if name in answered:
            noise[name] = scale * SPREADS[name] * rng.normal(size=noise[name].shape)
    return Answers(**noise)


def shifted(answers: Answers, noise: Answers, sign: float) -> Answers:
    """Return answers with noise added, times its sign."""
    moved = {name: value + sign * getattr(noise, name) for name, value in vars(answers).items()}
    return replace(answers, **moved)
