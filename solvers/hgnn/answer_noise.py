"""Noise on answers: for sampling several schedules, and for the gradient of training.

Each answer for the whole, each class and each factor of a set has a Gaussian number of its own;
tasks have F E / √f with their f standardised features F and Gaussian E, so that tasks that look
alike move alike.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .answers import Answers
from .seen_arrays import SeenArrays

# Standard deviations.
SPREADS = {"whole": 0.3, "device": 0.3, "task": 0.5, "set_factor": 0.1}


def draw_noise(
    seen: SeenArrays, mean: Answers, rng: np.random.Generator, scale: float = 1.0
) -> Answers:
    """Return noise for every answer, of ``scale`` times SPREADS."""
    rows = np.column_stack((seen.task, np.ones(len(mean.task))))
    rows = rows / np.maximum(1e-6, np.sqrt((rows**2).mean(axis=0)))
    along = rows @ rng.normal(size=(rows.shape[1], mean.task.shape[1])) / np.sqrt(rows.shape[1])
    return Answers(
        scale * SPREADS["whole"] * rng.normal(size=mean.whole.shape),
        scale * SPREADS["device"] * rng.normal(size=mean.device.shape),
        scale * SPREADS["task"] * along,
        np.zeros(mean.task_factor.shape),
        scale * SPREADS["set_factor"] * rng.normal(size=mean.set_factor.shape),
    )


def shifted(answers: Answers, noise: Answers, sign: float) -> Answers:
    """Return answers with noise added."""
    moved = {name: value + sign * getattr(noise, name) for name, value in vars(answers).items()}
    return replace(answers, **moved)
