"""Losses whose gradients train the network: imitation of targets, imitation of the best sample, and
policy gradient with a shared baseline.

The policy is the network's answers plus Gaussian noise ε (``answer_noise``) of deviation s σ, where
s falls during training. Of k samples in antithetic pairs, with objectives v and advantages
A = (mean v − v) / deviation v clipped to ±2, the direction

    g = Σ A_j ε_j / (k s σ²)

is an estimate of the gradient of the smoothed objective, projected on what the noise spans, times
s, so that its length does not grow as the noise falls. The loss is −⟨g, answers⟩, with weight
3 / n on the answers of n tasks, plus a small multiple of squared answers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from optbench.model.instance import Floats

from .answer_noise import SPREADS, draw_noise, shifted
from .answers import Answers
from .encoder import AnswerTensors
from .prepared_instances import ImitationTargets, PreparedInstance

# The weight of all tasks together in the loss.
TASK_SHARE = 3.0
# Advantages are clipped to this; a failed sample counts as the worst of the others times WORST.
MOST_ADVANTAGE, WORST = 2.0, 1.5
# The weight of squared answers in the loss.
SHRINKAGE = 1e-4


def arrays_of(answer: AnswerTensors) -> Answers:
    parts = (each.detach().numpy().astype(float) for each in answer)
    return Answers(*parts)


@dataclass(frozen=True, eq=False)
class NoisyAnswers:
    """Answers with noise added, times its sign."""

    sign: float
    noise: Answers
    answers: Answers


def draw_answers(
    prepared: PreparedInstance,
    mean: Answers,
    samples: int,
    rng: np.random.Generator,
    scale: float = 1.0,
    answered: Collection[str] = tuple(SPREADS),
) -> list[NoisyAnswers]:
    """Return noisy answers in antithetic pairs."""
    drawn = []
    for _ in range(samples // 2):
        noise = draw_noise(prepared.situation.seen, mean, rng, scale, answered)
        drawn += [NoisyAnswers(sign, noise, shifted(mean, noise, sign)) for sign in (1.0, -1.0)]
    return drawn


def kept_values(
    prepared: PreparedInstance, drawn: Sequence[NoisyAnswers], values: Sequence[float]
) -> Floats:
    """Return the objectives with those of failed samples replaced; ``prepared`` keeps the best
    answers.
    """
    for each, value in zip(drawn, values, strict=True):
        prepared.keep(each.answers, value)
    found = np.asarray(values)
    some = np.isfinite(found)
    worst = WORST * found[some].max() if some.any() else 1.0
    return np.where(some, found, worst)


def gradient_loss(
    answer: AnswerTensors,
    drawn: Sequence[NoisyAnswers],
    values: Floats,
    scale: float = 1.0,
    answered: Collection[str] = tuple(SPREADS),
    hold: float = 0.0,
) -> Tensor:
    """Return the loss of a policy gradient step on one instance, with noise of this scale;
    ``hold`` is the weight of squared answers for the whole and for tasks.
    """
    samples = len(drawn)
    advantage = (values.mean() - values) / (values.std() + 1e-12 * abs(values.mean()) + 1e-30)
    advantage = np.clip(advantage, -MOST_ADVANTAGE, MOST_ADVANTAGE)
    loss = torch.zeros(())
    for name in answered:
        spread = SPREADS[name]
        pairs = zip(advantage, drawn, strict=True)
        moves = (a * each.sign * getattr(each.noise, name) for a, each in pairs)
        direction = torch.from_numpy(sum(moves) / (samples * (scale * spread) ** 2) * scale).float()
        share = TASK_SHARE / max(1, len(answer.task)) if name == "task" else 1.0
        loss = loss - share * (direction * getattr(answer, name)).sum()
    if hold:
        loss = loss + hold * (answer.whole.pow(2).sum() + answer.task.pow(2).mean(dim=0).sum())
    return loss + SHRINKAGE * (answer.task.pow(2).mean() + answer.device.pow(2).mean())


def label_loss(
    prepared: PreparedInstance,
    answer: AnswerTensors,
    answered: Collection[str] = tuple(SPREADS),
) -> Tensor:
    """Return the distance from the best answers so far."""
    loss = torch.zeros(())
    for name in answered:
        spread = SPREADS[name]
        target = torch.from_numpy(getattr(prepared.best, name)).float()
        loss = loss + ((getattr(answer, name) - target) / spread).pow(2).mean()
    return loss


def imitation_loss(answer: AnswerTensors, targets: ImitationTargets) -> Tensor:
    """Return the distance from an expert's ends and prices."""
    position = answer.whole[1] + answer.task[:, 0]
    aim = torch.from_numpy(targets.position).float()
    weight = torch.from_numpy(targets.movable).float()
    loss = (answer.whole[0] - targets.stretch).pow(2)
    loss = loss + 0.3 * (weight * (position - aim).abs()).sum()
    known = np.isfinite(targets.price)
    if known.any():
        price = torch.from_numpy(targets.price[known]).float()
        loss = loss + 0.1 * (answer.device[torch.from_numpy(known)] - price).abs().mean()
    return loss
