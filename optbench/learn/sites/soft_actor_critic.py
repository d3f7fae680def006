"""Discrete soft actor-critic with masks and twin quantile critics.

    J(π) = E Σ γ^t (r_t + α H(π(·|s_t)))
    y    = r + γ (1 − done) Σ_a π(a|s') (Z(s', a) − α log π(a|s'))

    critics      quantile Huber loss of Z(s, a) against y
    actor        E_s Σ_a π(a|s) (α log π(a|s) − min Q(s, a))
    temperature  log α falls where the entropy is above its target

π is a softmax over legal options, before which illegal ones are masked; Z(s', a) are the quantiles
of the target twin of the lower mean.

Expectations over options are exact, so that neither actor nor target needs a sample. With one
quantile and the plain Huber loss the critics are those of ordinary SAC.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import torch

from optbench.learn.replay import ReplayBatch
from optbench.learn.sites.networks import ENCODER, Net, make_net

NEVER = -1e9


@dataclass(frozen=True)
class SacSettings:
    """``target_entropy`` is in nats. Without ``masks`` the actor may choose an illegal option and
    then waits.

    ``critic_hidden`` is of shared networks; flat ones have one encoder for actor and critics.
    """

    kind: str = "shared"
    hidden: int = 32
    critic_hidden: int = 64
    quantiles: int = 16
    gamma: float = 0.97
    learning_rate: float = 1e-3
    temperature_rate: float = 1e-3
    temperature: float = 0.05
    soft_update: float = 0.01
    target_entropy: float = 0.5
    masks: bool = True


def masked_log_softmax(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch.log_softmax(torch.where(mask, scores, torch.full_like(scores, NEVER)), dim=1)


def quantile_loss(found: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Quantile Huber loss of (rows, quantiles) against (rows, samples); the plain Huber loss for
    one quantile.
    """
    n = found.shape[1]
    error = wanted[:, None, :] - found[:, :, None]
    huber = torch.where(error.abs() <= 1.0, 0.5 * error.square(), error.abs() - 0.5)
    if n == 1:
        return huber.mean()
    share = (torch.arange(n) + 0.5) / n
    return ((share[None, :, None] - (error.detach() < 0).float()).abs() * huber).sum(dim=1).mean()


class SoftActorCritic:
    """Networks, their targets, optimisers and the temperature; ``update`` uses one batch."""

    def __init__(self, settings: SacSettings, pools: int, widest: int, seed: int = 0) -> None:
        self.settings = settings
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.actor = make_net(settings.kind, pools, widest, settings.hidden)
            # A flat network would factorise a head of one output: critics have at least two columns
            # there.
            outputs = max(settings.quantiles, 2 if settings.kind == "flat" else 1)
            width = settings.hidden if settings.kind == "flat" else settings.critic_hidden
            self.critics: list[Net] = [
                make_net(settings.kind, pools, widest, width, outputs) for _ in range(2)
            ]
        # In the paper actor and critics share the encoder; the critics' loss trains it.
        encoder = ENCODER if settings.kind == "flat" else ()
        for critic in self.critics:
            for name in encoder:
                setattr(critic, name, getattr(self.actor, name))
        self.targets = [copy.deepcopy(critic) for critic in self.critics]
        self.log_alpha = torch.tensor(math.log(settings.temperature), requires_grad=True)
        rate = settings.learning_rate
        self.actor_step = torch.optim.Adam(
            [p for name, p in self.actor.named_parameters() if name not in encoder], lr=rate
        )
        self.critic_step = torch.optim.Adam(
            dict.fromkeys(p for critic in self.critics for p in critic.parameters()), lr=rate
        )
        self.alpha_step = torch.optim.Adam([self.log_alpha], lr=settings.temperature_rate)

    def set_rate(self, share: float) -> None:
        """Set all learning rates, as a share of the first."""
        first, of_temperature = self.settings.learning_rate, self.settings.temperature_rate
        for step, rate in (
            (self.actor_step, first),
            (self.critic_step, first),
            (self.alpha_step, of_temperature),
        ):
            for group in step.param_groups:
                group["lr"] = rate * share

    def update(self, batch: ReplayBatch) -> dict[str, float]:
        """Take one step of critics, actor and temperature; return figures for the curves."""
        mask = batch.mask if self.settings.masks else torch.ones_like(batch.mask)
        following_mask = (
            batch.following_mask if self.settings.masks else torch.ones_like(batch.following_mask)
        )
        alpha = self.log_alpha.exp().detach()
        wanted = self._target(batch, following_mask, alpha)
        critic_loss = sum(
            quantile_loss(critic.chosen(batch.state, batch.action), wanted)
            for critic in self.critics
        )
        assert isinstance(critic_loss, torch.Tensor)
        self.critic_step.zero_grad()
        critic_loss.backward()  # type: ignore[no-untyped-call]
        self.critic_step.step()
        with torch.no_grad():
            values = (
                torch.stack([critic(batch.state).mean(dim=2) for critic in self.critics])
                .min(dim=0)
                .values
            )
        log_pi = masked_log_softmax(self.actor(batch.state).squeeze(2), mask)
        pi = log_pi.exp()
        entropy = -(pi * log_pi.clamp(min=-30.0)).sum(dim=1)
        actor_loss = (-(pi * values).sum(dim=1) - alpha * entropy).mean()
        self.actor_step.zero_grad()
        actor_loss.backward()  # type: ignore[no-untyped-call]
        self.actor_step.step()
        alpha_loss = self.log_alpha * (entropy.detach().mean() - self.settings.target_entropy)
        self.alpha_step.zero_grad()
        alpha_loss.backward()  # type: ignore[no-untyped-call]
        self.alpha_step.step()
        self._follow()
        return {
            "critic_loss": float(critic_loss.detach()),
            "actor_loss": float(actor_loss.detach()),
            "entropy": float(entropy.detach().mean()),
            "temperature": float(alpha),
            "value": float(wanted.mean()),
        }

    @torch.no_grad()
    def _target(self, batch: ReplayBatch, mask: torch.Tensor, alpha: torch.Tensor) -> torch.Tensor:
        log_pi = masked_log_softmax(self.actor(batch.following).squeeze(2), mask)
        pi = log_pi.exp()
        first, second = (target(batch.following) for target in self.targets)
        lower = torch.where((first.mean(dim=2) <= second.mean(dim=2))[:, :, None], first, second)
        soft = (pi[:, :, None] * (lower - alpha * log_pi.clamp(min=-30.0)[:, :, None])).sum(dim=1)
        return batch.reward[:, None] + self.settings.gamma * (1.0 - batch.done[:, None]) * soft

    @torch.no_grad()
    def _follow(self) -> None:
        for critic, target in zip(self.critics, self.targets, strict=True):
            for mine, theirs in zip(target.parameters(), critic.parameters(), strict=True):
                mine.lerp_(theirs, self.settings.soft_update)
